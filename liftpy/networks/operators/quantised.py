"""Operators on quantised numbers: integers that stand for `scale * (integer - zero point)`.

Products of differences from the zero points are summed in i32, exactly. A number is quantised as in
QuantizeLinear: divided by the scale, rounded to nearest with ties to even, the zero point added,
and saturated to the integer type. A sum becomes an f32 first and is multiplied by the product of
its operands' scales over that of the result, as in ONNX Runtime. ONNX's reference evaluator adds
the zero point before it rounds, so ties differ by one there where the zero point is odd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from liftpy.ir.expr import Expr
from liftpy.ir.types import F32, F64, I32, SCALARS, ScalarType
from liftpy.language.embedded.lang import (
    add,
    convert,
    equal,
    join,
    larger,
    let,
    map,  # noqa: A004
    maximum,
    minimum,
    reduce,
    round,  # noqa: A004
    select,
    smaller,
    zip,  # noqa: A004
)
from liftpy.networks.operators.convolutions import convolution_with, windows_of
from liftpy.networks.operators.layouts import DERIVED, along, broadcast, reshaped, to
from liftpy.networks.operators.matrices import product_of
from liftpy.networks.operators.node import (
    REGISTRY,
    Body,
    Node,
    Shape,
    decline,
    literal,
    operator,
)
from liftpy.workloads.convolution import Terms, summed

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


def sole_number(node: Node, position: int) -> Any:
    """The constant number of an input of one number; 0 if it is absent, None if not constant."""
    if not node.has(position):
        return 0
    value = node.operand(position).value
    return value.item() if value is not None and value.size == 1 else None


def has_padding(node: Node, kernels: Shape) -> bool:
    """Whether a convolution with kernels of a shape reads elements outside of the image."""
    axes = windows_of(node, node.attribute("kernel_shape") or kernels[2:])
    return any(axis.before or axis.after for axis in axes)


def wide_product(x: Any, w: Any) -> Any:
    """A product in i32."""
    return to(I32)(x) * to(I32)(w)


@dataclass(frozen=True)
class IntegerConvolution:
    """The convolution of differences from the zero points of a node.

    `weights`, `zero` and `zeros` are the positions of the weights and of the zero points of the
    image and of the weights. Padding stands for 0. The image is read as it is stored:

        sum((x - zero) * w) = sum(x * w) - zero * sum(w)

    where x is padded with `zero`. This also holds in i32, whose arithmetic is modulo 2^32. The
    second sum depends only on the weights, so it is computed once. The constant of `pad` is a part
    of a program, so a constant zero point of a padded image is, too. If the zero point of a padded
    image is not constant, the differences are padded with 0 instead.
    """

    weights: int
    zero: int
    zeros: int

    def kernels(self, node: Node) -> Shape:
        """The shape of the weights."""
        return node.shape(self.weights)

    def zero_inside(self, node: Node) -> bool:
        """Whether the zero point of the image is a part of the program, if it is constant."""
        return sole_number(node, self.zero) == 0 or has_padding(node, self.kernels(node))

    def zeros_inside(self, node: Node) -> bool:
        """Whether the constant zero points of the weights are all 0: then the program has none.

        Otherwise they are parameters.
        """
        return not np.any(node.operand(self.zeros).value)

    @property
    def if_constant(self) -> dict[int, Callable[[Node], bool]]:
        """The zero points that are no parameters, as `operator` takes them."""
        return {self.zero: self.zero_inside, self.zeros: self.zeros_inside}

    def of(
        self,
        node: Node,
        arrays: Sequence[Any],
        scales: Expr | None = None,
        finish: Callable[[Expr, Any], Expr] = lambda total, _: total,
    ) -> Expr:
        """`finish` of each sum in i32, and of the scale of its kernel if there are `scales`.

        `arrays` are the image, its zero point, the weights, theirs, and the biases; None for those
        that are no parameters.
        """
        x, zero, w, zeros, b = arrays
        kernels, edge = self.kernels(node), 0
        if zeros is not None:
            w = differences(w, kernels, of_kernels(node, self.zeros, zeros, len(kernels)))
        if zero is None:
            edge = sole_number(node, self.zero)
            b = shifted(w, kernels, literal(edge, I32), b) if edge else b
        elif has_padding(node, kernels):
            x = differences(x, node.operand(0).stored_shape, (zero, node.shape(self.zero)))
        else:
            b = shifted(w, kernels, one_of(node, self.zero, zero), b)

        def total(products: Expr, bias: Expr | None, scale: Expr | None) -> Expr:
            return finish(summed(products, bias, None), scale)

        return convolution_with(node, kernels, Terms(wide_product, total, edge))(x, w, b, scales)


def one_of(node: Node, position: int, x: Expr) -> Expr:
    """The number of an input that is one number; Declined if it has several."""
    own = node.shape(position)
    if own not in {(), (1,)}:
        decline(f"{own} is no shape of one number", node.operand(position).name)
    return x[0] if own else x


def shifted(w: Expr, kernels: Shape, zero: Expr, b: Expr | None) -> Expr:
    """The biases minus a number times the sum of each kernel, as one sum."""
    rows = reshaped(w, kernels, (kernels[0], int(np.prod(kernels[1:]))))
    products = map(lambda v: (literal(0, I32) - to(I32)(zero)) * to(I32)(v))
    if b is None:
        return rows >> map(lambda row: row >> products >> reduce(add, literal(0, I32)))
    return zip(rows, b) >> map(lambda row, bias: row >> products >> reduce(add, bias))


def given(node: Node, arrays: Sequence[Expr], count: int) -> list[Any]:
    """The first inputs of a node; None for those that are no parameters of its program."""
    left, entry = iter(arrays), REGISTRY[node.operator]
    absent = (not node.has(k) or entry.inside(node, k) for k in range(count))
    return [None if none else next(left) for none in absent]


CONV_INTEGER = IntegerConvolution(weights=1, zero=2, zeros=3)
QLINEAR_CONV = IntegerConvolution(weights=3, zero=2, zeros=5)


@operator(
    "ConvInteger",
    if_constant=CONV_INTEGER.if_constant,
    note="1 and 2 spatial dimensions",
    orders="last",
)
def conv_integer(node: Node) -> Body:
    """The convolution of the differences from the zero points, in i32; padding stands for 0."""

    def body(*arrays: Expr) -> Expr:
        x, w, zero, zeros = given(node, arrays, 4)
        return CONV_INTEGER.of(node, (x, zero, w, zeros, None))

    return body


@operator(
    "QLinearConv",
    if_constant=QLINEAR_CONV.if_constant,
    note="1 and 2 spatial dimensions",
    orders="last",
)
def qlinear_conv(node: Node) -> Body:
    """The convolution of quantised arrays, quantised; scales may differ for kernels."""
    t, scales = node.result_type, (1, 4, 6)
    alike = node.shape(4) in {(), (1,)}
    constant = all(node.operand(position).value is not None for position in scales)
    for position in scales:
        checked_scale(node, position)

    def body(*arrays: Expr) -> Expr:
        x, s, p, w, r, o, q, z, b = given(node, arrays, 9)
        s, q, z = (one_of(node, k, one) for k, one in ((1, s), (6, q), (7, z)))

        def factor(scale: Any) -> Any:
            return s * scale / q

        def convolved(factors: Any | None) -> Expr:
            def finish(total: Any, own: Any) -> Any:
                times = factor(one_of(node, 4, r)) if factors is None else own
                return saturated(round(to(F32)(total) * times), z, t)

            return QLINEAR_CONV.of(node, (x, p, w, o, b), factors, finish)

        if alike:
            return convolved(None)
        factors = r >> map(factor)
        # A let of constants is a stage of the prepare phase.
        return factors >> let(convolved) if constant else convolved(factors)

    return body
