"""Words on scalars: selection, comparisons, conversions, functions of floats."""

from __future__ import annotations

from typing import Any

from liftpy.ir.expr import Expr
from liftpy.ir.types import ScalarType
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.operations import operate
from liftpy.language.given import shown
from liftpy.source.caller import refusal


@word()
def select(condition: Expr, then: Any, otherwise: Any) -> Expr:
    """`then` if the condition holds, else `otherwise`: `(bool, a, a) -> a`, on scalars.

    Both values are computed. A plain number takes its type from the other value or the context.

    >>> lp.evaluate(lp.iota(4) >> lp.map(lambda i: lp.select(i < 2, 0, i))).tolist()
    [0, 0, 2, 3]
    """
    return operate("select", condition, then, otherwise)


@word()
def sqrt(x: Expr) -> Expr:
    """The square root of a float. `np.sqrt(x)` and `x ** 0.5` are equivalent.

    >>> lp.evaluate(lp.full(1, 9.0) >> lp.map(lp.sqrt)).tolist()
    [3.0]
    """
    return operate("sqrt", x)


@word()
def exp(x: Expr) -> Expr:
    """The exponential of a float. `np.exp(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.exp)).tolist()
    [1.0]
    """
    return operate("exp", x)


@word()
def log(x: Expr) -> Expr:
    """The natural logarithm of a float. `np.log(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 1.0) >> lp.map(lp.log)).tolist()
    [0.0]
    """
    return operate("log", x)


@word()
def sin(x: Expr) -> Expr:
    """The sine of a float, in radians. `np.sin(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.sin)).tolist()
    [0.0]
    """
    return operate("sin", x)


@word()
def cos(x: Expr) -> Expr:
    """The cosine of a float, in radians. `np.cos(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.cos)).tolist()
    [1.0]
    """
    return operate("cos", x)


@word()
def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent of a float. `np.tanh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.tanh)).tolist()
    [0.0]
    """
    return operate("tanh", x)


@word()
def asin(x: Expr) -> Expr:
    """The angle from -pi/2 to pi/2 with this sine; NaN if |x| > 1. `np.arcsin(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.asin)).tolist()
    [0.0]
    """
    return operate("asin", x)


@word()
def acos(x: Expr) -> Expr:
    """The angle from 0 to pi with this cosine; NaN if |x| > 1. `np.arccos(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 1.0) >> lp.map(lp.acos)).tolist()
    [0.0]
    """
    return operate("acos", x)


@word()
def atan(x: Expr) -> Expr:
    """The angle from -pi/2 to pi/2 with this tangent. `np.arctan(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.atan)).tolist()
    [0.0]
    """
    return operate("atan", x)


@word()
def atan2(y: Any, x: Any) -> Expr:
    """The angle of the point (x, y), from -pi to pi, as a float. `np.arctan2(y, x)` is equivalent.

    The sign of a zero is not kept, so for negative `x` and a `y` of 0 or -0, it is pi or -pi.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lambda y: lp.atan2(y, 5))).tolist()
    [0.0]
    """
    return operate("atan2", y, x)


@word()
def sinh(x: Expr) -> Expr:
    """The hyperbolic sine of a float. `np.sinh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.sinh)).tolist()
    [0.0]
    """
    return operate("sinh", x)


@word()
def cosh(x: Expr) -> Expr:
    """The hyperbolic cosine of a float. `np.cosh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.cosh)).tolist()
    [1.0]
    """
    return operate("cosh", x)


@word()
def asinh(x: Expr) -> Expr:
    """The inverse of `sinh`. `np.arcsinh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.asinh)).tolist()
    [0.0]
    """
    return operate("asinh", x)


@word()
def acosh(x: Expr) -> Expr:
    """The inverse of `cosh`, at least 0; NaN if x < 1. `np.arccosh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 1.0) >> lp.map(lp.acosh)).tolist()
    [0.0]
    """
    return operate("acosh", x)


@word()
def atanh(x: Expr) -> Expr:
    """The inverse of `tanh`; NaN if |x| > 1. `np.arctanh(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, 0.0) >> lp.map(lp.atanh)).tolist()
    [0.0]
    """
    return operate("atanh", x)


@word()
def erf(x: Expr) -> Expr:
    """The error function: 2/sqrt(pi) times the integral of exp(-t * t) from 0 to `x`.

    >>> lp.evaluate(lp.full(1, float('inf')) >> lp.map(lp.erf)).tolist()
    [1.0]
    """
    return operate("erf", x)


@word()
def power(x: Any, y: Any) -> Expr:
    """The float `x` to the power `y`. In contrast, `x ** y` expands whole powers into products.

    >>> lp.evaluate(lp.full(1, 2.0) >> lp.map(lambda x: lp.power(x, 3))).tolist()
    [8.0]
    """
    return operate("pow", x, y)


@word()
def floor(x: Expr) -> Expr:
    """The largest whole number that is at most `x`, as a float. `np.floor(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, -1.5) >> lp.map(lp.floor)).tolist()
    [-2.0]
    """
    return operate("floor", x)


@word()
def ceil(x: Expr) -> Expr:
    """The smallest whole number that is at least `x`, as a float. `np.ceil(x)` is equivalent.

    >>> lp.evaluate(lp.full(1, -1.5) >> lp.map(lp.ceil)).tolist()
    [-1.0]
    """
    return operate("ceil", x)


@word()
def round(x: Expr) -> Expr:  # noqa: A001
    """The nearest whole number, as a float; halves become even. `np.rint(x)` is equivalent.

    >>> lp.evaluate(lp.iota(4) >> lp.map(lambda i: lp.round(lp.convert(i, lp.f32) / 2))).tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    return operate("round", x)


