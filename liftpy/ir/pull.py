"""Pull arrays, the meaning of arrays: a length, and a function from indices to elements.

A primitive defines its meaning over pull arrays and a `Reader`. Each reader interprets it in its
own domain: the prover in z3 terms, the views in OpenCL index text, the evaluator in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from liftpy.ir.nat import NatLike
from liftpy.ir.types import I32, Type

Index: TypeAlias = Any
Value: TypeAlias = Any


@dataclass(frozen=True, slots=True)
class Pull:
    """An array or a vector: its length, and a function that returns the element at an index."""

    length: NatLike
    at: Callable[[Index], Value]

    def __getitem__(self, index: Index) -> Value:
        return self.at(index)


@dataclass(frozen=True)
class Known(Pull):
    """A pull array that caches its elements, so that each is computed once.

    Elements must not depend on when they are pulled.
    """

    seen: dict[Index, Value] = field(default_factory=dict, compare=False, repr=False)

    def __getitem__(self, index: Index) -> Value:
        found = self.seen.get(index)
        if found is None:
            found = self.seen[index] = known(self.at(index))
        return found


def known(value: Value) -> Value:
    """The value, with arrays that cache their elements."""
    if isinstance(value, Pull):
        return value if isinstance(value, Known) else Known(value.length, value.__getitem__)
    if isinstance(value, tuple):
        return tuple(map(known, value))
    return Parts(known(value.pairs)) if isinstance(value, Parts) else value


class Reader(Protocol):
    """The operations by which meanings are defined; each interpretation implements them."""

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """A scalar operator applied to scalar values."""
        ...

    def literal(self, value: float, t: Type) -> Value:
        """A scalar constant."""
        ...

    def inside(self, index: Index, length: NatLike) -> Value:
        """Whether `0 <= index < length`, as a condition for `choose`."""
        ...

    def clip(self, index: Index, of: Pull) -> Index:
        """`index` if it is inside the array; else any index inside, whose element is not used."""
        ...

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """A scalar: `then` if the condition holds, else the constant, in the type of `then`."""
        ...

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """A scalar: `then` if the condition holds, else `otherwise`, of the same type."""
        ...

    def of_index(self, index: Index, t: Type) -> Value:
        """An index as a scalar of a number type."""
        ...

    def element_at(self, xs: Pull, index: Value) -> Value:
        """The element at an index that is an i32 value; out of bounds, 0 in each scalar."""
        ...

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """An unknown function (a rule's metavariable) applied."""
        ...

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        """`step(length-1, ... step(1, step(0, init)))`."""
        ...

    def reduced(self, f: Callable[[Value, Value], Value], init: Value, xs: Pull) -> Value:
        """The fold `f(... f(f(init, xs[0]), xs[1]) ..., xs[n-1])`."""
        ...

    def scan(
        self,
        length: NatLike,
        init: Value,
        step: Callable[[Index, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """The values of a fold after each of its steps, or before each if it is `exclusive`."""
        ...

    def bound(self, value: Value, meant: Any, env: Mapping[Any, Value]) -> Value:
        """The value of a variable that `let` binds to the expression `meant`.

        `value` is the value of `meant`, and `env` has the values of its free variables.
        """
        ...

    def handed(self, function: Any, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values of the parameters in one call of a primitive's function."""
        ...

    def made(self, fun: Any, values: list[Value], result: Value) -> Value:
        """The value of a call of `fun` with `values`, given as `result`."""
        ...


class ByName:
    """A reader with call-by-name: every use of a variable pulls its element again."""

    def reduced(self: Reader, f: Callable[[Value, Value], Value], init: Value, xs: Pull) -> Value:
        """The fold; each step pulls its element."""
        return self.fold(xs.length, init, lambda k, acc: f(acc, xs[k]))

    def scan(
        self: Reader,
        length: NatLike,
        init: Value,
        step: Callable[[Index, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """By definition: element `i` is the fold over the first `i + 1` steps, or the first `i`."""
        return Pull(length, lambda i: self.fold(i if exclusive else i + 1, init, step))

    def element_at(self: Reader, xs: Pull, index: Value) -> Value:
        """By definition, a fold over all elements that keeps the one at this index."""

        def step(k: Index, found: Value) -> Value:
            here = self.operate("==", (index, self.of_index(k, I32)))
            return merged(self, here, xs[k], found)

        return self.fold(xs.length, nothing(self, xs), step)

    def bound(self, value: Value, meant: Any, env: Mapping[Any, Value]) -> Value:
        """The value itself."""
        return value

    def handed(self, function: Any, values: tuple[Value, ...]) -> tuple[Value, ...]:
        """The values themselves."""
        return values

    def made(self, fun: Any, values: list[Value], result: Value) -> Value:
        """The result itself."""
        return result


@dataclass(frozen=True, slots=True)
class Parts:
    """A tuple of arrays from an array of tuples: array `k` pulls component `k` of each element."""

    pairs: Pull

    def __getitem__(self, k: int) -> Pull:
        return Pull(self.pairs.length, lambda i: self.pairs[i][k])


def guarded(read: Reader, condition: Value, then: Value, otherwise: float) -> Value:
    """`then` if the condition holds, else a value of its shape with `otherwise` in each scalar."""
    match then:
        case Pull():
            return Pull(then.length, lambda i: guarded(read, condition, then[i], otherwise))
        case Parts():
            return Parts(guarded(read, condition, then.pairs, otherwise))
        case tuple():
            return tuple(guarded(read, condition, part, otherwise) for part in then)
        case _:
            return read.choose(condition, then, otherwise)


def nothing(read: Reader, xs: Pull) -> Value:
    """A value of the shape of an array's elements, with 0 in each scalar."""
    return guarded(read, read.inside(1, 1), xs[read.clip(0, xs)], 0)


def merged(read: Reader, condition: Value, then: Value, otherwise: Value) -> Value:
    """`then` if the condition holds, else `otherwise`; both have the same shape."""
    match then:
        case Pull():
            return Pull(then.length, lambda i: merged(read, condition, then[i], otherwise[i]))
        case Parts() if isinstance(otherwise, Parts):
            return Parts(merged(read, condition, then.pairs, otherwise.pairs))
        case Parts():
            return tuple(merged(read, condition, then[k], o) for k, o in enumerate(otherwise))
        case tuple():
            return tuple(merged(read, condition, t, otherwise[k]) for k, t in enumerate(then))
        case _:
            return read.either(condition, then, otherwise)
