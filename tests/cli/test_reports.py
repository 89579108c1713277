"""What commands say of campaigns that are there: tables, pictures, pages."""

import io
import itertools
import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from liftpy.cli.progress import CampaignView
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore import spaces
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.run import Progress, Standing
from liftpy.explore.campaign.seals import seal
from liftpy.explore.exploring import explore
from liftpy.explore.measure.outcome import Refused
from liftpy.explore.measure.pareto import rule
from liftpy.explore.measure.reference import Reference
from liftpy.explore.report.plot import drawn
from liftpy.explore.report.scale import Scale
from liftpy.explore.report.wording import in_time
from liftpy.explore.search import SEARCHES
from liftpy.traffic.energy_costs import FOLDER
from tests.cli.said import PROGRAM
from tests.explore.spaces import small_space

LONG = "the driver failed to build it: " + "[a very long reason] " * 20 + "\nwith a second line"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    """Eight candidates, four of them made to have other outcomes than they had."""
    path = tmp_path_factory.mktemp("campaign") / "some.db"
    told = []
    explore(PROGRAM, 8, db=path, families=["plain", "direct"], progress=told.append, again=False)
    (standing,) = told[-1].standings
    assert standing.front == len(Campaign.read(path).pareto()), "the live view counts this front"
    with closing(sqlite3.connect(path)) as tampered, tampered:
        for ordinal, kind, reason in ((1, "build_failed", LONG), (4, "refused", "too <b>large")):
            tampered.execute(
                "UPDATE outcome SET kind = ?, reason = ?, time_ns = NULL, peak = NULL WHERE"
                " candidate IN (SELECT key FROM candidate WHERE ordinal IN (?, ?))",
                (kind, reason, ordinal, ordinal + 1),
            )
        tampered.execute(
            "DELETE FROM run WHERE candidate IN (SELECT candidate FROM outcome"
            " WHERE time_ns IS NULL)"
        )
        seal(tampered)
    tampered.close()
    return Campaign.read(path)


@pytest.fixture
def db(campaign, liftpy):
    """That campaign in the folder of the command."""
    shutil.copy(campaign.path, "some.db")
    return "some.db"


@pytest.mark.parametrize("width", [80, 160])
def test_a_long_reason_costs_no_column(liftpy, db, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = liftpy("candidates", db).out
    rows = Campaign.read(Path(db)).rows
    assert all(row.id in said for row in rows)
    assert said.count("build_failed") == 3, "two rows and the count"
    assert said.split()[:5] == ["id", "outcome", "time", "candidate", "reason"]
    assert said.count("family=") == len(rows)
    assert said.count("the driver") == 2
    assert "with a second line" not in said
    assert "with a second line" in liftpy("candidates", db, "--full").out
    assert liftpy("candidates", db, "--json").json[1]["reason"] == LONG


@pytest.mark.parametrize(
    ("stage", "key"),
    [
        ("source", "text"),
        ("types", "types"),
        ("lowered", "text"),
        ("constraints", "skeletons"),
        ("memory", "buffers"),
        ("views", "kernels"),
        ("loops", "kernels"),
        ("bounds", "kernels"),
        ("code", "text"),
    ],
)
def test_a_stage_is_shown_as_data(liftpy, stage, key):
    chosen = ("--set", "family=direct", "--set", "pad=copy", "--set", "kappa=2")
    data = liftpy("show", "tiny.lift", "--stage", stage, *chosen, "--json").json
    assert data["program"] == "tiny"
    assert data["stage"] == stage
    assert data[key]
    if key == "text":
        shown = liftpy("show", "tiny.lift", "--stage", stage, *chosen).out
        assert data["text"].strip() in shown
    if stage in ("memory", "views", "loops", "bounds", "code"):
        assert data["assignment"]["kappa"] == 2


@pytest.mark.parametrize("colour", [True, False])
def test_a_live_view_says_how_far_it_is(colour):
    text = io.StringIO()
    screen = Console(file=text, force_terminal=True, width=100, no_color=not colour)
    candidate, following = small_space().sample(2, seed=0)
    refused = Refused("the work-group of k1 is too large")
    with CampaignView("tiny", 8, screen) as view:
        counts = {"measured": 3, "refused": 1}
        one = Standing(DEFAULT_DEVICE, 1_500_000, 2)
        other = Standing(replace(DEFAULT_DEVICE, name="fpga"), 7_250_000, 5)
        view(Progress(4, 8, counts, (one,), candidate, refused))
        view(Progress(4, 8, counts, (one,), candidate))
        alone = text.getvalue()
        view(Progress(4, 8, counts, (one, other), following, None, (candidate, following)))
    if not colour:
        assert text.getvalue() == ""
        return
    said = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue()).split("\n")
    joined = "\n".join(said)
    for part in ("4/8", "a minute", "left", "best", "1.500 ms", "2 on the front", "measured"):
        assert part in joined, joined
    assert "1 x refused: the work-group of k1 is too large" in joined
    assert candidate.label in joined, "it is measured"
    assert following.label not in joined, "it is only built"
    assert "of generic" not in alone, "one device needs no name"
    lines = [" ".join(line.split()) for line in said]
    assert "best 1.500 ms 2 on the front of generic: generic" in lines
    assert "best 7.250 ms 5 on the front of generic: fpga" in lines


