"""The value of a program for given arrays, whole or at chosen points."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from liftpy.errors import ArgumentRefused
from liftpy.ir.denote import denote
from liftpy.ir.expr import Lambda, Param, Program
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.semantics import sizes as sizing
from liftpy.semantics.numbers import DTYPES, NumpyReader, Path, along, number

#: What a user gives for a parameter: an array or a number; a tuple of them for tuples.
Argument: TypeAlias = Any

#: Elements computed at once.
BLOCK = 1 << 16


def leaf(value: Any, t: Type, path: tuple[Any, ...] = ()) -> Value:
    """An argument as the value of its type; indices are collected until a scalar is reached."""
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            return Pull(int(length), lambda i: leaf(value, element, (*path, number(i))))
        case TupleType(elements):
            parts = zip(value, elements, strict=True)
            return tuple(leaf(part, element, path) for part, element in parts)
        case _:
            return value[path]


def shape_of(t: Type) -> tuple[Nat, ...]:
    """The lengths of an array type, those of vectors last."""
    if isinstance(t, ArrayType):
        return (t.length, *shape_of(t.element))
    return (t.width, *shape_of(t.element)) if isinstance(t, VectorType) else ()


def check_argument(
    name: str, t: Type, value: Argument, outer: tuple[int, ...], reader: NumpyReader
) -> Any:
    """An argument as numpy arrays of the types computed in; ArgumentRefused if it does not fit.

    An array of tuples is given as a tuple of arrays.
    """
    lengths = shape_of(t)
    if any(n.constant is None for n in lengths):
        raise ArgumentRefused(f"{name} has the open type {t}: give its sizes numbers first")
    shape = (*outer, *map(int, lengths))
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    if isinstance(t, TupleType):
        if not isinstance(value, tuple) or len(value) != len(t.elements):
            got = f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
            raise ArgumentRefused(
                f"{name} needs a tuple of {len(t.elements)} arrays, one a component, got {got}"
            )
        parts = zip(value, t.elements, strict=True)
        return tuple(
            check_argument(f"{name}.{k}", part_type, part, shape, reader)
            for k, (part, part_type) in enumerate(parts)
        )
    given = np.asarray(value)
    wanted = np.dtype(DTYPES[str(t)])
    upcast = reader.dtype is not None and wanted.kind == given.dtype.kind == "f"
    if given.shape != shape or (given.dtype != wanted and not upcast):
        raise ArgumentRefused(
            f"{name} needs {wanted} numbers of shape {shape},"
            f" got {given.dtype} of shape {given.shape}"
        )
    return given.astype(reader.number_type(t), copy=False)


def check_arguments(
    params: tuple[Param, ...], arguments: tuple[Argument, ...], reader: NumpyReader
) -> dict[Param, Value]:
    """The environment of a program's body; ArgumentRefused if an argument does not fit."""
    if len(params) != len(arguments):
        names = ", ".join(p.name for p in params)
        raise ArgumentRefused(f"{len(params)} argument(s) needed ({names}), got {len(arguments)}")
    return {
        p: leaf(check_argument(p.name, p.type, given, (), reader), p.type)
        for p, given in zip(params, arguments, strict=True)
    }


# --- results ------------------------------------------------------------------------------------


def read_at(value: Value, t: Type, indices: Path) -> Value:
    """The scalars of a value at indices; a tuple gives a tuple."""
    if isinstance(t, TupleType):
        return tuple(read_at(value[k], part, indices) for k, part in enumerate(t.elements))
    if isinstance(t, ArrayType | VectorType):
        if not indices:
            raise ArgumentRefused(f"a point needs an index for each dimension, {t} is left")
        return read_at(value[indices[0]], t.element, indices[1:])
    return value


def blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """A shape cut into blocks of at most `BLOCK` elements, the last dimensions whole."""
    sizes: list[int] = []
    room = BLOCK
    for length in reversed(shape):
        sizes.insert(0, max(1, min(length, room)))
        room //= max(1, sizes[0])
    ranges = [range(0, length, size) for length, size in zip(shape, sizes, strict=True)]
    for starts in itertools.product(*ranges):
        yield tuple(
            slice(start, min(start + size, length))
            for start, size, length in zip(starts, sizes, shape, strict=True)
        )


def whole(value: Value, t: Type, outer: tuple[int, ...], path: Path, reader: NumpyReader) -> Any:
    """Every element of a value; `path` is where the value stands, given the indices of `outer`."""
    shape = (*outer, *map(int, shape_of(t)))
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    steps: Path = (*path, *[None] * (len(shape) - len([p for p in path if p is None])))
    if isinstance(t, TupleType):
        return tuple(
            whole(value, part, shape, (*steps, k), reader) for k, part in enumerate(t.elements)
        )
    result: NDArray[Any] = np.empty(shape, reader.number_type(t))
    reader.rank = len(shape)
    for block in blocks(shape):
        axes = np.ogrid[block] if block else []
        indices = iter(axes)
        result[block] = along(value, tuple(next(indices) if s is None else s for s in steps))
    return result


def body_of(
    program: Program | Lambda, arrays: tuple[Argument, ...], sizes: sizing.Sizes | None
) -> Lambda:
    """The function that a program is, its open sizes read off the arrays."""
    if not isinstance(program, Program):
        return program
    return sizing.at_arrays(program, arrays, sizes).body


def evaluate(
    program: Program | Lambda,
    *arrays: Argument,
    dtype: DTypeLike | None = None,
    sizes: sizing.Sizes | None = None,
) -> Any:
    """What a program gives for arguments: an array, a number, or a tuple of them.

    Open sizes are read off the arrays; `sizes` gives those that the arrays leave open.

    Computes in the program's types, one rounding an operation as the program is written; with
    `dtype` every float is that type from the arguments on. An array of tuples is a tuple of
    arrays.
    """
    function = body_of(program, arrays, sizes)
    reader = NumpyReader(0, dtype)
    env = check_arguments(function.params, arrays, reader)
    with np.errstate(all="ignore"):  # as a device computes: infinities and NaN are values
        return whole(denote(function.body, env, reader), function.body.type, (), (), reader)


def evaluate_at(
    program: Program | Lambda,
    points: NDArray[np.integer[Any]],
    *arrays: Argument,
    dtype: DTypeLike | None = None,
    sizes: sizing.Sizes | None = None,
) -> Any:
    """The elements of the result at `points`, an integer array `[N, rank]`; see `evaluate`."""
    function = body_of(program, arrays, sizes)
    reader = NumpyReader(1, dtype)
    env = check_arguments(function.params, arrays, reader)
    indices = tuple(np.asarray(points, np.int64).T)
    check_points(function.body.type, indices)
    with np.errstate(all="ignore"):  # as in `evaluate`
        value = read_at(denote(function.body, env, reader), function.body.type, indices)
    return spread(value, len(points))


def spread(value: Value, count: int) -> Any:
    """The values at `count` points, also where they do not depend on the point."""
    if isinstance(value, tuple):
        return tuple(spread(part, count) for part in value)
    return np.array(np.broadcast_to(value, (count,)))


def check_points(t: Type, indices: Path) -> None:
    """Refuse points outside of a type's lengths."""
    for position, (length, index) in enumerate(zip(shape_of(t), indices, strict=False)):
        if index.size and not 0 <= index.min() <= index.max() < int(length):
            raise ArgumentRefused(
                f"index {position} of a point must be in 0 .. {int(length) - 1},"
                f" got {index.min()} .. {index.max()}"
            )
