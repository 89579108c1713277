"""devices, space, explain: the devices that a program can run on, and its valid choices."""

from __future__ import annotations

import dataclasses
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from liftpy.cli.options import (
    BoundLimit,
    JsonFlag,
    LimitsName,
    MemoryLimit,
    ProgramName,
    SamplerName,
    SamplerOption,
    SeedOption,
    SetOption,
    SizeOption,
    StorageOption,
    WhereOption,
    WinogradPoints,
)
from liftpy.cli.screen import note, say, show, show_json
from liftpy.cli.spaces import asked_space
from liftpy.constraints.device import DEFAULT_DEVICE, PROFILE, Device
from liftpy.constraints.profile import SUFFIX
from liftpy.constraints.profile import profiles as all_profiles
from liftpy.constraints.profile_text import text_of
from liftpy.errors import LiftError
from liftpy.explore.report.wording import in_bytes
from liftpy.explore.space import survey
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.files.writing import write_file
from liftpy.ir.types import EXTENSIONS
from liftpy.opencl.devices import device_notes, devices, find_device, other_reports
from liftpy.rewrite.skeleton import FAMILY
from liftpy.rewrite.strategies.families import meaning_of
from liftpy.traffic.machine import profile_of as profile_for

VALUES_SHOWN = 12  # the most values of a size that are listed individually

