"""Input views: what an expression reads, as terms over buffers.

A view is the meaning of an expression applied to memory: `AccessReader` reads the primitives' own
laws and yields, for each scalar, a `Term` with the index of every access. No index law is written
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat, NatLike, nat
from liftpy.ir.pull import Parts, Pull, Value, known
from liftpy.ir.types import BOOL, ArrayType, ScalarType, TupleType, Type, VectorType

Space: TypeAlias = Literal["global", "local", "private"]


@dataclass(frozen=True, slots=True)
class Memory:
    """A run of scalars in one address space. `writable` is false for what a kernel only reads."""

    name: str
    space: Space
    scalar: ScalarType
    length: int
    writable: bool = True


@dataclass(frozen=True, slots=True)
class Load:
    """The scalar at an index of a memory; as a target, the place to store one.

    `alias` tells apart the names under which one private memory is read (see opencl/emit.py).
    """

    memory: Memory
    index: Nat
    alias: int = 0

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.memory.scalar


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal."""

    value: float | bool
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Apply:
    """A scalar operator applied."""

    op: str
    args: tuple[Term, ...]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Inside:
    """`0 <= index < length`; a bound that always holds need not be tested."""

    index: Nat
    length: Nat
    test_low: bool
    test_high: bool


#: A condition: known, or to be tested.
Condition: TypeAlias = bool | Inside


@dataclass(frozen=True, slots=True)
class FromIndex:
    """An index as a number."""

    index: Nat
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Choice:
    """`then` where the condition holds, else `otherwise`."""

    condition: Inside
    then: Term
    otherwise: Term

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.then.type


@dataclass(frozen=True, slots=True)
class Lanes:
    """The sum, or another fold, over the lanes of a vector term; see `reduceVec`."""

    init: Term
    vector: Term
    lane: str
    width: int
    step: Callable[[Term, Term], Term]
    type: ScalarType


@dataclass(frozen=True, slots=True)
class Lane:
    """One lane of a named vector."""

    name: str
    lane: int
    type: ScalarType


Term: TypeAlias = Load | Constant | FromIndex | Apply | Choice | Lanes | Lane


class AccessReader:
    """Reads meanings as terms over memory (see `ir.pull.Reader`)."""

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """An operator applied."""
        if op in {"<", "<=", "=="}:
            return Apply(op, args, BOOL)
        return Apply(op, args, args[-1].type)

    def literal(self, value: float, t: Type) -> Value:
        """A constant."""
        if not isinstance(t, ScalarType):
            message = f"{t} has no literals"
            raise InternalError(message)
        return Constant(value, t)

    def inside(self, index: Nat, length: NatLike) -> Condition:
        """A condition, decided where the ranges of the loop variables decide it."""
        index, length = nat(index), nat(length)
        low, high = index.bounds
        most = int(length) - 1
        if (high is not None and high < 0) or (low is not None and low > most):
            return False
        test_low = low is None or low < 0
        test_high = high is None or high > most
        return Inside(index, length, test_low, test_high) if test_low or test_high else True

    def clip(self, index: Nat, length: NatLike) -> Nat:
        """The index itself: an access out of range stands behind its condition."""
        return index

    def choose(self, condition: Condition, then: Value, otherwise: float) -> Value:
        """A guarded term."""
        return self.either(condition, then, Constant(otherwise, then.type))

    def either(self, condition: Condition, then: Value, otherwise: Value) -> Value:
        """One of two terms."""
        if condition is True:
            return then
        return otherwise if condition is False else Choice(condition, then, otherwise)

    def of_index(self, index: Nat | int, t: Type) -> Value:
        """A number."""
        if not isinstance(t, ScalarType):
            message = f"an index is no {t}"
            raise InternalError(message)
        return FromIndex(nat(index), t)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Rules are not compiled."""
        message = f"{function.name} is a metavariable and has no code"
        raise InternalError(message)

    def fold(self, length: NatLike, init: Value, step: Callable[[Any, Value], Value]) -> Value:
        """Folds are materialised before they are read."""
        message = "a reduction was read as a view"
        raise InternalError(message)


Allocate: TypeAlias = Callable[[str, ScalarType, int], Memory]


def memory_view(name: str, t: Type, allocate: Allocate, alias: int = 0) -> Value:
    """A value of type `t` in memory of its own, row-major; a tuple has a memory per component."""
    return known(_view(name, t, (), allocate, alias))


def _view(name: str, t: Type, outer: tuple[int, ...], allocate: Allocate, alias: int) -> Value:
    dims = list(outer)
    inner = t
    while isinstance(inner, ArrayType | VectorType):
        dims.append(int(inner.length if isinstance(inner, ArrayType) else inner.width))
        inner = inner.element
    if isinstance(inner, TupleType):
        parts = tuple(
            _view(f"{name}_{k}", e, tuple(dims), allocate, alias)
            for k, e in enumerate(inner.elements)
        )
        return _tuples(parts, len(dims) - len(outer), tuple(dims[len(outer) :]))
    if not isinstance(inner, ScalarType):
        message = f"{t} has no place in memory"
        raise InternalError(message)
    length = 1
    for d in dims:
        length *= d
    memory = allocate(name, inner, length)
    return _nest(memory, tuple(dims), ZERO, alias)


def _nest(memory: Memory, dims: tuple[int, ...], offset: Nat, alias: int) -> Value:
    """The rows of a memory from `offset`."""
    if not dims:
        return Load(memory, offset.recombined(), alias)
    stride = 1
    for d in dims[1:]:
        stride *= d
    rest = dims[1:]
    return Pull(dims[0], lambda i: _nest(memory, rest, offset + nat(i) * stride, alias))


def _tuples(parts: tuple[Value, ...], depth: int, dims: tuple[int, ...]) -> Value:
    """Arrays of components as an array of tuples."""
    if depth == 0:
        return parts
    return Pull(dims[0], lambda i: _tuples(tuple(p[i] for p in parts), depth - 1, dims[1:]))


def leaf(value: Value) -> Term:
    """The first scalar of a value."""
    while True:
        match value:
            case Pull():
                value = value[ZERO]
            case Parts():
                value = value[0]
            case tuple():
                value = value[0]
            case _:
                return value
