"""export, import: candidates for a machine without Python, and the results from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from liftpy.boards.bundle import Bundle, write
from liftpy.boards.importing import import_results
from liftpy.boards.results import read_results
from liftpy.cli.arguments import PLAN, load_program
from liftpy.cli.loading import load
from liftpy.cli.options import (
    JsonFlag,
    LimitsName,
    MemoryLimit,
    SeedOption,
    SetOption,
    SizeOption,
    WhereOption,
    refuse,
    settings_and_lists,
    sizes,
)
from liftpy.cli.screen import note, say, show_json
from liftpy.cli.spaces import device_or_default
from liftpy.errors import UnknownName, Unsatisfiable
from liftpy.explore import exploring
from liftpy.explore.campaign.campaign import Campaign, nothing_measured
from liftpy.explore.campaign.identity import identity_of
from liftpy.explore.report import wording
from liftpy.explore.space.settings import Fixed
from liftpy.explore.spaces import space_of


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("export")(export)
    app.command("import")(import_)


def export(  # noqa: PLR0913  one parameter per option
    what: Annotated[
        str,
        typer.Argument(
            metavar="FILE|PROGRAM",
            help="A campaign database, followed by candidates; a program, as in `compile`; or a "
            f"plan of a network, FILE{PLAN}.",
        ),
    ],
    candidates: Annotated[
        list[str] | None,
        typer.Argument(metavar="CANDIDATE", help="Ids of candidates, or prefixes of them."),
    ] = None,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="A new folder for the bundle.")
    ],
    size: SizeOption = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    device: LimitsName = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch", metavar="N", min=1, help="Export the first N draws of --seed."),
    ] = None,
    seed: SeedOption = 0,
    fastest: Annotated[
        int | None,
        typer.Option("--fastest", metavar="N", min=1, help="Export the N fastest of FILE."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """A bundle that runs without Python: kernels, a C program, a Makefile, a manifest.

    `liftpy import` reads its output. Needs no device; the limits of --device apply. The bundle of a
    plan runs the whole network, and checks itself on random inputs (--seed).
    """
    if what.endswith(PLAN):
        others = {"CANDIDATE": candidates, "--size": size, "--set": set_, "--where": where}
        others |= {"--memory-limit": memory_limit, "--device": device, "--batch": batch}
        refuse(others | {"--fastest": fastest}, "a plan has its candidates, sizes and device")
        load("plans").export_plan(Path(what), output, seed, json=json)
        return
    if fastest is not None:
        if candidates:
            raise typer.BadParameter("it cannot be combined with CANDIDATE", param_hint="--fastest")
        candidates = fastest_of(Path(what), fastest)
    if candidates:
        chosen = {"--size": size, "--set": set_, "--where": where, "--device": device}
        chosen |= {"--memory-limit": memory_limit, "--batch": batch}
        for name, value in chosen.items():
            if value:
                raise typer.BadParameter("it cannot be combined with CANDIDATE", param_hint=name)
        bundle = Bundle.stored(Path(what), candidates)
    elif Path(what).suffix == exploring.DATABASE.suffix:
        raise UnknownName(
            f"{what} is a campaign: name its candidates, as in `liftpy export {what} CANDIDATE -o "
            f"{output}`; `liftpy candidates {what}` lists them, and --fastest N takes the fastest"
        )
    else:
        bundle = of_program(what, size, set_, where, memory_limit, device, batch, seed)
    write(bundle, output)
    if json:
        show_json(
            {
                "bundle": str(output),
                "candidates": [
                    {"id": c.key, "assignment": c.assignment} for c in bundle.candidates
                ],
            }
        )
        return
    say(f"{wording.candidates_text(len(bundle.candidates))} of {bundle.identity.program}: {output}")
    note(f"on the board: cd {output.name} && make run; then: liftpy import BOARD.db results.csv")


def fastest_of(path: Path, count: int) -> list[str]:
    """The ids of the fastest candidates of a campaign; raises NothingMeasured if it has none."""
    campaign = Campaign.read(path)
    timed = [(row.time_ns, row.id) for row in campaign.rows if row.time_ns is not None]
    if not timed:
        raise nothing_measured(campaign)
    return [id_ for _, id_ in sorted(timed)[:count]]


def of_program(
    name: str,
    size: Sequence[str] | None,
    set_: Sequence[str] | None,
    where: Sequence[str] | None,
    memory_limit: int | None,
    device: str | None,
    batch: int | None,
    seed: int,
) -> Bundle:
    """A bundle of the candidate that `compile` chooses, or of the draws of a campaign."""
    single, listed = settings_and_lists(set_)
    fixed: Fixed = listed if batch is None else {**single, **listed}
    numbers = sizes(size)
    space = space_of(
        load_program(name),
        device_or_default(device),
        memory_limit=memory_limit,
        sizes=numbers,
        where=where or (),
        fixed=fixed,
    )
    if not space.possible:
        raise Unsatisfiable(space.why_empty(memory_limit))
    identity = identity_of(space, seed, search="random", memory_limit=memory_limit, sizes=numbers)
    if batch is None:
        return Bundle(identity, (space.candidate(single),))
    return Bundle(identity, tuple(space.sample(batch, seed)))


def import_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A campaign database; created if missing.")
    ],
    results: Annotated[
        Path, typer.Argument(metavar="CSV", help="The output of `board`: results.csv.")
    ],
    *,
    partial: Annotated[
        bool, typer.Option("--partial", help="Import the complete rows of a truncated file.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Imports the output of a board into a campaign: all rows of it, or none.

    FILE is created if it does not exist; otherwise it must be a campaign of the same program on the
    same device. The file that the candidates were exported from already has their outcomes, so it
    is refused.
    """
    found = import_results(file, read_results(results, partial=partial))
    if json:
        show_json({"file": str(file), "outcomes": found})
        return
    say(
        f"{wording.candidates_text(sum(found.values()))} imported into {file}: "
        f"{wording.counts_text(found)}"
    )
    note(f"the front: liftpy pareto {file}")