def test_a_search_is_tried_on_what_is_stored(liftpy, db, monkeypatch):
    """No device is asked for, nothing is measured, and only stored candidates are drawn."""
    monkeypatch.setattr(spaces, "find_device", None)
    rows = {row.id: row for row in Campaign.read(Path(db)).rows}
    command = ("explore", "tiny.lift", "--family", "plain", "--family", "direct", "--replay", db)
    for search in SEARCHES:
        data = liftpy(*command, "--search", search, "--json").json
        assert sorted(data["tried"]) == sorted(rows), search
        assert data["stored"] == len(rows)
        assert data["best_ns"][-1] == min(r.time_ns for r in rows.values() if r.time_ns)
        assert data["hypervolume"] == sorted(data["hypervolume"])
        assert data["within_5_percent"] <= len(rows)
    assert "within 5 % of the best time" in liftpy(*command, "--samples", 5).out


def test_the_commands_write_a_page_and_a_picture(liftpy, db):
    assert liftpy("report", db, "-o", "some.html").out == "written to some.html\n"
    page = Path("some.html").read_text(encoding="utf-8")
    assert all(row.id in page for row in Campaign.read(Path(db)).rows if row.time_ns)
    assert "too &lt;b&gt;large" in page
    assert liftpy("pareto", db, "--plot", "some.png").code == 0
    assert Path("some.png").read_bytes().startswith(b"\x89PNG")


OTHER = replace(DEFAULT_DEVICE, name="Other")
SLOWER = 1000


@pytest.fixture
def mixed(campaign, liftpy):
    """That campaign, every other measured candidate of it moved to a device that is far slower."""
    shutil.copy(campaign.path, "mixed.db")
    moved = [row.id for row in campaign.rows if row.time_ns][1::2]
    devices = [campaign.device.to_json(), OTHER.to_json()]
    with closing(sqlite3.connect("mixed.db")) as db, db:
        db.execute(
            "UPDATE campaign SET settings = json_set(settings, '$.devices', json(?))",
            (json.dumps(devices),),
        )
        for key in moved:
            db.execute(
                "UPDATE build SET fingerprint = ? WHERE candidate = ?", (OTHER.fingerprint, key)
            )
            db.execute("UPDATE run SET ns = ns * ? WHERE candidate = ?", (SLOWER, key))
            db.execute(
                "UPDATE outcome SET time_ns = time_ns * ? WHERE candidate = ?", (SLOWER, key)
            )
        seal(db)
    db.close()
    return Campaign.read(Path("mixed.db"))


def test_times_of_several_devices_are_never_in_one_front(liftpy, mixed):
    one, other = mixed.apart()
    assert {row.device for row in mixed.pareto()} == {d.fingerprint for d in mixed.devices}
    for part in (one, other):
        alone = min(row.time_ns for row in part.rows if row.time_ns)
        assert alone in [row.time_ns for row in part.pareto()]
        assert part.best().time_ns == alone == mixed.best(device=part.device).time_ns
    data = liftpy("pareto", "mixed.db", "--json").json
    names = {row["id"]: row["device_name"] for row in data["front"]}
    assert names == {row.id: part.device.label for part in (one, other) for row in part.pareto()}
    for part in (one, other):
        volume = data["hypervolume"][part.device.fingerprint]
        assert len(volume["after_each"]) == len(part.rows)
        assert volume["ideal"]["time_ns"] == part.best().time_ns
    lines = liftpy("pareto", "mixed.db", "--format", "csv").out.splitlines()[1:]
    assert [line.split(",")[2] for line in lines] == [*names.values()]
    listed = liftpy("candidates", "mixed.db", "--json").json
    assert {row["device_name"] for row in listed if row["time_ns"]} == set(names.values())
    assert OTHER.label.split()[0] in liftpy("candidates", "mixed.db").out.split()  # in two lines


def test_the_rule_of_the_front_is_said_beside_it(liftpy, db):
    assert rule("peak") in " ".join(liftpy("pareto", db).out.split())
    assert rule("local") in " ".join(liftpy("pareto", db, "--axis", "local").out.split())
    assert liftpy("pareto", db, "--axis", "local", "--json").json["rule"] == rule("local")
    both = rule("peak", also="error")
    assert liftpy("pareto", db, "--also", "error", "--json").json["rule"] == both
    assert liftpy("pareto", db, "--also", "error", "--plot", "three.svg").code == 0
    assert "<!-- error -->" in Path("three.svg").read_text(encoding="utf-8"), "in its legend"
    assert liftpy("report", db, "--also", "error", "-o", "three.html").code == 0
    assert both in Path("three.html").read_text(encoding="utf-8")


