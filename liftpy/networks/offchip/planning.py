"""Plans of a whole network for an accelerator: a schedule for each nest, by one policy or the best.

Equal nests are planned once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from numpy.typing import NDArray
from pydantic import ValidationError

from liftpy.errors import ConstraintRefused, StoreRefused
from liftpy.files.reading import read_text
from liftpy.files.writing import write_file
from liftpy.ir.program import Program
from liftpy.memory import available
from liftpy.networks.comparing import compared
from liftpy.networks.executing import by_meaning, execute
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.offchip.commands import Listing, listed
from liftpy.networks.offchip.hardware import Accelerator
from liftpy.networks.offchip.machine import verify
from liftpy.networks.offchip.meaning import NoNest, Reading, nest_of
from liftpy.networks.offchip.nest import WORD, Nest
from liftpy.networks.offchip.plan_text import LAYER, Lines, parsed, printed
from liftpy.networks.offchip.policies import POLICIES, Policy, planned
from liftpy.networks.offchip.published import layers
from liftpy.networks.offchip.running import run_program
from liftpy.networks.offchip.search import EXACT, Found, Objective, Rule, Schedule
from liftpy.networks.offchip.traffic import exact_traffic, traffic
from liftpy.workloads.convolution import convolution


@dataclass(frozen=True)
class Layer:
    """An operation of a network that is a nest."""

    name: str
    reading: Reading

    @property
    def nest(self) -> Nest:
        """Its nest."""
        return self.reading.nest


@dataclass(frozen=True)
class Layers:
    """The nests of a network in order, and the reasons why its other operations are not nests."""

    network: str
    layers: tuple[Layer, ...]
    others: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def distinct(self) -> tuple[Nest, ...]:
        """The distinct nests, in the order of their first layers."""
        return tuple(dict.fromkeys(layer.nest for layer in self.layers))


def published_layers(network: str) -> Layers:
    """The layers of a network on which e-PlaNNer was evaluated.

    >>> found = published_layers("alexnet")
    >>> len(found.layers), print(found.layers[0].nest)
    OH=55 OW=55 OC=96 IC=3 KH=11 KW=11: 105415200 products
    (8, None)
    """
    read = {layer: nest_of(convolution(layer, "layer")) for layer in dict.fromkeys(layers(network))}
    numbered = enumerate(layers(network), 1)
    return Layers(network, tuple(Layer(f"layer{k}", read[layer]) for k, layer in numbered))


def layers_of(graph: Graph) -> Layers:
    """The operations of a network that are sums of products of two arrays.

    The others, such as pooling and activations, are not planned, and their traffic is not counted.
    """
    read: dict[int, Reading | NoNest] = {}
    found: list[Layer] = []
    others: dict[str, str] = {}
    for operation in graph.operations:
        program = operation.program
        if program is None:
            others[operation.name] = "it has no program"
            continue
        if id(program) not in read:
            try:
                read[id(program)] = nest_of(program)
            except NoNest as error:
                read[id(program)] = error
        one = read[id(program)]
        if isinstance(one, Reading):
            found.append(Layer(operation.name, one))
        else:
            others[operation.name] = str(one)
    return Layers(graph.name, tuple(found), others)


@dataclass(frozen=True)
class Executed:
    """The outputs of a network, and the bytes that its plan moved for them."""

    outputs: Mapping[str, NDArray[Any]]
    loaded: int
    stored: int


@dataclass(frozen=True)
class TrafficPlan:
    """A schedule for each nest of a network on an accelerator.

    `found` has the result of the search for each nest. For a plan that was read from a file, it is
    empty, and `read` has the commands.

        plan = plan_traffic(layers_of(net.graph), accelerator("setup-a"))
        plan.save("model.offchip")
    """

    network: str
    chip: Accelerator
    policy: Policy
    layers: tuple[tuple[str, Nest], ...]
    schedules: Mapping[Nest, Schedule]
    found: Mapping[Nest, Found] = field(default_factory=dict[Nest, Found])
    read: Mapping[Nest, Listing] = field(default_factory=dict[Nest, Listing])

    def traffic_of(self, nest: Nest) -> int:
        """The bytes that a nest moves, by the published formulas."""
        schedule = self.schedules[nest]
        return int(traffic(nest, schedule.order, schedule.tiles, schedule.stationary))

    @property
    def traffic(self) -> int:
        """The bytes moved off the chip, by the published formulas."""
        return sum(self.traffic_of(nest) for _, nest in self.layers)

    @property
    def exact(self) -> int:
        """The bytes that the commands move: with halos, without padding."""
        return sum(self.exact_of(nest) for _, nest in self.layers)

    def exact_of(self, nest: Nest) -> int:
        """The bytes that the commands of a nest move."""
        schedule = self.schedules[nest]
        return exact_traffic(nest, schedule.order, schedule.tiles, schedule.stationary)

    @property
    def ideal(self) -> int:
        """The bytes of all arrays of all nests, each moved once."""
        return sum(nest.bytes for _, nest in self.layers)

    @cached_property
    def listings(self) -> Mapping[Nest, Listing]:
        """The commands of each distinct nest."""
        return self.read or {
            nest: listed(nest, schedule, self.chip.capacities)
            for nest, schedule in self.schedules.items()
        }

    def text(self) -> str:
        """The plan as text, which `read_plan` reads."""
        numbers = {nest: k for k, nest in enumerate(self.listings, 1)}
        lines = [
            HEADER,
            f"network {self.network}",
            f"accelerator {self.chip.model_dump_json()}",
            f"policy {self.policy}",
            *(f"layer {numbers[nest]} {name}" for name, nest in self.layers),
        ]
        for nest, listing in self.listings.items():
            lines += [f"[nest {numbers[nest]}]", *printed(listing)]
        return "\n".join([*lines, ""])

    def save(self, path: str | Path) -> None:
        """Writes the plan to a file. LiftError if it cannot be written."""
        write_file(Path(path), self.text().encode())

    def verify(self, where: str = "the plan") -> int:
        """The bytes that the commands of all layers move; each command is checked.

        StoreRefused for a plan that overflows a memory, reads a tile that is not there, does not
        add every product exactly once, or does not move the bytes that it states.
        """
        moved: dict[Nest, int] = {}
        for number, (nest, listing) in enumerate(self.listings.items(), 1):
            moved[nest] = verify(listing, f"{where}, nest {number}")
        return sum(moved[nest] for _, nest in self.layers)

    def run(self, graph: Graph, inputs: Mapping[str, Any] | Sequence[Any]) -> Executed:
        """Runs a network in NumPy, its nests by their commands with memories of the chip's sizes.

        The other operations are computed by their meaning. StoreRefused for an invalid plan.
        """
        counts = [0, 0]

        def step(
            operation: Operation, program: Program, arrays: Sequence[NDArray[Any]]
        ) -> Sequence[NDArray[Any]]:
            reading = read.get(operation.name)
            if reading is None or reading.nest not in self.listings:
                return by_meaning(operation, program, arrays)
            named = dict(zip((p.name for p in program.params), arrays, strict=True))
            listing = self.listings[reading.nest]
            found = run_program(reading, listing, named, f"the plan of {operation.name}")
            counts[0] += found.loaded
            counts[1] += found.stored
            return [found.result]

        read = {layer.name: layer.reading for layer in layers_of(graph).layers}
        return Executed(execute(graph, inputs, step), counts[0], counts[1])

    def check(self, graph: Graph, inputs: Mapping[str, Any] | Sequence[Any]) -> Executed:
        """Runs the plan and compares with the network's meaning. LiftError if an output differs."""
        found = self.run(graph, inputs)
        compared(graph, found.outputs, execute(graph, inputs, by_meaning))
        return found


