"""explore, pareto, candidates, replay: campaigns and what they found."""

from __future__ import annotations

import shlex
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from liftpy.cli.arguments import (
    CandidateId,
    Database,
    DeviceName,
    JsonFlag,
    MemoryLimit,
    ProgramName,
    SamplerName,
    SamplerOption,
    SeedOption,
    SetOption,
    SizeOption,
    WhereOption,
    load_program,
    one_of,
    settings_and_lists,
    sizes,
)
from liftpy.cli.progress import CampaignView
from liftpy.cli.screen import console, note, say, show, show_json
from liftpy.errors import (
    ConstraintRefused,
    LiftError,
    NothingMeasured,
    TypeRefused,
    unsatisfiable,
)
from liftpy.explore import exploring, report
from liftpy.explore.campaign import AXES, Campaign, nothing_within
from liftpy.explore.check import TOLERANCE
from liftpy.explore.rehearsal import Rehearsal, rehearse
from liftpy.explore.replay import replay
from liftpy.explore.rows import Row
from liftpy.explore.search import DEFAULT, SEARCHES
from liftpy.explore.workers import Workers
from liftpy.rewrite.strategies.families import FAMILIES

INTERRUPTED = 130
NEAR = 0.05  # of the best time


class Format(StrEnum):
    """How a front is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("explore")(explore)
    app.command("pareto")(pareto)
    app.command("candidates")(candidates)
    app.command("report")(report_page)
    app.command("replay")(replay_candidate)


Axis = Annotated[
    str,
    typer.Option(
        "--axis",
        metavar="FIGURE",
        parser=one_of(AXES, "memory figure"),
        help=f"The memory figure: {', '.join(AXES)}.",
    ),
]


def explore(  # noqa: PLR0913  as many options as a campaign has
    program: ProgramName,
    *,
    size: SizeOption = None,
    samples: Annotated[
        int, typer.Option("--samples", "-n", metavar="N", min=1, help="Candidates to draw.")
    ] = exploring.SAMPLES,
    seed: SeedOption = 0,
    sampler: SamplerOption = SamplerName.UNIFORM,
    db: Annotated[
        Path, typer.Option("--db", metavar="FILE", help="Where everything is kept.")
    ] = exploring.DATABASE,
    device: DeviceName = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="F",
            parser=one_of(FAMILIES, "family"),
            help="Only these families; may be repeated.",
        ),
    ] = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    time_limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0, help="Ends this call; resume later.")
    ] = None,
    candidate_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="For one candidate.")
    ] = exploring.CANDIDATE_LIMIT,
    build_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Of these, for the driver's compiler."),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(metavar="E", min=0, help="Largest relative error of a result.")
    ] = TOLERANCE,
    search: Annotated[
        str,
        typer.Option(
            "--search",
            metavar="NAME",
            parser=one_of(SEARCHES, "search"),
            help=f"One of: {', '.join(SEARCHES)}.",
        ),
    ] = DEFAULT,
    again: Annotated[
        bool, typer.Option(help="Measure again at the end what may be on the front by noise.")
    ] = True,
    replayed: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            help="Try the search on what FILE holds; --device is one of its devices.",
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="tcp://HOST:PORT",
            help="Measures on a dask cluster (docs/cluster.md).",
        ),
    ] = None,
    expect: Annotated[
        int, typer.Option("--expect", metavar="N", min=1, help="Workers to wait for.")
    ] = 1,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Workers may have different devices.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """A campaign: draws candidates, compiles, checks and times each, and finds the front.

    The same command again resumes it. Exit code 3 if nothing valid was measured, or could be.
    """
    chosen, listed = settings_and_lists(set_)
    if replayed is not None:
        stored = Campaign.read(replayed)
        space = exploring.space_of(
            load_program(program),
            stored.device,
            families=family,
            memory_limit=memory_limit,
            sizes=sizes(size),
            where=where or (),
            fixed={**chosen, **listed},
        )
        space = replace(space, sampler=sampler.value)
        found = rehearse(stored.on(device), space, search, seed, samples)
        tell_rehearsal(found, search, seed, json=json)
        return
    crew = None if workers is None else Workers(workers, device, mixed, expect, note=note)
    try:
        source, numbers = load_program(program), sizes(size)
        with CampaignView(source.name, samples) as progress:
            found = exploring.explore(
                source,
                samples,
                seed,
                db,
                device,
                families=family,
                memory_limit=memory_limit,
                time_limit=time_limit,
                candidate_limit=candidate_limit,
                build_limit=build_limit,
                again=again,
                tolerance=tolerance,
                search=search,
                progress=progress,
                sizes=numbers,
                where=where or (),
                fixed={**chosen, **listed},
                sampler=sampler.value,
                workers=crew,
            )
    except (TypeRefused, ConstraintRefused) as refusal:
        if not unsatisfiable(refusal):
            raise
        raise NothingMeasured(str(refusal)) from refusal
    except KeyboardInterrupt:
        note(f"stopped; everything so far is in {db}. The same command again goes on")
        raise typer.Exit(INTERRUPTED) from None
    if json:
        show_json(report.front_json(found, found.pareto()))
        return
    say(title(found))
    say(f"{progress_text(found, samples)}: {report.outcomes_text(found)}")
    show_fronts(found, found.pareto(), "front of time and peak memory")
    say(f"again: liftpy pareto {shlex.quote(str(db))}")


def tell_rehearsal(found: Rehearsal, search: str, seed: int, *, json: bool) -> None:
    """Prints how the best time and the hypervolume went."""
    if json:
        best, reference = found.box.ideal, found.box.reference
        show_json(
            {
                "search": search,
                "seed": seed,
                "stored": found.known,
                "ideal": {"time_ns": best[0], "peak": best[1]},
                "reference": {"time_ns": reference[0], "peak": reference[1]},
                "within_5_percent": found.reached(NEAR),
                "tried": [trial.candidate.key for trial in found.trials],
                "best_ns": found.fastest,
                "hypervolume": [round(volume, 6) for volume in found.volumes],
            }
        )
        return
    reached = found.reached(NEAR)
    say(
        f"{search}, seed {seed}: {len(found.trials)} of {report.candidates_text(found.known)} that "
        f"are stored; within 5 % of the best time, {report.in_time(found.box.ideal[0])}, "
        f"{f'after {reached}' if reached else 'never'}"
    )
    show(report.curve_table(found.fastest, found.volumes))


def show_fronts(found: Campaign, rows: list[Row], heading: str | None = None) -> None:
    """The front of a campaign; of several devices, that of each under its name."""
    if len(found.devices) == 1:
        show(report.front_table(rows, console().width, heading))
        return
    for device in found.devices:
        mine = [row for row in rows if row.device == device.fingerprint]
        name = device.label
        show(report.front_table(mine, console().width, f"{heading} on {name}" if heading else name))


def title(found: Campaign) -> str:
    """The program of a campaign, with the numbers given for its sizes, and the device."""
    given = found.identity.settings.get("sizes") or {}
    numbers = ", ".join(f"{name} = {value}" for name, value in given.items())
    return (
        f"{found.identity.program}{f' with {numbers}' if numbers else ''} on "
        f"{' and '.join(device.label for device in found.devices)}"
    )


def progress_text(found: Campaign, samples: int) -> str:
    """How many candidates a campaign has, of those asked for or of all there are."""
    done = len(found.rows)
    if found.exhausted:
        return f"{report.candidates_text(done)}, which is all that the space has"
    if done > samples:  # an earlier call drew more
        return report.candidates_text(done)
    return f"{done} of {report.candidates_text(samples)}"


def pareto(
    file: Database,
    *,
    format_: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar="F",
            parser=one_of(Format, "format"),
            help=f"One of: {', '.join(Format)}.",
        ),
    ] = Format.TABLE,
    axis: Axis = AXES[0],
    memory_limit: Annotated[
        int | None, typer.Option(metavar="BYTES", help="Only what stays within it.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE.png", help="Draws it, with all others.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """The front of time versus memory."""
    found = Campaign.read(file)
    rows = found.pareto(axis, memory_limit)
    if plot is not None:
        report.plot(found, axis, plot)
        note(f"drawn in {plot}")
    if json or format_ is Format.JSON:
        show_json(report.front_json(found, rows, axis))
    elif format_ is Format.CSV:
        say(report.front_csv(found, rows).rstrip())
    elif rows:
        say(title(found))
        say(f"{report.candidates_text(len(found.rows))}: {report.outcomes_text(found)}")
        show_fronts(found, rows)
    if not rows:
        raise nothing_within(found, memory_limit)


def candidates(
    file: Database,
    *,
    full: Annotated[bool, typer.Option("--full", help="Print reasons in full.")] = False,
    json: JsonFlag = False,
) -> None:
    """Every candidate with its outcome and reason."""
    found = Campaign.read(file)
    if json:
        show_json(report.candidates_json(found))
        return
    show(report.candidates_table(found, full=full))
    say(f"{report.candidates_text(len(found.rows))}: {report.outcomes_text(found)}")


def report_page(
    file: Database,
    *,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.html", help="Where the page goes.")
    ] = Path("report.html"),
    axis: Axis = AXES[0],
) -> None:
    """A campaign as one HTML page: front, outcomes, progress, parameters, how to do it again."""
    report.page(Campaign.read(file), axis, output)
    say(f"written to {output}")


def replay_candidate(file: Database, candidate: CandidateId, *, json: JsonFlag = False) -> None:
    """Re-derives a stored candidate; says whether its kernels are byte for byte the stored ones.

    Exit code 1 if they are not.
    """
    again = replay(file, candidate)
    made = again.candidate
    if json:
        show_json(
            {
                "id": made.key,
                "identical": again.identical,
                "same_derivation": again.same_derivation,
                "version": again.stored_version,
                "difference": again.difference,
            }
        )
    elif again.identical:
        steps = len(made.skeleton.derivation.steps)
        say(f"{made.label}: {steps} steps replayed")
        say("kernels and manifest are byte for byte the stored ones")
    else:
        if not again.same_derivation:
            say("the derivation is another one than the stored one")
        say(again.difference)
    if not again.identical:
        raise LiftError(
            f"candidate {candidate} of {file} does not replay to the stored kernels: liftpy "
            f"{again.stored_version} made them, and this one makes others"
        )
