"""devices, space, explain: where a program can run, and what can be chosen."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer
from rich.table import Table

from liftpy.cli.arguments import (
    JsonFlag,
    LimitsName,
    MemoryLimit,
    ProgramName,
    SetOption,
    SizeOption,
    WhereOption,
    device_or_default,
    load_program,
    settings_and_lists,
)
from liftpy.cli.screen import note, say, show, show_json
from liftpy.constraints.device import DEFAULT_DEVICE, PROFILE, Device
from liftpy.constraints.profile import profiles as all_profiles
from liftpy.errors import LiftError
from liftpy.explore.campaign import space_of
from liftpy.explore.report import in_bytes
from liftpy.ir.types import EXTENSIONS
from liftpy.opencl.run import device_notes, devices, find_device


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
        table.add_column(name, overflow="fold")
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


def show_space(
    program: ProgramName,
    *,
    size: SizeOption = None,
    device: LimitsName = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    json: JsonFlag = False,
) -> None:
    """Parameters, ranges, constraints with who asked for each, the exact number of valid points."""
    target = device_or_default(device)
    chosen, listed = settings_and_lists(set_)
    space = space_of(
        load_program(program, size),
        target,
        memory_limit=memory_limit,
        where=where or (),
        fixed=listed,
    ).narrow(chosen)
    if json:
        show_json(
            {
                "program": space.program.name,
                "device": target.to_json(),
                "parameters": space.parameters,
                "constraints": space.constraints,
                "skeletons": space.counts(),
                "count": space.count(),
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
            choices.add_row(p["name"], f"{p['low']} .. {p['high']}", p["meaning"], families)
    show(choices)
    conditions = Table(title="constraints", title_justify="left", box=None, pad_edge=False)
    for name in ("condition", "asked by", "skeletons"):
        conditions.add_column(name, overflow="fold")
    for c in space.constraints:
        conditions.add_row(c["text"], c["asked_by"], str(len(c["skeletons"])))
    show(conditions)
    sizes = Table(title="skeletons", title_justify="left", box=None, pad_edge=False)
    sizes.add_column("skeleton", overflow="fold")
    sizes.add_column("valid points", justify="right")
    for key, count in space.counts().items():
        sizes.add_row(key, f"{count:,}")
    show(sizes)
    say(f"valid points: {space.count():,}")


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
    chosen, listed = settings_and_lists(set_)
    space = space_of(
        load_program(program, size),
        device_or_default(device),
        memory_limit=memory_limit,
        where=where or (),
        fixed=listed,
    )
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
