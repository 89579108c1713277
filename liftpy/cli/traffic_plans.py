"""`liftpy plan MODEL --objective traffic`: plans of off-chip traffic for an accelerator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import typer
from rich.markup import escape
from rich.table import Table

from liftpy.cli.options import refuse, sizes
from liftpy.cli.screen import note, say, show, show_json
from liftpy.errors import ConstraintRefused, plural
from liftpy.explore.report.wording import in_bytes
from liftpy.networks.executing import random_arrays
from liftpy.networks.network import Network, network
from liftpy.networks.offchip.hardware import accelerator
from liftpy.networks.offchip.nest import Nest, trips_of
from liftpy.networks.offchip.planning import (
    Layers,
    TrafficPlan,
    layers_of,
    plan_traffic,
    published_layers,
    read_plan,
)
from liftpy.networks.offchip.policies import POLICIES, Policy
from liftpy.networks.offchip.published import NETWORKS
from liftpy.networks.offchip.search import BOUNDED, EXACT, Objective
from liftpy.networks.offchip.traffic import performance, reloads

SUFFIX = ".offchip"
"""The suffix of the file of a traffic plan."""

Totals: TypeAlias = Mapping[Policy, int | None]
"""The traffic of the plan of each policy; None if there is no plan."""


@dataclass(frozen=True)
class Request:
    """The options of a command on traffic plans."""

    model: Path
    size: list[str] | None
    hardware: str
    objective: Objective
    policy: Policy
    full_array: bool
    check: bool
    output: Path | None
    json: bool


def plan_off_chip(asked: Request) -> None:
    """Plans a model or a published network, or reads a plan; prints the plan, and writes it."""
    if asked.output is not None and asked.output.suffix != SUFFIX:
        raise typer.BadParameter(f"{asked.output} does not end in {SUFFIX}", param_hint="--output")
    if asked.model.suffix == SUFFIX:
        refuse(
            {
                "--check": asked.check,
                "--full-array": asked.full_array,
                "--hardware": asked.hardware,
                "--output": asked.output,
                "--policy": asked.policy != "best",
                "--size": asked.size,
            },
            "a stored plan is verified and printed as it is: it takes only --json",
        )
        tell(read_plan(asked.model), None, json=asked.json)
        return
    net: Network | None = None
    if str(asked.model) in NETWORKS and not asked.model.exists():
        refuse({"--size": asked.size}, f"the network {asked.model} has no open sizes")
        found = published_layers(str(asked.model))
    else:
        net = network(asked.model, sizes(asked.size))
        found = layers_of(net.graph)
    if not found.layers:
        raise ConstraintRefused(
            f"the off-chip traffic of {found.network} is not modelled: it has "
            f"{plural(len(found.others), 'operation')}, but no sum of products of two arrays\n"
            "  plan a network with convolutions or matrix products in f32, or one of "
            f"{', '.join(NETWORKS)}"
        )
    chip = accelerator(asked.hardware)
    rules = BOUNDED if asked.full_array else EXACT
    made: dict[Policy, TrafficPlan] = {}
    for policy in POLICIES:
        try:
            made[policy] = plan_traffic(found, chip, policy, asked.objective, rules)
        except ConstraintRefused:
            if policy == asked.policy:
                raise
    plan = made[asked.policy]
    others: Totals = {p: made[p].traffic if p in made else None for p in POLICIES}
    if asked.output is not None:
        plan.verify()
        plan.save(asked.output)
        note(f"{plan.network}: {asked.output}")
    tell(plan, others, json=asked.json)
    tell_others(found)
    if asked.check:
        note(check(plan, net))


def tell(plan: TrafficPlan, others: Totals | None, *, json: bool) -> None:
    """Prints a plan, as a table or as JSON."""
    if json:
        show_json({**as_data(plan), "policies": others})
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("layer", overflow="fold")
    for heading in ("times", "tiles", "stays", "reloads", "traffic", "exact", "GMAC/s"):
        table.add_column(heading, justify="right")
    names = first_names(plan)
    for nest, count in Counter(nest for _, nest in plan.layers).items():
        row = row_of(plan, nest)
        table.add_row(
            escape(names[nest]),
            str(count),
            " ".join(f"{name}={size}" for name, size in row["tiles"].items()),
            row["stays"],
            "/".join(map(str, row["reloads"])),
            in_bytes(row["traffic"]),
            in_bytes(row["exact"]),
            f"{row['rate']:.4g}",
        )
    show(table)
    more = plan.traffic / plan.ideal
    say(
        f"traffic  {in_bytes(plan.traffic)} by the formulas, {in_bytes(plan.exact)} with halos and "
        f"without padding; {more:.3f} of {in_bytes(plan.ideal)}, each array once"
    )
    for policy, total in (others or {}).items():
        said = "a layer does not fit" if total is None else in_bytes(total)
        share = ""
        if total is not None and policy != plan.policy:
            share = f"; this plan moves {plan.traffic / total:.3f} of it"
        say(f"  {policy:14} {said}{share}")
    if plan.found:
        tell_search(plan)


def tell_search(plan: TrafficPlan) -> None:
    """Prints how many candidates each rule of the search removed."""
    every = sum(found.candidates for found in plan.found.values())
    left = sum(found.compared for found in plan.found.values())
    say(f"search   {every:.3e} candidates (tilings times orders), {left} compared")
    removed = Counter[str]()
    for found in plan.found.values():
        removed.update({one.rule: one.count for one in found.removed})
    for rule, count in removed.items():
        say(f"  {rule:14} removed {count:.3e}")


def tell_others(found: Layers) -> None:
    """Notes the operations that are not planned."""
    if found.others:
        many = plural(len(found.others), "operation")
        reasons = Counter(found.others.values()).most_common(3)
        why = "; ".join(f"{reason} ({count})" for reason, count in reasons)
        note(f"{found.network}: {many} not planned: {why}")


def check(plan: TrafficPlan, net: Network | None) -> str:
    """Runs a plan of a model on random inputs, or only verifies it; returns the findings as text.

    LiftError if an output differs from the network's meaning.
    """
    if net is None:
        return f"{plan.network}: its commands are valid and move {plan.verify()} bytes"
    found = plan.check(net.graph, random_arrays(net.graph))
    outputs = plural(len(found.outputs), "output")
    return (
        f"{plan.network}: {outputs} as the network means; {found.loaded} bytes loaded, "
        f"{found.stored} stored"
    )


def first_names(plan: TrafficPlan) -> dict[Nest, str]:
    """The name of the first layer of each nest."""
    return {nest: name for name, nest in reversed(plan.layers)}


def row_of(plan: TrafficPlan, nest: Nest) -> dict[str, Any]:
    """A nest of a plan as JSON."""
    schedule, moved = plan.schedules[nest], plan.traffic_of(nest)
    trips = trips_of(nest, schedule.tiles)
    counts = reloads(nest, schedule.order, trips, schedule.stationary)
    divided = {n: size for n, size in schedule.tiles.items() if size < nest.extents[n]}
    modelled = performance(nest, plan.chip, schedule.tiles, moved)
    return {
        "loops": dict(nest.extents),
        "tiles": divided,
        "order": list(schedule.moving(nest)),
        "stays": schedule.flow(nest),
        "reloads": [int(n) for n in counts],
        "traffic": moved,
        "exact": plan.exact_of(nest),
        "rate": modelled.rate,
        "utilization": modelled.utilization,
    }


def as_data(plan: TrafficPlan) -> dict[str, Any]:
    """A plan as JSON, without its commands."""
    return {
        "network": plan.network,
        "accelerator": plan.chip.model_dump(),
        "policy": plan.policy,
        "traffic": plan.traffic,
        "exact": plan.exact,
        "ideal": plan.ideal,
        "layers": [{"layer": name, **row_of(plan, nest)} for name, nest in plan.layers],
        "search": {
            "candidates": sum(f.candidates for f in plan.found.values()),
            "compared": sum(f.compared for f in plan.found.values()),
        },
    }
