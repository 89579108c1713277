"""Sums of products over a box of indices: the loops, and the arrays that they read and write.

    result[...] = sum over some loops of data[...] * weight[...]

Every index of an array is a sum of loop counters, each times a step. Padding is expressed by reads
outside an array, which are 0. Convolutions and products of matrices are such nests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

Range: TypeAlias = tuple[int, int]
"""The first value of a counter or an index, and the value after the last."""

Ranges: TypeAlias = Mapping[str, Range]
"""A range of each loop's counter."""

WORD = 4
"""The bytes of an element: all arrays are f32."""


@dataclass(frozen=True)
class NestLoop:
    """A loop of a nest. `summed` loops add products; the others run over the results."""

    name: str
    extent: int
    summed: bool


@dataclass(frozen=True)
class NestAxis:
    """An axis of an array: its length, and the index as `start` plus steps times counters.

    >>> rows = NestAxis(9, (("OH", 2), ("KH", 1)), start=-1)
    >>> rows.hull({"OH": (0, 2), "KH": (0, 3)}), rows.clipped({"OH": (0, 2), "KH": (0, 3)})
    ((-1, 4), (0, 4))
    """

    length: int
    terms: tuple[tuple[str, int], ...] = ()
    start: int = 0

    def hull(self, ranges: Ranges) -> Range:
        """The range of indices for these counters, including those outside the array."""
        first = self.start + sum(step * ranges[name][0] for name, step in self.terms)
        last = self.start + sum(step * (ranges[name][1] - 1) for name, step in self.terms)
        return first, last + 1

    def clipped(self, ranges: Ranges) -> Range:
        """The range of indices for these counters, inside the array."""
        first, end = self.hull(ranges)
        return min(max(first, 0), self.length), max(0, min(end, self.length))


@dataclass(frozen=True)
class Array:
    """An array of a nest, in row-major order."""

    name: str
    axes: tuple[NestAxis, ...]

    @cached_property
    def loops(self) -> tuple[str, ...]:
        """The loops that its indices depend on."""
        return tuple(dict.fromkeys(name for axis in self.axes for name, _ in axis.terms))

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The lengths of its axes."""
        return tuple(axis.length for axis in self.axes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """The distance between neighbours along each axis, in elements."""
        return tuple(math.prod(self.shape[k + 1 :]) for k in range(len(self.shape)))

    @property
    def bytes(self) -> int:
        """The number of bytes of the whole array."""
        return WORD * math.prod(self.shape)

    def box(self, ranges: Ranges) -> tuple[Range, ...]:
        """The part inside the array that these counters read or write."""
        return tuple(axis.clipped(ranges) for axis in self.axes)

    def largest(self, tiles: Mapping[str, int]) -> int:
        """The largest number of elements of a part for these numbers of values of each counter."""
        lengths = (
            min(axis.length, sum(step * (tiles[name] - 1) for name, step in axis.terms) + 1)
            for axis in self.axes
        )
        return math.prod(lengths)


@dataclass(frozen=True)
class Nest:
    """A nest: its loops, and the arrays INPUT, WEIGHT and OUTPUT.

    `windows` are summed loops that move a window over the input, as those over the rows and
    columns of a kernel. `contiguous` are the loops over the innermost axis of input and result.
    """

    loops: tuple[NestLoop, ...]
    data: Array
    weight: Array
    result: Array
    windows: frozenset[str] = field(default_factory=frozenset[str])
    contiguous: frozenset[str] = field(default_factory=frozenset[str])

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Input, weight, output: in the order of the memories."""
        return self.data, self.weight, self.result

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """The number of iterations of each loop."""
        return {loop.name: loop.extent for loop in self.loops}

    @cached_property
    def summed(self) -> frozenset[str]:
        """The loops that add products."""
        return frozenset(loop.name for loop in self.loops if loop.summed)

    @property
    def products(self) -> int:
        """The number of multiply-adds."""
        return math.prod(self.extents.values())

    @property
    def bytes(self) -> int:
        """The bytes of all arrays: a lower bound on the traffic."""
        return sum(array.bytes for array in self.arrays)

    def places(self, array: Array) -> frozenset[str]:
        """The loops that select the part of an array that is used; a window moves within a part."""
        return frozenset(array.loops) - (self.windows if array is self.data else frozenset())

    def __str__(self) -> str:
        loops = " ".join(f"{loop.name}={loop.extent}" for loop in self.loops)
        return f"{loops}: {self.products} products"


def ranges_of(extent: int, tile: int) -> list[Range]:
    """The ranges of a loop's tiles; the last one may be smaller.

    >>> ranges_of(7, 3)
    [(0, 3), (3, 6), (6, 7)]
    """
    return [(first, min(first + tile, extent)) for first in range(0, extent, tile)]


def trips_of(nest: Nest, tiles: Mapping[str, Any]) -> dict[str, Any]:
    """The number of tiles of each loop; for arrays of sizes, an array."""
    return {name: -(-extent // tiles[name]) for name, extent in nest.extents.items()}


def moving(order: Sequence[str], trips: Mapping[str, int]) -> list[str]:
    """The loops of an order with more than one tile: only these move data."""
    return [name for name in order if trips[name] > 1]