def test_the_energy_proxy_is_an_axis(liftpy, db):
    said = liftpy("pareto", db, "--axis", "energy")
    assert said.code == 0, said.err
    assert rule("energy") in " ".join(said.out.split())
    assert "energy proxy: costs of 45nm; assumed: add f64" in said.err
    front = liftpy("pareto", db, "--axis", "energy", "--json").json["front"]
    assert all(row["energy_proxy_pj"] > 0 for row in front)
    data = json.loads((FOLDER / "45nm.json").read_text(encoding="utf-8"))
    for figure in (*data["add"].values(), *data["multiply"].values(), *data["caches"]):
        figure["value"] *= 2
    data["memory"]["value"] *= 2
    Path("twice.json").write_text(json.dumps(data), encoding="utf-8")
    asked = ("--axis", "energy", "--energy-costs", "twice.json", "--json")
    twice = {
        row["id"]: row["energy_proxy_pj"] for row in liftpy("pareto", db, *asked).json["front"]
    }
    for row in front:
        assert twice[row["id"]] == pytest.approx(2 * row["energy_proxy_pj"])
    assert liftpy("report", db, "--also", "energy", "-o", "e.html").code == 0
    assert "Time, memory and energy proxy" in Path("e.html").read_text(encoding="utf-8")
    alone = liftpy("pareto", db, "--energy-costs", "twice.json")
    assert alone.code == 2
    assert "it needs --axis energy or --also energy" in " ".join(alone.err.split())


def test_each_device_has_a_picture_of_its_own(mixed):
    """All that an axis shows fits its scale: with both on one, a factor of 1000 would be there."""
    figure = drawn(mixed, "peak")
    assert len(figure.axes) == 2
    for axes, part in zip(figure.axes, mixed.apart(), strict=True):
        assert part.device.name in axes.get_title()
        *families, best = (group.get_offsets() for group in axes.collections)
        assert len(best) == len(part.pareto())
        places = [x for family in families for x, _ in family]
        assert len(places) == sum(row.time_ns is not None for row in part.rows)
        times = [row.time_ns for row in part.rows if row.time_ns]
        scale = Scale.of(times, 0, 1, "time")
        assert sorted(places) == pytest.approx(sorted(scale.at(t) for t in times))


def test_a_search_is_tried_on_what_one_device_measured(liftpy, mixed):
    command = (
        "explore",
        "tiny.lift",
        "--family",
        "plain",
        "--family",
        "direct",
        "--search",
        "random",
        "--replay",
        "mixed.db",
    )
    said = liftpy(*command)
    assert said.code == 1
    assert "has times of 2 devices; name one (--device)" in said.err
    for part in mixed.apart():
        data = liftpy(*command, "--json", "--device", part.device.name).json
        assert sorted(data["tried"]) == sorted(row.id for row in part.rows)
        assert data["best_ns"][-1] == part.best().time_ns
    said = liftpy("run", "tiny.lift", "--db", "mixed.db", "--json")
    assert said.json["id"] == mixed.apart()[0].best().id, "that of the device it runs on"


def test_the_version_is_said(liftpy):
    assert liftpy("--version").out == "liftpy 0.1.0\n"


def test_a_run_is_held_against_what_is_stored_and_says_when_it_was_disturbed(
    liftpy, db, monkeypatch
):
    best = Campaign.read(Path(db)).best()
    data = liftpy("run", "tiny.lift", "--db", db, "--json").json
    assert (data["id"], data["stored_ns"]) == (best.id, best.time_ns)
    looks = itertools.chain([1.0], itertools.repeat(1.5))  # as if something else began to run
    monkeypatch.setattr(Reference, "look", lambda _: next(looks))
    said = liftpy("run", "tiny.lift", "--db", db).out
    assert f"stored  {in_time(best.time_ns)} (" in said
    assert "times as long)" in said
    assert "disturbed: a fixed kernel took 1.50 times its usual time" in said


def test_arrays_that_are_nan_everywhere_are_said(liftpy):
    Path("p.lift").write_text("def p(x: [12]f32) = x |> map(x => x * 2)")
    np.save("x.npy", np.full(12, np.nan, np.float32))
    said = liftpy("run", "p.lift", "--input", "x=x.npy")
    assert said.err.splitlines() == [
        "note: x is NaN in all of its 12 elements",
        "note: the result is NaN in all of its 12 elements",
    ]
    Path("q.lift").write_text("def q(x: [12]f32) = x |> map(x => sqrt(-1 - x * x))")
    said = liftpy("explore", "q.lift", "--samples", 1, "--db", "q.db", "--no-again")
    assert (
        "note: the meaning of the result is NaN in all of its 12 elements that are compared: "
        "results cannot be checked there" in said.err
    )


def test_a_space_of_one_candidate_says_so(liftpy):
    Path("one.lift").write_text("def one(x: [1]f32) = x |> map(x => x * 2)")
    bound = ("--set", "family=plain", "--set", "map=glb0")
    sentence = "there is nothing to choose, and no front to find"
    assert sentence in liftpy("space", "one.lift", *bound).out
    assert sentence in liftpy("explore", "one.lift", *bound, "--db", "one.db").err
    assert sentence not in liftpy("space", "tiny.lift", "--set", "family=plain").out
