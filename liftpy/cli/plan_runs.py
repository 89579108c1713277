"""Runs of plans: of a stored plan, and of a model that is explored and planned first."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.markup import escape
from rich.table import Table

from liftpy.cli.loading import load as load_module
from liftpy.cli.networks import joined_network
from liftpy.cli.plans import point_data, tell_hosted
from liftpy.cli.screen import note, say, show, show_json
from liftpy.errors import ArgumentRefused, NothingMeasured, plural
from liftpy.explore.exploring import DATABASE
from liftpy.explore.optional import needing
from liftpy.explore.report.wording import in_bytes, in_time
from liftpy.files.naming import file_names
from liftpy.files.writing import write_file
from liftpy.networks.executing import given_inputs, random_arrays
from liftpy.networks.graph import Graph
from liftpy.networks.network import network
from liftpy.networks.plan import Plan, load
from liftpy.networks.profiling import Profile, trace_of
from liftpy.opencl.clock import BY_HOST


@dataclass(frozen=True)
class RunRequest:
    """What a run of a plan is asked for: inputs by name, what is printed and what is written."""

    given: Mapping[str, NDArray[Any]]
    output: Path | None = None
    check: bool = False
    profile: bool = False
    trace: Path | None = None
    page: Path | None = None
    json: bool = False


def run_plan(file: Path, device: str | None, *, remeasure: bool, asked: RunRequest) -> None:
    """`liftpy run FILE.plan`: runs a plan on given arrays, and random numbers for other inputs."""
    if asked.page is not None:
        _pages()  # without its library, no kernel runs
    with load(file, device, remeasure=remeasure) as plan:
        if remeasure:
            plan.save(file)  # the measurement is kept, whatever follows
        check_inputs(plan.graph, asked.given)
        run_loaded(plan, asked)


def run_model(
    model: str,
    sizes: dict[str, int],
    device: str | None,
    db: Path | None,
    *,
    explore: float | None,
    memory_limit: int | None,
    plan_file: Path | None,
    asked: RunRequest,
) -> None:
    """`liftpy run MODEL.onnx`: explores it for some seconds if asked to, plans it, and runs it."""
    if asked.page is not None:
        _pages()
    net = joined_network(network(model, sizes, partial=True))
    check_inputs(net.graph, asked.given)
    check_folders(asked.output, asked.trace, asked.page, plan_file)
    if asked.output is not None:
        check_suffix(asked.output, len(net.graph.outputs))
    if explore is not None:
        db = DATABASE if db is None else db
        try:
            load_module("network_campaigns").explore_joined(
                net.graph, db, quiet=asked.json, device=device, time_limit=explore
            )
        except NothingMeasured as error:
            first, *_ = str(error).splitlines()
            note(f"note: {first.rstrip(':')}; it is planned without campaigns")
            db = None
    plan = net.plan(db or (), device=device, memory_limit=memory_limit)
    tell_hosted(plan.graph)
    if plan.predicted_ns is None and explore is None:
        note(
            "note: operations without a campaign run as their first candidate; --explore SECONDS "
            "finds faster ones"
        )
    with plan.timed({**plan.random_inputs(), **asked.given}) as timed:
        if plan_file is not None:
            timed.save(plan_file)
            note(f"{timed.graph.name}: {plan_file}")
        run_loaded(timed, asked)


def check_inputs(graph: Graph, given: Mapping[str, NDArray[Any]]) -> None:
    """ArgumentRefused unless a run can take these arrays, and random numbers for other inputs."""
    if unknown := sorted(given.keys() - {*graph.inputs}):
        raise ArgumentRefused(
            f"{graph.name} has no input {', '.join(unknown)}; it takes: {', '.join(graph.inputs)}"
        )
    if missing := [n for n in graph.inputs if n not in given and n not in graph.tensors]:
        raise ArgumentRefused(
            f"{graph.name} needs arrays for {', '.join(missing)}, as there are no random ones of "
            f"these types: give --input {missing[0]}=FILE.npy"
        )
    given_inputs(graph, {**random_arrays(graph), **given})


def check_folders(*files: Path | None) -> None:
    """ArgumentRefused if the folder of a file that a run will write does not exist."""
    for file in files:
        if file is not None and not file.parent.is_dir():
            raise ArgumentRefused(
                f"{file} cannot be written: there is no folder {file.parent}: create it first"
            )


def run_loaded(plan: Plan, asked: RunRequest) -> None:
    """Runs and times a plan on checked inputs; prints and writes what is asked for."""
    inputs = {**plan.random_inputs(), **asked.given}
    errors = plan.check(inputs) if asked.check else {}
    found = plan.run(inputs)
    times = plan.profile(inputs)
    if asked.output is not None:
        save(asked.output, found)
    if asked.trace is not None:
        made = trace_of(times, plan.graph.name, plan.device.label)
        write_file(asked.trace, dumps(made).encode())
        note(f"{plan.graph.name}: {asked.trace}, for chrome://tracing or ui.perfetto.dev")
    if asked.page is not None:
        write_page(times, plan, asked.page)
        note(f"{plan.graph.name}: {asked.page}")
    if asked.json:
        show_json(run_data(plan, found, times, errors))
        return
    if asked.profile:
        tell_profile(times)
    tell_run(plan, found, times, errors)


def check_suffix(path: Path, count: int) -> None:
    """ArgumentRefused if a file cannot hold so many results."""
    if path.suffix != ".npz" and count != 1:
        raise ArgumentRefused(
            f"{path} cannot hold {plural(count, 'output')}: name a file that ends in .npz"
        )


def save(path: Path, results: Mapping[str, NDArray[Any]]) -> None:
    """Writes results: one as .npy, or any number by name as .npz.

    Names that cannot be names of files are changed.
    """
    check_suffix(path, len(results))
    file = io.BytesIO()
    if path.suffix == ".npz":
        with zipfile.ZipFile(file, "w") as archive:
            for name, result in zip(file_names(results), results.values(), strict=True):
                with archive.open(f"{name}.npy", "w") as member:
                    np.lib.format.write_array(member, np.asanyarray(result), allow_pickle=False)
    else:
        np.save(file, next(iter(results.values())))
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
