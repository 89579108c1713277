"""Numbers as a reader of meanings: numpy reads what the prover and the views read.

Every index is an integer or an array of integers; the arrays broadcast against each other, so that
one walk over the expression computes many elements, and what depends on few dimensions is read for
those alone. Folds are loops in order, one step for all elements of a block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, NatLike
from liftpy.ir.pull import Index, Parts, Pull, Value
from liftpy.ir.types import Type

Path: TypeAlias = tuple[Index, ...]

DTYPES: dict[str, type[np.generic]] = {
    "f32": np.float32,
    "f64": np.float64,
    "i32": np.int32,
    "bool": np.bool_,
}


def quotient(a: Any, b: Any) -> Any:
    """`a / b` as C divides: integers towards zero."""
    if np.issubdtype(np.result_type(a, b), np.integer):
        return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))
    return a / b


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": quotient,
    "min": np.fmin,
    "max": np.fmax,
    "neg": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "exp": np.exp,
    "<": np.less,
    "<=": np.less_equal,
    "==": np.equal,
    "select": np.where,
}


class Elsewhere(Exception):
    """A step reads its accumulator at another index than it writes; never leaves this module."""


class NumpyReader:
    """Reads meanings as numbers.

    `rank` is how many axes the index arrays may have. Storing an array adds axes in front, so that
    those of the elements being computed stay the last.
    """

    def __init__(self, rank: int, dtype: DTypeLike | None = None) -> None:
        self.rank = rank
        self.dtype = dtype

    def number_type(self, t: Type) -> Any:
        """The numpy type in which scalars of a type are computed."""
        name = str(t)
        return self.dtype if self.dtype is not None and name in {"f32", "f64"} else DTYPES[name]

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        return OPERATIONS[op](*args)

    def literal(self, value: float, t: Type) -> Value:
        return np.dtype(self.number_type(t)).type(value)

    def inside(self, index: Index, length: NatLike) -> Value:
        at = number(index)
        return (at >= 0) & (at < int(length))

    def clip(self, index: Index, length: NatLike) -> Index:
        return np.minimum(np.maximum(number(index), 0), int(length) - 1)

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
        steps = int(length)
        if isinstance(init, Pull | Parts | tuple):
            return Fold(self, steps, init, step).read(init, ())
        for k in range(steps):
            init = step(np.int64(k), init)
        return init

    def store(self, value: Value) -> Value:
        """The value with every element computed: arrays and tuples of `Stored` and numbers."""
        match value:
            case Pull():
                axis, length = self.rank, int(value.length)
                self.rank = axis + 1
                element = self.store(value[np.arange(length).reshape(length, *[1] * axis)])
                self.rank = axis
                return Stored(length, axis, element)
            case Parts():
                count = len(value.pairs[np.int64(0)])
                return tuple(self.store(value[k]) for k in range(count))
            case tuple():
                return tuple(self.store(part) for part in value)
            case _:
                return value


@dataclass(frozen=True, slots=True)
class Stored:
    """An array whose elements are computed: its dimension is the axis before the last `axis`."""

    length: int
    axis: int
    element: Value


def view(stored: Value, picked: dict[int, Any]) -> Value:
    """A stored value as a meaning reads it; `picked` has the indices chosen so far, by axis."""
    match stored:
        case Stored(length, axis, element):
            return Pull(length, lambda i: view(element, {**picked, axis: number(i)}))
        case tuple():
            return tuple(view(part, picked) for part in stored)
        case _:
            values = np.asarray(stored)
            at: list[Any] = []
            for position, length in enumerate(values.shape):
                axis = values.ndim - 1 - position
                if length == 1:
                    at.append(0 if axis in picked else np.zeros((1, *[1] * axis), np.int64))
                else:
                    along_axis = np.arange(length).reshape(length, *[1] * axis)
                    at.append(picked.get(axis, along_axis))
            return values[tuple(at)] if picked else stored


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
                    value = along(self.step(np.int64(k), focus(self.init, path, value)), path)
            except Elsewhere:
                self.elementwise = False
            else:
                return value
        if self.stored is None:
            self.stored = self.whole()
        return along(self.stored, path)

    def whole(self) -> Value:
        """The accumulator after all steps."""
        rank, self.reader.rank = self.reader.rank, self.rank
        acc = view(self.reader.store(self.init), {})
        for k in range(self.steps):
            acc = view(self.reader.store(self.step(np.int64(k), acc)), {})
        self.reader.rank = rank
        return acc


def along(value: Value, path: Path) -> Value:
    """The part of a value at a path of indices and components."""
    for index in path:
        value = value[index]
    return value


def focus(shape: Value, path: Path, value: Value) -> Value:
    """A value of which only the part at `path` is known."""
    if not path:
        return value
    here, *rest = path

    def only(i: Index) -> Value:
        if i is here or np.array_equal(number(i), number(here)):
            return focus(shape[here], tuple(rest), value)
        raise Elsewhere

    if isinstance(shape, Pull):
        return Pull(shape.length, only)
    return OnlyPart(only)


class OnlyPart:
    """A tuple of which one component is known."""

    def __init__(self, only: Callable[[Index], Value]) -> None:
        self.only = only

    def __getitem__(self, k: int) -> Value:
        return self.only(k)


def number(index: Index) -> Any:
    """An index as a number or an array of numbers."""
    return int(index) if isinstance(index, Nat) else index
