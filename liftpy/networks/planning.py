"""Plans: one candidate for each operation, an order, and offsets; the front of time and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from liftpy.errors import ConstraintRefused
from liftpy.explore.measure.pareto import front
from liftpy.explore.optional import needing
from liftpy.networks.arena import Block, aligned
from liftpy.networks.costs import Costs
from liftpy.networks.graph import Graph
from liftpy.networks.layout import (
    Layout,
    constant_bytes,
    constant_items,
    footprint,
    layout_of,
    part_block,
)
from liftpy.networks.options import Option, Options, undominated
from liftpy.networks.ordering import ordered
from liftpy.networks.sharing import Part, sharing

POINTS = 16
"""The number of steps of memory in which the front is searched."""

ROUNDS = 20
"""How often a selection is sought again because its arena is larger than its lower bound."""


@dataclass(frozen=True)
class Point:
    """A plan by its costs. `time_ns` is None if an operation was not measured.

    `arena` and `constants` are bytes of device memory, `bound` is the largest sum of live bytes.
    `proved`: no plan in this order is faster and needs no more memory.
    """

    time_ns: int | None
    arena: int
    constants: int
    bound: int
    proved: bool

    @property
    def memory(self) -> int:
        """All bytes of device memory."""
        return self.arena + self.constants


@dataclass(frozen=True)
class Planned:
    """The options that were chosen for a graph in its order, their layout, and the front.

    Operations without kernels (`layout.unmoved`, or without a program) have no option.
    """

    graph: Graph
    options: Mapping[str, Option]
    layout: Layout
    point: Point
    front: tuple[Point, ...]
    order_proved: bool


def solved(blocks: Sequence[Block], bound: int, hint: Mapping[str, int]) -> Any:
    """The smallest arena by the solver, which is imported when first needed."""
    return solver().smallest(blocks, bound, hint)


def solver() -> Any:
    """The module with the solver; LiftError with what to install if there is none."""
    return needing("ortools", "plan", "liftpy.networks.solver", "choosing the best plan")


def planned(
    graph: Graph, options: Options, alignment: int, memory_limit: int | None = None
) -> Planned:
    """The fastest plan within a limit of device memory in bytes, and the front.

    Operations without a program have no option, and no time. ConstraintRefused if no plan is within
    the limit.
    """
    shared = sharing(graph, alignment)
    found = {o.name: options(o) for o in graph.computed if o.name not in shared.unmoved}
    scratch = [
        min((footprint(one.module, alignment).scratch for one in found.get(o.name, ())), default=0)
        for o in graph.operations
    ]
    parts = [replace(part, bytes=aligned(part.bytes, alignment)) for part in shared.parts]
    order = ordered(graph, parts, scratch)
    graph = replace(graph, operations=tuple(graph.operations[k] for k in order.positions))
    choosing = _Choosing(graph, found, parts, alignment)
    chosen, points = choosing.front(memory_limit)
    modules, layout, point = choosing.costs(chosen)
    return Planned(graph, modules, layout, point, points, order.proved)


Selection = tuple[int, ...]


class _Choosing:
    """The selection of an option for each operation that has kernels, in the graph's order."""

    def __init__(
        self,
        graph: Graph,
        options: Mapping[str, Sequence[Option]],
        parts: Sequence[Part],
        alignment: int,
    ) -> None:
        self.graph = graph
        self.parts = parts
        self.alignment = alignment
        self.operations = [o for o in graph.operations if o.name in options]
        self.options = [
            undominated(own, [self._costs(k, one, place) for place, one in enumerate(own)])
            for k, own in enumerate(options[o.name] for o in self.operations)
        ]
        self._known: dict[Selection, tuple[Mapping[str, Option], Layout, Point]] = {}
        self._proved: dict[Selection, bool] = {}
        self._cuts: list[Any] = []
        self._exact = True  # whether all cuts are of proved placements

    def _items(self, k: int, option: Option) -> dict[Any, int]:
        return constant_items(self.graph, [(self.operations[k], option.module)])

    def _costs(self, k: int, option: Option, place: int) -> Costs:
        """The costs of an option; without a time, its place makes it slower than earlier ones."""
        scratch = footprint(option.module, self.alignment).scratch
        time_ns = place if option.time_ns is None else option.time_ns
        return Costs(time_ns, scratch, self._items(k, option))

    @cached_property
    def _live(self) -> list[int]:
        """The bytes of the arena that tensors take during each operation that has kernels."""
        found = [0] * len(self.graph.operations)
        for block in (part_block(self.graph, part) for part in self.parts):
            for k in range(block.first, min(block.last + 1, len(found))):
                found[k] += block.bytes
        own = {o.name for o in self.operations}
        return [n for n, o in zip(found, self.graph.operations, strict=True) if o.name in own]

    def costs(self, chosen: Selection) -> tuple[Mapping[str, Option], Layout, Point]:
        """The options of a selection by operation, their layout and their costs."""
        if chosen not in self._known:
            named = {
                o.name: self.options[k][j]
                for k, (o, j) in enumerate(zip(self.operations, chosen, strict=True))
            }
            modules = {name: option.module for name, option in named.items()}
            layout = layout_of(self.graph, modules, self.alignment, solved)
            times = [option.time_ns for option in named.values()]
            point = Point(
                sum(t for t in times if t is not None) if None not in times else None,
                layout.bytes,
                constant_bytes(self.graph, modules),
                layout.bound,
                layout.proved and self._proved.get(chosen, True),
            )
            self._known[chosen] = named, layout, point
        return self._known[chosen]

    def memory(self, chosen: Selection) -> int:
        """All bytes of device memory of a selection."""
        return self.costs(chosen)[2].memory

    def best(self, limit: int | None, *, least_memory: bool = False) -> Selection | None:
        """The fastest selection within a limit, or the one of least memory; None if there is none.

        The solver knows a lower bound of each arena. Where a placement needs more than that and
        exceeds the limit, the selection and those that are no better are excluded.
        """
        if all(len(own) == 1 for own in self.options):
            only = (0,) * len(self.options)
            return only if limit is None or self.memory(only) <= limit else None
        module = solver()
        costs = [
            [self._costs(k, one, j) for j, one in enumerate(own)]
            for k, own in enumerate(self.options)
        ]
        for _ in range(ROUNDS):
            found = module.select(costs, self._live, limit, self._cuts, least_memory=least_memory)
            if found is None:
                return None
            chosen, proved = found
            self._proved[chosen] = proved and self._exact
            if limit is None or self.memory(chosen) <= limit:
                return chosen
            layout = self.costs(chosen)[1]
            self._cuts.append(module.Cut(chosen, layout.bytes))
            self._exact = self._exact and layout.proved
        return None

    def front(self, memory_limit: int | None) -> tuple[Selection, tuple[Point, ...]]:
        """The fastest selection within the limit, and the points of the front that were found."""
        least = self._least()
        fastest = self.best(None) or least
        chosen = fastest
        if memory_limit is not None and self.memory(fastest) > memory_limit:
            chosen = self.best(memory_limit) or self._settled(least)
            if self.memory(chosen) > memory_limit:
                self._refuse(least, memory_limit)
        found = dict.fromkeys([fastest, chosen, least])
        step = max(1, -(-(self.memory(fastest) - self.memory(least)) // POINTS))
        limit = self.memory(fastest) - step
        while limit > self.memory(least):
            following = self.best(limit)
            if following is not None:  # otherwise `ROUNDS` were not enough
                found[following] = None
                limit = min(limit, self.memory(following))
            limit -= step
        points = [self.costs(one)[2] for one in found]
        unmeasured = any(p.time_ns is None for p in points)
        kept = points[:1] if unmeasured else front(points, lambda p: (p.time_ns or 0, p.memory))
        return chosen, tuple(dict.fromkeys(kept))

    def _least(self) -> Selection:
        """The selection of least memory."""
        least = self.best(None, least_memory=True) or (0,) * len(self.options)
        point = self.costs(least)[2]
        while point.arena > point.bound:  # another may have a smaller arena, with a larger bound
            other = self.best(point.memory - 1, least_memory=True)
            if other is None:
                break
            least, point = other, self.costs(other)[2]
        return least

    def _settled(self, chosen: Selection) -> Selection:
        """A selection that the solver has not shown to be the fastest within a limit."""
        self._proved[chosen] = False
        self._known.pop(chosen, None)
        return chosen

    def _refuse(self, least: Selection, limit: int) -> None:
        point = self.costs(least)[2]
        raise ConstraintRefused(
            f"no plan of {self.graph.name} fits {limit} bytes of device memory: the least is "
            f"{point.memory}, an arena of {point.arena} (at least {point.bound}, the largest sum "
            f"of live bytes) and {point.constants} of constants\n"
            f"  give --memory-limit {point.memory} or more, or candidates with less scratch (--db)"
        )
