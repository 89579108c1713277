"""Counting the points of a space exactly, and drawing them uniformly.

Parameters are assigned in dependency order. Two partial assignments that no open condition can
tell apart have the same continuations, which are counted once. So the space becomes a graph whose
paths are the points, with a node (`PartialPoints`) for each class of partial assignments. Each
independent part of a system has its own graph. Point number `k` is found by walking the graph: a
draw costs nothing beyond the count.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log, prod
from typing import Any, Literal, TypeAlias
from weakref import WeakValueDictionary

from liftpy.constraints.levels import Levels
from liftpy.constraints.rng import Rng, shuffled
from liftpy.constraints.system import Assignment, ConstraintSystem, after, cheapest_order
from liftpy.deadline import check
from liftpy.errors import ConstraintRefused
from liftpy.rewrite.skeleton import Parameter

Sampler = Literal["uniform", "incremental"]

Preference: TypeAlias = Callable[[str, Sequence[int]], Sequence[int]]
"""Maps the name and the values of a size to the values to try, in the order to try them."""

NODE_LIMIT = 2_000_000  # classes of partial assignments, which take some gigabytes
TRIES = 200  # repeated points in a row after which `incremental` gives up


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartialPoints:
    """A class of partial assignments: the next parameter's values, and the points up to each."""

    values: tuple[int, ...]
    totals: tuple[int, ...]
    next: tuple[PartialPoints, ...]

    @property
    def count(self) -> int:
        """The number of points from here on."""
        return self.totals[-1]


END = PartialPoints((), (1,), ())


class Graph:
    """The points of a system whose parts are not independent, from the levels of its parameters."""

    def __init__(self, levels: Levels) -> None:
        self.order = levels.order
        self.levels = levels
        self.nodes: list[dict[Any, PartialPoints | None]] = [{} for _ in self.order]
        self.made = 0

    @cached_property
    def root(self) -> PartialPoints | None:
        """The node where every point begins; None if there are no points."""
        return self.node(()) if self.levels.possible else None

    def node(self, given: tuple[int, ...]) -> PartialPoints | None:
        """The class of a partial assignment; None if it has no continuation."""
        check()
        k = len(given)
        if k == len(self.order):
            return END
        key = self.levels.key[k](*given)
        known = self.nodes[k]
        if key in known:
            return known[key]
        values: list[int] = []
        totals: list[int] = []
        further: list[PartialPoints] = []
        total = 0
        for value in self.levels.values[k](*given):
            if (after_it := self.node((*given, value))) is not None:
                total += after_it.count
                values.append(value)
                totals.append(total)
                further.append(after_it)
        made = PartialPoints(tuple(values), tuple(totals), tuple(further)) if values else None
        known[key] = made
        self.made += 1
        if self.made > NODE_LIMIT:
            raise ConstraintRefused(
                f"the space of {', '.join(p.name for p in self.order)} cannot be counted:"
                f" it has more than {NODE_LIMIT} different partial assignments."
                " Draw with the sampler `incremental`, or narrow the ranges;"
                " `liftpy space --uncounted` shows the ranges that the conditions leave"
            )
        return made

    @property
    def count(self) -> int:
        """The number of points."""
        return 0 if self.root is None else self.root.count

    def unrank(self, k: int) -> Assignment:
        """Point number `k`."""
        found: Assignment = {}
        node = self.root or END
        for parameter in self.order:
            position = bisect_right(node.totals, k)
            k -= node.totals[position - 1] if position else 0
            found[parameter.name] = node.values[position]
            node = node.next[position]
        return found

    def values(self, name: str) -> set[int]:
        """The values that a parameter takes in some point."""
        if self.root is None:
            return set()
        level = [p.name for p in self.order].index(name)
        return {v for node in self.nodes[level].values() if node is not None for v in node.values}


class Completer:
    """Completes partial assignments in one order, and remembers those without a completion.

    `effort` is the number of values that it may try before it gives up; None means no limit.
    `preference` orders the values of a parameter, and may leave some out.
    """

    def __init__(
        self, levels: Levels, effort: int | None = None, preference: Preference | None = None
    ) -> None:
        self.levels = levels
        self.effort = effort
        self.preference = preference
        self.gave_up = False
        self.dead: set[tuple[int, Any]] = set()

    def complete(self, given: tuple[int, ...]) -> tuple[int, ...] | None:
        """The first completion of the first values; None if none is found."""
        check()
        k = len(given)
        if k == len(self.levels.order):
            return given
        key = (k, self.levels.key[k](*given))
        if key in self.dead:
            return None
        if self.effort is not None:
            self.effort -= self.levels.tried[k]
            self.gave_up = self.gave_up or self.effort < 0
        values = () if self.gave_up else self.levels.values[k](*given)
        if self.preference is not None:
            values = self.preference(self.levels.order[k].name, values)
        for value in values:
            if (point := self.complete((*given, value))) is not None:
                return point
        self.dead.add(key)
        return None


def nearest_first(wanted: Mapping[str, int]) -> Preference:
    """A preference for the values whose ratios to those wanted are nearest to 1.

    >>> nearest_first({"tile": 6})("tile", [1, 4, 8, 16])
    [8, 4, 16, 1]
    """

    def preference(name: str, values: Sequence[int]) -> Sequence[int]:
        if name not in wanted:
            return values
        return sorted(values, key=lambda v: abs(log(max(v, 1) / max(wanted[name], 1))))

    return preference


