"""User functions that every program can use (`add`, `mul`, ...), and how they are defined."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Law, OpenFun, UserFun
from liftpy.ir.operators import OPERATORS
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.scalars import as_float
from liftpy.ir.types import (
    F32,
    FLOATS,
    I32,
    INTEGERS,
    OpenType,
    ScalarType,
    TupleType,
    Type,
)
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.operations import call_of
from liftpy.language.embedded.trace import current

ASSOCIATIVE, COMMUTATIVE = Law("associative"), Law("commutative")


@word()
def neutral(value: float) -> Law:
    """The law `f(value, x) = x = f(x, value)`, for the argument `laws` of `lp.fun`.

    >>> import liftpy as lp
    >>> str(lp.neutral(0))
    'neutral 0'
    """
    return Law("neutral", as_float(value))


MONOID = (ASSOCIATIVE, COMMUTATIVE)


def binary(name: str, t: ScalarType, op: str, laws: tuple[Law, ...]) -> UserFun:
    """A binary operator as a user function."""
    x, y = Param("x", t), Param("y", t)
    return UserFun(name, (x, y), FunCall(ScalarOp(op), (x, y)), laws)


@dataclass(frozen=True)
class Operation:
    """A user function with a variant for each type; the types of the arguments select one."""

    name: str
    variants: Mapping[ScalarType, UserFun]

    def fitting(self, types: Sequence[Type]) -> UserFun:
        """The variant for values of these types, or an open one if the types are open."""
        trace = current()
        flat = [e for t in types for e in (t.elements if isinstance(t, TupleType) else (t,))]
        known = [t if trace is None else trace.holes.resolve(t) for t in flat]
        numbers = [t for t in known if isinstance(t, ScalarType)]
        decided = [t for t in numbers if t in self.variants]
        if decided:
            return self.variants[decided[0]]
        if numbers and isinstance(numbers[0], OpenType):
            return self.open(numbers[0])
        return self.variants[F32]

    def open(self, t: OpenType) -> OpenFun:
        """The variant for numbers of an open type; it is decided with that type."""
        x, y = Param("x", t), Param("y", t)
        body = self.variants[F32].body
        op = body.fun if isinstance(body, FunCall) else ScalarOp(self.name)
        return OpenFun(self.name, (x, y), FunCall(op, (x, y)), self.laws, self.variants)

    @property
    def laws(self) -> tuple[Law, ...]:
        """The laws that rules may use."""
        return self.variants[F32].laws

    def applied(self, *args: Any) -> Expr:
        """The function applied to two scalars, one of which may be a plain number."""
        return call_of(self.fitting([a.type for a in args if isinstance(a, Expr)]), *args)


def operation(name: str, op: str, names: Mapping[ScalarType, str]) -> Operation:
    """An associative operator with a variant for each type; `names` has their irregular names.

    An infinite neutral element is one only for floating-point numbers.
    """
    unit = OPERATORS[op].neutral
    laws = () if unit is None else (Law("neutral", float(unit)),)
    everywhere = unit is not None and math.isfinite(unit)
    made = {
        t: binary(names.get(t, f"{name}{t.name.upper()}"), t, op, (*MONOID, *own))
        for kinds, own in ((FLOATS, laws), (INTEGERS, laws if everywhere else ()))
        for t in kinds
    }
    return Operation(name, made)


SUM = operation("add", "+", {F32: "add", I32: "addInt"})
PRODUCT = operation("mul", "*", {F32: "mul"})
LARGEST = operation("maximum", "max", {F32: "maximum"})
SMALLEST = operation("minimum", "min", {F32: "minimum"})
add_int = SUM.variants[I32]


@word()
def add(x: Any, y: Any) -> Expr:
    """The sum of two numbers of one type.

    Rules treat it as associative and commutative, with 0 as the neutral element. As the function of
    `lp.reduce`, `lp.scan` or `lp.map`, it takes its type from the elements.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce(lp.add, 0)).item()
    10
    """
    return SUM.applied(x, y)


@word()
def mul(x: Any, y: Any) -> Expr:
    """The product of two numbers of one type.

    Rules treat it as associative and commutative, with 1 as the neutral element.

    >>> lp.evaluate(lp.zip(lp.iota(4), lp.iota(4)) >> lp.map(lp.mul)).tolist()
    [0, 1, 4, 9]
    """
    return PRODUCT.applied(x, y)


@word()
def maximum(x: Any, y: Any) -> Expr:
    """The larger of two numbers of one type.

    Rules treat it as associative and commutative; for floats, minus infinity is neutral.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce(lp.maximum, 0)).item()
    4
    """
    return LARGEST.applied(x, y)


@word()
def minimum(x: Any, y: Any) -> Expr:
    """The smaller of two numbers of one type.

    Rules treat it as associative and commutative; for floats, infinity is neutral.

    >>> lp.evaluate(lp.iota(5) >> lp.reduce(lp.minimum, 9)).item()
    0
    """
    return SMALLEST.applied(x, y)


OPERATIONS: Mapping[str, Operation] = {o.name: o for o in (SUM, PRODUCT, LARGEST, SMALLEST)}
#: User functions that every text can use without defining them.
PRELUDE: Mapping[str, UserFun] = {
    f.name: f for o in OPERATIONS.values() for f in o.variants.values()
}
for own in (add, mul, maximum, minimum):
    own.__dict__["operation"] = OPERATIONS[own.__name__]
