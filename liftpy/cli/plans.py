"""plan: a plan of an ONNX model; and the runs and bundles of plans."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from json import dumps
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast, get_args

import numpy as np
import typer
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from liftpy.boards.network_bundle import export
from liftpy.cli.arguments import PLAN
from liftpy.cli.networks import joined_network, one_order
from liftpy.cli.options import (
    ChannelsOption,
    ChooseOrdersFlag,
    DeviceName,
    JsonFlag,
    SizeOption,
    one_of,
    sizes,
)
from liftpy.cli.screen import note, say, show, show_json
from liftpy.cli.traffic_plans import SUFFIX, Request, plan_off_chip
from liftpy.errors import ArgumentRefused, plural
from liftpy.explore.optional import needing
from liftpy.explore.report.wording import in_bytes, in_time
from liftpy.files.naming import file_names
from liftpy.files.writing import write_file
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.host_nodes import host_library
from liftpy.networks.network import network
from liftpy.networks.offchip.policies import POLICIES, Policy
from liftpy.networks.offchip.published import NETWORKS
from liftpy.networks.offchip.search import Objective
from liftpy.networks.plan import Plan, load, stored
from liftpy.networks.plan_file import PlannedCandidate
from liftpy.networks.planning import Point
from liftpy.networks.profiling import Profile, trace_of
from liftpy.opencl.clock import BY_HOST


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("plan")(plan_model)


def plan_model(  # noqa: PLR0913  one parameter per option
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="An ONNX model; with `--objective traffic`, also a network that e-PlaNNer was "
            f"evaluated on ({', '.join(NETWORKS)}), or FILE{SUFFIX}, a plan to verify and print.",
        ),
    ],
    *,
    size: SizeOption = None,
    db: Annotated[
        list[Path] | None,
        typer.Option(
            "--db",
            metavar="FOLDER",
            help="Campaigns of `explore model.onnx`, or the file of one campaign; their measured "
            "candidates may be chosen. May be repeated.",
        ),
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            "--memory-limit", metavar="BYTES", min=1, help="Limit on the arena and the constants."
        ),
    ] = None,
    channels_last: ChannelsOption = None,
    choose_orders: ChooseOrdersFlag = False,
    device: DeviceName = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE.plan",
            help=f"The file for the plan; FILE{SUFFIX} for a traffic plan.",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            "--objective",
            metavar="WORD",
            help="`traffic`: the fewest modelled bytes between an accelerator and its memory; "
            "`metric`: the highest modelled rate per byte. Nothing runs on a device.",
            parser=one_of(get_args(Objective), "objective"),
        ),
    ] = None,
    hardware: Annotated[
        str | None,
        typer.Option(
            "--hardware",
            metavar="FILE.json",
            help="The accelerator for these objectives: a file, or the name of one that comes "
            "with liftpy, such as sample.",
        ),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            "--policy",
            metavar="WORD",
            help="The policy for these objectives: best, zhang, ma or smart-shuttle.",
            parser=one_of(POLICIES, "policy"),
        ),
    ] = "best",
    full_array: Annotated[
        bool,
        typer.Option(
            "--full-array", help="Only tiles that leave no side of the accelerator's array idle."
        ),
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Run the traffic plan in NumPy with memories of the accelerator's sizes, and "
            "compare the outputs with the model's meaning.",
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """A candidate for each operation of a model, an order, and one arena; the front of plans."""
    if objective is not None or model.suffix == SUFFIX:
        if db or memory_limit or channels_last or choose_orders or device:
            raise typer.BadParameter(
                "a traffic plan takes no --db, --memory-limit, --channels-last, --choose-orders or "
                "--device",
                param_hint="--objective",
            )
        if hardware is None and model.suffix != SUFFIX:
            raise typer.BadParameter(
                "name an accelerator, for example --hardware sample", param_hint="--hardware"
            )
        plan_off_chip(
            Request(
                model,
                size,
                hardware or "",
                cast("Objective", objective or "traffic"),
                cast("Policy", policy),
                full_array=full_array,
                check=check,
                output=output,
                json=json,
            )
        )
        return
    if hardware is not None or check or full_array or policy != "best":
        raise typer.BadParameter(
            "--hardware, --policy, --full-array and --check need --objective traffic",
            param_hint="--objective",
        )
    if output is not None and output.suffix != PLAN:
        raise typer.BadParameter(
            f"{output} does not end in {PLAN}, by which `run` knows a plan", param_hint="--output"
        )
    if choose_orders:
        one_order(channels_last=channels_last)
    joined = joined_network(
        network(model, sizes(size), partial=True),
        channels_last=False if choose_orders else channels_last,
    )
    found = joined.plan(
        db or (), device=device, memory_limit=memory_limit, choose_orders=choose_orders
    )
    plan = found.timed()
    tell_hosted(plan.graph)
    if output is not None:
        plan.save(output)
        note(f"{plan.graph.name}: {output}")
    if json:
        show_json(as_data(plan))
        return
    tell_front(plan)
    tell_choices(plan)


def tell_hosted(graph: Graph) -> None:
    """Notes the nodes that have no program, and what computes them."""
    if graph.unsupported:
        many = plural(len(graph.unsupported), "node")
        note(
            f"note: {host_library()} computes {many} on the host, whose time is not in the plan's:"
        )
        for one in graph.unsupported:
            note(f"  {one}")


def tell_front(plan: Plan) -> None:
    """Prints the front of time and memory, with the chosen plan marked."""
    table = Table(box=None, pad_edge=False)
    for heading in ("time", "memory", "arena", "lower bound", "constants"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for point in dict.fromkeys([*plan.front, plan.point]):
        marks = ["chosen"] if point == plan.point else []
        marks += [] if point.proved else ["not proved to be best"]
        table.add_row(
            "?" if point.time_ns is None else in_time(point.time_ns),
            in_bytes(point.memory),
            in_bytes(point.arena),
            in_bytes(point.bound),
            in_bytes(point.constants),
            ", ".join(marks),
        )
    show(table)


def tell_choices(plan: Plan) -> None:
    """Prints the candidate, the time and the places of each operation."""
    table = Table(box=None, pad_edge=False)
    table.add_column("operation", overflow="fold")
    table.add_column("time", justify="right")
    table.add_column("results at", justify="right")
    table.add_column("scratch at", justify="right")
    table.add_column("candidate", overflow="fold")
    for operation in plan.graph.operations:
        choice = plan.choices.get(operation.name)
        time = None if choice is None else choice.time_ns
        table.add_row(
            escape(operation.name),
            in_time(time) if time is not None else "" if choice is None else "?",
            " ".join(str(plan.layout.tensors.get(n, "")) for n in operation.outputs),
            str(plan.layout.scratch.get(operation.name, "")),
            escape(choice.skeleton) if choice is not None else without_kernel(operation),
        )
    show(table)


def without_kernel(operation: Operation) -> str:
    """Why an operation has no kernel."""
    return "on the host" if operation.program is None else "no kernel: shares its storage"


def as_data(plan: Plan) -> dict[str, Any]:
    """A plan as JSON, without expressions and constants."""
    return {
        "network": plan.graph.name,
        "device": plan.device.to_json(),
        "chosen": point_data(plan.point),
        "front": [point_data(point) for point in plan.front],
        "operations": [
            {
                "operation": o.name,
                **candidate_data(plan.choices.get(o.name)),
                "on_host": o.program is None,
                "offsets": {
                    n: plan.layout.tensors[n] for n in o.outputs if n in plan.layout.tensors
                },
                "scratch": plan.layout.scratch.get(o.name),
            }
            for o in plan.graph.operations
        ],
    }


def candidate_data(choice: PlannedCandidate | None) -> dict[str, Any]:
    """A candidate as JSON; an operation without kernels has none, and takes no time there."""
    if choice is None:
        return {"skeleton": None, "assignment": {}, "time_ns": 0}
    return {
        "skeleton": choice.skeleton,
        "assignment": choice.assignment,
        "time_ns": choice.time_ns,
    }


def point_data(point: Point) -> dict[str, Any]:
    """The costs of a plan as JSON."""
    return {
        "time_ns": point.time_ns,
        "memory": point.memory,
        "arena": point.arena,
        "lower_bound": point.bound,
        "constants": point.constants,
        "proved": point.proved,
    }


# --- runs -----------------------------------------------------------------------------------------


def export_plan(file: Path, folder: Path, seed: int, *, json: bool) -> None:
    """`liftpy export FILE.plan`: the network as a bundle that runs without Python."""
    plan = stored(file)
    export(plan, folder, seed=seed)
    if json:
        show_json(
            {"bundle": str(folder), "network": plan.graph.name, "plan": point_data(plan.point)}
        )
        return
    say(f"{plan.graph.name} for {plan.device.label}: {folder}")
    note(f"there: cd {folder.name} && make check; then: ./network --help")


def run_plan(  # noqa: PLR0913  one parameter per option
    file: Path,
    given: Mapping[str, NDArray[Any]],
    device: str | None,
    output: Path | None,
    *,
    check: bool,
    profile: bool,
    trace: Path | None = None,
    page: Path | None = None,
    remeasure: bool,
    json: bool,
) -> None:
    """`liftpy run FILE.plan`: runs a plan on given arrays, and random numbers for other inputs."""
    if page is not None:
        _pages()  # without its library, no kernel runs
    with load(file, device, remeasure=remeasure) as plan:
        if remeasure:
            plan.save(file)  # the measurement is kept, whatever follows
        if unknown := sorted(given.keys() - {*plan.graph.inputs}):
            raise ArgumentRefused(
                f"{plan.graph.name} has no input {', '.join(unknown)}; it takes: "
                f"{', '.join(plan.graph.inputs)}"
            )
        inputs = {**plan.random_inputs(), **given}
        errors = plan.check(inputs) if check else {}
        found = plan.run(inputs)
        times = plan.profile(inputs)
        if output is not None:
            save(output, found)
        if trace is not None:
            made = trace_of(times, plan.graph.name, plan.device.label)
            write_file(trace, dumps(made).encode())
            note(f"{plan.graph.name}: {trace}, for chrome://tracing or ui.perfetto.dev")
        if page is not None:
            write_page(times, plan, page)
            note(f"{plan.graph.name}: {page}")
        if json:
            show_json(run_data(plan, found, times, errors))
            return
        if profile:
            tell_profile(times)
        tell_run(plan, found, times, errors)


def save(path: Path, results: Mapping[str, NDArray[Any]]) -> None:
    """Writes results: one as .npy, or any number by name as .npz.

    Names that cannot be names of files are changed.
    """
    file = io.BytesIO()
    if path.suffix == ".npz":
        with zipfile.ZipFile(file, "w") as archive:
            for name, result in zip(file_names(results), results.values(), strict=True):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asanyarray(result), allow_pickle=False)
    elif len(results) == 1:
        np.save(file, next(iter(results.values())))
    else:
        raise ArgumentRefused(
            f"{path} cannot hold {plural(len(results), 'output')}: name a file that ends in .npz"
        )
    write_file(path, file.getvalue())


def tell_profile(times: Profile) -> None:
    """Prints a row for each operation."""
    table = Table(box=None, pad_edge=False)
    table.add_column("operation", overflow="fold")
    headings = ("time", "share", "predicted", "bytes", "GB/s", "Gflop/s", "of peak", "live bytes")
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in times.rows:
        table.add_row(
            escape(f"{row.operation} (host)" if row.on_host else row.operation),
            in_time(row.time_ns),
            f"{row.share:.1%}",
            "?" if row.predicted_ns is None else in_time(row.predicted_ns),
            str(row.bytes),
            f"{row.byte_rate:.3g}",
            f"{row.flop_rate:.3g}",
            "" if row.on_host else f"{row.of_peak(times.peak):.1%}",
            str(row.live_bytes),
        )
    show(table)
    peak = times.peak
    say(f"peak    {peak.flops:.4g} Gflop/s in f32 ({peak.flops_source})")
    say(f"        {peak.bytes:.4g} GB/s of memory ({peak.bytes_source})")


def write_page(times: Profile, plan: Plan, path: Path) -> None:
    """Writes a profile as an HTML page; raises LiftError without jinja2."""
    _pages().write(times, plan.graph.name, plan.device, path)


def _pages() -> ModuleType:
    """The module that writes profiles as pages. Raises LiftError without jinja2."""
    return needing("jinja2", "report", "liftpy.networks.profile_page", "a page")


def tell_run(
    plan: Plan,
    found: Mapping[str, NDArray[Any]],
    times: Profile,
    errors: Mapping[str, float],
) -> None:
    """Prints what a run took, and its results."""
    say(f"{plan.graph.name} on {plan.device.label}")
    predicted = times.predicted_ns
    ratio = (
        ""
        if predicted is None
        else f", {times.time_ns / max(1, predicted):.2f} of the predicted {in_time(predicted)}"
    )
    say(f"time    {in_time(times.time_ns)}{ratio}; on the host {in_time(times.host_ns)}")
    if times.clock == "host":
        say(f"clock   {BY_HOST}")
    p = plan.point
    say(
        f"memory  {in_bytes(p.memory)}: arena {in_bytes(p.arena)} (at least {in_bytes(p.bound)}), "
        f"constants {in_bytes(p.constants)}"
    )
    for name, array in found.items():
        error = f", error {errors[name]:.1e}" if name in errors else ""
        say(f"output  {name} {list(array.shape)}{error}")


def run_data(
    plan: Plan,
    found: Mapping[str, NDArray[Any]],
    times: Profile,
    errors: Mapping[str, float],
) -> dict[str, Any]:
    """A run as JSON."""
    rows: Sequence[dict[str, Any]] = [
        {
            "operation": row.operation,
            "time_ns": row.time_ns,
            "share": row.share,
            "predicted_ns": row.predicted_ns,
            "bytes": row.bytes,
            "flops": row.flops,
            "of_peak": row.of_peak(times.peak),
            "on_host": row.on_host,
            "live_bytes": row.live_bytes,
        }
        for row in times.rows
    ]
    return {
        "network": plan.graph.name,
        "device": plan.device.to_json(),
        "time_ns": times.time_ns,
        "host_ns": times.host_ns,
        "clock": times.clock,
        "predicted_ns": times.predicted_ns,
        "peak": {"gflops": times.peak.flops, "gbytes": times.peak.bytes},
        "plan": point_data(plan.point),
        "operations": rows,
        "outputs": {name: list(array.shape) for name, array in found.items()},
        "errors": dict(errors),
    }
