"""Lowered primitives of the parallel levels: maps over ids and subgroups, and folds by subgroups.

Each map has the meaning of `map`. A fold has that of `reduce` in the opposite order.
`liftpy.primitives.levels` says how levels may be nested.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import Type
from liftpy.primitives.map import AnyMap, array_of
from liftpy.primitives.reduce import AnyReduce

DIMENSIONS = (0, 1, 2)
"""The dimensions of a launch."""


@dataclass(frozen=True)
class ParallelMap(AnyMap):
    """Runs `map` over the ids of a launch in dimension `dim`."""

    dim: int = 0

    def type_of(self, xs: Type) -> Type:
        if self.dim not in DIMENSIONS:
            ways = " or ".join(f"{self.name}({dim}, ...)" for dim in DIMENSIONS)
            message = (
                f"{self.name} cannot use dimension {self.dim}\n"
                f"  a launch has the dimensions {', '.join(map(str, DIMENSIONS))}\n"
                f"  write {ways}"
            )
            raise TypeRefused(message)
        return super().type_of(xs)


@dataclass(frozen=True)
class MapGlb(ParallelMap):
    """Runs `map` over the global ids of dimension `dim`."""

    name: ClassVar[str] = "mapGlb"


@dataclass(frozen=True)
class MapWrg(ParallelMap):
    """Runs `map` over the work-groups of dimension `dim`."""

    name: ClassVar[str] = "mapWrg"


@dataclass(frozen=True)
class MapLcl(ParallelMap):
    """Runs `map` over the local ids of a work-group in dimension `dim`."""

    name: ClassVar[str] = "mapLcl"


@dataclass(frozen=True)
class MapSubgroup(AnyMap):
    """Runs `map` over the subgroups of a work-group, which has `items` work-items.

    mapSubgroup(items, f) : [a]n -> [b]n

    Subgroup `k` of `s` takes the elements `k`, `k + s`, `k + 2 s` and so on. Its work-items compute
    the function together: `mapItem` and `reduceItems` divide arrays among them. The device chooses
    the size of subgroups.
    """

    name: ClassVar[str] = "mapSubgroup"
    dim: ClassVar[int] = 0
    unconditional: ClassVar[str] = ""
    by_definition: ClassVar[Mapping[str, str]] = {"1 <= items": "no group is empty"}
    items: Nat

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield from super().requires(xs)
        yield at_least(1, self.items)


@dataclass(frozen=True)
class MapItem(AnyMap):
    """Runs `map` over the work-items of a subgroup, inside a `mapSubgroup`.

    Work-item `k` of a subgroup of `s` takes the elements `k`, `k + s`, `k + 2 s` and so on.
    """

    name: ClassVar[str] = "mapItem"
    dim: ClassVar[int] = 0


@dataclass(frozen=True)
class AnyReduceBySubgroups(AnyReduce):
    """A fold by the subgroup functions of a device; `ReduceSubgroups` states its meaning."""

    def type_of(self, init: Type, xs: Type) -> Type:
        element = array_of(self.name, xs).element
        if init != element:
            raise TypeRefused(
                f"{self.name} folds elements of the accumulator's type, {init}; "
                f"these are of type {element}: convert them with map first"
            )
        return init

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Value, xs: Pull
    ) -> Value:
        last = xs.length - 1
        return read.reduced(f, init, Pull(xs.length, lambda i: xs[last - i]))

    def reference(self, f: Callable[[Any, Any], Any], init: Any, xs: list[Any]) -> Any:
        return functools.reduce(f, reversed(xs), init)


@dataclass(frozen=True)
class ReduceSubgroups(AnyReduceBySubgroups):
    """Folds one element of each work-item of a group by the subgroup functions of a device.

    `mapLcl(0)` makes the array, and all work-items get the result. The function is a sum, a maximum
    or a minimum. The device chooses the order. The meaning has the opposite order of `reduce`, so
    that the two are equal only for associative and commutative functions. The maximum or minimum of
    a number and NaN may be either of them.

    reduceSubgroups(f) : (a, [a]n) -> a        f(... f(f(init, xs[n-1]), xs[n-2]) ..., xs[0])
    """

    name: ClassVar[str] = "reduceSubgroups"


@dataclass(frozen=True)
class ReduceItems(AnyReduceBySubgroups):
    """Folds an array of any length by the work-items of a subgroup, inside a `mapSubgroup`.

    `mapItem` makes the array. Each work-item folds its own elements, and a subgroup function folds
    the results; all work-items of the subgroup get the result. The function, the order and the
    meaning are those of `reduceSubgroups`.

    reduceItems(f) : (a, [a]n) -> a        f(... f(f(init, xs[n-1]), xs[n-2]) ..., xs[0])
    """

    name: ClassVar[str] = "reduceItems"