@word()
def smaller(x: Any, y: Any) -> Expr:
    """The smaller of two numbers of one type. `np.minimum(x, y)` is equivalent.

    >>> lp.evaluate(lp.iota(4) >> lp.map(lambda x: lp.smaller(x, 2))).tolist()
    [0, 1, 2, 2]
    """
    return operate("min", x, y)


@word()
def larger(x: Any, y: Any) -> Expr:
    """The larger of two numbers of one type. `np.maximum(x, y)` is equivalent.

    >>> lp.evaluate(lp.iota(4) >> lp.map(lambda x: lp.larger(x, 2))).tolist()
    [2, 2, 2, 3]
    """
    return operate("max", x, y)


@word()
def equal(x: Any, y: Any) -> Expr:
    """Whether two scalars are equal, as a bool. In an embedded function, `x == y` is equivalent.

    >>> lp.evaluate(lp.iota(3) >> lp.map(lambda x: lp.equal(x, 1))).tolist()
    [False, True, False]
    """
    return operate("==", x, y)


@word()
def unequal(x: Any, y: Any) -> Expr:
    """Whether two scalars differ, as a bool. In an embedded function, `x != y` is equivalent.

    >>> lp.evaluate(lp.iota(3) >> lp.map(lambda x: lp.unequal(x, 1))).tolist()
    [True, False, True]
    """
    return operate("!=", x, y)


@word()
def convert(x: Any, t: Any) -> Expr:
    """Converts a scalar to the scalar type `t`.

    A float converted to an integer type loses its fraction; out of range, it becomes the nearest
    bound of the type, and NaN becomes 0. An integer that does not fit wraps around.

    >>> lp.evaluate(lp.iota(3) >> lp.map(lambda x: lp.convert(x, lp.f64) / 2)).tolist()
    [0.0, 0.5, 1.0]
    """
    if not isinstance(t, ScalarType):
        what = f"lp.convert needs a scalar type, got {shown(t)}"
        raise refusal(what, "such as lp.f32, lp.f64 or lp.i32", "write lp.convert(x, lp.f32)")
    return operate(t.name, x)


@word()
def absolute(x: Expr) -> Expr:
    """The absolute value of a number. `abs(x)` and `np.abs(x)` are equivalent.

    >>> lp.evaluate(lp.iota(3) >> lp.map(lambda x: lp.absolute(x - 2))).tolist()
    [2, 1, 0]
    """
    return operate("abs", x)
