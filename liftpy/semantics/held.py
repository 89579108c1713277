"""Arrays whose elements are computed: how they are stored, filled, and read by index.

A stored array has an axis for each of its own dimensions, in front of the axes of the elements that
were being computed when it was made. Of the latter, it has only those that it depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from liftpy.ir.nat import Nat
from liftpy.ir.pull import Index, Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType, count

#: What is known of a value's shape: its type, or stored values of that shape; None if nothing is.
Like: TypeAlias = Any


class Held(Pull):
    """An array that computes nothing when it is read."""


def is_held(value: Value) -> bool:
    """Whether reading a value computes nothing."""
    if isinstance(value, tuple):
        return all(map(is_held, value))
    return isinstance(value, Held) or not isinstance(value, Pull | Parts)


def held(value: Value) -> Value:
    """A value that only moves held elements, marked as held."""
    match value:
        case Held():
            return value
        case Pull():
            return Held(value.length, lambda i: held(value[i]))
        case Parts():
            return Parts(held(value.pairs))
        case tuple():
            return tuple(map(held, value))
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Stored:
    """An array whose elements are computed: `axis` axes follow the one of its dimension."""

    length: int
    axis: int
    element: Value


def view(stored: Value, picked: Mapping[int, Any]) -> Value:
    """A stored value as a meaning reads it; `picked` holds the indices chosen so far, by axis."""
    match stored:
        case Stored(length, axis, element):
            return Held(length, lambda i: view(element, {**picked, axis: number(i)}))
        case tuple():
            return tuple(view(part, picked) for part in stored)
        case _:
            return pick(np.asarray(stored), picked) if picked else stored


def pick(values: Any, picked: Mapping[int, Any]) -> Any:
    """The elements at indices of some axes, for all indices of the others."""
    at: list[Any] = []
    inner = min(picked)  # the axes below are those of the elements being computed
    if all(np.ndim(index) == 0 for index in picked.values()):
        for position, length in enumerate(values.shape):
            axis = values.ndim - 1 - position
            at.append(slice(None) if axis < inner else 0 if length == 1 else picked[axis])
        return values[tuple(at)]
    for position, length in enumerate(values.shape):
        axis = values.ndim - 1 - position
        index = picked.get(axis)
        if length == 1:
            at.append(np.zeros((1, *[1] * axis), np.int64) if index is None else 0)
        else:
            at.append(steps(0, length, axis) if index is None else index)
    return values[tuple(at)]


def steps(start: int, stop: int, axis: int) -> Any:
    """The indices of a range along an axis."""
    return np.arange(start, stop).reshape(stop - start, *[1] * axis)


def number(index: Index) -> Any:
    """An index as a number or an array of numbers."""
    return int(index) if isinstance(index, Nat) else index


# --- shapes --------------------------------------------------------------------------------------


def element_of(like: Like) -> Like:
    """The shape of an array's elements; for a tuple of arrays, of the tuples of their elements."""
    match like:
        case ArrayType() | VectorType() | Stored():
            return like.element
        case TupleType(parts):
            return tuple(map(element_of, parts))
        case tuple():
            return tuple(map(element_of, like))
        case _:
            return None


def part_of(like: Like, k: int) -> Like:
    """The shape of component `k` of a tuple, given the tuple's shape."""
    if isinstance(like, TupleType):
        return like.elements[k]
    return like[k] if isinstance(like, tuple) else None


def width(like: Like) -> int:
    """The number of scalars in a value of a shape."""
    match like:
        case Type():
            return int(count(like))
        case Stored():
            return like.length * width(like.element)
        case tuple():
            return sum(map(width, like))
        case _:
            return 1


# --- filling -------------------------------------------------------------------------------------


def filled(into: Value, part: Value, axis: int, length: int, start: int, many: int) -> Value:
    """Stored values, with a part filled in: `many` from `start` of the `length` along an axis.

    `into` holds the values stored so far, None before the first part. Values that do not depend on
    the axis are stored once.
    """
    match part:
        case Stored():
            inside = None if into is None else into.element
            return Stored(
                part.length, part.axis, filled(inside, part.element, axis, length, start, many)
            )
        case tuple():
            before = [None] * len(part) if into is None else into
            return tuple(
                filled(b, p, axis, length, start, many) for b, p in zip(before, part, strict=True)
            )
        case _:
            return filled_numbers(into, np.asarray(part), axis, length, start, many)


def filled_numbers(into: Any, part: Any, axis: int, length: int, start: int, many: int) -> Any:
    """`filled` for an array of numbers."""
    if into is None:
        if many == length or part.ndim <= axis or extent(part, axis) < many:
            return part
    elif extent(into, axis) < length:
        return into
    known = [part.shape, *([] if into is None else [into.shape])]
    rank = max(axis + 1, *map(len, known))
    at = rank - 1 - axis
    shape = [1] * rank
    for one in known:
        full = (1,) * (rank - len(one)) + tuple(one)
        shape = [max(a, b) for a, b in zip(shape, full, strict=True)]
    shape[at] = length
    if into is None or into.shape != tuple(shape):
        wider = np.empty(shape, part.dtype)
        if into is not None:
            wider[...] = into
        into = wider
    into[(*[slice(None)] * at, slice(start, start + many))] = part
    return into


def at_one(stored: Value, axis: int) -> Value:
    """Stored values that do not depend on an axis, with that axis added at length 1."""
    match stored:
        case Stored():
            return Stored(stored.length, stored.axis, at_one(stored.element, axis))
        case tuple():
            return tuple(at_one(part, axis) for part in stored)
        case _:
            part = np.asarray(stored)
            return part.reshape((1,) * (axis + 1 - part.ndim) + part.shape)


def extent(values: Any, axis: int) -> int:
    """The length of an array along an axis."""
    return values.shape[-1 - axis] if values.ndim > axis else 1


def numbers_in(stored: Value) -> Iterator[Any]:
    """The arrays of numbers of stored values."""
    match stored:
        case Stored():
            yield from numbers_in(stored.element)
        case tuple():
            for part in stored:
                yield from numbers_in(part)
        case _:
            yield np.asarray(stored)
