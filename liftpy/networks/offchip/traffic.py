"""The off-chip traffic of a nest, and the rate that it permits: e-PlaNNer's formulas.

Numbers of tiles may be integers or arrays of NumPy, to evaluate many tilings at once.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liftpy.networks.offchip.hardware import Accelerator
from liftpy.networks.offchip.nest import WORD, Array, Nest, ranges_of, trips_of


def repeats(
    order: Sequence[str], places: frozenset[str], trips: Mapping[str, Any], *, stays: bool = True
) -> Any:
    """How often each part of an array is loaded; `order` has the outermost loop first.

    An outer loop repeats the load if an inner loop moves to another part in between. An array that
    never stays is loaded in each iteration.

    >>> trips = {"OC": 5, "IC": 2, "OH": 4}
    >>> int(repeats(("OC", "IC", "OH"), frozenset({"IC", "OH"}), trips))  # the input
    5
    >>> int(repeats(("OH", "IC", "OC"), frozenset({"IC", "OH"}), trips))  # it stays
    1
    """
    found, moves = 1, not stays
    for name in reversed(order):
        if name in places:
            moves = moves | (trips[name] > 1)
        else:
            found = found * np.where(moves, trips[name], 1)
    return found


def reloads(
    nest: Nest, order: Sequence[str], trips: Mapping[str, Any], stationary: str = ""
) -> tuple[Any, Any, Any]:
    """How often input, weight and output cross the border of the chip (6.2 to 6.5).

    A partial sum is written and read back: n passes over a result write it n times and read it
    n - 1 times. If an array is named `stationary`, only that one stays between iterations.
    """
    data, weight, result = (
        repeats(order, nest.places(a), trips, stays=stationary in ("", a.name)) for a in nest.arrays
    )
    return data, weight, 2 * result - 1


def traffic(
    nest: Nest, order: Sequence[str], tiles: Mapping[str, Any], stationary: str = ""
) -> Any:
    """The bytes moved (6.1): the size of each array times its reloads; halos are ignored."""
    counts = reloads(nest, order, trips_of(nest, tiles), stationary)
    return sum(a.bytes * n for a, n in zip(nest.arrays, counts, strict=True))


def exact_traffic(
    nest: Nest, order: Sequence[str], tiles: Mapping[str, int], stationary: str = ""
) -> int:
    """The bytes moved, with the rows that neighbouring tiles share, and without padding."""
    trips = trips_of(nest, tiles)
    total = 0
    for array in nest.arrays:
        stays = stationary in ("", array.name)
        times = int(repeats(order, frozenset(array.loops), trips, stays=stays))
        times = 2 * times - 1 if array is nest.result else times
        total += WORD * times * passed(nest, array, tiles)
    return total


def passed(nest: Nest, array: Array, tiles: Mapping[str, int]) -> int:
    """The elements of all parts of an array, each part once."""
    found = 1
    for axis in array.axes:
        names = [name for name, _ in axis.terms]
        parts = itertools.product(*(ranges_of(nest.extents[n], tiles[n]) for n in names))
        clipped = (axis.clipped(dict(zip(names, part, strict=True))) for part in parts)
        found *= sum(end - first for first, end in clipped)
    return found


@dataclass(frozen=True)
class Performance:
    """The model's roofline: multiply-adds per second in 10^9 (6.6 to 6.12)."""

    compute: float
    memory: float
    utilization: float

    @property
    def rate(self) -> float:
        """The attainable rate: the smaller one."""
        return min(self.compute, self.memory)


def utilization(nest: Nest, chip: Accelerator, tiles: Mapping[str, Any]) -> Any:
    """The share of the processing elements that work (6.7 to 6.9).

    >>> import liftpy as lp
    >>> from liftpy.networks.offchip.hardware import accelerator
    >>> from liftpy.networks.offchip.meaning import nest_of
    >>> nest = nest_of(lp.workload("matmul/64x128x128")).nest
    >>> round(float(utilization(nest, accelerator("sample"), {"OH": 1, "IC": 65, "OC": 56})), 3)
    0.592
    """
    parallel = chip.parallel(nest)
    rounds = math.prod(-(-tiles[name] // parallel[name]) for name in nest.extents)
    return math.prod(tiles[name] for name in nest.extents) / (rounds * chip.elements)


def performance(nest: Nest, chip: Accelerator, tiles: Mapping[str, int], moved: int) -> Performance:
    """The attainable rate of a nest that moves this number of bytes."""
    share = float(utilization(nest, chip, tiles))
    return Performance(
        chip.frequency * chip.elements * share, chip.bandwidth * nest.products / moved, share
    )
