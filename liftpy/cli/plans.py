"""plan: a plan of an ONNX model; and the runs and bundles of plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
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
from liftpy.errors import plural
from liftpy.explore.report.wording import in_bytes, in_time
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.host_nodes import host_library
from liftpy.networks.network import network
from liftpy.networks.offchip.policies import POLICIES, Policy
from liftpy.networks.offchip.published import NETWORKS
from liftpy.networks.offchip.search import Objective
from liftpy.networks.plan import Plan, stored
from liftpy.networks.plan_file import PlannedCandidate
from liftpy.networks.planning import Point


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
        library = host_library()
        note(f"note: the host computes {many} by {library}; the plan's time does not include this:")
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
