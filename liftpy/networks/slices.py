"""Slices of tensors along one axis, and the views that read them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
    """A slice of the tensor `of`; `view` is the function from this tensor to the slice."""

    of: str
    view: Lambda

    def within(self, outer: Slice | None) -> Slice:
        """The same slice, of the tensor that `outer` is a slice of; `outer` is the tensor `of`.

        Without `outer`, the slice itself: the tensor `of` is no slice.
        """
        if outer is None:
            return self
        return Slice(outer.of, Lambda(outer.view.params, apply(self.view, outer.view.body)))


def whole(name: str, slices: Mapping[str, Slice]) -> str:
    """The tensor in whose array a tensor is stored: itself, unless it is one of the slices."""
    return slices[name].of if name in slices else name


@dataclass(frozen=True)
class Region:
    """A range of positions along one axis of an array: `length` positions from `first`."""

    axis: int
    first: int
    length: int

    def view(self, shape: Sequence[int], t: ScalarType) -> Lambda:
        """The function from an array of this shape to the elements of the region."""
        array = Param("stored", array_type(t, *shape))
        dropped = [Drop(nat(self.first))] if self.first else []
        ends = self.first + self.length == shape[self.axis]
        layouts = dropped if ends else [*dropped, Take(nat(self.length))]
        return Lambda((array,), along(array, self.axis, layouts))


def along(array: Expr, axis: int, layouts: Sequence[Primitive]) -> Expr:
    """An array with layouts applied along one of its axes, one after another."""
    if axis:
        row = Param(f"axis{axis}", array_of("map", array.type).element)
        return call(Map(Lambda((row,), along(row, axis - 1, layouts))), array)
    for layout in layouts:
        array = call(layout, array)
    return array


def slice_of(
    shape: Sequence[int], inner: Sequence[int], places: NDArray[np.int64]
) -> Region | None:
    """The region of an array that an inner array fills; None if the inner array is no slice.

    `shape` and `inner` are the shapes of the two arrays. `places` has the number of each element of
    the inner array in the outer one.

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
