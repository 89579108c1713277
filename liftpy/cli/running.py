"""compile, run: one candidate, as files or on a device."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from liftpy.cli.arguments import MODEL, NUMBERS, PLAN, STRINGS, arrays, load_program
from liftpy.cli.loading import load
from liftpy.cli.options import (
    DeviceName,
    JsonFlag,
    LimitsName,
    MaxError,
    MemoryLimit,
    ProgramModelOrPlan,
    ProgramName,
    SetOption,
    SizeOption,
    StorageOption,
    WhereOption,
    refuse,
    settings,
    settings_and_lists,
    sizes,
)
from liftpy.cli.screen import note, say, show_json
from liftpy.cli.spaces import asked_candidate, device_or_default
from liftpy.constraints.device import Device, check_attached
from liftpy.errors import ArgumentRefused, LiftError, StoreRefused
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.replay import stored_candidate
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.bounding import Bounding
from liftpy.explore.measure.check import Error, all_nan
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Judge, expected
from liftpy.explore.measure.measurement import TimedRun, run_once
from liftpy.explore.measure.outcome import WrongResult
from liftpy.explore.report.wording import in_bytes, in_time
from liftpy.explore.space.candidate import Candidate, program_text
from liftpy.files.writing import write_file, write_files
from liftpy.ir.open_sizes import size_ranges
from liftpy.ir.program import Program
from liftpy.ir.types import components
from liftpy.opencl.clock import BY_HOST
from liftpy.opencl.devices import find_device
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.semantics.sizes import at_arrays

SOURCE_FILE = "kernels.cl"
MANIFEST_FILE = "manifest.json"


def register(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("compile")(compile_program)
    app.command("run")(run)


def compile_program(  # noqa: PLR0913  one parameter per option
    program: ProgramName,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    set_: SetOption = None,
    where: WhereOption = None,
    memory_limit: MemoryLimit = None,
    device: LimitsName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help=f"A folder for {SOURCE_FILE} and {MANIFEST_FILE}."
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """The kernels and a manifest: arguments, NDRanges, buffers, memory figures.

    Needs no device; without one, generic limits apply.
    """
    chosen, listed = settings_and_lists(set_)
    candidate = asked_candidate(
        load_program(program, size, storage),
        device_or_default(device),
        chosen,
        memory_limit=memory_limit,
        where=where or (),
        fixed=listed,
    )
    module = compile_candidate(candidate.skeleton, candidate.point)
    if output is not None:
        write(output, module)
        note(f"{candidate.label}: {output / SOURCE_FILE}, {output / MANIFEST_FILE}")
    if json:
        show_json(
            {
                "id": candidate.key,
                "assignment": candidate.assignment,
                "source": module.source,
                "manifest": module.manifest(),
            }
        )
    elif output is None:
        say(f"// {candidate.label}")
        say(module.source.rstrip())


def write(folder: Path, module: Module) -> None:
    """Writes kernels and manifest."""
    files = {SOURCE_FILE: module.source, MANIFEST_FILE: module.manifest_json()}
    write_files(folder, {name: text.encode() for name, text in files.items()})


def run(  # noqa: PLR0913  one parameter per option
    program: ProgramModelOrPlan,
    *,
    size: SizeOption = None,
    storage: StorageOption = None,
    set_: SetOption = None,
    where: WhereOption = None,
    device: DeviceName = None,
    input_: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE.npy",
            help="An array for a parameter; the others get random numbers. NAME.0 is the first "
            "component of a parameter of tuples.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE.npy",
            help="The file for the result; components of tuples go to FILE.0.npy, FILE.1.npy ... "
            "The outputs of a plan go to FILE.npz.",
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="Run the best candidate of a campaign; for a model, the folder of its campaigns.",
        ),
    ] = None,
    memory_limit: MemoryLimit = None,
    max_error: MaxError = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare the results of a network with its meaning."),
    ] = False,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print a row for each operation of a network.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace", metavar="FILE.json", help="Write a run of a plan as a trace for Chrome."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page",
            metavar="FILE.html",
            help="Write the profile of a plan as an HTML page with a roofline.",
        ),
    ] = None,
    explore: Annotated[
        float | None,
        typer.Option(
            "--explore",
            metavar="SECONDS",
            min=1,
            help="Explore a model for this time before it is planned; the folder --db, by default "
            "liftpy.db, has its campaigns.",
        ),
    ] = None,
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan", metavar="FILE.plan", help="The file that stores the plan of a model."
        ),
    ] = None,
    remeasure: Annotated[
        bool,
        typer.Option(
            "--remeasure",
            help="Accept a plan of another device, driver or version; measure and save it again.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Runs one candidate, a plan or a model; reports its time and the error of its result.

    A model.onnx is planned first, from the campaigns in --db; with --explore, these are made first.
    """
    one_program = {
        "--storage": storage, "--set": set_, "--where": where, "--max-error": max_error,
    }  # fmt: skip
    of_models = {"--explore": explore, "--plan": plan}
    if program.endswith(PLAN):
        others = {**one_program, "--size": size, "--db": db}
        others["--memory-limit"] = memory_limit
        refuse(of_models, f"it belongs to a whole network, MODEL{MODEL}, and not to a plan")
        refuse(others, "a plan has its candidates and sizes")
        runs = load("plan_runs")
        given = arrays(input_, kinds=NUMBERS + STRINGS)
        asked = runs.RunRequest(given, output, check, profile, trace, page, json)
        runs.run_plan(Path(program), device, remeasure=remeasure, asked=asked)
        return
    if program.endswith(MODEL):
        refuse({**one_program, "--remeasure": remeasure}, "it does not apply to a whole network")
        runs = load("plan_runs")
        given = arrays(input_, kinds=NUMBERS + STRINGS)
        asked = runs.RunRequest(given, output, check, profile, trace, page, json)
        runs.run_model(
            program,
            sizes(size),
            device,
            db,
            explore=explore,
            memory_limit=memory_limit,
            plan_file=plan,
            asked=asked,
        )
        return
    of_plans = {"--check": check, "--profile": profile, "--trace": trace, "--page": page}
    refuse(
        {**of_plans, "--remeasure": remeasure},
        f"it belongs to a plan, FILE{PLAN} (`liftpy plan` makes one), or a model",
    )
    refuse(of_models, f"it belongs to a whole network, MODEL{MODEL}")
    for option, value in (("--set", set_), ("--where", where)):
        if db is not None and value:
            raise typer.BadParameter(
                "it cannot be combined with --db, which chooses the candidate", param_hint=option
            )
    if db is None and max_error is not None:
        raise typer.BadParameter(
            "it chooses among the measured candidates of a campaign: name one with --db",
            param_hint="--max-error",
        )
    taken = arrays(input_)
    named = load_program(program, size, storage)
    check_names(named, taken)
    source = at_inputs(named, taken)
    target = find_device(device)
    check_attached(target)
    if db is None:
        candidate, stored = (
            asked_candidate(
                source, target, settings(set_), memory_limit=memory_limit, where=where or ()
            ),
            None,
        )
    else:
        candidate, stored = best_of(db, source, target, memory_limit, max_error)
    given = fill(source, taken)
    module = compile_candidate(candidate.skeleton, candidate.point)
    done = run_once(module, target, given)
    wanted = expected(source, given)
    bounds = Bounding(source, given, wanted).bounds(candidate.skeleton)
    error = Judge(source, given, wanted).judge(done.result, bounds)
    if isinstance(error, WrongResult):
        raise LiftError(f"{candidate.label} is wrong: {error.reason}")
    if output is not None:
        save(output, done.result)
    tell(candidate, module, done, error, stored, json=json)
    for name, value in (*given.items(), ("the result", done.result)):
        for said in all_nan(name, value):
            note(f"note: {said}")


