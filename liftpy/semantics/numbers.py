"""Numbers as a reader of meanings: numpy reads what the prover and the views read.

Every index is an integer or an array of integers; the arrays broadcast against each other, so that
one walk over the expression computes many elements, and what depends on few dimensions is read for
those alone. Folds are loops in order, one step for all elements of a block. What a long reduction
reads is computed in blocks too, and a step that is one operation of numpy is its `accumulate`.

What has a name is computed once, where it stands: when it is first read, all of it is stored
(`held.py`), for all elements of the block that is being computed. So are the arrays that a function
is given and mentions more than once. Values that only move what is held are read where they are.

Blocks bound the memory (`NumpyReader.loop`): what is computed at once has about `BLOCK` elements,
and where the values stored for a block would take more than `ROOM` bytes, the block is halved.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from liftpy.deadline import check
from liftpy.errors import InternalError
from liftpy.ir.denote import Closure
from liftpy.ir.expr import Expr, FunCall, Lambda, Param, Primitive, ScalarOp, UserFun
from liftpy.ir.nat import NatLike
from liftpy.ir.pull import Index, Parts, Pull, Value
from liftpy.ir.types import FLOATS, SCALARS, TupleType, Type
from liftpy.ir.walk import children, function_of, top_down
from liftpy.primitives import AnyMap
from liftpy.primitives.work import is_layout
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
from liftpy.semantics.operations import DTYPES, OPERATIONS, convert

Path: TypeAlias = tuple[Index, ...]

#: Elements computed at once.
BLOCK = 1 << 16

#: A reduction of fewer elements computes each at its step.
LONG = 16

#: Bytes that may be stored for the elements of a block, unless a single element needs more.
ROOM = 1 << 27


class Elsewhere(Exception):
    """A step reads its accumulator at another index than it writes; never leaves this module."""

    def __init__(self, fold: Fold) -> None:
        self.fold = fold


class TooMuch(Exception):
    """Too much would be stored for the elements along an axis; the loop over them catches it."""

    def __init__(self, axis: int) -> None:
        self.axis = axis


class NoNumbers(Exception):
    """The elements of a reduction are or contain arrays; `reduced` catches it."""


class NumpyReader:
    """Reads meanings as numbers.

    `rank` is how many axes the index arrays may have. Storing an array adds axes in front, so that
    those of the elements being computed stay the last. A deadline is asked at every block
    and every step of a fold.
    """

    def __init__(self, rank: int, dtype: DTypeLike | None = None) -> None:
        self.rank = rank
        self.dtype = dtype
        self.extents: dict[int, int] = {}  # of the blocks being computed, by axis
        self.stored_bytes = 0  # that are stored for the blocks being computed
        self.often: dict[int, tuple[Lambda, tuple[bool, ...]]] = {}
        self.moving: dict[int, tuple[Primitive, bool]] = {}

    def number_type(self, t: Type) -> Any:
        """The numpy type in which scalars of a type are computed."""
        return self.dtype if self.dtype is not None and t in FLOATS else DTYPES[str(t)]

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        if op in SCALARS:
            return convert(args[0], self.number_type(SCALARS[op]))
        return OPERATIONS[op](*args)

    def literal(self, value: float, t: Type) -> Value:
        return np.dtype(self.number_type(t)).type(value)

    def inside(self, index: Index, length: NatLike) -> Value:
        at = number(index)
        return (at >= 0) & (at < int(length))

    def clip(self, index: Index, of: Pull) -> Index:
        return np.minimum(np.maximum(number(index), 0), int(of.length) - 1)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        return np.where(condition, then, np.asarray(then).dtype.type(otherwise))

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return np.where(condition, then, otherwise)

    def of_index(self, index: Index, t: Type) -> Value:
        return np.asarray(number(index)).astype(self.number_type(t))[()]

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

    def reduced(self, f: Callable[[Value, Value], Value], init: Value, xs: Pull) -> Value:
        """Many elements are computed at once, and the steps are taken one after the other.

        Steps that are one operation of numpy are taken by numpy, in the same order.
        """
        many, axis = int(xs.length), self.rank
        at_once = min(many, BLOCK // max(1, math.prod(self.extents.values())))
        if at_once < LONG or isinstance(init, Pull | Parts | tuple):
            return self.fold(many, init, lambda k, acc: f(acc, xs[k]))
        operation, acc = operation_of(f), init

        def block(start: int, stop: int) -> None:
            nonlocal acc
            part = xs[steps(start, stop, axis)]
            if not is_number(part):
                raise NoNumbers
            count = self.extents.pop(axis)  # a step is of one element
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
        except NoNumbers:  # such as rows, of which none is read before its step
            return self.fold(many, init, lambda k, acc: f(acc, xs[k]))
        return acc

    def scan(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Pull:
        """As a loop over an axis of its own, the first time that an element is asked for."""
        axis, many = self.rank, int(length)

        def stored() -> Value:
            self.rank = axis + 1
            acc, found = self.stored(init, None), None
            for k in range(many):
                check()
                acc = self.stored(step(np.int64(k), view(acc, {})), acc)
                if k == 0:
                    self.admit(acc, axis, many)
                found = filled(found, at_one(acc, axis), axis, many, k, 1)
            self.hold(found, axis)
            return Stored(many, axis, found)

        return keep(many, Later(self, stored))

    # --- what has a name ---

    def bound(self, value: Value, meant: Expr, env: Mapping[Param, Value]) -> Value:
        needs = [env[p] for p in meant.free if isinstance(env[p], Kept | tuple)]
        return self.kept(value, meant.type, tuple(later for v in needs for later in laters(v)))

    def handed(self, function: Lambda, values: tuple[Value, ...]) -> tuple[Value, ...]:
        if all(map(is_held, values)):
            return values
        if id(function) not in self.often:
            flags = tuple(is_often(function.body, p) for p in function.params)
            self.often[id(function)] = function, flags
        _, flags = self.often[id(function)]
        given = zip(values, function.params, flags, strict=True)
        return tuple(self.kept(v, p.type) if often else v for v, p, often in given)

    def made(self, fun: Primitive, values: list[Value], result: Value) -> Value:
        if len(values) != 1 or not isinstance(values[0], Pull | Parts | tuple):
            return result
        if fun.free or not is_held(values[0]):
            return result
        if id(fun) not in self.moving:
            self.moving[id(fun)] = fun, moves(fun)
        return held(result) if self.moving[id(fun)][1] else result

    def kept(self, value: Value, t: Type, needs: tuple[Later, ...] = ()) -> Value:
        """A value whose arrays are stored when they are first read, after what they need."""
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
        """The value with every element computed: arrays and tuples of `Stored` and numbers."""
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
        """Does blocks of a range that is an axis, and halves those that need too much memory.

        `block` takes the begin and the end, and gives the size of those that follow, or None for
        the same.
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
                    most = many // 2  # what a block needs is seen only when it is computed
                else:
                    start += many
        finally:
            self.rank = rank
            self.extents.pop(axis, None)
            if outer is not None:
                self.extents[axis] = outer

    def admit(self, part: Value, axis: int, length: int) -> None:
        """Raise TooMuch where `length` of a part would be too much for a block."""
        arrays = list(numbers_in(part))
        size = sum(a.nbytes // extent(a, axis) for a in arrays) * length
        around = [max((extent(a, k) for a in arrays), default=1) for k in range(axis)]
        if self.stored_bytes + size > ROOM and max(around, default=1) > 1:
            raise TooMuch(around.index(max(around)))

    def hold(self, stored: Value, axis: int) -> None:
        """Count what is stored for a block, as long as it is there."""
        for array in numbers_in(stored):
            if any(extent(array, k) > 1 for k in range(axis)):
                self.stored_bytes += array.nbytes
                weakref.finalize(array, self.release, array.nbytes)

    def release(self, size: int) -> None:
        """Count that stored values are gone."""
        self.stored_bytes -= size


def is_number(value: Value) -> bool:
    """Whether a value is a number or a tuple of some, for all elements of a block."""
    if isinstance(value, tuple):
        return all(map(is_number, value))
    return not isinstance(value, Pull | Parts)


def part_at(part: Value, axis: int, k: int) -> Value:
    """Of numbers along an axis, the last there is, those at one place."""
    if isinstance(part, tuple):
        return tuple(part_at(p, axis, k) for p in part)
    if np.ndim(part) <= axis:  # the same everywhere
        return part
    return part[k if part.shape[0] > 1 else 0]


def operation_of(f: Callable[[Value, Value], Value]) -> np.ufunc | None:
    """The operation of numpy that a function of two numbers is, the first one first."""
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
    """What an operation makes of a number and all of some along an axis, one after the other."""
    many = np.asarray(part)
    inner = many.shape[1:] if many.ndim > axis else many.shape
    shape = np.broadcast_shapes(np.shape(acc), inner)
    whole = np.empty((count + 1, *shape), many.dtype)
    whole[0] = acc
    whole[1:] = many if many.ndim > axis else many[np.newaxis]
    return operation.accumulate(whole, axis=0, dtype=whole.dtype)[-1]


class Later:
    """What is stored when it is first read, for the elements being computed where it was made.

    What it needs is stored before, one after the other, so that many names are no deep recursion.
    """

    def __init__(
        self, reader: NumpyReader, stored: Callable[[], Value], needs: tuple[Later, ...] = ()
    ) -> None:
        self.reader = reader
        self.rank = reader.rank
        self.stored: Callable[[], Value] | None = stored
        self.needs = needs
        self.found: Value = None

    def __call__(self) -> Value:
        waiting: list[Later] = [self] if self.stored is not None else []
        while waiting:
            needs = [later for later in waiting[-1].needs if later.stored is not None]
            if needs:
                waiting.append(needs[0])
            else:
                waiting.pop().store()
        return self.found

    def store(self) -> None:
        """Store it now."""
        if self.stored is not None:
            rank, self.reader.rank = self.reader.rank, self.rank
            try:
                self.found = view(self.stored(), {})
            finally:
                self.reader.rank = rank
            self.stored, self.needs = None, ()


@dataclass(frozen=True)
class Kept(Held):
    """An array that is stored when it is first read."""

    later: Later


def keep(length: int, later: Later) -> Kept:
    """The array that is stored later."""
    return Kept(length, lambda i: later()[i], later)


def keep_part(length: int, later: Later, k: int) -> Kept:
    """Component `k` of the tuple of arrays that is stored later."""
    return Kept(length, lambda i: later()[k][i], later)


def laters(value: Value) -> list[Later]:
    """What is stored when a value is read."""
    if isinstance(value, tuple):
        return [later for part in value for later in laters(part)]
    return [value.later] if isinstance(value, Kept) else []


def wide(part: Value, axis: int) -> list[int]:
    """For how many elements each array of stored values has numbers."""
    return [math.prod(extent(a, k) for k in range(axis)) for a in numbers_in(part)]


def moves(fun: Primitive) -> bool:
    """Whether a primitive only says which elements of its argument stand where, each read once."""
    if not isinstance(fun, AnyMap):
        return is_layout(fun) and fun.function is None
    return all(
        isinstance(part, Param)
        or (
            isinstance(part, FunCall)
            and isinstance(part.fun, Primitive)
            and len(part.args) == 1
            and is_layout(part.fun)
        )
        for _, part in top_down(fun.f.body)
    )


def is_often(expr: Expr, param: Param) -> bool:
    """Whether a variable is mentioned more than once, or where something is done again and again.

    A map reads it once for all elements of a block.
    """
    mentions, waiting = 0, [expr]
    while waiting:
        part = waiting.pop()
        if param not in part.free:
            continue
        if isinstance(part, Param):
            mentions += 1
            continue
        function = function_of(part.fun) if isinstance(part, FunCall) else None
        if function is not None and param in function.free:
            if not isinstance(part, FunCall) or not isinstance(part.fun, AnyMap | Lambda):
                return True
            waiting.append(function.body)
        waiting += part.args if isinstance(part, FunCall) else children(part)
    return mentions > 1


class Fold:
    """A fold whose accumulator holds arrays, as an array itself.

    Where its steps read the accumulator at the index that they write, an element is a fold of its
    own. Else all elements of the accumulator are computed after each step.
    """

    def __init__(
        self,
        reader: NumpyReader,
        steps: int,
        init: Value,
        step: Callable[[Index, Value], Value],
    ) -> None:
        self.reader = reader
        self.steps = steps
        self.init = init
        self.step = step
        self.rank = reader.rank
        self.elementwise = True
        self.stored: Value = None

    def read(self, shape: Value, path: Path) -> Value:
        """The part of the result at `path`; `shape` is the same part of the initial value."""
        match shape:
            case Pull():
                return Pull(shape.length, lambda i: self.read(shape[i], (*path, i)))
            case Parts():
                count = len(shape.pairs[np.int64(0)])
                return tuple(self.read(shape[k], (*path, k)) for k in range(count))
            case tuple():
                return tuple(self.read(part, (*path, k)) for k, part in enumerate(shape))
            case _:
                return self.element(shape, path)

    def element(self, start: Value, path: Path) -> Value:
        """One scalar of the result."""
        if self.elementwise:
            try:
                value = start
                for k in range(self.steps):
                    check()
                    acc = focus(self, self.init, path, value)
                    value = along(self.step(np.int64(k), acc), path)
            except Elsewhere as found:
                if found.fold is not self:
                    raise
                self.elementwise = False
            else:
                return value
        if self.stored is None:
            self.stored = self.whole()
        return along(self.stored, path)

    def whole(self) -> Value:
        """The accumulator after all steps."""
        rank, self.reader.rank = self.reader.rank, self.rank
        try:
            acc = self.reader.stored(self.init, None)
            for k in range(self.steps):
                check()
                acc = self.reader.stored(self.step(np.int64(k), view(acc, {})), acc)
        finally:
            self.reader.rank = rank
        return view(acc, {})


def along(value: Value, path: Path) -> Value:
    """The part of a value at a path of indices and components."""
    for index in path:
        value = value[index]
    return value


def focus(fold: Fold, shape: Value, path: Path, value: Value) -> Value:
    """An accumulator of a fold of which only the part at `path` is known."""
    if not path:
        return value
    here, *rest = path

    def only(i: Index) -> Value:
        if i is here or np.array_equal(number(i), number(here)):
            return focus(fold, shape[here], tuple(rest), value)
        raise Elsewhere(fold)

    return Held(shape.length, only) if isinstance(shape, Pull) else OnlyPart(only)


class OnlyPart:
    """A tuple of which one component is known."""

    def __init__(self, only: Callable[[Index], Value]) -> None:
        self.only = only

    def __getitem__(self, k: int) -> Value:
        return self.only(k)