HEADER = "liftpy traffic plan 1"
"""The first line of a plan as text."""

POLICY = re.compile(f"policy ({'|'.join(POLICIES)})")


def read_plan(path: str | Path) -> TrafficPlan:
    """The plan in a file, verified. StoreRefused for another file, and for an invalid plan.

    An invalid plan overflows a memory, reads a tile that is not on the chip, misses or repeats
    products, or states a wrong traffic.
    """
    path = Path(path)
    lines = Lines(read_text(path, available(), StoreRefused), str(path))
    lines.word(HEADER)
    network = lines.word("network")
    try:
        chip = Accelerator.model_validate_json(lines.word("accelerator"))
    except ValidationError as error:
        lines.at -= 1
        raise lines.refusal(error.errors(include_url=False)[0]["msg"]) from error
    policy = cast("Policy", lines.take(POLICY, "policy")[1])
    named: list[tuple[int, str]] = []
    while lines.next.startswith("layer "):
        found = lines.take(LAYER, "layer")
        named.append((int(found[1]), found[2]))
    listings: list[Listing] = []
    while lines.more:
        lines.word(f"[nest {len(listings) + 1}]")
        listings.append(parsed(lines))
        if listings[-1].memories != tuple(size // WORD for size in chip.capacities):
            raise lines.refusal(f"nest {len(listings)} has other memories than the accelerator")
    if {number for number, _ in named} != set(range(1, len(listings) + 1)):
        raise lines.refusal("its layers do not name each of its nests")
    plan = TrafficPlan(
        network,
        chip,
        policy,
        tuple((name, listings[number - 1].nest) for number, name in named),
        {listing.nest: listing.schedule for listing in listings},
        read={listing.nest: listing for listing in listings},
    )
    plan.verify(str(path))
    return plan


def plan_traffic(
    found: Layers,
    chip: Accelerator,
    policy: Policy = "best",
    objective: Objective = "traffic",
    rules: Collection[Rule] = EXACT,
) -> TrafficPlan:
    """The plan of a network by a policy. ConstraintRefused if no tiles of a layer fit.

    >>> from liftpy.networks.offchip.hardware import accelerator
    >>> plan = plan_traffic(published_layers("alexnet"), accelerator("setup-a"))
    >>> plan.traffic, round(plan.traffic / plan.ideal, 4)
    (254606988, 1.0033)
    """
    made: dict[Nest, Found] = {}
    for nest in found.distinct:
        one = planned(nest, chip, policy, objective, rules)
        if one is None:
            name = next(layer.name for layer in found.layers if layer.nest == nest)
            raise ConstraintRefused(
                f"{name} of {found.network} ({nest}) has no plan by the policy {policy}: its "
                f"smallest tiles do not fit memories of {chip.mem_size} KB\n"
                "  try larger memories (`mem_size`), another policy, or fewer columns and rows "
                "(`pe_len`)"
            )
        made[nest] = one
    return TrafficPlan(
        found.network,
        chip,
        policy,
        tuple((layer.name, layer.nest) for layer in found.layers),
        {nest: one.schedule for nest, one in made.items()},
        made,
    )
