"""Input views: the reads of an expression, as terms over buffers.

A view is the meaning of an expression applied to memory. `AccessReader` interprets the meanings of
primitives and yields, for each scalar, a `Term` with the index of every access. This module defines
no index laws of its own, except how a data-dependent index is kept inside its array
(`AccessReader.element_at`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.nat import ZERO, Nat, NatLike, greatest, least, nat, var
from liftpy.ir.operators import operator_type
from liftpy.ir.pull import ByName, Known, Parts, Pull, Value, known
from liftpy.ir.types import I32, ArrayType, ScalarType, TupleType, Type, VectorType
from liftpy.views.terms import (
    Apply,
    Choice,
    Condition,
    Constant,
    Decided,
    FromIndex,
    Inside,
    Load,
    Memory,
    Term,
    Variable,
)


def no_variables(_term: Term) -> str:
    """Refuse: a data-dependent index is held in a variable of a kernel."""
    message = "a data-dependent index was read outside a kernel"
    raise InternalError(message)


def decided_ends(index: Nat, length: Nat) -> tuple[Decided, ...]:
    """What the ranges of its variables decide of the two ends of an index's range."""
    low, high = index.bounds
    most = int(length) - 1
    if high is not None and high < 0:
        return (Decided(index, length, "low", holds=False),)
    if low is not None and low > most:
        return (Decided(index, length, "high", holds=False),)
    above = () if low is None or low < 0 else (Decided(index, length, "low", holds=True),)
    below = () if high is None or high > most else (Decided(index, length, "high", holds=True),)
    return (*above, *below)


def left_to_test(index: Nat, length: Nat, decided: tuple[Decided, ...]) -> Condition:
    """The condition `0 <= index < length`, of which some ends are decided."""
    if any(not d.holds for d in decided):
        return False
    known = {d.end for d in decided}
    test_low, test_high = "low" not in known, "high" not in known
    if not (test_low or test_high):
        return True
    return Inside(index.recombined(), length, test_low, test_high)


class AccessReader(ByName):
    """Interprets meanings as terms over memory (see `ir.pull.Reader`).

    Equal terms are one object. A value may be mentioned many times, so a term is a graph:
    traversals must remember the visited terms, and a comparison part by part could take exponential
    time.
    """

    def __init__(self, hold: Callable[[Term], str] = no_variables) -> None:
        self.terms: dict[object, Any] = {}
        self.hold = hold
        self.decided: set[Decided] = set()

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """An operator applied."""
        key = (op, args)
        found = self.terms.get(key)
        if found is None:
            found = self.terms[key] = Apply(op, args, operator_type(op, args[-1].type))
        return found

    def literal(self, value: float, t: Type) -> Value:
        """A constant."""
        if not isinstance(t, ScalarType):
            message = f"{t} has no literals"
            raise InternalError(message)
        return self.terms.setdefault((repr(value), t), Constant(value, t))

    def inside(self, index: Nat, length: NatLike) -> Condition:
        """A condition, decided if the ranges of the loop variables decide it."""
        index, length = nat(index), nat(length)
        decided = decided_ends(index, length)
        self.decided.update(decided)
        return left_to_test(index, length, decided)

    def clip(self, index: Nat, of: Pull) -> Nat:
        """The index itself for memory, which is accessed under the condition.

        Other values are stored before anything is chosen, so the index is clamped to their range.
        """
        return index if is_known(of) else least(greatest(index, 0), int(of.length) - 1)

    def choose(self, condition: Condition, then: Value, otherwise: float) -> Value:
        """A guarded term."""
        return self.either(condition, then, self.literal(otherwise, then.type))

    def either(self, condition: Condition, then: Value, otherwise: Value) -> Value:
        """One of two terms."""
        if condition is True:
            return then
        if condition is False:
            return otherwise
        key = (condition, then, otherwise)
        return self.terms.setdefault(key, Choice(condition, then, otherwise))

    def of_index(self, index: Nat | int, t: Type) -> Value:
        """The index as a number."""
        if not isinstance(t, ScalarType):
            message = f"an index is not of type {t}"
            raise InternalError(message)
        return FromIndex(nat(index), t)

    def clamped(self, index: Term, length: int) -> tuple[Term, Term]:
        """A data-dependent index clamped to its array, and whether it was inside."""
        low, high = self.literal(0, I32), self.literal(length - 1, I32)
        clamped = self.operate("min", (self.operate("max", (index, low)), high))
        return clamped, self.operate("==", (index, clamped))

    def element_at(self, xs: Pull, index: Value) -> Value:
        """The element at the index clamped to the array, in a variable; 0 if it was outside.

        So the index is inside in every case, and the element can be read before it is chosen.
        Registers have no addresses: one of them is chosen by comparisons.
        """
        length = int(xs.length)
        clamped, inside = self.clamped(index, length)
        name = self.hold(clamped)
        if is_known(xs) and selects_register(xs):
            found = self.one_of([xs[nat(k)] for k in range(length)], Variable(name, I32), 0)
        else:
            found = xs[var(name, 0, length - 1)]

        def chosen(value: Value) -> Value:
            match value:
                case Pull():
                    return Pull(value.length, lambda i: chosen(value[i]))
                case Parts():
                    return Parts(chosen(value.pairs))
                case tuple():
                    return tuple(map(chosen, value))
                case _:
                    return self.operate("select", (inside, value, self.literal(0, value.type)))

        return chosen(found)

    def one_of(self, values: list[Value], index: Term, first: int) -> Value:
        """The value at an index, the first of which is at index `first`."""
        match values[0]:
            case Pull(length):
                return Pull(length, lambda i: self.one_of([v[i] for v in values], index, first))
            case Parts() | tuple() as parts:
                count = len(parts.pairs[ZERO] if isinstance(parts, Parts) else parts)
                each = ([v[k] for v in values] for k in range(count))
                return tuple(self.one_of(part, index, first) for part in each)
            case _ if len(values) == 1:
                return values[0]
            case _:
                half = len(values) // 2
                below = self.operate("<", (index, self.literal(first + half, I32)))
                left = self.one_of(values[:half], index, first)
                right = self.one_of(values[half:], index, first + half)
                return self.operate("select", (below, left, right))

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Refuse: rules are not compiled."""
        message = f"{function.name} is a metavariable and has no code"
        raise InternalError(message)

    def fold(self, length: NatLike, init: Value, step: Callable[[Any, Value], Value]) -> Value:
        """Refuse: folds are materialised before they are read."""
        message = "a reduction was read as a view"
        raise InternalError(message)

    def scan(
        self,
        length: NatLike,
        init: Value,
        step: Callable[[Any, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """Refuse: scans are materialised before they are read."""
        message = "a scan was read as a view"
        raise InternalError(message)


def is_known(value: Value) -> bool:
    """Whether pulling a value's elements again gives the same ones."""
    kind = type(value)
    if kind is Known or kind is Load:
        return True
    if kind is tuple:
        return all(map(is_known, value))
    if kind is Parts:
        return is_known(value.pairs)
    return not isinstance(value, Pull)


