"""PyTorch's operators on elements, with its conversions of types."""

from __future__ import annotations

import math

import numpy as np

from liftpy.pytorch.operators.call import One, Operand, OperatorCall, Translation, Untranslated


def unary(operator: str) -> One:
    """An operator on elements of the type of its result."""
    return lambda call: call.node(operator, call.value(call["self"], call.dtype))


def binary(operator: str) -> One:
    """An operator on pairs of elements of the type of its result; `alpha` times the second."""

    def translated(call: OperatorCall) -> str:
        first, second = (call.value(call[name], call.dtype) for name in ("self", "other"))
        alpha = call.given.get("alpha", 1)
        if alpha != 1:
            second = call.node("Mul", second, call.number(alpha, call.dtype))
        return call.node(operator, first, second)

    return translated


def comparison(operator: str) -> One:
    """A comparison of elements in their common type."""
    return lambda call: call.node(
        operator, *(call.value(call[name], call.common) for name in ("self", "other"))
    )


def unequal(call: OperatorCall) -> str:
    """A comparison that ONNX has no node for."""
    return call.node("Not", comparison("Equal")(call))


def logical(operator: str, *names: str) -> One:
    """An operator on truth values: numbers are true unless they are 0."""
    boolean = np.dtype(np.bool_)
    return lambda call: call.node(operator, *(call.value(call[name], boolean) for name in names))


def bitwise(operator: str, *names: str) -> One:
    """A bitwise operator, of truth values or of integers."""

    def translated(call: OperatorCall) -> str:
        if call.dtype == np.bool_:
            return logical(operator, *names)(call)
        values = (call.value(call[name], call.dtype) for name in names)
        return call.node(f"Bitwise{operator}", *values)

    return translated


def tested(operator: str) -> One:
    """A test of each element in its own type."""
    return lambda call: call.node(operator, call["self"].name)


def reversed_subtraction(call: OperatorCall) -> str:
    """`rsub`: the second operand minus the first."""
    if call.given.get("alpha", 1) != 1:
        raise Untranslated("a factor of the second operand is not expressed")
    return call.node("Sub", *(call.value(call[name], call.dtype) for name in ("other", "self")))


def power(call: OperatorCall) -> str:
    """`pow`, with either operand a number; a square is a product."""
    base, exponent = call["self"], call["exponent"]
    if exponent == 2 and isinstance(base, Operand):
        name = call.value(base, call.dtype)
        return call.node("Mul", name, name)
    return call.node("Pow", call.value(base, call.dtype), call.value(exponent, call.dtype))


def inverse_root(call: OperatorCall) -> str:
    """`rsqrt`."""
    return call.node("Reciprocal", call.node("Sqrt", call.value(call["self"], call.dtype)))


def clipped(low: str | None, high: str | None) -> One:
    """The operator Clip between two arguments, each of which may be missing."""

    def translated(call: OperatorCall) -> str:
        found = call.value(call["self"], call.dtype)
        for operator, name in (("Max", low), ("Min", high)):
            bound = call.given.get(name) if name is not None else None
            if bound is not None:
                found = call.node(operator, found, call.value(bound, call.dtype))
        return found if found != call["self"].name else call.node("Identity", found)

    return translated


def where(call: OperatorCall) -> str:
    """One of two values by a condition."""
    parts = (call.value(call[name], call.dtype) for name in ("self", "other"))
    return call.node("Where", call.value(call["condition"], np.dtype(np.bool_)), *parts)


def elu(call: OperatorCall) -> str:
    """ELU; SELU and CELU have other scales."""
    if call["scale"] != 1 or call["input_scale"] != 1:
        raise Untranslated("scales of ELU other than 1 are not expressed")
    return call.node("Elu", call["self"].name, alpha=float(call["alpha"]))


def gelu(call: OperatorCall) -> str:
    """GELU, exact or with `tanh`."""
    return call.node("Gelu", call["self"].name, approximate=call["approximate"])


def softplus(call: OperatorCall) -> str:
    """Softplus; PyTorch returns x above a threshold t, an error of less than exp(-t)."""
    if call["beta"] != 1 or math.exp(-call["threshold"]) > 1e-8:
        raise Untranslated("softplus is expressed with beta 1 and a threshold of at least 19")
    return call.node("Softplus", call["self"].name)


