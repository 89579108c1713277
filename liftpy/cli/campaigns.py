"""explore, replay: running campaigns, and deriving their candidates again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from liftpy.boards.live import BATCH, Board
from liftpy.cli.arguments import MODEL, load_program, program_and_sizes
from liftpy.cli.fronts import show_fronts, title
from liftpy.cli.loading import load
from liftpy.cli.options import (
    BoundLimit,
    CandidateId,
    ChannelsOption,
    ChooseOrdersFlag,
    Database,
    DeviceName,
    JsonFlag,
    MemoryLimit,
    ProgramOrModel,
    SamplerName,
    SamplerOption,
    SeedOption,
    SetOption,
    SizeOption,
    StorageOption,
    WhereOption,
    WinogradPoints,
    one_of,
    settings_and_lists,
    sizes,
    storage_types,
)
from liftpy.cli.progress import CampaignView
from liftpy.cli.pulse import pulse
from liftpy.cli.screen import StoppedAndSaid, note, say, show, show_json
from liftpy.errors import (
    ArgumentRefused,
    ConstraintRefused,
    LiftError,
    NothingMeasured,
    TypeRefused,
    unsatisfiable,
)
from liftpy.explore import exploring
from liftpy.explore.campaign.campaign import AXES, Campaign
from liftpy.explore.campaign.offline import OfflineSearch, search_offline
from liftpy.explore.campaign.replay import replay
from liftpy.explore.distributed.workers import Workers
from liftpy.explore.measure.check import TOLERANCE
from liftpy.explore.measure.pareto import rule
from liftpy.explore.report import tables as report
from liftpy.explore.report import wording
from liftpy.explore.search import DEFAULT, MODELLED, SEARCHES
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.semantics.storage import with_storage

INTERRUPTED = 130
NEAR = 0.05  # of the best time


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("explore")(explore)
    app.command("replay")(replay_candidate)


def explore(  # noqa: PLR0913  one parameter per option
    program: ProgramOrModel,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    samples: Annotated[
        int,
        typer.Option("--samples", "-n", metavar="N", min=1, help="Number of candidates to draw."),
    ] = exploring.SAMPLES,
    seed: SeedOption = 0,
    sampler: SamplerOption = SamplerName.UNIFORM,
    db: Annotated[
        Path, typer.Option("--db", metavar="FILE", help="The campaign database.")
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
    max_error: BoundLimit = None,
    winograd_points: WinogradPoints = None,
    time_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Stop after this time; resume later."),
    ] = None,
    candidate_limit: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time limit for each candidate.")
    ] = exploring.CANDIDATE_LIMIT,
    build_limit: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0, help="Part of --candidate-limit for the build."),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="E",
            min=0,
            help=f"Largest relative error of a result; by default {TOLERANCE}, and no more than "
            "rounding explains.",
        ),
    ] = None,
    search: Annotated[
        str | None,
        typer.Option(
            "--search",
            metavar="NAME",
            parser=one_of(SEARCHES, "search"),
            help=f"One of: {', '.join(SEARCHES)}; by default {DEFAULT}, modelled {MODELLED}.",
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option(help="Remeasure candidates on the front whose intervals overlap.")
    ] = True,
    replayed: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            help="Run the search on the candidates stored in FILE; --device is one of its devices.",
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="tcp://HOST:PORT",
            help="Measure on a dask cluster (docs/cluster.md).",
        ),
    ] = None,
    board: Annotated[
        str | None,
        typer.Option(
            "--board",
            metavar="ADDRESS",
            help="Measure on a machine without Python: ssh:HOST, adb:SERIAL, local: or "
            "commands:FILE (docs/boards.md); --device is one of its devices or a profile.",
        ),
    ] = None,
    board_batch: Annotated[
        int,
        typer.Option("--board-batch", metavar="N", min=1, help="Candidates sent at a time."),
    ] = BATCH,
    board_cc: Annotated[
        str | None,
        typer.Option(
            "--board-cc",
            metavar="CC",
            help="Compiler of this machine that builds the board's program; by default the "
            "board's compiler does.",
        ),
    ] = None,
    modelled: Annotated[
        bool,
        typer.Option(
            "--modelled",
            help="Run nothing: times come from a model of --device, which may be a profile "
            "(docs/choosing.md).",
        ),
    ] = False,
    expect: Annotated[
        int, typer.Option("--expect", metavar="N", min=1, help="Workers to wait for.")
    ] = 1,
    times: Annotated[
        list[Path] | None,
        typer.Option(
            "--times",
            metavar="FILE",
            help="Start with stage times that another campaign measured; may be repeated.",
        ),
    ] = None,
    channels_last: ChannelsOption = None,
    choose_orders: ChooseOrdersFlag = False,
    mixed: Annotated[
        bool, typer.Option("--mixed", help="Workers may have different devices.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """A campaign: draws candidates, compiles, checks and times each, and finds the front.

    A model.onnx is explored as a whole, in a folder: most where its time is.

    The same command resumes it. Exit code 3 if no valid candidate was measured, or exists.
    """
    chosen, listed = settings_and_lists(set_)
    if program.endswith(MODEL):
        one_program_only(
            program,
            {
                "--set": set_,
                "--storage": storage,
                "--where": where,
                "--replay": replayed,
                "--workers": workers,
                "--times": times,
                "--board": board,
                "--modelled": modelled,
                "--winograd-points": winograd_points,
            },
        )
        load("network_campaigns").explore_model(
            program,
            sizes(size),
            db,
            channels_last=channels_last,
            choose_orders=choose_orders,
            json=json,
            samples=samples,
            seed=seed,
            device=device,
            families=family,
            memory_limit=memory_limit,
            max_error=max_error,
            time_limit=time_limit,
            candidate_limit=candidate_limit,
            build_limit=build_limit,
            again=again,
            tolerance=tolerance,
            search=search or DEFAULT,
            sampler=sampler.value,
        )
        return
    if channels_last is not None or choose_orders:
        message = f"it is for a whole network, model{MODEL}, and {program} is one program"
        order = "--choose-orders" if choose_orders else "--channels-last/--declared-order"
        raise typer.BadParameter(message, param_hint=order)
    if replayed is not None:
        stored = Campaign.read(replayed)
        space = exploring.space_of(
            load_program(program, None, storage),
            stored.device,
            families=family,
            memory_limit=memory_limit,
            max_error=max_error,
            winograd_points=winograd_points or (),
            sizes=sizes(size),
            where=where or (),
            fixed={**chosen, **listed},
        )
        space = replace(space, sampler=sampler.value)
        named = search or DEFAULT
        found = search_offline(stored.on(device), space, named, seed, samples)
        show_offline(found, named, seed, json=json)
        return
    if workers is not None and board is not None:
        raise typer.BadParameter("it cannot be combined with --workers", param_hint="--board")
    there = None if board is None else Board(board, board_batch, board_cc, note)
    asked = None if workers is None else Workers(workers, device, mixed, expect, note=note)
    try:
        pulse.doing = "reading the program"
        source, numbers = program_and_sizes(program, size)
        source = with_storage(source, storage_types(storage))
        with CampaignView(source.name, samples) as progress:
            found = exploring.explore(
                source,
                samples,
                seed,
                db,
                device,
                families=family,
                memory_limit=memory_limit,
                max_error=max_error,
                winograd_points=winograd_points or (),
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
                workers=asked,
                board=there,
                modelled=modelled,
                times=times or (),
                note=note,
                began=pulse.began,
                phase=progress.phase,
            )
    except (TypeRefused, ConstraintRefused) as refusal:
        if not unsatisfiable(refusal):
            raise
        raise NothingMeasured(str(refusal)) from refusal
    except KeyboardInterrupt:
        note(f"stopped; everything so far is in {db}. Repeat the command to continue")
        raise StoppedAndSaid(INTERRUPTED) from None
    if json:
        show_json(report.front_json(found, found.pareto()))
        return
    say(title(found))
    say(f"{progress_text(found, samples)}: {wording.outcomes_text(found)}")
    if found.stopped:
        note(f"{found.stopped}; repeat the command to continue")
    show_fronts(found, found.pareto(), "front of time and peak memory")
    say(rule(AXES[0], modelled=found.modelled))
    say(f"again: liftpy pareto {shlex.quote(str(db))}")


def one_program_only(model: str, given: Mapping[str, object]) -> None:
    """Refuses options that apply to one program, not to all operations of a network."""
    used = [name for name, value in given.items() if value]
    if used:
        raise ArgumentRefused(
            f"{', '.join(used)} cannot be used with the network {model}, but with one of its "
            f"programs\n  name one of its operations: {model}:NODE"
        )


def show_offline(found: OfflineSearch, search: str, seed: int, *, json: bool) -> None:
    """Prints the best time and the hypervolume over the trials of an offline search."""
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
        f"{search}, seed {seed}: {len(found.trials)} of {wording.candidates_text(found.known)} "
        f"stored; within 5 % of the best time, {wording.in_time(found.box.ideal[0])}, "
        f"{f'after {reached}' if reached else 'never'}"
    )
    show(report.curve_table(found.fastest, found.volumes))


def progress_text(found: Campaign, samples: int) -> str:
    """The number of candidates of a campaign, out of the requested ones or of the whole space."""
    done = len(found.rows)
    if found.exhausted:
        return f"{wording.candidates_text(done)}, the whole space"
    if done > samples:  # an earlier call drew more
        return wording.candidates_text(done)
    return f"{done} of {wording.candidates_text(samples)}"


def replay_candidate(file: Database, candidate: CandidateId, *, json: JsonFlag = False) -> None:
    """Re-derives a stored candidate; compares its kernels with the stored ones byte for byte.

    Exit code 1 if they differ.
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
        say("kernels and manifest are identical to the stored ones, byte for byte")
    else:
        if not again.same_derivation:
            say("the derivation differs from the stored one")
        say(again.difference)
    if not again.identical:
        raise LiftError(
            f"the replay of candidate {candidate} of {file} gives other kernels than the stored "
            f"ones, which liftpy {again.stored_version} made"
        )
