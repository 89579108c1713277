"""Operators on elements, with broadcasting: arithmetic, comparisons, activations, conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from liftpy.ir.types import F64, FLOATS, SCALAR_BYTES, ScalarType
from liftpy.language.embedded.lang import (
    absolute,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    equal,
    erf,
    exp,
    floor,
    larger,
    log,
    power,
    round,  # noqa: A004
    select,
    sin,
    sinh,
    smaller,
    sqrt,
    tanh,
    unequal,
)
from liftpy.networks.operators.layouts import aligned_map, broadcast, each, reshaped, to
from liftpy.networks.operators.node import Body, Node, decline, greatest, least, literal, operator

Scalar = Callable[..., Any]


def on_elements(node: Node, f: Scalar) -> Body:
    """The program that applies `f` to the broadcast elements of all inputs."""
    if node.attribute("broadcast"):
        decline("an attribute broadcasts the inputs, as in opsets before 7", "broadcast")
    shapes = [o.shape for o in node.operands if o is not None]
    return lambda *arrays: broadcast(f, [*zip(arrays, shapes, strict=True)], node.result_shape)


def unary(f: Callable[[Any], Any], *names: str, floats: bool = False) -> None:
    """Registers operators of one input."""

    @operator(*names, orders="any")
    def build(node: Node) -> Body:
        if floats:
            node.float_only()
        return on_elements(node, f)


def binary(f: Callable[[Any, Any], Any], *names: str) -> None:
    """Registers operators of two inputs."""

    @operator(*names, orders="any")
    def build(node: Node) -> Body:
        return on_elements(node, f)


unary(lambda x: -x, "Neg")
unary(absolute, "Abs")
unary(exp, "Exp", floats=True)
unary(log, "Log", floats=True)
unary(sqrt, "Sqrt", floats=True)
unary(sin, "Sin", floats=True)
unary(cos, "Cos", floats=True)
unary(tanh, "Tanh", floats=True)
unary(floor, "Floor", floats=True)
unary(ceil, "Ceil", floats=True)
unary(round, "Round", floats=True)
unary(lambda x: sin(x) / cos(x), "Tan", floats=True)
unary(asin, "Asin", floats=True)
unary(acos, "Acos", floats=True)
unary(atan, "Atan", floats=True)
unary(sinh, "Sinh", floats=True)
unary(cosh, "Cosh", floats=True)
unary(asinh, "Asinh", floats=True)
unary(acosh, "Acosh", floats=True)
unary(atanh, "Atanh", floats=True)
unary(erf, "Erf", floats=True)
unary(lambda x: 1 / x, "Reciprocal", floats=True)
unary(lambda x: 1 / (exp(-x) + 1), "Sigmoid", floats=True)
unary(lambda x: x / (absolute(x) + 1), "Softsign", floats=True)
unary(lambda x: unequal(x, x), "IsNaN", floats=True)
unary(lambda x: ~x, "Not", "BitwiseNot")

binary(lambda x, y: x + y, "Add")
binary(lambda x, y: x - y, "Sub")
binary(lambda x, y: x * y, "Mul")
binary(lambda x, y: x / y, "Div")
binary(lambda x, y: x < y, "Less")
binary(lambda x, y: x <= y, "LessOrEqual")
binary(lambda x, y: y < x, "Greater")
binary(lambda x, y: y <= x, "GreaterOrEqual")
binary(equal, "Equal")
binary(lambda x, y: x & y, "And", "BitwiseAnd")
binary(lambda x, y: x | y, "Or", "BitwiseOr")
binary(lambda x, y: x ^ y, "Xor", "BitwiseXor")


@operator("BitShift", orders="any")
def shift(node: Node) -> Body:
    """A shift by any count; one of at least the number of bits leaves 0, or the sign (-1 or 0)."""
    t = node.type()
    signed, bits, zero = not t.name.startswith("u"), 8 * SCALAR_BYTES[t.name], literal(0, t)

    def shifted(x: Any, y: Any) -> Any:
        within = (zero <= y) & (y < bits) if signed else y < bits
        if node.attribute("direction") == "LEFT":
            return select(within, x << y, zero)
        return select(within, x >> y, x >> (bits - 1) if signed else zero)

    return on_elements(node, shifted)


@operator("Relu", orders="any")
def relu(node: Node) -> Body:
    """The positive part."""
    return on_elements(node, lambda x: larger(x, literal(0, node.type())))


def softened(x: Any, t: ScalarType) -> Any:
    """`log(1 + exp(x))`, in a form that neither overflows nor loses small results.

    With p the power `exp(-abs(x))`, the rounding error of 1 + p is in the logarithm and in the
    factor `p / ((1 + p) - 1)`, and cancels; where 1 + p is 1, the logarithm is p.
    """
    one = literal(1, t)
    p = exp(-absolute(x))
    rounded = one + p
    logarithm = select(equal(rounded, one), p, log(rounded) * (p / (rounded - one)))
    return larger(x, literal(0, t)) + logarithm


@operator("Softplus", orders="any")
def softplus(node: Node) -> Body:
    """`log(1 + exp(x))`."""
    node.float_only()
    return on_elements(node, lambda x: softened(x, node.type()))


@operator("Mish", orders="any")
def mish(node: Node) -> Body:
    """`x * tanh(softplus(x))`."""
    node.float_only()
    return on_elements(node, lambda x: x * tanh(softened(x, node.type())))


@operator("Sign", orders="any")
def sign(node: Node) -> Body:
    """-1, 0 or 1; NaN of NaN."""
    zero, one = literal(0, node.type()), literal(1, node.type())
    if node.type().name.startswith("u"):
        return on_elements(node, lambda x: select(zero < x, one, zero))
    minus = literal(-1, node.type())
    return on_elements(node, lambda x: select(zero < x, one, select(x < zero, minus, x)))


@operator("IsInf", orders="any")
def infinite(node: Node) -> Body:
    """Whether a number is infinite, of the signs that attributes select."""
    node.float_only()
    signs = {1.0: node.attribute("detect_positive"), -1.0: node.attribute("detect_negative")}
    wanted = [literal(s * np.inf, node.type()) for s, detected in signs.items() if detected]

    def test(x: Any) -> Any:
        if len(wanted) == 2:
            return equal(absolute(x), wanted[0])
        return equal(x, wanted[0]) if wanted else (equal(x, x) & unequal(x, x))

    return on_elements(node, test)


# --- several inputs of one kind -------------------------------------------------------------------


def several(names: str, f: Callable[[Any, Any], Any], after: Callable[[Any, int], Any]) -> None:
    """Registers an operator that folds the elements of any number of inputs."""

    @operator(names, orders="any")
    def build(node: Node) -> Body:
        count = len(node.operands)

        def fold(*parts: Any) -> Any:
            found = parts[0]
            for one in parts[1:]:
                found = f(found, one)
            return after(found, count)

        return on_elements(node, fold)


several("Sum", lambda x, y: x + y, lambda x, _: x)
several("Mean", lambda x, y: x + y, lambda x, count: x / count)
several("Max", larger, lambda x, _: x)
several("Min", smaller, lambda x, _: x)


@operator("Where", orders="any")
def where(node: Node) -> Body:
    """Chooses elements by a condition."""
    return on_elements(node, select)


@operator("PRelu")
def prelu(node: Node) -> Body:
    """A slope of its own for negative elements."""
    zero, rank = literal(0, node.type()), len(node.shape())

    def sloped(x: Any, slope: Any) -> Any:
        return select(x < zero, slope * x, x)

    if node.version < 7 and node.shape(1) != (1,):  # a slope for each channel
        return lambda x, slope: aligned_map(sloped, [(x, range(rank)), (slope, [1])], rank)
    return on_elements(node, sloped)


@operator("Clip", orders="any")
def clip(node: Node) -> Body:
    """Elements limited to an interval, whose bounds are inputs or (before opset 11) attributes."""
    t = node.type()
    low, high = node.attribute("min"), node.attribute("max")
    if node.version >= 11:
        low = high = None
    has_low, has_high = node.has(1), node.has(2)
    shapes = [o.shape for o in node.operands[1:] if o is not None]
    for shape in shapes:
        if np.prod(shape) != 1:
            decline(f"a bound of shape {[*shape]} is not expressed, one number is")

    def bounded(x: Any, bounds: list[Any]) -> Any:
        bounds = list(bounds)
        if has_low or low is not None:
            x = larger(x, bounds.pop(0) if has_low else literal(low, t))
        if has_high or high is not None:
            x = smaller(x, bounds.pop(0) if has_high else literal(high, t))
        return x

    def body(x: Any, *bounds: Any) -> Any:
        numbers = [reshaped(one, s, ()) for one, s in zip(bounds, shapes, strict=True)]
        return each(len(node.shape()), lambda e: bounded(e, numbers))(x)

    return body


# --- powers and remainders ------------------------------------------------------------------------

MOST_PRODUCTS = 8
"""The largest constant exponent that is expanded into products."""


@operator("Pow", if_constant={1: lambda node: sole_exponent(node) is not None}, orders="any")
def power_of(node: Node) -> Body:
    """A power; a small whole exponent that is constant becomes products, and 0.5 the root."""
    t, exponent = node.type(), sole_exponent(node)
    inner = t if t in FLOATS else F64
    if t not in FLOATS and SCALAR_BYTES[t.name] > 4:
        decline(f"the language has powers of floats only, and f64 cannot represent all {t}")

    def raised(x: Any, y: Any) -> Any:
        return to(t)(power(to(inner)(x), to(inner)(y)))

    def fixed(x: Any) -> Any:
        if exponent == 0.5 and t in FLOATS:  # of -inf, the power is inf and the root NaN
            return select(equal(x, least(t)), greatest(t), sqrt(x))
        if exponent in range(1, MOST_PRODUCTS + 1):
            return x ** int(exponent)
        return raised(x, literal(exponent, inner))

    if exponent is None:
        return on_elements(node, raised)
    return lambda x: broadcast(fixed, [(x, node.shape())], node.result_shape)


def sole_exponent(node: Node) -> Any:
    """The constant exponent of all elements; None if there is no such number."""
    found = node.operand(1)
    if found.value is None or found.value.size != 1 or len(found.shape) > len(node.shape()):
        return None
    return found.value.item()


@operator("Mod", orders="any")
def mod(node: Node) -> Body:
    """The remainder: of C (`fmod`) with the sign of x, or with the sign of y."""
    t = node.type()
    if node.attribute("fmod") or t.name.startswith("u"):
        return on_elements(node, lambda x, y: x % y)
    zero = literal(0, t)

    def positive(x: Any, y: Any) -> Any:
        rest = x % y
        return select(unequal(rest, zero) & unequal(rest < zero, y < zero), rest + y, rest)

    return on_elements(node, positive)


# --- activations with attributes ------------------------------------------------------------------


def activation(name: str, f: Callable[[Any, Callable[[str], Any], ScalarType], Any]) -> None:
    """Registers an activation of x, its attributes as numbers of its type, and this type."""

    @operator(name, orders="any")
    def build(node: Node) -> Body:
        node.float_only()
        t = node.type()
        return on_elements(
            node, lambda x: f(x, lambda attribute: literal(node.attribute(attribute), t), t)
        )


def scaled_exponential(x: Any, scale: Any, t: ScalarType) -> Any:
    """`scale * (exp(x) - 1)` for negative x, else x."""
    return select(x < literal(0, t), scale * (exp(x) - 1), x)


activation("LeakyRelu", lambda x, a, t: select(x < literal(0, t), a("alpha") * x, x))
activation("Elu", lambda x, a, t: scaled_exponential(x, a("alpha"), t))
activation("Selu", lambda x, a, t: a("gamma") * scaled_exponential(x, a("alpha"), t))
activation(
    "Celu",
    lambda x, a, t: select(x < literal(0, t), a("alpha") * (exp(x / a("alpha")) - 1), x),
)
activation("ThresholdedRelu", lambda x, a, t: select(a("alpha") < x, x, literal(0, t)))
activation(
    "HardSigmoid",
    lambda x, a, t: smaller(larger(a("alpha") * x + a("beta"), literal(0, t)), literal(1, t)),
)
activation(
    "HardSwish",
    lambda x, _, t: x * smaller(larger(x / 6 + 0.5, literal(0, t)), literal(1, t)),
)
activation("Swish", lambda x, a, _: x / (exp(-(a("alpha") * x)) + 1))
activation(
    "Shrink",
    lambda x, a, t: select(
        x < -a("lambd"),
        x + a("bias"),
        select(a("lambd") < x, x - a("bias"), literal(0, t)),
    ),
)


@operator("Gelu", orders="any")
def gelu(node: Node) -> Body:
    """`x * (1 + erf(x / sqrt(2))) / 2`, or the approximation by `tanh`."""
    node.float_only()
    if node.attribute("approximate") != "tanh":
        root = literal(np.sqrt(2), node.type())
        return on_elements(node, lambda x: x * 0.5 * (1 + erf(x / root)))
    outer, inner = literal(np.sqrt(2 / np.pi), node.type()), literal(0.044715, node.type())
    return on_elements(node, lambda x: x * 0.5 * (1 + tanh(outer * (x + inner * x * x * x))))


# --- conversions ----------------------------------------------------------------------------------


@operator(
    "Cast",
    "CastLike",
    if_constant={1: lambda _: True},
    note="among the scalar types of the language",
    orders="any",
)
def cast(node: Node) -> Body:
    """A conversion of elements. Of the second input of CastLike, only the type matters."""
    return lambda x, *_: each(len(node.shape()), to(node.result_type))(x)