def silu(call: OperatorCall) -> str:
    """`x * sigmoid(x)`."""
    return call.node("Mul", call["self"].name, call.node("Sigmoid", call["self"].name))


def leaky_relu(call: OperatorCall) -> str:
    """ReLU with a slope below 0."""
    return call.node("LeakyRelu", call["self"].name, alpha=float(call["negative_slope"]))


def hardsigmoid(call: OperatorCall) -> str:
    """PyTorch's slope is 1/6, ONNX's default another."""
    return call.node("HardSigmoid", call["self"].name, alpha=1 / 6, beta=0.5)


def converted(call: OperatorCall) -> str:
    """A conversion of type; also a copy, if the type is the same."""
    name = call["self"].name
    if call["self"].dtype == call.dtype:
        return call.node("Identity", name)
    if call["self"].dtype.kind == "f" and call.dtype.kind == "u":
        raise Untranslated(f"PyTorch's conversion from floats to {call.dtype} wraps")
    return call.cast(name, call.dtype)


UNARY = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "ceil": "Ceil", "cos": "Cos", "cosh": "Cosh", "erf": "Erf",
    "exp": "Exp", "floor": "Floor", "hardswish": "HardSwish", "log": "Log", "neg": "Neg",
    "reciprocal": "Reciprocal", "relu": "Relu", "round": "Round", "sigmoid": "Sigmoid",
    "sign": "Sign", "sin": "Sin", "sinh": "Sinh", "sqrt": "Sqrt", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
BINARY = {
    "add.Tensor": "Add", "add.Scalar": "Add", "maximum.default": "Max", "minimum.default": "Min",
    "mul.Tensor": "Mul", "mul.Scalar": "Mul", "sub.Tensor": "Sub", "sub.Scalar": "Sub",
}  # fmt: skip
COMPARISONS = {"eq": "Equal", "ge": "GreaterOrEqual", "gt": "Greater", "le": "LessOrEqual"}
COMPARISONS["lt"] = "Less"

TRANSLATIONS: dict[str, Translation] = {
    **{f"aten.{name}.default": unary(operator) for name, operator in UNARY.items()},
    **{f"aten.{name}": binary(operator) for name, operator in BINARY.items()},
    **{
        f"aten.{name}.{kind}": comparison(operator)
        for name, operator in COMPARISONS.items()
        for kind in ("Tensor", "Scalar")
    },
    "aten.ne.Tensor": unequal,
    "aten.ne.Scalar": unequal,
    "aten.logical_and.default": logical("And", "self", "other"),
    "aten.logical_or.default": logical("Or", "self", "other"),
    "aten.logical_xor.default": logical("Xor", "self", "other"),
    "aten.logical_not.default": logical("Not", "self"),
    **{
        f"aten.bitwise_{operator.lower()}.{kind}": bitwise(operator, "self", "other")
        for operator in ("And", "Or", "Xor")
        for kind in ("Tensor", "Scalar")
    },
    "aten.bitwise_not.default": bitwise("Not", "self"),
    "aten.isnan.default": tested("IsNaN"),
    "aten.isinf.default": tested("IsInf"),
    "aten.rsub.Scalar": reversed_subtraction,
    "aten.rsub.Tensor": reversed_subtraction,
    "aten.pow.Tensor_Scalar": power,
    "aten.pow.Tensor_Tensor": power,
    "aten.pow.Scalar": power,
    "aten.div.Tensor": binary("Div"),
    "aten.div.Scalar": binary("Div"),
    "aten.rsqrt.default": inverse_root,
    "aten.clamp.default": clipped("min", "max"),
    "aten.clamp.Tensor": clipped("min", "max"),
    "aten.clamp_min.default": clipped("min", None),
    "aten.clamp_max.default": clipped(None, "max"),
    "aten.hardtanh.default": clipped("min_val", "max_val"),
    "aten.where.self": where,
    "aten.elu.default": elu,
    "aten.gelu.default": gelu,
    "aten.softplus.default": softplus,
    "aten.silu.default": silu,
    "aten.leaky_relu.default": leaky_relu,
    "aten.hardsigmoid.default": hardsigmoid,
    "aten._to_copy.default": converted,
}
