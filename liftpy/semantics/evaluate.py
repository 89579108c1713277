"""The value of a program for given arrays, whole or at chosen points."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from liftpy.errors import ArgumentRefused, plural
from liftpy.ir.call import FunCall
from liftpy.ir.denote import denote
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.open_sizes import size_ranges
from liftpy.ir.program import Program
from liftpy.ir.pull import Value
from liftpy.ir.types import (
    STORAGE,
    ArrayType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
    components,
    scalars,
)
from liftpy.ir.walk import top_down
from liftpy.language.embedded.sharing import plain_name
from liftpy.language.entry import entry
from liftpy.language.printing.spelling import show_type
from liftpy.primitives import AnyMap
from liftpy.primitives.work import computes
from liftpy.semantics import numbers
from liftpy.semantics import sizes as sizing
from liftpy.semantics.array_folds import Path
from liftpy.semantics.held import Held, number, steps, width
from liftpy.semantics.numbers import NumpyReader
from liftpy.semantics.operations import DTYPES, typed
from liftpy.semantics.room import evaluation_bytes
from liftpy.semantics.storage import from_storage, how_stored, to_storage
from liftpy.source.caller import refusal

#: An argument given by a user: an array or a number; a tuple of them for tuples.
Argument: TypeAlias = Any

#: If there are this many points for each first index, the first indices are read one by one.
ALIKE = 4


def leaf(value: Any, t: Type, path: tuple[Any, ...] = ()) -> Value:
    """An argument as the value of its type; indices are collected until a scalar is reached."""
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            return Held(int(length), lambda i: leaf(value, element, (*path, number(i))))
        case TupleType(elements):
            parts = zip(value, elements, strict=True)
            return tuple(leaf(part, element, path) for part, element in parts)
        case _:
            return value[path]


def shape_of(t: Type) -> tuple[Nat, ...]:
    """The lengths of an array type; the width of a vector is last."""
    if isinstance(t, ArrayType):
        return (t.length, *shape_of(t.element))
    return (t.width, *shape_of(t.element)) if isinstance(t, VectorType) else ()


def check_argument(
    name: str, t: Type, value: Argument, outer: tuple[int, ...], reader: NumpyReader | None
) -> Any:
    """An argument as NumPy arrays, as in `fitting`; ArgumentRefused if it does not fit.

    An array of tuples is given as a tuple of arrays.
    """
    lengths = shape_of(t)
    shape = (*outer, *map(int, lengths))
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    if isinstance(t, TupleType):
        if not isinstance(value, tuple) or len(value) != len(t.elements):
            got = f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
            raise ArgumentRefused(
                f"{name} needs a tuple of {len(t.elements)} arrays, one per component, got {got}\n"
                f"  pass ({', '.join(f'{name}{k}' for k in range(len(t.elements)))})"
            )
        parts = zip(value, t.elements, strict=True)
        return tuple(
            check_argument(f"{name}.{k}", part_type, part, shape, reader)
            for k, (part, part_type) in enumerate(parts)
        )
    number = DTYPES[str(t)]
    stored = t if isinstance(t, ScalarType) and t in STORAGE else None  # its bits are no integers
    try:
        if stored is not None:
            given = np.asarray(value)
        else:
            given = listed(value, number) if shape else np.asarray(typed(value, number))
    except ValueError as error:  # such as rows of different lengths
        what = f"{name} needs numbers of shape {shape}, and cannot be made an array"
        raise ArgumentRefused(f"{what}\n  {error}\n  write rows of the same length") from error
    wanted = np.dtype(number)
    upcast = (
        reader is not None and reader.dtype is not None and wanted.kind == given.dtype.kind == "f"
    )
    if given.shape != shape or (given.dtype != wanted and not upcast):
        what = f"{name} needs {wanted} numbers of shape {shape}"
        got = f"got {given.dtype} of shape {given.shape}"
        then = f"\n  pass an array of shape {shape}" if shape else "\n  pass a single number"
        if given.dtype != wanted and stored is not None:
            then = f"\n  {how_stored(name, given, stored)}"
        elif given.shape == shape:
            then = suggestion(name, given, wanted)
        raise ArgumentRefused(f"{what}, {got}{then}")
    if reader is None:
        return given
    if stored is not None:
        given = from_storage(given, stored)
    with np.errstate(invalid="ignore"):  # converting a signaling NaN
        return given.astype(reader.number_type(t), copy=False)


def listed(value: Any, number: Any) -> NDArray[Any]:
    """An array; for lists of Python numbers, of the wanted type if it can represent all of them.

    As for a single number (`typed`), a number that would change its kind or does not fit is left
    for the caller to refuse.
    """
    given = np.asarray(value)
    if not isinstance(value, list | tuple) or given.dtype.kind not in "biuf":
        return given
    wanted = np.dtype(number)
    if wanted.kind == "f" and given.dtype.kind in "iuf":
        with np.errstate(over="ignore"):
            found = given.astype(wanted)
        return found if np.array_equal(np.isinf(found), np.isinf(given)) else given
    if wanted.kind in "iu" and given.dtype.kind in "iu":
        limits = np.iinfo(wanted)
        return given.astype(wanted) if within(given, limits) else given
    return given


def within(given: NDArray[Any], limits: Any) -> bool:
    """Whether a type can represent all these integers."""
    return bool(np.all((given >= limits.min) & (given <= limits.max)))


def suggestion(name: str, given: NDArray[Any], wanted: np.dtype[Any]) -> str:
    """How to convert numbers to the needed type, or the range of numbers that the type holds."""
    if given.dtype.kind not in "biuf":
        return "\n  pass numbers"
    if wanted.kind in "iu" and given.dtype.kind != "b":
        limits = np.iinfo(wanted)
        if not within(given, limits):
            return f"\n  {wanted} holds numbers from {limits.min} to {limits.max}"
    if wanted.kind == "f" and given.dtype.kind == "f":
        largest = float(np.finfo(wanted).max)
        if np.any(np.isfinite(given) & (np.abs(given) > largest)):
            return f"\n  {wanted} holds numbers up to {largest:.8g}"
    return f"\n  convert it with np.{wanted}({name})"


def fitting(
    name: str,
    params: tuple[Param, ...],
    arguments: tuple[Argument, ...],
    reader: NumpyReader | None = None,
) -> tuple[Any, ...]:
    """Arguments as NumPy arrays; ArgumentRefused if one does not fit its parameter.

    With a reader, they have the types in which it computes, otherwise those of memory.
    """
    if len(params) != len(arguments):
        names = ", ".join(f"{p.name}: {p.type}" for p in params)
        wanted = plural(len(params), "argument")
        raise ArgumentRefused(
            f"{name} takes {wanted}, got {len(arguments)}\n  the parameters are {names or 'none'}\n"
            "  give one array or number for each"
        )
    return tuple(
        check_argument(p.name, p.type, given, (), reader)
        for p, given in zip(params, arguments, strict=True)
    )


def environment(
    program: Program | Lambda | Expr,
    params: tuple[Param, ...],
    arguments: tuple[Argument, ...],
    reader: NumpyReader,
) -> dict[Param, Value]:
    """The environment of a program's body; ArgumentRefused if an argument does not fit."""
    name = program.name if isinstance(program, Program) else "the function"
    found = fitting(name, params, arguments, reader)
    return {p: leaf(given, p.type) for p, given in zip(params, found, strict=True)}


