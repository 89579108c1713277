"""The derivatives of scalar operators.

At a point without a derivative, one of the one-sided derivatives is chosen: that of the first
operand where the operands of `min` or `max` are equal, but of a constant if one operand is one, so
that the derivative of `max(x, 0)` is 0 at 0. That of `abs` is 0 at 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.primitive import ScalarOp
from liftpy.language.embedded.operations import operate

Derivative: TypeAlias = Callable[[Expr, tuple[Expr, ...], Expr], "tuple[Expr | None, ...]"]
"""The cotangents of an operator's arguments, from that of its result, the arguments and the result.
"""


def number(value: float, like: Expr) -> Expr:
    """A constant of the type of an expression."""
    return Literal(value, like.type)


def times(a: Expr, b: Expr) -> Expr:
    """A product; one with the constant 1 is the other factor."""
    if isinstance(a, Literal) and a.value == 1:
        return b
    if isinstance(b, Literal) and b.value == 1:
        return a
    return operate("*", a, b)


def negated(a: Expr) -> Expr:
    """The negative of a value."""
    return operate("neg", a)


def where(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    """A value chosen by a condition."""
    return operate("select", condition, then, otherwise)


Condition: TypeAlias = tuple[Expr, bool]
"""A condition, and whether it has to hold or must not."""


def guarded(condition: Condition, value: Expr) -> Expr:
    """A value where a condition is met, else 0."""
    test, holds = condition
    zero = number(0.0, value)
    return where(test, value, zero) if holds else where(test, zero, value)


def guard(ct: Expr) -> tuple[Condition | None, Expr]:
    """The outermost condition without which a cotangent is 0, and the cotangent without it."""
    match ct:
        case FunCall(ScalarOp(op="select"), (test, value, Literal(value=0))):
            return (test, True), value
        case FunCall(ScalarOp(op="select"), (test, Literal(value=0), value)):
            return (test, False), value
        case _:
            return None, ct


def through_operator(
    derivative: Derivative, ct: Expr, args: tuple[Expr, ...], out: Expr
) -> tuple[Expr | None, ...]:
    """The cotangents of an operator's arguments; conditions of the result's stay outermost."""
    condition, inner = guard(ct)
    if condition is None:
        return derivative(ct, args, out)
    found = through_operator(derivative, inner, args, out)
    return tuple(None if part is None else guarded(condition, part) for part in found)


def winner(op: str) -> Derivative:
    """The derivative of `min` or `max`: the cotangent goes to the operand that is the result."""

    def derivative(ct: Expr, args: tuple[Expr, ...], _: Expr) -> tuple[Expr | None, ...]:
        a, b = args
        zero = number(0.0, ct)
        before = (
            (lambda x, y: operate("<", x, y)) if op == "min" else (lambda x, y: operate("<", y, x))
        )
        if isinstance(b, Literal):
            return where(before(a, b), ct, zero), None
        second = before(b, a)
        return where(second, zero, ct), where(second, ct, zero)

    return derivative


def absolute(ct: Expr, args: tuple[Expr, ...], _: Expr) -> tuple[Expr | None, ...]:
    """The derivative of `abs`: the sign of the argument."""
    zero = number(0.0, ct)
    positive = where(operate("<", zero, args[0]), ct, zero)
    return (where(operate("<", args[0], zero), negated(ct), positive),)


def power(ct: Expr, args: tuple[Expr, ...], out: Expr) -> tuple[Expr | None, ...]:
    """The derivative of `pow`; with respect to the exponent it needs a positive base."""
    a, b = args
    slope = operate("*", b, operate("pow", a, operate("-", b, number(1.0, b))))
    base = where(operate("==", b, number(0.0, b)), number(0.0, b), slope)
    exponent = None if isinstance(b, Literal) else times(ct, operate("*", out, operate("log", a)))
    return times(ct, base), exponent


def selected(ct: Expr, args: tuple[Expr, ...], _: Expr) -> tuple[Expr | None, ...]:
    """The derivative of `select`: the cotangent goes to the operand that is chosen."""
    zero = number(0.0, ct)
    return None, where(args[0], ct, zero), where(args[0], zero, ct)


def quotient(ct: Expr, args: tuple[Expr, ...], out: Expr) -> tuple[Expr | None, ...]:
    """The derivative of a quotient."""
    each = operate("/", ct, args[1])
    return each, negated(operate("*", each, out))


def square(a: Expr) -> Expr:
    """The square of a value."""
    return operate("*", a, a)


def cathetus(a: Expr) -> Expr:
    """`sqrt(1 - a * a)`."""
    return operate("sqrt", operate("-", number(1.0, a), square(a)))


def angle(ct: Expr, args: tuple[Expr, ...], _: Expr) -> tuple[Expr | None, ...]:
    """The derivative of `atan2(y, x)`."""
    y, x = args
    each = operate("/", ct, operate("+", square(x), square(y)))
    return times(each, x), negated(times(each, y))


DERIVATIVES: Mapping[str, Derivative | str] = {
    "+": lambda ct, args, out: (ct, ct),
    "-": lambda ct, args, out: (ct, negated(ct)),
    "*": lambda ct, args, out: (times(ct, args[1]), times(ct, args[0])),
    "/": quotient,
    "min": winner("min"),
    "max": winner("max"),
    "neg": lambda ct, args, out: (negated(ct),),
    "abs": absolute,
    "sqrt": lambda ct, args, out: (operate("/", ct, operate("+", out, out)),),
    "exp": lambda ct, args, out: (times(ct, out),),
    "log": lambda ct, args, out: (operate("/", ct, args[0]),),
    "sin": lambda ct, args, out: (times(ct, operate("cos", args[0])),),
    "cos": lambda ct, args, out: (negated(times(ct, operate("sin", args[0]))),),
    "tanh": lambda ct, args, out: (
        times(ct, operate("-", number(1.0, out), operate("*", out, out))),
    ),
    "asin": lambda ct, args, out: (operate("/", ct, cathetus(args[0])),),
    "acos": lambda ct, args, out: (negated(operate("/", ct, cathetus(args[0]))),),
    "atan": lambda ct, args, out: (
        operate("/", ct, operate("+", square(args[0]), number(1.0, out))),
    ),
    "atan2": angle,
    "sinh": lambda ct, args, out: (times(ct, operate("cosh", args[0])),),
    "cosh": lambda ct, args, out: (times(ct, operate("sinh", args[0])),),
    "asinh": lambda ct, args, out: (
        operate("/", ct, operate("sqrt", operate("+", square(args[0]), number(1.0, out)))),
    ),
    "acosh": lambda ct, args, out: (
        operate("/", ct, operate("sqrt", operate("-", square(args[0]), number(1.0, out)))),
    ),
    "atanh": lambda ct, args, out: (
        operate("/", ct, operate("-", number(1.0, out), square(args[0]))),
    ),
    "erf": lambda ct, args, out: (
        times(
            ct,
            operate(
                "*",
                number(2 / math.sqrt(math.pi), out),
                operate("exp", negated(square(args[0]))),
            ),
        ),
    ),
    "pow": power,
    "select": selected,
    "floor": "it is constant between whole numbers",
    "ceil": "it is constant between whole numbers",
    "round": "it is constant between the halves of whole numbers",
    "%": "it jumps where the quotient is a whole number",
}
"""The derivative of each operator whose result is a float, or the reason why it has none.

Conversions are not among them: `reverse` converts the cotangent back.
"""
