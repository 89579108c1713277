"""A reader of meanings as z3 terms.

Indices stay naturals; scalars are terms. A metavariable array is an unknown function of its
indices, a type variable is an unknown sort, and an unknown function stays one. A fold is not
evaluated: its scalars are `FoldComponent`s, which the inductions of `agree` and `induction` open.
If an unknown function is applied to a component of a fold or to a whole array, the argument is
*named* by a constant; two names are equal if the values behind them can be shown to agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import z3

from liftpy.ir.nat import Nat, NatLike, nat
from liftpy.ir.operators import OPERATORS
from liftpy.ir.pull import ByName, Index, Parts, Pull, Value
from liftpy.ir.types import BOOL, SCALARS, ArrayType, TupleType, Type, VectorType
from liftpy.semantics.smt import Terms
from liftpy.semantics.verdict import Open

#: The operators that z3 interprets for scalars of any type: all others are unknown functions.
INTERPRETED: dict[str, Callable[..., Any]] = {
    name: getattr(z3, record.z3)
    for name, record in OPERATORS.items()
    if record.z3 and record.operands != "numbers"
}


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """A fold that has not been evaluated."""

    length: NatLike
    init: Value
    step: Callable[[Index, Value], Value]


@dataclass(frozen=True, slots=True, eq=False)
class FoldComponent:
    """One scalar of a fold's result: the one at `path` of the accumulator."""

    fold: Fold
    path: tuple[Index, ...]
    sort: Any


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A value that a constant stands for, as the argument of an unknown function."""

    constant: Any
    value: Value


@dataclass(frozen=True, slots=True)
class Read:
    """An index at which a metavariable array is read, and the length that it must be below."""

    array: str
    index: Nat
    length: Nat


class SymbolicReader(ByName):
    """Reads meanings as z3 terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.named: list[Named] = []
        self.reads: list[Read] = []
        self.clipped: dict[Nat, Nat] = {}
        self.states = 0
        self.indices = 0

    def sort(self, t: Type) -> Any:
        """The sort of scalars of a type, or of arrays that are arguments of unknown functions."""
        if t == BOOL:
            return z3.BoolSort(self.terms.context)
        if isinstance(t, ArrayType | VectorType):
            return z3.DeclareSort(f"[]{self.sort(t.element)}", self.terms.context)
        return z3.DeclareSort(str(t), self.terms.context)

    def leaf(self, name: str, t: Type, *prefix: Any) -> Value:
        """A metavariable of a type, or an unknown function's result; `prefix` are its arguments."""
        return self.element(name, t, prefix, ())

    def element(
        self, name: str, t: Type, prefix: tuple[Any, ...], path: tuple[tuple[Index, NatLike], ...]
    ) -> Value:
        """The element at a path of a metavariable."""
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                return Pull(
                    length, lambda i: self.element(name, element, prefix, (*path, (i, length)))
                )
            case TupleType(elements):
                return tuple(
                    self.element(f"{name}.{k}", part, prefix, path)
                    for k, part in enumerate(elements)
                )
            case _:
                self.reads += [Read(name, nat(i), nat(length)) for i, length in path]
                indices = [self.terms.nat(i) for i, _ in path]
                return applied(name, [*prefix, *indices], self.sort(t))

    def scalar(self, value: Value) -> Any:
        """A scalar as a term; a component of a fold gets a name."""
        if isinstance(value, z3.ExprRef):
            return value
        if isinstance(value, FoldComponent):
            return self.name(value, value.sort)
        raise Open("every value can be read", f"{type(value).__name__} where a scalar was expected")

    def name(self, value: Value, sort: Any) -> Any:
        """A constant that stands for a value."""
        constant = z3.FreshConst(sort, "value")
        self.named.append(Named(constant, value))
        return constant

    def flat(self, value: Value, t: Type) -> list[Any]:
        """An argument of an unknown function, as terms."""
        match t:
            case TupleType(elements):
                parts = (self.flat(value[k], part) for k, part in enumerate(elements))
                return [term for part in parts for term in part]
            case ArrayType() | VectorType():
                return [self.name(value, self.sort(t))]
            case _:
                return [self.scalar(value)]

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        terms = [self.scalar(a) for a in args]
        if op in INTERPRETED:
            return INTERPRETED[op](*terms)
        if op == "!=":
            return z3.Not(applied("operator ==", terms, self.sort(BOOL)))
        if op in SCALARS:
            sort = self.sort(SCALARS[op])
        else:
            sort = self.sort(BOOL) if OPERATORS[op].truth else terms[0].sort()
        return applied(f"operator {op}", terms, sort)

    def constant(self, value: float, sort: Any) -> Any:
        """A constant of a sort; equal values give the same constant."""
        return z3.Const(f"{value}:{sort}", sort)

    def literal(self, value: float, t: Type) -> Value:
        if t == BOOL:
            return z3.BoolVal(bool(value), self.terms.context)
        return self.constant(value, self.sort(t))

    def inside(self, index: Index, length: NatLike) -> Value:
        at = self.terms.nat(index)
        return z3.And(at >= 0, at < self.terms.nat(length))

    def clip(self, index: Index, of: Pull) -> Index:
        self.clipped[nat(index)] = nat(of.length)
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        term = self.scalar(then)
        return z3.If(condition, term, self.constant(otherwise, term.sort()))

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        return z3.If(condition, self.scalar(then), self.scalar(otherwise))

    def of_index(self, index: Index, t: Type) -> Value:
        return applied(f"index as {t}", [self.terms.nat(index)], self.sort(t))

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        flat = [self.flat(a, t) for a, t in zip(args, function.params, strict=True)]
        return self.leaf(function.name, function.type, *(term for part in flat for term in part))

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        return view(Fold(length, init, step), init, ())

    def state(self, shape: Value) -> Value:
        """An arbitrary accumulator of a shape."""
        self.states += 1
        return self.unknown_like(shape, f"state {self.states}", ())

    def anywhere(self) -> int:
        """The number of a new arbitrary index."""
        self.indices += 1
        return self.indices

    def unknown_like(self, shape: Value, name: str, path: tuple[Any, ...]) -> Value:
        """A value of a shape whose scalars are unknown functions of the indices."""
        match shape:
            case Pull():
                return Pull(
                    shape.length,
                    lambda i: self.unknown_like(shape[i], name, (*path, self.terms.nat(i))),
                )
            case tuple() | Parts():
                return tuple(
                    self.unknown_like(part, f"{name}.{k}", path)
                    for k, part in enumerate(components(shape))
                )
            case FoldComponent():
                return applied(name, path, shape.sort)
            case _:
                return applied(name, path, shape.sort())


def applied(name: str, args: Any, sort: Any) -> Any:
    """An unknown function applied to terms, or an unknown constant."""
    if not args:
        return z3.Const(name, sort)
    return z3.Function(name, *(a.sort() for a in args), sort)(*args)


def view(fold: Fold, shape: Value, path: tuple[Index, ...]) -> Value:
    """The result of a fold, in the shape of its initial value."""
    match shape:
        case Pull():
            return Pull(shape.length, lambda i: view(fold, shape[i], (*path, i)))
        case tuple() | Parts():
            return tuple(view(fold, p, (*path, k)) for k, p in enumerate(components(shape)))
        case FoldComponent():
            return FoldComponent(fold, path, shape.sort)
        case _:
            return FoldComponent(fold, path, shape.sort())


def components(value: Value) -> tuple[Value, ...]:
    """The components of a tuple, or of an array of tuples that is read as a tuple of arrays."""
    if isinstance(value, Parts):
        return tuple(value[k] for k in range(len(value.pairs[nat(0)])))
    return value


def along(value: Value, path: tuple[Index, ...]) -> Value:
    """The part of a value at a path of indices and components."""
    for index in path:
        value = value[index]
    return value
