"""devices, space, explain: where a program can run, and what can be chosen."""

from __future__ import annotations

import dataclasses
import time
from typing import Annotated, Any

import typer
from rich.table import Table

from liftpy.cli.arguments import (
    JsonFlag,
    LimitsName,
    MemoryLimit,
    ProgramName,
    SamplerName,
    SamplerOption,
    SeedOption,
    SetOption,
    SizeOption,
    WhereOption,
    asked_space,
)
from liftpy.cli.screen import note, say, show, show_json
from liftpy.constraints.device import DEFAULT_DEVICE, PROFILE, Device
from liftpy.constraints.profile import profiles as all_profiles
from liftpy.errors import LiftError
from liftpy.explore.candidate import Candidate
from liftpy.explore.report import in_bytes
from liftpy.ir.types import EXTENSIONS
from liftpy.opencl.run import device_notes, devices, find_device

VALUES_SHOWN = 12  # of a size, where they are named one by one

DrawOption = Annotated[
    int, typer.Option("--draw", metavar="N", min=0, help="Draw so many candidates instead.")
]
ImpliedOption = Annotated[
    bool, typer.Option("--implied", help="Say which conditions follow from others (z3; slow).")
]
StartOption = Annotated[
    int, typer.Option("--start", metavar="K", min=0, help="Leave out the first K draws.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("devices")(show_devices)
    app.command("space")(show_space)
    app.command("explain")(explain)


def show_devices(
    *,
    profiles: Annotated[
        bool, typer.Option("--profiles", help="Devices that are not attached, by their profiles.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """OpenCL devices, with the limits that enter the constraint system."""
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


def show_profiles(*, json: bool) -> None:
    """The profiles that liftpy brings along; as JSON with the source of each limit."""
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
            say(f"assumed of {profile.name}: {', '.join(assumed)}")
    say("the source of each limit: liftpy devices --profiles --json")


def show_space(  # noqa: PLR0913  as many options as there are to narrow and to draw
    program: ProgramName,
    *,
    size: SizeOption = None,
    device: LimitsName = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    draw: DrawOption = 0,
    start: StartOption = 0,
    seed: SeedOption = 0,
    sampler: SamplerOption = SamplerName.UNIFORM,
    implied: ImpliedOption = False,
    json: JsonFlag = False,
) -> None:
    """Parameters, ranges, constraints with who asked for each, the exact number of valid points.

    With --draw, candidates are drawn instead: as `explore --search random` of the same seed would.
    """
    begun = time.perf_counter()
    whole, chosen = asked_space(program, size, device, set_, where, memory_limit)
    space, target = whole.narrow(chosen), whole.device
    if draw:
        drawn = dataclasses.replace(space, sampler=sampler.value).sample(draw, seed, start=start)
        show_draws(drawn, more=len(drawn) == draw, json=json)
        return
    space.count()
    seconds = time.perf_counter() - begun
    if json:
        show_json(
            {
                "program": space.program.name,
                "device": target.to_json(),
                "parameters": space.parameters,
                "reached": space.reached,
                "constraints": space.constraints,
                **({"implied": space.implied()} if implied else {}),
                "skeletons": space.counts(),
                "count": space.count(),
                "seconds": seconds,
            }
        )
        return
    say(f"{space.program.name} on {spell(target)}")
    choices = Table(title="parameters", title_justify="left", box=None, pad_edge=False)
    for name in ("name", "values", "meaning", "families"):
        choices.add_column(name, overflow="fold")
    for p in space.parameters:
        if "words" in p:
            choices.add_row(p["name"], " | ".join(p["words"]), "structural choice", "")
        else:
            families = ", ".join(p["families"])
            choices.add_row(p["name"], spell_range(p, space.reached), p["meaning"], families)
    show(choices)
    conditions = Table(title="constraints", title_justify="left", box=None, pad_edge=False)
    for name in ("condition", "asked by", "skeletons", *(["follows in"] if implied else [])):
        conditions.add_column(name, overflow="fold")
    follows = space.implied() if implied else {}
    for c in space.constraints:
        here = set(follows.get(c["text"], ())) & set(c["skeletons"])
        counts = [len(c["skeletons"]), *([len(here)] if implied else [])]
        conditions.add_row(c["text"], c["asked_by"], *map(str, counts))
    show(conditions)
    sizes = Table(title="skeletons", title_justify="left", box=None, pad_edge=False)
    sizes.add_column("skeleton", overflow="fold")
    sizes.add_column("valid points", justify="right")
    for key, count in space.counts().items():
        sizes.add_row(key, f"{count:,}")
    show(sizes)
    say(f"valid points: {space.count():,} (derived and counted in {seconds:.2f} s)")


def spell_range(parameter: dict[str, Any], reached: dict[str, list[int]]) -> str:
    """A size's range, and what of it the conditions leave."""
    text = f"{parameter['low']} .. {parameter['high']}"
    values = reached[parameter["name"]]
    if not values:
        return f"{text}: none valid"
    if len(values) == parameter["high"] - parameter["low"] + 1:
        return text
    if len(values) <= VALUES_SHOWN:
        return f"{text}: {', '.join(map(str, values))} valid"
    return f"{text}: {len(values)} valid, {values[0]} .. {values[-1]}"


def show_draws(drawn: list[Candidate], *, more: bool, json: bool) -> None:
    """Drawn candidates, one a line, and where the next draw goes on."""
    if json:
        show_json(
            [{"ordinal": c.ordinal, "id": c.key, "settings": c.settings} for c in drawn],
        )
        return
    for candidate in drawn:
        say(f"{candidate.ordinal:>6} {candidate.key} {candidate.label}")
    note(f"the next: --start {drawn[-1].ordinal + 1}" if more else "there are no more")


def explain(
    program: ProgramName,
    *,
    size: SizeOption = None,
    set_: SetOption = None,
    where: WhereOption = None,
    device: LimitsName = None,
    memory_limit: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Whether settings are valid, or which conditions clash and which values would work.

    Exit code 1 if they are not.
    """
    space, chosen = asked_space(program, size, device, set_, where, memory_limit)
    answer = space.explain(chosen)
    if json:
        show_json(dataclasses.asdict(answer))
    else:
        say(answer.text)
    if not answer.valid:
        raise typer.Exit(LiftError.exit_code)


def spell(device: Device) -> str:
    """A device in words."""
    if device == DEFAULT_DEVICE:
        return "no device in particular (generic limits)"
    return f"{device.platform}: {device.name}"