def search(system: ConstraintSystem, effort: int | None = None) -> tuple[Assignment | None, bool]:
    """One point, found without counting, or None; and whether the answer is certain.

    The answer is certain unless more than `effort` values would be tried in an independent part.
    """
    found: Assignment = {}
    certain = True
    for part in system.components:
        completer = Completer(Levels(part, cheapest_order(part)), effort)
        point = completer.complete(()) if completer.levels.possible else None
        if point is not None:
            found |= {p.name: v for p, v in zip(completer.levels.order, point, strict=True)}
        elif not completer.gave_up:
            return None, True
        else:
            certain = False
    return ({p.name: found[p.name] for p in system.parameters} if certain else None), certain


def first(system: ConstraintSystem) -> Assignment | None:
    """One point; None if there is none."""
    return search(system)[0]


KNOWN: WeakValueDictionary[Hashable, Space] = WeakValueDictionary()
"""The points of systems, as long as something uses them."""


def shared_points(system: ConstraintSystem) -> Space:
    """The points of a system: one object for all systems with equal parameters and conditions.

    Most skeletons of a program have the conditions of others, so their points are counted together.
    """
    key = system.parameters, tuple(clause.constraint for clause in system.clauses)
    found = KNOWN.get(key)
    if found is None:
        found = KNOWN[key] = Space(system)
    return found


class Space:
    """The points of a system: their number, their values, and the order of drawing them."""

    def __init__(self, system: ConstraintSystem) -> None:
        self.system = system

    @cached_property
    def graphs(self) -> tuple[Graph, ...]:
        """The graph of each independent part, up to the first empty one."""
        graphs: list[Graph] = []
        for levels in self.levels:
            graphs.append(Graph(levels))
            if not graphs[-1].count:
                break
        return tuple(graphs)

    def count(self) -> int:
        """The exact number of points."""
        return prod(graph.count for graph in self.graphs)

    def unrank(self, k: int) -> Assignment:
        """Point number `k`, from 0."""
        if not 0 <= k < self.count():
            raise ConstraintRefused(f"there is no point {k}: the space has {self.count()}")
        found: Assignment = {}
        for graph in self.graphs:
            k, mine = divmod(k, graph.count)
            found |= graph.unrank(mine)
        return {p.name: found[p.name] for p in self.system.parameters}

    def values(self, name: str) -> list[int]:
        """The values that a parameter takes in some point, ascending."""
        if not self.count():
            return []
        graph = next(g for g in self.graphs if any(p.name == name for p in g.order))
        return sorted(graph.values(name))

    @cached_property
    def levels(self) -> tuple[Levels, ...]:
        """For each independent part, the order of its parameters and the values they may take."""
        return tuple(Levels(part, cheapest_order(part)) for part in self.system.components)

    @cached_property
    def possible(self) -> bool:
        """Whether there is a point. This looks for one point and counts none."""
        return self.completed() is not None

    def completed(self, preference: Preference | None = None) -> Assignment | None:
        """A point whose values come first in `preference`; None if it leaves all points out.

        Parameters are assigned in the order of `levels`, each to its first value that can be
        completed. Nothing is counted.
        """
        found: Assignment = {}
        for levels in self.levels:
            completer = Completer(levels, preference=preference)
            point = completer.complete(()) if levels.possible else None
            if point is None:
                return None
            found |= {p.name: v for p, v in zip(levels.order, point, strict=True)}
        return {p.name: found[p.name] for p in self.system.parameters}

    def draws(
        self, seed: int, sampler: Sampler = "uniform", start: int = 0
    ) -> Iterator[Assignment]:
        """All points in an order that the seed determines, from position `start` of that order.

        The first n are n uniform draws without replacement: a longer sample begins with a shorter
        one. So the number of draws made is enough to continue.
        """
        if sampler == "incremental":
            return itertools.islice(incremental(self.system, seed), start, None)
        return (self.unrank(k) for k in shuffled(self.count(), seed, start))

    def sample(self, n: int, seed: int, sampler: Sampler = "uniform") -> list[Assignment]:
        """The first `n` draws; all points if there are fewer."""
        return list(itertools.islice(self.draws(seed, sampler), n))


def incremental(system: ConstraintSystem, seed: int) -> Iterator[Assignment]:
    """The published sampler (specs: lift-convolution, section 7), for comparison: not uniform.

    Parameters are assigned in topological order, unordered ones in random order. Each gets a random
    one of the values that satisfy the conditions so far; a dead end backtracks. Ends after `TRIES`
    repeated points in a row.
    """
    rng = Rng(seed)
    levels = Levels(system, topological_order(system, rng))
    seen: set[tuple[int, ...]] = set()
    misses = 0
    while levels.possible and misses < TRIES:
        point = _descend(levels, (), rng)
        if point is None:
            return
        if point in seen:
            misses += 1
            continue
        misses = 0
        seen.add(point)
        by_name = {p.name: v for p, v in zip(levels.order, point, strict=True)}
        yield {p.name: by_name[p.name] for p in system.parameters}


def _descend(levels: Levels, given: tuple[int, ...], rng: Rng) -> tuple[int, ...] | None:
    """A random completion of the first values; None if there is none."""
    if len(given) == len(levels.order):
        return given
    values = levels.values[len(given)](*given)
    rng.shuffle(values)
    for value in values:
        if (point := _descend(levels, (*given, value), rng)) is not None:
            return point
    return None


def topological_order(system: ConstraintSystem, rng: Rng) -> tuple[Parameter, ...]:
    """The parameters, each after those whose values it divides; ties are broken at random."""
    left = list(system.parameters)
    rng.shuffle(left)
    order: list[Parameter] = []
    while left:
        waiting = {p.name for p in left}
        ready = [
            p
            for p in left
            if all(whole.isdisjoint(waiting - {p.name}) for whole in after(system.clauses, p.name))
        ]
        chosen = (ready or left)[0]
        order.append(chosen)
        left.remove(chosen)
    return tuple(order)
