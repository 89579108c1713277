"""The tiles and the order of a nest: a search that counts the candidates each rule removes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liftpy.networks.offchip.hardware import Accelerator, fits
from liftpy.networks.offchip.nest import WORD, Nest, moving, trips_of
from liftpy.networks.offchip.traffic import traffic, utilization

Objective: TypeAlias = Literal["traffic", "metric"]
"""The fewest bytes, or the highest rate for each byte (6.13)."""

Rule: TypeAlias = Literal["window", "contiguous", "parallel", "elimination", "trips"]

RULES: Mapping[Rule, str] = {
    "window": "a window is never divided",
    "contiguous": "rows that are contiguous in input and result are never divided",
    "parallel": "no side of the array of processing elements is left idle",
    "elimination": "no loop is divided that can run once in the best such set of loops",
    "trips": "a larger tile with as many trips moves as many bytes and needs more memory",
}
"""The rules that may remove tilings, in their order. Then `memory` and `order` always do.

The first three restrict what a plan may be, `elimination` is a heuristic, and the others are exact.
"""

EXACT: tuple[Rule, ...] = ("window", "contiguous", "trips")
"""The rules of the default search: it finds the best tiling that the first two allow."""

BOUNDED: tuple[Rule, ...] = ("window", "contiguous", "parallel", "trips")
"""These, and the published lower bound of tiles by the array of processing elements."""

PUBLISHED: tuple[Rule, ...] = tuple(RULES)
"""The published search, with its heuristic, which may miss the best tiling."""


@dataclass(frozen=True)
class Schedule:
    """A tile size for each loop, and the order of the loops over tiles, the outermost first.

    A part of an array stays on the chip until another one is needed. If an array is named
    `stationary`, only that one stays, and the others are loaded in each iteration.
    """

    tiles: Mapping[str, int]
    order: tuple[str, ...]
    stationary: str = ""

    def moving(self, nest: Nest) -> tuple[str, ...]:
        """The loops with more than one tile, in order."""
        return tuple(moving(self.order, trips_of(nest, self.tiles)))

    def flow(self, nest: Nest) -> str:
        """The arrays that stay on the chip in the innermost loop, such as `output`, or `all`.

        Several are joined by `+`.
        """
        loops = self.moving(nest)
        if not loops or self.stationary:
            return self.stationary.lower() or "all"
        return "+".join(a.name.lower() for a in nest.arrays if loops[-1] not in nest.places(a))


@dataclass(frozen=True)
class Removed:
    """How many candidates, tilings times orders, a rule removed."""

    rule: str
    count: int


@dataclass(frozen=True)
class Found:
    """The best schedule, its traffic in bytes, and the figures of the search.

    `candidates` are all tilings times all orders, `compared` those whose traffic was computed.
    """

    schedule: Schedule
    traffic: int
    candidates: int
    removed: tuple[Removed, ...]

    @property
    def compared(self) -> int:
        """The candidates that no rule removed."""
        return self.candidates - sum(r.count for r in self.removed)


@dataclass(frozen=True)
class Tilings:
    """The tilings that some rules leave: all combinations of these tile sizes of each loop."""

    nest: Nest
    chip: Accelerator
    sizes: Sizes

    @property
    def free(self) -> tuple[str, ...]:
        """The loops that may have more than one tile: the only ones whose order matters."""
        return tuple(n for n, known in self.sizes.items() if known[0] < self.nest.extents[n])

    @cached_property
    def fitting(self) -> dict[str, NDArray[np.int64]]:
        """The tilings that fit the memories: an array for each loop."""
        names = list(self.sizes)
        grids = np.meshgrid(*self.sizes.values(), indexing="ij")
        tiles = {n: g.ravel() for n, g in zip(names, grids, strict=True)}
        fit = np.ones(math.prod(map(len, self.sizes.values())), bool)
        for array, room in zip(self.nest.arrays, self.chip.capacities, strict=True):
            size: Any = WORD
            for axis in array.axes:
                span = 1 + sum(step * (tiles[name] - 1) for name, step in axis.terms)
                size = size * np.minimum(span, axis.length)
            fit &= size <= room
        return {n: t[fit] for n, t in tiles.items()}

    @property
    def count(self) -> int:
        """The number of tilings that fit."""
        return len(next(iter(self.fitting.values())))


Sizes: TypeAlias = Mapping[str, NDArray[np.int64]]


def sizes_of(nest: Nest, chip: Accelerator, rules: Collection[Rule]) -> list[Sizes]:
    """The tile sizes of each loop, before any rule and after each one."""
    known = {name: np.arange(1, extent + 1) for name, extent in nest.extents.items()}
    parallel = chip.parallel(nest)
    steps: list[Sizes] = [known]
    for rule in RULES:
        if rule in rules and rule == "trips":
            known = {n: smallest(nest.extents[n], s, parallel[n]) for n, s in known.items()}
        elif rule in rules:
            least = {name: int(sizes[0]) for name, sizes in known.items()}
            least |= raised(rule, nest, chip, least)
            known = {name: sizes[sizes >= least[name]] for name, sizes in known.items()}
        steps.append(known)
    return steps


def raised(rule: Rule, nest: Nest, chip: Accelerator, least: Mapping[str, int]) -> dict[str, int]:
    """The lower bounds that a rule sets."""
    if rule == "window":
        return {name: nest.extents[name] for name in nest.windows}
    if rule == "contiguous":
        return {name: nest.extents[name] for name in nest.contiguous}
    if rule == "parallel":
        return {n: max(least[n], at_once) for n, at_once in chip.parallel(nest).items()}
    return eliminated(nest, chip, least)


def smallest(extent: int, sizes: NDArray[np.int64], parallel: int) -> NDArray[np.int64]:
    """The sizes without a smaller one that has as many trips and uses as many elements.

    >>> smallest(20, np.arange(1, 21), 1)
    array([ 1,  2,  3,  4,  5,  7, 10, 20])
    >>> smallest(20, np.arange(1, 21), 4)
    array([ 1,  2,  3,  4,  5,  6,  7,  8, 10, 11, 12, 20])
    """
    used = sizes / (-(-sizes // parallel) * parallel)  # at most 1
    score = used + 2 * (extent - -(-extent // sizes))  # fewer trips count more
    before = np.maximum.accumulate(np.concatenate(([-1.0], score[:-1])))
    return sizes[score > before]


def eliminated(nest: Nest, chip: Accelerator, least: Mapping[str, int]) -> dict[str, int]:
    """The tile sizes, with some loops undivided: the published step 2.

    Each set of loops is tried undivided; of the sets whose tile fits, the one that moves the fewest
    bytes is taken.
    """
    free = [name for name, size in least.items() if size < nest.extents[name]]
    orders = orders_of(free)
    best, found = math.inf, dict(least)
    for number in range(len(free) + 1):
        for chosen in itertools.combinations(free, number):
            tiles = {**least, **{name: nest.extents[name] for name in chosen}}
            if fits(nest, tiles, chip.capacities):
                moved = min(int(traffic(nest, order, tiles)) for order in orders)
                if moved < best:
                    best, found = moved, tiles
    return found


def orders_of(free: Sequence[str]) -> list[tuple[str, ...]]:
    """All orders of some loops."""
    return list(itertools.permutations(free))


def search(
    nest: Nest,
    chip: Accelerator,
    objective: Objective = "traffic",
    rules: Collection[Rule] = EXACT,
    allowed: Callable[[tuple[str, ...]], bool] = lambda _: True,
    fixed: Mapping[str, int] | None = None,
    stationary: str = "",
) -> Found | None:
    """The best tiles and order of a nest on an accelerator; None if no tile fits its memories.

    `allowed` says which orders of loops may be used, `fixed` has the sizes of some loops' tiles,
    and `stationary` is that of the schedule. Of equal candidates, the one with the higher metric is
    taken, then the one with fewer tiles, whose halos are smaller.

    >>> import liftpy as lp
    >>> from liftpy.networks.offchip.hardware import accelerator
    >>> from liftpy.networks.offchip.meaning import nest_of
    >>> nest = nest_of(lp.workload("matmul/512x512x512")).nest
    >>> found = search(nest, accelerator("sample"))
    >>> found.traffic, found.traffic / nest.bytes
    (5242880, 1.6666666666666667)
    """
    steps = sizes_of(nest, chip, rules)
    last = {**steps[-1], **{n: np.array([size]) for n, size in (fixed or {}).items()}}
    tilings = Tilings(nest, chip, last)
    if not tilings.count:
        return None
    loops = [name for name, extent in nest.extents.items() if extent > 1]
    every = math.factorial(len(loops))
    counts = [math.prod(map(len, sizes.values())) * every for sizes in (*steps, last)]
    named = [*RULES, "policy"]
    removed = [
        Removed(rule, a - b) for rule, a, b in zip(named, counts, counts[1:], strict=False) if a > b
    ]
    removed.append(Removed("memory", counts[-1] - tilings.count * every))
    orders = [o for o in orders_of(tilings.free) if allowed(o)]
    removed.append(Removed("order", tilings.count * (every - len(orders))))
    schedule, moved = best_of(tilings, orders, objective, stationary)
    return Found(schedule, moved, counts[0], tuple(removed))


def best_of(
    tilings: Tilings, orders: Sequence[tuple[str, ...]], objective: Objective, stationary: str
) -> tuple[Schedule, int]:
    """The best of some tilings in the best of some orders, and its traffic."""
    nest, chip, tiles = tilings.nest, tilings.chip, tilings.fitting
    compute = chip.frequency * chip.elements * utilization(nest, chip, tiles)
    pieces = np.broadcast_to(math.prod(trips_of(nest, tiles).values()), compute.shape)
    least: tuple[float, ...] | None = None
    found: tuple[int, tuple[str, ...]] = 0, ()
    for order in orders:
        moved = np.broadcast_to(traffic(nest, order, tiles, stationary), compute.shape)
        metric = np.minimum(compute, chip.bandwidth * nest.products / moved) / moved
        keys = (moved, -metric, pieces) if objective == "traffic" else (-metric, moved, pieces)
        at = np.arange(len(compute))
        for key in keys:
            at = at[key[at] == key[at].min()]
        k = int(at[0])
        costs = tuple(float(key[k]) for key in keys)
        if least is None or costs < least:
            least, found = costs, (k, order)
    k, order = found
    outer = tuple(name for name in nest.extents if name not in order)
    schedule = Schedule({n: int(t[k]) for n, t in tiles.items()}, (*outer, *order), stationary)
    return schedule, int(traffic(nest, schedule.order, schedule.tiles, stationary))