DrawOption = Annotated[
    int, typer.Option("--draw", metavar="N", min=0, help="Draw N candidates instead.")
]
ImpliedOption = Annotated[
    bool, typer.Option("--implied", help="Show which conditions follow from others (z3; slow).")
]
UncountedOption = Annotated[
    bool,
    typer.Option("--uncounted", help="Show ranges tightened by z3, do not count (slow)."),
]
AuditOption = Annotated[
    bool,
    typer.Option(
        "--audit",
        "--census",
        help="Show the number of conditions of each source, or why it has none.",
    ),
]
StartOption = Annotated[
    int, typer.Option("--start", metavar="K", min=0, help="Skip the first K draws.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("devices")(show_devices)
    app.command("space")(show_space)
    app.command("explain")(explain)


def show_devices(
    *,
    profiles: Annotated[
        bool, typer.Option("--profiles", help="List the profiles of devices that are not attached.")
    ] = False,
    profile_of: Annotated[
        str | None,
        typer.Option(
            "--profile-of", metavar="DEVICE", help="Print a device as a profile, in TOML."
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE.toml", help="The file for --profile-of to write."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """OpenCL devices, with the limits that enter the constraint system."""
    if output is not None and profile_of is None:
        raise typer.BadParameter(
            "it names the file for a profile: add --profile-of DEVICE", param_hint="-o"
        )
    if profile_of is not None:
        write_profile(profile_of, output, json=json)
        return
    if profiles:
        show_profiles(json=json)
        return
    found = devices()
    if json:
        show_json([device.to_json() for device in found])
        return
    if not found:
        find_device()  # raises, and says how to get one
    table = Table(box=None, pad_edge=False)
    for name in ("", "device", "platform", "driver", "type", "units", "group", "local"):
        table.add_column(name, overflow="fold")
    table.add_column("largest buffer")
    table.add_column("memory")
    for number, device in enumerate(found):
        table.add_row(
            str(number),
            device.name,
            device.platform,
            device.driver_version,
            device.type,
            str(device.compute_units),
            f"{device.max_work_group_size} {list(device.max_work_item_sizes)}",
            in_bytes(device.local_memory),
            in_bytes(device.largest_buffer),
            in_bytes(device.global_memory),
        )
    show(table)
    for text in device_notes():
        note(f"note: {text}")


def write_profile(name: str, output: Path | None, *, json: bool) -> None:
    """Prints a device as a profile, or writes it to a file."""
    if output is not None and output.suffix != SUFFIX:
        raise typer.BadParameter(
            f"{output} cannot hold a profile: name a file that ends with {SUFFIX}", param_hint="-o"
        )
    device = find_device(name)
    made = profile_for(device, datetime.now(UTC).date().isoformat())
    remarks = [f"{device.label} {device.driver_version}".rstrip()]
    if not device.profile:
        remarks += [f"The driver also reports: {said}." for said in other_reports(device)]
    text = text_of(made, remarks)
    if output is not None:
        write_file(output, text.encode())
        note(f"{output} is written; --device {PROFILE}./{output} reads it")
    if json:
        show_json(made.to_json())
    elif output is None:
        say(text.rstrip())


def show_profiles(*, json: bool) -> None:
    """Prints the profiles that liftpy contains; as JSON with the source of each limit."""
    known = all_profiles()
    if json:
        show_json([profile.to_json() for profile in known])
        return
    table = Table(box=None, pad_edge=False)
    names = ("profile", "device", "group", "local", "private", "largest buffer", "memory", "floats")
    for name in names:
        table.add_column(name, overflow="fold", no_wrap=name in ("profile", "group"))
    for profile in known:
        device = profile.device
        table.add_row(
            f"{PROFILE}{profile.name}",
            device.name,
            f"{device.max_work_group_size} {list(device.max_work_item_sizes)}",
            in_bytes(device.local_memory),
            in_bytes(device.private_memory),
            in_bytes(device.largest_buffer),
            in_bytes(device.global_memory),
            ", ".join(["f32", *(t.name for t, e in EXTENSIONS.items() if e in device.extensions)]),
        )
    show(table)
    for profile in known:
        if assumed := profile.assumed:
            say(f"assumed values of {profile.name}: {', '.join(assumed)}")
    say("the source of each limit: liftpy devices --profiles --json")


def show_space(  # noqa: PLR0913  one parameter per option
    program: ProgramName,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    device: LimitsName = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    max_error: BoundLimit = None,
    winograd_points: WinogradPoints = None,
    draw: DrawOption = 0,
    start: StartOption = 0,
    seed: SeedOption = 0,
    sampler: SamplerOption = SamplerName.UNIFORM,
    implied: ImpliedOption = False,
    uncounted: UncountedOption = False,
    audit: AuditOption = False,
    json: JsonFlag = False,
) -> None:
    """Parameters, constraints with their sources, and the exact number of valid points.

    With --draw, prints candidates instead, as `explore --search random` draws them for this seed.
    """
    begun = time.perf_counter()
    whole, chosen = asked_space(
        program,
        size,
        device,
        set_,
        where,
        memory_limit,
        max_error,
        winograd_points=winograd_points,
        storage=storage,
    )
    space, target = whole.narrow(chosen), whole.device
    if draw:
        drawn = dataclasses.replace(space, sampler=sampler.value).sample(draw, seed, start=start)
        show_draws(drawn, more=len(drawn) == draw, json=json)
        return
    left = survey.uncounted(space) if uncounted else None
    count = None if uncounted else space.count()
    seconds = time.perf_counter() - begun
    follows = survey.implied(space) if implied else None
    asking = survey.asking(space) if audit else None
    if json:
        data = {
            "program": space.program.name,
            "device": target.to_json(),
            "parameters": space.parameters,
            **({"reached": space.reached} if left is None else {"tightened": as_json(left)}),
            "constraints": space.constraints,
            **({"implied": follows} if follows is not None else {}),
            **({"census": [dataclasses.asdict(one) for one in asking]} if asking else {}),
            "skeletons": None if uncounted else space.counts(),
            "count": count,
            "seconds": seconds,
        }
        show_json(data)
        return
    say(f"{space.program.name} on {spell(target)}")
    show_choices(space, left)
    show_conditions(space, follows)
    if asking is not None:
        show_audit(asking)
    if count is None:
        say(f"valid points: not counted (ranges tightened by z3 in {seconds:.2f} s)")
        return
    sizes = Table(title="skeletons", title_justify="left", box=None, pad_edge=False)
    sizes.add_column("skeleton", overflow="fold")
    sizes.add_column("valid points", justify="right")
    for key, mine in space.counts().items():
        sizes.add_row(key, f"{mine:,}")
    show_filled(sizes)
    say(f"valid points: {count:,} (derived and counted in {seconds:.2f} s)")
    if (only := space.only_one()) is not None:
        say(only)
    if not count:
        say(whole.explain(chosen).text)


def as_json(left: dict[str, survey.Left]) -> dict[str, Any]:
    """Tightened ranges as JSON data."""
    return {name: dataclasses.asdict(mine) for name, mine in left.items()}


def show_filled(table: Table) -> None:
    """Prints a table that has rows."""
    if table.row_count:
        show(table)


def show_choices(space: Space, left: dict[str, survey.Left] | None) -> None:
    """Prints choices and sizes, with the valid values of each size, or the range that z3 leaves."""
    table = Table(title="parameters", title_justify="left", box=None, pad_edge=False)
    for name in ("name", "values", "meaning", "families"):
        table.add_column(name, overflow="fold")
    absent = may_be_absent(space)
    for p in space.parameters:
        if "words" in p:
            words = [*p["words"], *(["(absent)"] if p["name"] in absent else [])]
            table.add_row(p["name"], " | ".join(words), meaning_of(p["name"]), "")
            continue
        spelled = spell_range(p, space.reached) if left is None else spell_left(p, left[p["name"]])
        table.add_row(p["name"], spelled, p["meaning"], ", ".join(p["families"]))
    show_filled(table)


def may_be_absent(space: Space) -> set[str]:
    """The choices that some skeletons have and others of the same family do not."""
    words = [unit.words for unit in (*space.units, *space.every)]
    having: dict[str, set[str | None]] = {}
    for own in words:
        for name in own:
            having.setdefault(name, set()).add(own.get(family_of(name)))
    return {
        name
        for name, families in having.items()
        if any(name not in own and own.get(family_of(name), "") in families for own in words)
    }


def family_of(choice: str) -> str:
    """The name of the choice of the family, in the stage of another choice."""
    *stage, _ = choice.split(".")
    return ".".join([*stage[:1], FAMILY])


def show_conditions(space: Space, follows: dict[str, list[str]] | None) -> None:
    """Prints each condition, its source, and the numbers of skeletons that have or imply it."""
    table = Table(title="constraints", title_justify="left", box=None, pad_edge=False)
    also = [] if follows is None else ["follows in"]
    for name in ("condition", "required by", "skeletons", *also):
        table.add_column(name, overflow="fold")
    for c in space.constraints:
        counts = [len(c["skeletons"])]
        if follows is not None:
            counts.append(len(set(follows.get(c["text"], ())) & set(c["skeletons"])))
        table.add_row(c["text"], c["asked_by"], *map(str, counts))
    show_filled(table)


def show_audit(asking: list[survey.Counted]) -> None:
    """Prints the number of conditions of each source, or the reason why it has none."""
    table = Table(title="audit", title_justify="left", box=None, pad_edge=False)
    for name in ("source", "", "conditions", "why none"):
        table.add_column(name, overflow="fold")
    for one in asking:
        none = "its conditions hold for all sizes here" if one.conditions == 0 else ""
        count = "" if one.silent else str(one.conditions)
        table.add_row(one.kind, one.name, count, one.silent or none)
    show(table)


def spell_range(parameter: dict[str, Any], reached: dict[str, list[int]]) -> str:
    """The range of a size, and the valid values in it."""
    text = f"{parameter['low']} .. {parameter['high']}"
    values = reached[parameter["name"]]
    if not values:
        return f"{text}: none valid"
    if len(values) == parameter["high"] - parameter["low"] + 1:
        return text
    if len(values) <= VALUES_SHOWN:
        return f"{text}: {', '.join(map(str, values))} valid"
    return f"{text}: {len(values)} valid, {values[0]} .. {values[-1]}"


def spell_left(parameter: dict[str, Any], left: survey.Left) -> str:
    """The range of a size, and the part of it that z3 does not exclude."""
    text = f"{parameter['low']} .. {parameter['high']}"
    if left.low is None:
        return f"{text}: none valid"
    within = (
        ""
        if [left.low, left.high] == [parameter["low"], parameter["high"]]
        else (f": {left.low} .. {left.high}")
    )
    gave_up = f" (z3 gave up in {left.unknown} skeletons)" if left.unknown else ""
    return f"{text}{within}{gave_up}"


def show_draws(drawn: list[Candidate], *, more: bool, json: bool) -> None:
    """Prints drawn candidates, one per line, and the start of the next draw."""
    if json:
        show_json(
            [{"ordinal": c.ordinal, "id": c.key, "assignment": c.assignment} for c in drawn],
        )
        return
    for candidate in drawn:
        say(f"{candidate.ordinal:>6} {candidate.key} {candidate.label}")
    note(f"next: --start {drawn[-1].ordinal + 1}" if more else "no more candidates")


def explain(  # noqa: PLR0913  one parameter per option
    program: ProgramName,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    set_: SetOption = None,
    where: WhereOption = None,
    device: LimitsName = None,
    memory_limit: MemoryLimit = None,
    max_error: BoundLimit = None,
    winograd_points: WinogradPoints = None,
    json: JsonFlag = False,
) -> None:
    """Whether settings are valid, or which conditions clash and which values would work.

    Exit code 1 if they are not.
    """
    space, chosen = asked_space(
        program,
        size,
        device,
        set_,
        where,
        memory_limit,
        max_error,
        winograd_points=winograd_points,
        storage=storage,
    )
    answer = space.explain(chosen)
    if json:
        show_json(dataclasses.asdict(answer))
    else:
        say(answer.text)
    if not answer.valid:
        raise typer.Exit(LiftError.exit_code)


def spell(device: Device) -> str:
    """The name of a device, with its platform."""
    if device == DEFAULT_DEVICE:
        return "no device in particular (generic limits)"
    return f"{device.platform}: {device.name}"
