"""One case for each refusal of what a board printed: a right output, with one thing changed."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import liftpy as lp
from liftpy.boards.bundle import Bundle, write
from liftpy.boards.importing import import_results
from liftpy.boards.results import COLUMNS, FORMAT, read_results
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.seals import seal
from liftpy.explore.campaign.store import Store
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.spaces import space_of
from liftpy.pipeline import compile_candidate

SPACE = space_of(lp.parse("def double(xs: [12]f32) = xs |> map(x => x + x)"), DEFAULT_DEVICE)
PLAIN = SPACE.candidate({"family": "plain", "map": "glb0"})
TILED = SPACE.candidate({"family": "tiled", "tile0": 3})
IDENTITY = identity_of(SPACE, 0, search="random")
CAMPAIGN = Bundle(IDENTITY, (PLAIN,)).campaign
DEVICE = DEFAULT_DEVICE.to_json()


def row(of: Candidate = PLAIN, sha: str | None = None, **changes: str) -> str:
    module = compile_candidate(PLAIN.skeleton, PLAIN.assignment)
    fields = {
        "candidate": of.key,
        "ordinal": "0",
        "skeleton": f'"{of.skeleton.key}"',
        "sizes": " ".join(f"{name}={value}" for name, value in of.sizes),
        "device": DEFAULT_DEVICE.name,
        "driver": DEFAULT_DEVICE.driver_version,
        "source": sha or source_sha(module.source),
        "outcome": "measured",
        "reason": "right",
        "error": "0",
        "rms": "0",
        "build_seconds": "0.5",
        "prepare_ns": "0",
        "allocated": str(module.memory.allocated),
        "times_ns": "30;10;20",
        "detail": "",
    }
    return ",".join({**fields, **changes}[column] for column in COLUMNS)


def printed(*rows: str, campaign=CAMPAIGN, device=DEVICE, end: str | None = None) -> str:
    """What a board prints."""
    lines = [
        FORMAT,
        f"# bundle {'0' * 64}",
        f"# campaign {json.dumps(campaign)}",
        f"# device {json.dumps(device)}",
        "# started 2026-11-21T18:33:14Z",
        ",".join(COLUMNS),
        *rows,
        f"# end {len(rows)}" if end is None else end,
    ]
    return "".join(f"{line}\n" for line in lines)


def imported(text: str, folder: Path) -> None:
    (folder / "results.csv").write_text(text)
    import_results(folder / "a.db", read_results(folder / "results.csv"))


def into_another(folder: Path, **changes: Any) -> None:
    """Results for a campaign that is another one."""
    Store.open(folder / "a.db", replace(IDENTITY, **changes)).close()
    imported(printed(row()), folder)


def twice(folder: Path) -> None:
    """Results that the campaign has."""
    imported(printed(row()), folder)
    imported(printed(row()), folder)


def invalid() -> Candidate:
    """A candidate with a size that its program does not allow."""
    return replace(TILED, sizes=tuple((n, 5 if n == "tile0" else v) for n, v in TILED.sizes))


TEXTS = {
    "results_of_something_else": "time,memory\n",
    "results_without_a_bundle": printed(row()).replace("# bundle", "# begin"),
    "results_cut_off": printed(row())[:-5],
    "results_without_an_end": printed(row(), end="# begin 0123456789ab"),
    "results_of_two_devices": printed(row()).replace("# started", "# device"),
    "results_fewer_than_printed": printed(row(), end="# end 2"),
    "results_with_an_unknown_remark": printed(row(), end="# ende 1"),
    "results_with_an_open_quote": printed(row(reason='"right')),
    "results_with_a_column_too_few": printed(row().partition(",")[2]),
    "results_of_another_driver": printed(row(driver="2")),
    "results_with_a_candidate_twice": printed(row(), row()),
    "results_with_an_unknown_outcome": printed(row(outcome="fine")),
    "results_with_runs_of_two_lengths": printed(row(times_ns="30 1;10")),
    "results_with_a_time_that_is_none": printed(row(times_ns="30;1o")),
    "results_of_a_device_in_part": printed(
        row(), device={k: DEVICE[k] for k in ("name", "driver_version")}
    ),
    "results_without_rows": printed(),
    "results_of_a_campaign_in_part": printed(row(), campaign={"program": "double"}),
    "results_of_another_version": printed(row(), campaign={**CAMPAIGN, "version": "0.0.1"}),
    "results_of_an_unknown_skeleton": printed(row(skeleton="plane")),
    "results_of_an_unknown_candidate": printed(row(candidate="0123456789ab")),
    "results_of_a_candidate_without_kernels": printed(row(invalid())),
    "results_of_other_kernels": printed(row(sha="0" * 64)),
    "results_with_a_launch_too_many": printed(row(times_ns="30 1")),
    "results_with_other_buffers": printed(row(allocated="1")),
    "results_with_a_size_of_two_values": printed(row(sizes="a=1 a=2")),
    "results_with_a_time_of_zero": printed(row(times_ns="30;0;20")),
    "results_of_a_campaign_nested_deeply": printed(row()).replace(
        '"settings": {', '"settings": ' + "[" * 5000 + "{"
    ),
    "results_with_a_key_twice": printed(row()).replace('"seed": 0', '"seed": 0, "seed": 0'),
    "results_with_nan_as_a_number": printed(row()).replace('"seed": 0', '"seed": NaN'),
    "results_of_a_campaign_that_is_a_list": printed(row(), campaign=[]),
    "results_of_a_text_that_is_no_program": printed(row(), campaign={**CAMPAIGN, "text": "x"}),
    "results_of_a_program_of_another_name": printed(row(), campaign={**CAMPAIGN, "program": "x"}),
    "results_of_a_kernel_that_there_is_not": printed(
        row(outcome="refused", detail="kernel=x figure=group number=1")
    ),
    "results_whose_detail_does_not_fit": printed(row(outcome="wrong", detail="element=3")),
}

CASES: dict[str, Callable[[Path], object]] = {
    **{name: lambda folder, text=text: imported(text, folder) for name, text in TEXTS.items()},
    "results_that_are_not_there": lambda folder: read_results(folder / "results.csv"),
    "results_taken_twice": twice,
    "results_for_a_modelled_campaign": lambda folder: into_another(
        folder, settings={**IDENTITY.settings, "modelled": True}
    ),
    "results_of_another_program": lambda folder: into_another(folder, text="", program="other"),
    "results_of_another_device": lambda folder: into_another(
        folder, device=replace(DEFAULT_DEVICE, driver_version="9").to_json()
    ),
    "results_judged_otherwise": lambda folder: into_another(
        folder, settings={**IDENTITY.settings, "tolerance": 0.1}
    ),
    "results_for_another_version": lambda folder: into_another(folder, version="0.0.1"),
}


def case(run: Callable[[Path], object]) -> None:
    CASES[run.__name__] = run


@case
def results_that_are_no_text(folder):
    (folder / "results.csv").write_bytes(b"\xff\xfe")
    read_results(folder / "results.csv")


@case
def bundle_in_a_full_folder(folder):
    (folder / "results.csv").touch()
    write(Bundle(IDENTITY, (PLAIN,)), folder)


@case
def bundle_where_nothing_can_be_written(folder):
    (folder / "file").touch()
    write(Bundle(IDENTITY, (PLAIN,)), folder / "file" / "bundle")


@case
def bundle_of_permitted_storage(folder):
    text = "storage xs: flyte24\ndef twice(xs: [12]f32) = xs |> map(x => x * 2)"
    space = space_of(lp.parse(text), DEFAULT_DEVICE)
    identity = identity_of(space, 0, search="random")
    write(Bundle(identity, tuple(space.sample(1, 0))), folder / "bundle")


@case
def bundle_of_stored_numbers(folder):
    space = space_of(lp.parse("def read(xs: [12]bf16) = xs |> map(x => f32(x))"), DEFAULT_DEVICE)
    identity = identity_of(space, 0, search="random")
    write(Bundle(identity, tuple(space.sample(1, 0))), folder / "bundle")


@case
def bundle_in_a_folder_of_too_long_a_name(folder):
    write(Bundle(IDENTITY, (PLAIN,)), folder / ("a" * 300))


@case
def bundle_of_kernels_that_are_no_longer_made(folder):
    imported(printed(row()), folder)
    with closing(sqlite3.connect(folder / "a.db")) as there, there:
        by_hand = ("// by hand", digest("// by hand"))
        there.execute("UPDATE build SET source = ?, source_sha = ?", by_hand)
        seal(there)
    there.close()
    Bundle.stored(folder / "a.db", [PLAIN.key])
