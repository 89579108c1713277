"""Operators on quantised numbers: integers that stand for `scale * (integer - zero point)`.

Products of differences from the zero points are summed in i32, exactly. A number is quantised as in
QuantizeLinear: divided by the scale, rounded to nearest with ties to even, the zero point added,
and saturated to the integer type. A sum becomes an f32 first and is multiplied by the product of
its operands' scales over that of the result, as in ONNX Runtime. ONNX's reference evaluator adds
the zero point before it rounds, so ties differ by one there where the zero point is odd.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from liftpy.ir.expr import Expr
from liftpy.ir.types import F32, F64, I32, SCALARS, ScalarType
from liftpy.language.embedded.lang import (
    convert,
    equal,
    join,
    larger,
    map,  # noqa: A004
    maximum,
    minimum,
    reduce,
    round,  # noqa: A004
    select,
    smaller,
)
from liftpy.networks.operators.convolutions import convolution_with
from liftpy.networks.operators.layouts import DERIVED, along, broadcast, reshaped, to
from liftpy.networks.operators.matrices import product_of
from liftpy.networks.operators.node import Body, Node, Shape, decline, literal, operator

repeat, take = DERIVED["repeat"], DERIVED["take"]

Array: TypeAlias = tuple[Any, Shape]
"""An expression, and its shape."""


def checked_scale(node: Node, position: int) -> None:
    """Declines a node with a constant scale that is not a finite number above 0."""
    scale = node.operand(position)
    if scale.value is None:
        return
    wrong = [v for v in np.ravel(scale.value) if not (np.isfinite(v) and v > 0)]
    if wrong:
        decline(f"{wrong[0]} is no scale, which is a finite number above 0", scale.name)


def saturated(whole: Any, zero: Any | None, t: ScalarType) -> Any:
    """A whole number as a float, plus a zero point, as the nearest value of an integer type."""
    return convert(whole if zero is None else whole + to(F32)(zero), t)


def placed(node: Node, position: int, shape: Shape, axis: int, block: int = 0) -> Any:
    """A function from a scale or zero point to an array that broadcasts to a shape, and its shape.

    The operand has one number for all elements, or one for each index of an axis, or with `block`
    one for as many consecutive elements along the axis.
    """
    own = node.shape(position)
    if block:
        count = shape[axis]
        if own != (*shape[:axis], -(-count // block), *shape[axis + 1 :]):
            decline(f"a scale of shape {own} does not fit blocks of {block}", "block_size")

        def blocks(s: Any) -> Any:
            return take(count)(s >> map(repeat(block)) >> join())

        return lambda x: (along(axis, blocks)(x), shape)
    wanted = (1,) * len(shape)
    if own not in {(), (1,)}:
        if own != (shape[axis],):
            decline(f"{own} is no shape of a scale for axis {axis} of {shape}", "axis")
        wanted = (*(n if k == axis else 1 for k, n in enumerate(shape)),)
    return lambda x: (reshaped(x, own, wanted), wanted)


def parameters(node: Node, scale: int, shape: Shape) -> tuple[Any, Any]:
    """`placed` for the scale and the zero point after it, by the attributes of a node."""
    checked_scale(node, scale)
    axis = node.axis(default=1, rank=len(shape)) if shape else 0
    block = int(node.attribute("block_size") or 0)
    zero = placed(node, scale + 1, shape, axis, block) if node.has(scale + 1) else None
    return placed(node, scale, shape, axis, block), zero


@operator("QuantizeLinear", note="to integers of 8 and 16 bits")
def quantize(node: Node) -> Body:
    """`saturate(round(x / scale) + zero)`; the quotient has the type of x, or `precision`."""
    shape, t, given = node.shape(), node.result_type, node.type()
    scales, zeros = parameters(node, 1, shape)
    computed = F32 if given == I32 else given
    if node.attribute("precision"):
        computed = precision_of(node)

    def one(x: Any, s: Any, z: Any = None) -> Any:
        return saturated(to(F32)(round(to(computed)(x) / to(computed)(s))), z, t)

    def body(x: Expr, s: Expr, z: Expr | None = None) -> Expr:
        more = [] if z is None else [zeros(z)]
        return broadcast(one, [(x, shape), scales(s), *more], shape)

    return body


def precision_of(node: Node) -> ScalarType:
    """The floating-point type of the attribute `precision`."""
    number = int(node.attribute("precision"))
    names = {1: "f32", 10: "f16", 11: "f64"}  # numbers of onnx.TensorProto
    if number not in names:
        decline(f"quotients in ONNX's type {number} are not expressed", "precision")
    return SCALARS[names[number]]


@operator("DequantizeLinear", note="from integers")
def dequantize(node: Node) -> Body:
    """`(x - zero) * scale`, computed in f32, or in f64 if that is the type of the result."""
    shape, t = node.shape(), node.result_type
    scales, zeros = parameters(node, 1, shape)
    computed = F64 if t == F64 else F32

    def one(x: Any, s: Any, z: Any = None) -> Any:
        wide = to(computed)(x)
        return to(t)((wide if z is None else wide - to(computed)(z)) * to(computed)(s))

    def body(x: Expr, s: Expr, z: Expr | None = None) -> Expr:
        more = [] if z is None else [zeros(z)]
        return broadcast(one, [(x, shape), scales(s), *more], shape)

    return body


@operator("DynamicQuantizeLinear")
def quantize_dynamically(node: Node) -> Body:
    """Quantised to u8, with the scale and zero point for which 0 and the ends of x are exact."""
    shape, t = node.shape(), node.result_type
    count = int(np.prod(shape))
    nothing, most = literal(0, F32), literal(255, F32)

    def body(x: Expr) -> tuple[Expr, ...]:
        flat = reshaped(x, shape, (count,))
        low, high = flat >> reduce(minimum, nothing), flat >> reduce(maximum, nothing)
        scale = select(equal(low, high), literal(1, F32), high - low) / most
        zero = round(smaller(larger(nothing - low / scale, nothing), most))
        quotients = broadcast(lambda x: convert(round(x / scale) + zero, t), [(x, shape)], shape)
        return quotients, scale, convert(zero, t)

    return body


# --- products -------------------------------------------------------------------------------------


def differences(x: Any, shape: Shape, zero: Array | None) -> Any:
    """The elements of an array as i32, less a zero point that broadcasts to its shape."""
    if zero is None:
        return broadcast(to(I32), [(x, shape)], shape)
    return broadcast(lambda x, z: to(I32)(x) - to(I32)(z), [(x, shape), zero], shape)


def of_rows(x: Any, own: Shape) -> Array:
    """A number for each row of the left operand of a product, or one for all."""
    return (x, own) if len(own) != 1 else (reshaped(x, own, (*own, 1)), (*own, 1))


@operator("MatMulInteger")
def matmul_integer(node: Node) -> Body:
    """The product of the differences from the zero points, in i32."""
    left, right = node.shape(0), node.shape(1)
    product = product_of(left, right, node.result_shape)

    def body(a: Expr, b: Expr, *zeros: Expr) -> Expr:
        given = iter(zeros)
        of_a = of_rows(next(given), node.shape(2)) if node.has(2) else None
        of_b = (next(given), node.shape(3)) if node.has(3) else None
        return product(differences(a, left, of_a), differences(b, right, of_b))

    return body


@operator("QLinearMatMul")
def qlinear_matmul(node: Node) -> Body:
    """The product of quantised matrices, quantised; scales may differ for rows and columns."""
    left, right, result = node.shape(0), node.shape(3), node.result_shape
    for position in (1, 4, 6):
        checked_scale(node, position)
    product, t = product_of(left, right, result), node.result_type

    def one(total: Any, s: Any, r: Any, q: Any, z: Any) -> Any:
        factor = to(F32)(s) * to(F32)(r) / to(F32)(q)
        return saturated(round(to(F32)(total) * factor), z, t)

    def body(a: Expr, s: Expr, p: Expr, b: Expr, r: Expr, o: Expr, q: Expr, z: Expr) -> Expr:
        shapes = [node.shape(k) for k in range(8)]
        totals = product(
            differences(a, left, of_rows(p, shapes[2])), differences(b, right, (o, shapes[5]))
        )
        scales = [of_rows(s, shapes[1]), (r, shapes[4]), of_rows(q, shapes[6])]
        return broadcast(one, [(totals, result), *scales, of_rows(z, shapes[7])], result)

    return body


def of_kernels(node: Node, position: int, x: Any, rank: int) -> Array:
    """A number for each kernel, or one for all, for arrays of kernels of a rank."""
    own = node.shape(position)
    wanted = (*own[:1], *(1,) * (rank - 1)) if own else (1,) * rank
    return reshaped(x, own, wanted), wanted


@operator("ConvInteger", note="1 and 2 spatial dimensions")
def conv_integer(node: Node) -> Body:
    """The convolution of the differences from the zero points, in i32; padding stands for 0."""
    shape, kernels = node.shape(0), node.shape(1)
    convolved = convolution_with(node, kernels)

    def body(x: Expr, w: Expr, *zeros: Expr) -> Expr:
        given = iter(zeros)
        of_x = placed(node, 2, shape, 0)(next(given)) if node.has(2) else None
        of_w = of_kernels(node, 3, next(given), len(kernels)) if node.has(3) else None
        return convolved(differences(x, shape, of_x), differences(w, kernels, of_w))

    return body


@operator("QLinearConv", note="1 and 2 spatial dimensions")
def qlinear_conv(node: Node) -> Body:
    """The convolution of quantised arrays, quantised; scales may differ for kernels."""
    shape, kernels, result = node.shape(0), node.shape(3), node.result_shape
    for position in (1, 4, 6):
        checked_scale(node, position)
    convolved, t = convolution_with(node, kernels), node.result_type

    def one(total: Any, s: Any, r: Any, q: Any, z: Any) -> Any:
        return saturated(round(to(F32)(total) * (s * r / q)), z, t)

    def body(x: Expr, s: Expr, p: Expr, w: Expr, r: Expr, *others: Expr) -> Expr:
        o, q, z, *bias = others
        of_x, of_w = placed(node, 2, shape, 0)(p), of_kernels(node, 5, o, len(kernels))
        wide = differences(x, shape, of_x), differences(w, kernels, of_w)
        totals = convolved(*wide, *bias)
        scales = ((1, s), (4, r), (6, q), (7, z))
        placed_scales = [placed(node, k, result, 1)(v) for k, v in scales]
        return broadcast(one, [(totals, result), *placed_scales], result)

    return body