# --- results ------------------------------------------------------------------------------------


def read_at(value: Value, t: Type, indices: Path, path: tuple[int, ...] = ()) -> Value:
    """The scalars of a value at indices; of a tuple, a tuple or the component at a path."""
    if isinstance(t, TupleType) and path:
        return read_at(value[path[0]], t.elements[path[0]], indices, path[1:])
    if isinstance(t, TupleType):
        return tuple(read_at(value[k], part, indices) for k, part in enumerate(t.elements))
    if isinstance(t, ArrayType | VectorType):
        if not indices:
            raise ArgumentRefused(f"a point needs an index for each dimension: {t} remains")
        return read_at(value[indices[0]], t.element, indices[1:], path)
    return value


def empty(t: Type, outer: tuple[int, ...], reader: NumpyReader) -> Any:
    """Uninitialized arrays for values of a type, with a tuple of arrays for each tuple."""
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            return empty(element, (*outer, int(length)), reader)
        case TupleType(elements):
            return tuple(empty(part, outer, reader) for part in elements)
        case _:
            return np.empty(outer, reader.number_type(t))


def rank_of(t: Type) -> int:
    """The largest number of dimensions of the arrays of a type."""
    return max(len(part.shape) for part in components(t))


def fill(value: Value, t: Type, into: Any, where: tuple[slice, ...], reader: NumpyReader) -> None:
    """Compute a value block by block, with its last dimensions whole.

    The value goes to position `where` of the arrays `into`. They have at most as many dimensions as
    the reader's indices have axes; the first axis is the outermost dimension.
    """
    rank = reader.rank
    match t:
        case ArrayType(element, length) | VectorType(element, length):
            axis = rank - 1 - len(where)

            def block(start: int, stop: int) -> None:
                inside = value[steps(start, stop, axis)]
                fill(inside, element, into, (*where, slice(start, stop)), reader)

            around = math.prod(part.stop - part.start for part in where)
            reader.loop(axis, int(length), numbers.BLOCK // max(1, width(element) * around), block)
        case TupleType(elements):
            for k, part in enumerate(elements):
                fill(value[k], part, into[k], where, reader)
        case _:
            found = np.asarray(value)
            shape = (1,) * (rank - found.ndim) + found.shape
            into[where] = found.reshape(shape[: len(where)])


def body_of(
    program: Program | Lambda | Expr, arrays: tuple[Argument, ...], sizes: sizing.Sizes | None
) -> Lambda:
    """The function of a program, with its open sizes read from the arrays."""
    if isinstance(program, Expr | Lambda):
        if program.free:
            names = ", ".join(sorted(plain_name(p.name) for p in program.free))
            raise refusal(
                "an expression of a program's parameters cannot be evaluated",
                f"{names} has no value before the program runs",
                "return the expression from the program, and call the program with arrays",
            )
        function = Lambda((), program) if isinstance(program, Expr) else program
        if left := size_ranges(Program("expression", function)):
            raise refusal(
                f"the open size {', '.join(left)} has no number",
                "an evaluated expression needs a number for each size",
                "make it a program, whose sizes are read from its arrays or given: sizes={...}",
            )
        return function
    return sizing.at_arrays(program, arrays, sizes).body


@entry("lp.evaluate")
def evaluate(
    program: Program | Lambda | Expr,
    *arrays: Argument,
    dtype: DTypeLike | None = None,
    sizes: sizing.Sizes | None = None,
) -> Any:
    """The result of a program for arguments: an array, a number, or a tuple of them.

    >>> squares = lp.parse("size n: 1..64 def squares(xs: [n]f32) = xs |> map(x => x * x)")
    >>> lp.evaluate(squares, np.float32([1, 2, 3])).tolist()
    [1.0, 4.0, 9.0]

    An expression without parameters needs no arguments: `lp.evaluate(lp.iota(3))`.

    Open sizes are taken from the arrays; `sizes` gives those that the arrays do not determine.

    The computation uses the program's types, with one rounding per operation as written; with
    `dtype`, every float has that type, including the arguments. An array of tuples is returned as a
    tuple of arrays. The deadline (`liftpy.deadline`) is checked at every block and step.
    Raises ArgumentRefused if there is not enough memory.
    """
    function = body_of(program, arrays, sizes)
    reader = NumpyReader(0, dtype)
    env, t = environment(program, function.params, arrays, reader), function.body.type
    try:
        result = empty(t, (), reader)
        with np.errstate(all="ignore"):  # as a device computes: infinities and NaN are values
            value = denote(function.body, env, reader)
            reader.rank = rank_of(t)
            fill(value, t, result, (), reader)
    except MemoryError as error:
        needed = evaluation_bytes(function, dtype)
        message = (
            f"there is not enough memory to evaluate the program: it takes up to {needed:,} bytes\n"
            f"  its result is {show_type(t)}\n"
            "  use smaller sizes, or compute single elements with lp.evaluate_at"
        )
        raise ArgumentRefused(message) from error
    return in_memory(result, t) if dtype is None else result


def in_memory(result: Any, t: Type) -> Any:
    """A result as a device stores it: values of storage types as their bits."""
    if not STORAGE.keys() & {*scalars(t)}:
        return result
    if isinstance(result, tuple):
        parts = zip(result, elements_of(t), strict=True)
        return tuple(in_memory(part, part_type) for part, part_type in parts)
    (scalar,) = scalars(t)
    return to_storage(result, scalar)


def elements_of(t: Type) -> tuple[Type, ...]:
    """The components of a tuple type, or of the tuples in an array type."""
    while isinstance(t, ArrayType | VectorType):
        t = t.element
    return t.elements if isinstance(t, TupleType) else (t,)


@entry("lp.evaluate_at")
def evaluate_at(
    program: Program | Lambda,
    points: NDArray[np.integer[Any]],
    *arrays: Argument,
    dtype: DTypeLike | None = None,
    sizes: sizing.Sizes | None = None,
    component: tuple[int, ...] = (),
) -> Any:
    """The elements of the result at `points`, an integer array `[N, rank]`; see `evaluate`.

    >>> squares = lp.parse("def squares(xs: [3]f32) = xs |> map(x => x * x)")
    >>> lp.evaluate_at(squares, np.array([[2], [0]]), np.float32([1, 2, 3])).tolist()
    [9.0, 1.0]

    For a result with tuples: those of all components, or of the one at the path `component`.
    """
    found = Evaluated(program, arrays, dtype, sizes)
    elements = found.at(points, component)
    return elements if dtype is not None else in_memory(elements, part_of(found.type, component))


class Evaluated:
    """A program and its arguments, for repeated requests for elements of the result.

    A value that a `let` outside functions names is stored when it is first read, and kept. Later
    points cost only what they need beyond these values. `reader` reads the program, if it is not
    what the elements are.
    """

    def __init__(
        self,
        program: Program | Lambda,
        arrays: tuple[Argument, ...],
        dtype: DTypeLike | None = None,
        sizes: sizing.Sizes | None = None,
        reader: NumpyReader | None = None,
    ) -> None:
        function = body_of(program, arrays, sizes)
        self._reader = NumpyReader(0, dtype) if reader is None else reader
        env = environment(program, function.params, arrays, self._reader)
        self.type = function.body.type
        self._shared = stores_inside(function.body)
        with np.errstate(all="ignore"):  # as in `evaluate`
            self._value = denote(function.body, env, self._reader)
        self._reader.rank = 1

    def at(self, points: NDArray[np.integer[Any]], component: tuple[int, ...] = ()) -> Any:
        """The elements at `points`, as `evaluate_at` returns them."""
        places = np.asarray(points, np.int64)
        check_points(part_of(self.type, component), tuple(places.T))
        with np.errstate(all="ignore"):
            return at_points(
                self._value, self.type, places, component, self._reader, shared=self._shared
            )


def stores_inside(expr: Expr) -> bool:
    """Whether a `let` inside a map names an array that is computed."""
    maps = (e.fun for _, e in top_down(expr) if isinstance(e, FunCall))
    return any(
        isinstance(part, FunCall)
        and isinstance(part.fun, Lambda)
        and any(isinstance(a.type, ArrayType) and computes(a) for a in part.args)
        for one in maps
        if isinstance(one, AnyMap)
        for _, part in top_down(one.f.body)
    )


def at_points(
    value: Value,
    t: Type,
    points: NDArray[np.integer[Any]],
    path: tuple[int, ...],
    reader: NumpyReader,
    *,
    shared: bool,
) -> Any:
    """The scalars of a value at points, as `read_at` returns them.

    If `shared`, points with the same first index are read together, so that values stored for that
    index are stored once for all of them.
    """
    if shared and isinstance(t, ArrayType) and points.shape[1]:
        places, which = np.unique(points[:, 0], return_inverse=True)
        if 0 < len(places) * ALIKE <= len(points):
            groups = [points[which == k, 1:] for k in range(len(places))]
            parts = [
                at_points(value[place], t.element, group, path, reader, shared=True)
                for place, group in zip(places, groups, strict=True)
            ]
            return reordered(together(parts), np.argsort(np.argsort(which, kind="stable")))
    found: list[Any] = []

    def block(start: int, stop: int) -> None:
        some = tuple(points[start:stop].T)
        found.append(spread(read_at(value, t, some, path), stop - start))

    reader.loop(0, len(points), numbers.BLOCK, block)
    if not found:
        block(0, 0)
    return together(found)


def reordered(value: Any, order: NDArray[np.integer[Any]]) -> Any:
    """The values of points in another order."""
    return tuple(reordered(v, order) for v in value) if isinstance(value, tuple) else value[order]


def spread(value: Value, count: int) -> Any:
    """The values at `count` points, even if they do not depend on the point."""
    if isinstance(value, tuple):
        return tuple(spread(part, count) for part in value)
    return np.broadcast_to(value, (count,))


def together(found: list[Any]) -> Any:
    """The values of blocks of points, one after the other."""
    if isinstance(found[0], tuple):
        return tuple(together([some[k] for some in found]) for k in range(len(found[0])))
    return np.concatenate(found)


def part_of(t: Type, path: tuple[int, ...]) -> Type:
    """The type of a component: arrays of tuples as tuples of arrays."""
    for part in components(t) if path else ():
        if part.path == path:
            return part.type
    return t


def check_points(t: Type, indices: Path) -> None:
    """Refuse points outside of a type's lengths."""
    for position, (length, index) in enumerate(zip(shape_of(t), indices, strict=False)):
        if index.size and not 0 <= index.min() <= index.max() < int(length):
            raise ArgumentRefused(
                f"index {position} of a point must be in 0 .. {int(length) - 1},"
                f" got {index.min()} .. {index.max()}"
            )
