"""choose: the candidate with the least modelled time, without running a kernel."""

from __future__ import annotations

import time
from collections import Counter
from typing import Annotated

import typer
from rich.table import Table

from liftpy.cli.energy import as_data, costs_named, show_energy
from liftpy.cli.options import (
    BoundLimit,
    EnergyCostsOption,
    JsonFlag,
    LimitsName,
    MemoryLimit,
    ProgramName,
    SetOption,
    SizeOption,
    StorageOption,
    WhereOption,
    WinogradPoints,
    refuse,
)
from liftpy.cli.points import spell
from liftpy.cli.pulse import pulse
from liftpy.cli.screen import say, show, show_json
from liftpy.cli.spaces import asked_space
from liftpy.constraints.device import PROFILE
from liftpy.explore.campaign.forms import DERIVING
from liftpy.explore.choosing import WORDS, Choice, chosen
from liftpy.explore.report.wording import in_bytes, in_energy
from liftpy.traffic.energy_costs import EnergyCosts
from liftpy.traffic.machine import kin_of

OTHERS = 8
"""The most other candidates that are listed; `--json` has all of them."""


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("choose")(choose)


def choose(  # noqa: PLR0913  one parameter per option
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
    energy: Annotated[
        bool, typer.Option("--energy", help="Also print the energy proxy of each candidate.")
    ] = False,
    energy_costs: EnergyCostsOption = None,
    json: JsonFlag = False,
) -> None:
    """The candidate with the least modelled time, without running a kernel.

    The time is that of a model of operations and memory traffic on the device or its profile. The
    model takes 5 to 300 ms for a candidate, and a choice from a second to more than a minute.
    `explore` measures, and finds faster candidates.
    """
    if not energy:
        refuse({"--energy-costs": energy_costs}, "it needs --energy")
    costs = costs_named(energy_costs) if energy else None
    started = time.perf_counter()
    with pulse.phase(DERIVING):
        space, given = asked_space(
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
        space = space.narrow(given) if given else space
        pulse.doing = "modelling candidates"
        choice = chosen(space, time.perf_counter() - started, memory_limit)
    if json:
        show_json({"device": space.device.to_json(), **as_data(choice, costs)})
        return
    say(f"{space.program.name} on {spell(space.device)}")
    say(f"{choice.candidate.label} ({choice.candidate.key})")
    words = (f"--set {name}={value}" for name, value in choice.assignment.items())
    say(f"  {' '.join(words)}")
    show_time(choice)
    show_traffic(choice)
    if costs is not None:
        show_energy(choice, costs)
    show_others(choice, costs)
    say(
        f"{choice.drawn:,} draws of stages ordered, {choice.considered} of them modelled, in "
        f"{choice.choosing:.1f} s, after {choice.deriving:.1f} s of deriving the space; nothing ran"
    )
    kin, exact = kin_of(choice.device)
    if kin is not None:
        say(f"hardware as in {PROFILE}{kin.name}{'' if exact else ', the nearest class'}")
    if assumed := choice.hardware.assumed:
        say(f"assumed of the device: {', '.join(assumed)}")


def show_time(choice: Choice) -> None:
    """Prints the modelled time with its parts."""
    modelled = choice.best.modelled
    say(f"modelled time: {modelled.milliseconds:.3g} ms")
    for part, spent in modelled.parts.items():
        if spent:
            say(f"  {WORDS.get(part, part):20} {spent:8.3g} ms")


def show_traffic(choice: Choice) -> None:
    """Prints the modelled bytes of each level, for each kernel and array."""
    levels = choice.hardware.levels[1:]
    table = Table(
        title="modelled traffic, by the level that serves it",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    for name in ("kernel", "array", *levels, "written"):
        table.add_column(name, overflow="fold")
    line = choice.hardware.sector
    launches = Counter(kernel.name for kernel in choice.best.modelled.kernels)
    for kernel in {kernel.name: kernel for kernel in choice.best.modelled.kernels}.values():
        times = launches[kernel.name]
        name = kernel.name if times == 1 else f"{kernel.name} ({times} launches)"
        for array, traffic in kernel.arrays.items():
            counts = (*traffic.served, traffic.stored)
            table.add_row(name, array, *(in_bytes(times * count * line) for count in counts))
    total = choice.best.modelled.bytes
    table.add_row("all", "", *(in_bytes(total[name]) for name in (*levels, "written")))
    show(table)
    say(f"loads and stores that L1 serves: {choice.best.modelled.issued:,}")


def show_others(choice: Choice, costs: EnergyCosts | None) -> None:
    """Prints the best of other families and partitions, and why each is worse."""
    if not (choice.others or choice.left or choice.unlikely):
        return
    table = Table(
        title="the best of other families and partitions",
        title_justify="left",
        box=None,
        pad_edge=False,
    )
    table.add_column("modelled", justify="right", no_wrap=True)
    if costs is not None:
        table.add_column("energy proxy", justify="right", no_wrap=True)
    for name in ("candidate", "why worse"):
        table.add_column(name, overflow="fold")
    for other in choice.others[:OTHERS]:
        energy = [] if costs is None else [in_energy(choice.energy_proxy(other, costs).total)]
        spent = f"{other.milliseconds:.3g} ms"
        table.add_row(spent, *energy, other.candidate.label, choice.why_worse(other))
    unknown = [] if costs is None else [""]
    for key, spent in choice.left.items():
        why = "some of its stages take longer than all of the best"
        table.add_row(f"> {spent:.3g} ms", *unknown, key, why)
    for key, spent in choice.unlikely.items():
        why = "the best of a few candidates; not searched further"
        table.add_row(f"{spent:.3g} ms", *unknown, key, why)
    show(table)
    if len(choice.others) > OTHERS:
        say(f"and {len(choice.others) - OTHERS} more: --json has them")