def selects_register(xs: Pull) -> bool:
    """Whether the index of an element decides which register is read."""
    probe = "probed index"
    waiting, seen = scalars_of(xs[var(probe, 0, int(xs.length) - 1)]), set[int]()
    while waiting:
        term = waiting.pop()
        if id(term) in seen:
            continue
        seen.add(id(term))
        if isinstance(term, Load) and (term.memory.space, probe in term.names) == ("private", True):
            return True
        waiting += term.parts
    return False


def scalars_of(value: Value) -> list[Term]:
    """The scalars of a value; those of an array's first element stand for the others."""
    match value:
        case Pull():
            return scalars_of(value[ZERO])
        case Parts(pairs):
            return scalars_of(pairs)
        case tuple():
            return [scalar for part in value for scalar in scalars_of(part)]
        case _:
            return [value]


Allocate: TypeAlias = Callable[[str, ScalarType, int], Memory]


def part_name(name: str, path: tuple[int, ...]) -> str:
    """The name of a component's memory; the components are those of `ir.types.components`."""
    return "".join([name, *(f"_{k}" for k in path)])


def memory_view(name: str, t: Type, allocate: Allocate, gap: int = 0) -> Value:
    """A value of type `t` in its own memory, row-major; a tuple has a memory per component.

    `gap` scalars behind each element of an array are unused.
    """
    return known(_view(name, t, (), allocate, gap))


def _view(name: str, t: Type, outer: tuple[int, ...], allocate: Allocate, gap: int) -> Value:
    dims = list(outer)
    inner = t
    while isinstance(inner, ArrayType | VectorType):
        dims.append(int(inner.length if isinstance(inner, ArrayType) else inner.width))
        inner = inner.element
    if isinstance(inner, TupleType):
        parts = tuple(
            _view(part_name(name, (k,)), e, tuple(dims), allocate, gap)
            for k, e in enumerate(inner.elements)
        )
        return _tuples(parts, tuple(dims))
    if not isinstance(inner, ScalarType):
        message = f"{t} cannot be stored in memory"
        raise InternalError(message)
    memory = allocate(name, inner, math.prod(dims) + (dims[0] * gap if dims else 0))
    return _nest(memory, tuple(dims), ZERO, gap)


def _nest(memory: Memory, dims: tuple[int, ...], offset: Nat, gap: int = 0) -> Value:
    """The rows of a memory, beginning at `offset`, with a gap behind each."""
    if not dims:
        return Load(memory, offset.recombined())
    rest = dims[1:]
    stride = math.prod(rest) + gap
    return Pull(dims[0], lambda i: _nest(memory, rest, offset + nat(i) * stride))


def _tuples(parts: tuple[Value, ...], dims: tuple[int, ...]) -> Value:
    """An array of tuples from arrays of components."""
    if not dims:
        return parts
    return Pull(dims[0], lambda i: _tuples(tuple(p[i] for p in parts), dims[1:]))


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
