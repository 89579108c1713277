"""Type inference for numbers that are written without a type.

A number without a typed operand has an open type. If two types must be equal (those of `a` and `b`
in `a + b`, of an argument and its parameter, of a fold's function and its initial value), `unify`
decides open types. `settle` then writes the decisions into an expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Generic, TypeVar

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Function, Lambda, OpenFun
from liftpy.ir.primitive import Primitive, ScalarOp
from liftpy.ir.scalars import cast_literal
from liftpy.ir.types import (
    BOOL,
    INTEGERS,
    ArrayType,
    OpenType,
    ScalarType,
    TupleType,
    Type,
    VectorType,
)

P = TypeVar("P")


@dataclass
class Holes(Generic[P]):
    """Open types by number, with the decisions made so far and the places of the numbers."""

    places: list[P] = field(default_factory=list[P])
    decided: dict[int, Type] = field(default_factory=dict[int, Type])
    #: Numbers for which f32 would be a guess: both branches of a `select` that compares integers.
    guesses: dict[int, Type] = field(default_factory=dict[int, Type])
    #: Results of `settle` by the id of the part: the part, its result, the number of decisions.
    settled: dict[int, tuple[Any, Any, int]] = field(
        default_factory=dict[int, tuple[Any, Any, int]]
    )

    def open(self, place: P) -> OpenType:
        """A new open type for a number at this place."""
        self.places.append(place)
        return OpenType("number", len(self.places) - 1)

    def resolve(self, t: Type) -> Type:
        """The type with decided types filled in; itself if that changes nothing."""
        match t:
            case OpenType():
                found = self.decided.get(t.number)
                return t if found is None else self.resolve(found)
            case ArrayType(element, length):
                new = self.resolve(element)
                return t if new is element else ArrayType(new, length)
            case VectorType(element, width):
                new = self.resolve(element)
                return t if new is element else VectorType(new, width)
            case TupleType(elements):
                parts = tuple(map(self.resolve, elements))
                same = all(new is old for new, old in zip(parts, elements, strict=True))
                return t if same else TupleType(parts)
            case _:
                return t

    def unify(self, a: Type, b: Type) -> None:
        """Decide open types so that the two types become equal, as far as possible."""
        if not self.places:
            return
        a, b = self.resolve(a), self.resolve(b)
        match a, b:
            case OpenType(), OpenType():
                if a.number != b.number:
                    self.decided[max(a.number, b.number)] = min(a, b, key=lambda t: t.number)
            case (OpenType() as hole, ScalarType() as t) | (ScalarType() as t, OpenType() as hole):
                if t != BOOL:
                    self.decided[hole.number] = t
            case (ArrayType(), ArrayType()) | (VectorType(), VectorType()):
                self.unify(a.element, b.element)
            case TupleType(), TupleType():
                for x, y in zip(a.elements, b.elements, strict=False):
                    self.unify(x, y)
            case _:
                pass

    def close(self, default: Type) -> int | None:
        """Decide the remaining open types; returns a number for which that would be a guess."""
        for number in self.guesses:
            if isinstance(self.resolve(OpenType("number", number)), OpenType):
                return number
        for number in range(len(self.places)):
            self.decided.setdefault(number, default)
        return None


def typed(expr: Expr, holes: Holes[Any]) -> Expr:
    """The expression, with decided types filled in if its own type is decided."""
    return expr if holes.resolve(expr.type) is expr.type else settle(expr, holes)


def settle(expr: Expr, holes: Holes[Any]) -> Expr:
    """The expression with the decided types of numbers filled in; shared parts stay shared."""
    version = len(holes.decided)
    known = holes.settled.get(id(expr))
    if known is not None and known[2] == version:
        return known[1]
    if known is not None and known[1] is not expr:
        new = settle(known[1], holes)
    else:
        new = settled(expr, holes)
    holes.settled[id(expr)] = expr, new, version
    return new


def settled(expr: Expr, holes: Holes[Any]) -> Expr:
    """`settle` for one part."""
    match expr:
        case Param(name, t):
            return expr if (found := holes.resolve(t)) is t else Param(name, found)
        case Literal(value, t):
            found = holes.resolve(t)
            return expr if found is t else Literal(cast_literal(value, found), found)
        case Tuple(elements):
            parts = tuple(settle(e, holes) for e in elements)
            return expr if all(map(is_, parts, elements)) else Tuple(parts)
        case FunCall(fun, args):
            parts = tuple(settle(a, holes) for a in args)
            callee = settled_callee(fun, holes)
            same = callee is fun and all(map(is_, parts, args))
            return expr if same else FunCall(callee, parts)
        case _:
            return expr


def settled_callee(fun: Function, holes: Holes[Any]) -> Function:
    """`settle` for a callee."""
    if isinstance(fun, OpenFun):
        found = holes.resolve(fun.params[0].type)
        return fun.variants.get(found, fun) if isinstance(found, ScalarType) else fun
    own = fun.function if isinstance(fun, Primitive) else fun
    if not isinstance(own, Lambda):
        return fun
    params = tuple(Param(p.name, holes.resolve(p.type)) for p in own.params)
    body = settle(own.body, holes)
    if body is own.body and params == own.params:
        return fun
    inner = Lambda(params, body)
    return replace(fun, f=inner) if isinstance(fun, Primitive) else inner


def note_guess(holes: Holes[Any], operands: tuple[Expr, ...]) -> None:
    """Record a `select` of two numbers that compares integers: f32 for them would be a guess."""
    condition, *values = operands
    if not all(map(is_whole, values)):
        return
    found = integers_in(condition)
    if found is not None:
        for value in values:
            if isinstance(value.type, OpenType):
                holes.guesses[value.type.number] = found


def is_whole(value: Expr) -> bool:
    """Whether an expression is a literal number without a fraction."""
    return isinstance(value, Literal) and value.type != BOOL and float(value.value).is_integer()


def integers_in(condition: Expr) -> Type | None:
    """An integer type that a condition compares; None if it compares none."""
    waiting, seen = [condition], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:  # otherwise shared parts make the time exponential
            continue
        seen.add(id(part))
        if isinstance(part, FunCall) and isinstance(part.fun, ScalarOp):
            found = next((a.type for a in part.args if a.type in INTEGERS), None)
            if found is not None:
                return found
            waiting += part.args
    return None
