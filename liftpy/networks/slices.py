"""A tensor as a slice of another one, along one axis: the view that reads it there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.call import apply, call
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import ScalarType
from liftpy.language.embedded.defining import array_type
from liftpy.primitives import Drop, Map, Take
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Slice:
    """A tensor whose elements are a slice of those of the tensor `of`; the `view` reads it."""

    of: str
    view: Lambda

    def within(self, outer: Slice | None) -> Slice:
        """The slice of the tensor that `outer` is a slice of, if the tensor `of` is one itself."""
        if outer is None:
            return self
        return Slice(outer.of, Lambda(outer.view.params, apply(self.view, outer.view.body)))


@dataclass(frozen=True)
class Region:
    """A slice of an array along one axis: `length` of its elements, from `first`."""

    axis: int
    first: int
    length: int

    def view(self, shape: Sequence[int], t: ScalarType) -> Lambda:
        """From an array of this shape to the slice."""
        array = Param("stored", array_type(t, *shape))
        dropped = [Drop(nat(self.first))] if self.first else []
        ends = self.first + self.length == shape[self.axis]
        layouts = dropped if ends else [*dropped, Take(nat(self.length))]
        return Lambda((array,), along(array, self.axis, layouts))


def along(array: Expr, axis: int, layouts: Sequence[Primitive]) -> Expr:
    """Layouts of an array, one after another, along one of its axes."""
    if axis:
        row = Param(f"axis{axis}", array_of("map", array.type).element)
        return call(Map(Lambda((row,), along(row, axis - 1, layouts))), array)
    for layout in layouts:
        array = call(layout, array)
    return array


def slice_of(
    shape: Sequence[int], inner: Sequence[int], places: NDArray[np.int64]
) -> Region | None:
    """The region of an array in which another one of the shape `inner` is; None if it is no slice.

    `places` has for each element of the inner array its number in the outer one.

    >>> slice_of((2, 5), (2, 2), np.array([1, 2, 6, 7]))
    Region(axis=1, first=1, length=2)
    """
    if len(shape) != len(inner) or len(places) != math.prod(inner) or not len(places):
        return None
    apart = [k for k, (n, m) in enumerate(zip(shape, inner, strict=True)) if n != m]
    if len(apart) != 1:
        return None
    (axis,) = apart
    first = int(np.unravel_index(int(places[0]), tuple(shape))[axis])
    region = Region(axis, first, inner[axis])
    if first + region.length > shape[axis]:
        return None
    numbers = np.arange(math.prod(shape)).reshape(shape)
    wanted = np.take(numbers, range(first, first + region.length), axis)
    return region if np.array_equal(wanted.ravel(), places) else None