def best_of(
    db: Path,
    program: Program,
    device: Device,
    memory_limit: int | None,
    max_error: float | None,
) -> tuple[Candidate, Row]:
    """The best candidate of a campaign, and its row. StoreRefused if the program is another one.

    In a campaign on several devices, the best on this device.
    """
    found = Campaign.read(db)
    on = device if len(found.devices) > 1 else None
    row = found.best(memory_limit, on, max_error=max_error)
    with CampaignReader.read(db) as store:
        if opened := size_ranges(program):
            used = store.identity.settings.get("sizes") or {}
            words = " ".join(f"--size {n}={used.get(n, 'NUMBER')}" for n in opened)
            raise StoreRefused(
                f"{db} is a campaign of {store.identity.program} with fixed sizes, and "
                f"{program.name} has open sizes: give those of the campaign, {words}"
            )
        if store.identity.text != program_text(program):
            raise StoreRefused(
                f"{db} is a campaign of {store.identity.program}, not of the given {program.name}; "
                "name that program, or another file with --db"
            )
        return stored_candidate(store, row), row


def at_inputs(program: Program, given: Mapping[str, NDArray[Any]]) -> Program:
    """The program with the sizes that the shapes of the given arrays determine."""
    shaped = [given.get(p.name, NO_ARRAY) for p in program.params]
    return at_arrays(program, shaped) if size_ranges(program) and given else program


