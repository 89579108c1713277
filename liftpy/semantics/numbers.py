"""A reader of meanings as numbers: NumPy evaluates what the prover and the views read.

Every index is an integer or an array of integers, and the arrays broadcast against each other. So
one walk over the expression computes many elements, and a value that depends on few dimensions is
computed for those only. Folds are sequential loops, with one step for all elements of a block. The
elements that a long reduction reads are computed in blocks too, and a step that is a single NumPy
operation uses its `accumulate`.

A named value is computed once: when it is first read, all of it is stored (`kept.py`), for all
elements of the block in progress. So is an array passed to a function that mentions it more than
once. Values that only move held elements are read in place.

Blocks bound the memory (`NumpyReader.loop`): about `BLOCK` elements are computed at a time, and if
the values stored for a block would take more than `ROOM` bytes, the block is halved.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from liftpy.deadline import check
from liftpy.errors import InternalError
from liftpy.ir.call import FunCall
from liftpy.ir.denote import Closure
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import NatLike
from liftpy.ir.primitive import Primitive, ScalarOp
from liftpy.ir.pull import Index, Parts, Pull, Value, guarded, merged
from liftpy.ir.types import SCALARS, STORAGE, TupleType, Type
from liftpy.semantics.array_folds import Fold, OnlyPart
from liftpy.semantics.held import (
    Held,
    Like,
    Stored,
    at_one,
    element_of,
    extent,
    filled,
    held,
    is_held,
    number,
    numbers_in,
    part_of,
    steps,
    view,
    width,
)
from liftpy.semantics.kept import (
    Kept,
    Later,
    Reads,
    count_at,
    keep,
    keep_part,
    laters,
    moves,
    reads_of,
)
from liftpy.semantics.operations import OPERATIONS, computed_type, convert
from liftpy.semantics.storage import as_stored

#: The number of elements that are computed at a time.
BLOCK = 1 << 16

#: A reduction of fewer elements computes each element at its own step.
LONG = 16

#: The most bytes stored for the elements of a block, unless a single element needs more.
ROOM = 1 << 27


class TooMuch(Exception):
    """Too much would be stored for the elements along an axis; the loop over it catches this."""

    def __init__(self, axis: int) -> None:
        self.axis = axis


class NoNumbers(Exception):
    """The elements of a reduction are or contain arrays; `reduced` catches it."""


class NumpyReader:
    """Reads meanings as numbers.

    `rank` is the number of axes that index arrays may have. Storing an array adds axes in front, so
    the axes of the elements being computed stay last. The deadline is checked at every block and
    every step of a fold.
    """

    def __init__(self, rank: int, dtype: DTypeLike | None = None) -> None:
        self.rank = rank
        self.dtype = dtype
        self.extents: dict[int, int] = {}  # sizes of the blocks in progress, by axis
        self.stored_bytes = 0  # stored for the blocks in progress
        self.reads: dict[int, tuple[Lambda, tuple[Reads, ...]]] = {}
        self.moving: dict[int, tuple[Primitive, bool]] = {}

    def number_type(self, t: Type) -> Any:
        """The NumPy type in which scalars of a type are computed."""
        return computed_type(t, self.dtype)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        if op in SCALARS:
            wanted = SCALARS[op]
            found = convert(args[0], self.number_type(wanted))
            return as_stored(found, wanted) if wanted in STORAGE else found
        return OPERATIONS[op](*args)

    def literal(self, value: float, t: Type) -> Value:
        return np.dtype(self.number_type(t)).type(value)

    def inside(self, index: Index, length: NatLike) -> Value:
        at = number(index)
        return (at >= 0) & (at < int(length))

    def clip(self, index: Index, of: Pull) -> Index:
        return np.minimum(np.maximum(number(index), 0), int(of.length) - 1)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        if isinstance(then, OnlyPart):
            return OnlyPart(lambda k: guarded(self, condition, then[k], otherwise))
        return np.where(condition, then, np.asarray(then).dtype.type(otherwise))

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        if isinstance(then, OnlyPart) or isinstance(otherwise, OnlyPart):
            return OnlyPart(lambda k: merged(self, condition, then[k], otherwise[k]))
        return np.where(condition, then, otherwise)

    def of_index(self, index: Index, t: Type) -> Value:
        return np.asarray(number(index)).astype(self.number_type(t))[()]

    def element_at(self, xs: Pull, index: Value) -> Value:
        at = np.asarray(index).astype(np.int64)[()]
        return guarded(self, self.inside(at, xs.length), xs[self.clip(at, xs)], 0)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        message = f"the unknown function {function.name} has no value"
        raise InternalError(message)

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        many = int(length)
        if isinstance(init, Pull | Parts | tuple):
            return Fold(self, many, init, step).read(init, ())
        for k in range(many):
            check()
            init = step(np.int64(k), init)
        return init

    def operation(self, f: Callable[[Value, Value], Value]) -> np.ufunc | None:
        """The NumPy operation that takes all steps of a fold with this function, if any does."""
        return operation_of(f)

    def reduced(self, f: Callable[[Value, Value], Value], init: Value, xs: Pull) -> Value:
        """The fold of `xs`: many elements are computed at a time, and the steps taken in order.

        Steps that are a single NumPy operation are taken by NumPy, in the same order.
        """
        many, axis = int(xs.length), self.rank
        at_once = min(many, BLOCK // max(1, math.prod(self.extents.values())))
        if at_once < LONG or isinstance(init, Pull | Parts | tuple):
            return self.fold(many, init, lambda k, acc: f(acc, xs[k]))
        operation, acc = self.operation(f), init

        def block(start: int, stop: int) -> None:
            nonlocal acc
            part = xs[steps(start, stop, axis)]
            if not is_number(part):
                raise NoNumbers
            count = self.extents.pop(axis)  # a step takes one element
            self.rank = axis
            if operation is None:
                for k in range(count):
                    check()
                    acc = f(acc, part_at(part, axis, k))
            else:
                acc = accumulated(operation, acc, part, axis, count)
            self.extents[axis] = count

        try:
            self.loop(axis, many, at_once, block)
        except NoNumbers:  # such as rows: none is read before its step
            return self.fold(many, init, lambda k, acc: f(acc, xs[k]))
        return acc

    def scan(
        self,
        length: NatLike,
        init: Value,
        step: Callable[[Index, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """All prefixes, computed in a loop over an axis of their own when one is first read."""
        axis, many = self.rank, int(length)

        def stored() -> Value:
            self.rank = axis + 1
            acc, found, size = self.stored(init, None), None, 0
            for k in range(many):
                check()
                if k > 0 or not exclusive:
                    last = np.int64(k - exclusive)
                    acc = self.stored(step(last, view(acc, {})), acc)
                size, last_size = sum(a.nbytes for a in numbers_in(acc)), size
                if size > last_size:  # a step reads what depends on more axes
                    self.admit(acc, axis, many)
                found = filled(found, at_one(acc, axis), axis, many, k, 1)
            self.hold(found, axis)
            return Stored(many, axis, found)

        return keep(many, Later(self, stored))

    # --- named values ---

    def bound(self, value: Value, meant: Expr, env: Mapping[Param, Value]) -> Value:
        needs = [env[p] for p in meant.free if isinstance(env[p], Kept | tuple)]
        return self.kept(value, meant.type, tuple(later for v in needs for later in laters(v)))

    def handed(self, function: Lambda, values: tuple[Value, ...]) -> tuple[Value, ...]:
        if all(map(is_held, values)):
            return values
        if id(function) not in self.reads:
            reads = tuple(reads_of(function.body, p) for p in function.params)
            self.reads[id(function)] = function, reads
        _, reads = self.reads[id(function)]
        given = zip(values, function.params, reads, strict=True)
        return tuple(self.kept_if_often(v, p.type, own) for v, p, own in given)

    def kept_if_often(
        self, value: Value, t: Type, reads: Reads, path: tuple[int, ...] = ()
    ) -> Value:
        """A value of which the components that are read more than once are kept."""
        if isinstance(value, tuple) and isinstance(t, TupleType) and path not in reads:
            parts = enumerate(zip(value, t.elements, strict=True))
            return tuple(self.kept_if_often(part, p, reads, (*path, k)) for k, (part, p) in parts)
        return self.kept(value, t) if count_at(reads, path) > 1 else value

    def made(self, fun: Primitive, values: list[Value], result: Value) -> Value:
        if len(values) != 1 or not isinstance(values[0], Pull | Parts | tuple):
            return result
        if fun.free or not is_held(values[0]):
            return result
        if id(fun) not in self.moving:
            self.moving[id(fun)] = fun, moves(fun)
        return held(result) if self.moving[id(fun)][1] else result

    def kept(self, value: Value, t: Type, needs: tuple[Later, ...] = ()) -> Value:
        """A value whose arrays are stored when they are first read, after the values in `needs`."""
        match value:
            case Held():
                return value
            case Pull():
                return keep(int(value.length), Later(self, lambda: self.stored(value, t), needs))
            case Parts() if isinstance(t, TupleType) and not is_held(value.pairs):
                later = Later(self, lambda: self.stored(value, t), needs)
                length = int(value.pairs.length)
                return tuple(keep_part(length, later, k) for k in range(len(t.elements)))
            case tuple() if isinstance(t, TupleType):
                parts = zip(value, t.elements, strict=True)
                return tuple(self.kept(part, part_type, needs) for part, part_type in parts)
            case _:
                return value

    # --- storing ---

    def stored(self, value: Value, like: Like) -> Value:
        """The value with every element computed, as `Stored` arrays, tuples and numbers."""
        match value:
            case Pull():
                return self.stored_array(value, element_of(like))
            case Parts():
                pairs = self.stored_array(value.pairs, element_of(like))
                return tuple(Stored(pairs.length, pairs.axis, part) for part in pairs.element)
            case tuple():
                return tuple(self.stored(part, part_of(like, k)) for k, part in enumerate(value))
            case _:
                return value

    def stored_array(self, value: Pull, like: Like) -> Stored:
        """An array with every element computed; `like` is the shape of an element."""
        axis, length, inside = self.rank, int(value.length), width(like)
        found: list[Value] = [None]

        def block(start: int, stop: int) -> int:
            part = self.stored(value[steps(start, stop, axis)], like)
            if start == 0:
                self.admit(part, axis, length)
            found[0] = filled(found[0], part, axis, length, start, stop - start)
            around = max(wide(part, axis), default=1)
            return BLOCK // max(1, inside * around)

        around = math.prod(n for a, n in self.extents.items() if a < axis)
        first = min(length, max(2, BLOCK // max(1, inside * around)))
        self.loop(axis, length, first, block)
        self.hold(found[0], axis)
        return Stored(length, axis, found[0])

    def loop(
        self, axis: int, length: int, size: int, block: Callable[[int, int], int | None]
    ) -> None:
        """Run the blocks of a range along an axis, and halve those that need too much memory.

        `block` takes the start and the stop, and returns the size of the blocks that follow, or
        None to keep the size.
        """
        rank, outer = self.rank, self.extents.get(axis)
        start, most = 0, length
        try:
            while start < length:
                self.rank = max(rank, axis + 1)
                many = self.extents[axis] = min(max(1, size), most, length - start)
                check()
                try:
                    size = block(start, start + many) or size
                except TooMuch as found:
                    if found.axis != axis or many == 1:
                        raise
                    most = many // 2  # the memory of a block is known only after computing it
                else:
                    start += many
        finally:
            self.rank = rank
            self.extents.pop(axis, None)
            if outer is not None:
                self.extents[axis] = outer

    def admit(self, part: Value, axis: int, length: int) -> None:
        """Raise TooMuch if `length` elements like `part` would be too much for a block."""
        arrays = list(numbers_in(part))
        size = sum(a.nbytes // extent(a, axis) for a in arrays) * length
        around = [max((extent(a, k) for a in arrays), default=1) for k in range(axis)]
        if self.stored_bytes + size > ROOM and max(around, default=1) > 1:
            raise TooMuch(around.index(max(around)))

    def hold(self, stored: Value, axis: int) -> None:
        """Count the bytes that are stored for a block, until they are freed."""
        for array in numbers_in(stored):
            if any(extent(array, k) > 1 for k in range(axis)):
                self.stored_bytes += array.nbytes
                weakref.finalize(array, self.release, array.nbytes)

    def release(self, size: int) -> None:
        """Subtract the bytes of stored values that were freed."""
        self.stored_bytes -= size


def is_number(value: Value) -> bool:
    """Whether a value is a number or a tuple of numbers, for all elements of a block."""
    if isinstance(value, tuple):
        return all(map(is_number, value))
    return not isinstance(value, Pull | Parts)


def part_at(part: Value, axis: int, k: int) -> Value:
    """The numbers at position `k` of an axis, which is the outermost one."""
    if isinstance(part, tuple):
        return tuple(part_at(p, axis, k) for p in part)
    if np.ndim(part) <= axis:  # the same everywhere
        return part
    return part[k if part.shape[0] > 1 else 0]


def operation_of(f: Callable[[Value, Value], Value]) -> np.ufunc | None:
    """The NumPy operation that a function applies to its two parameters in order, if any."""
    function = f.function if isinstance(f, Closure) else None
    while function is not None and isinstance(function.body, FunCall):
        if function.body.args != function.params:
            return None
        if isinstance(function.body.fun, ScalarOp):
            operation = OPERATIONS.get(function.body.fun.op)
            return operation if isinstance(operation, np.ufunc) and operation.nin == 2 else None
        function = function.body.fun if isinstance(function.body.fun, Lambda | UserFun) else None
    return None


def accumulated(operation: np.ufunc, acc: Value, part: Value, axis: int, count: int) -> Value:
    """The result of applying an operation to `acc` and the numbers along an axis, in order."""
    many = np.asarray(part)
    inner = many.shape[1:] if many.ndim > axis else many.shape
    shape = np.broadcast_shapes(np.shape(acc), inner)
    whole = np.empty((count + 1, *shape), many.dtype)
    whole[0] = acc
    whole[1:] = many if many.ndim > axis else many[np.newaxis]
    return operation.accumulate(whole, axis=0, dtype=whole.dtype)[-1]


def wide(part: Value, axis: int) -> list[int]:
    """The number of elements in progress that each stored array has values for."""
    return [math.prod(extent(a, k) for k in range(axis)) for a in numbers_in(part)]