NO_ARRAY = np.empty(())


def check_names(program: Program, given: Mapping[str, NDArray[Any]]) -> None:
    """Raises ArgumentRefused if an array names no parameter, or no component of a tuple."""
    names = [
        ".".join([p.name, *map(str, part.path)])
        for p in program.params
        for part in components(p.type)
    ]
    for name in given:
        if name not in names:
            raise ArgumentRefused(
                f"{program.name} has no parameter '{name}'; it takes: {', '.join(names)}"
            )


def fill(program: Program, given: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The arguments of a run: the given arrays, and random numbers for the other parameters."""
    return {name: replaced(name, noise, given) for name, noise in inputs(program).items()}


def replaced(name: str, noise: Any, given: Mapping[str, NDArray[Any]]) -> Any:
    """The noise of a parameter, with the given arrays in place of its components."""
    if isinstance(noise, tuple):
        return tuple(replaced(f"{name}.{k}", part, given) for k, part in enumerate(noise))
    return given.get(name, noise)


def save(path: Path, result: Any) -> None:
    """Writes an array to a file; the components of a tuple to numbered files."""
    if isinstance(result, tuple):
        for k, part in enumerate(result):
            save(path.with_name(f"{path.stem}.{k}{path.suffix}"), part)
        return
    file = io.BytesIO()
    np.save(file, result)
    write_file(path, file.getvalue())


def shape(result: Any) -> list[Any]:
    """The shape of a result; for a tuple, the list of the components' shapes."""
    return list(map(shape, result)) if isinstance(result, tuple) else list(result.shape)


def tell(
    candidate: Candidate,
    module: Module,
    done: TimedRun,
    error: Error,
    stored: Row | None,
    *,
    json: bool,
) -> None:
    """Prints the results of a run, and the stored time of its candidate."""
    memory = module.memory
    if json:
        show_json(
            {
                "id": candidate.key,
                "assignment": candidate.assignment,
                "device": done.device.to_json(),
                "shape": shape(done.result),
                "time_ns": done.time_ns,
                "stored_ns": None if stored is None else stored.time_ns,
                "disturbed": done.disturbed,
                "departure": done.departure,
                "clock": done.clock,
                "prepare_ns": done.prepare_ns,
                "kernels_ns": done.kernels_ns,
                "error": error.largest,
                "rms": error.rms,
                "peak": memory.peak,
                "allocated": memory.allocated,
                "scratch": memory.scratch,
                "local": memory.local,
                "private": memory.private,
            }
        )
        return
    say(f"{candidate.label} ({candidate.key})")
    say(f"on {done.device.platform}: {done.device.name}")
    for name, nanoseconds in done.kernels_ns.items():
        say(f"  {name:24} {in_time(nanoseconds):>12}")
    say(f"time    {in_time(done.time_ns)} (prepare {in_time(done.prepare_ns)})")
    if stored is not None:
        say(f"stored  {in_time(stored.time_ns)} ({beside(done.time_ns, stored)})")
    if done.clock == "host":
        say(f"clock   {BY_HOST}")
    if done.disturbed:
        say(
            f"disturbed: a fixed kernel took {done.departure:.2f} times its usual time around the "
            "runs; this time is unreliable, run it again on an idle machine"
        )
    say(f"memory  peak {in_bytes(memory.peak)}, scratch {in_bytes(memory.scratch)}")
    say(f"result  {shape(done.result)}, error {error.largest:.1e} (rms {error.rms:.1e})")


def beside(time_ns: int, stored: Row) -> str:
    """The comparison of a time with the stored time of the same candidate."""
    how = f"this run took {time_ns / (stored.time_ns or 1):.2f} times as long"
    return f"disturbed when measured; {how}" if stored.disturbed else how
