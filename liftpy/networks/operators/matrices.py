"""Products of matrices: MatMul with batches, Gemm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liftpy.ir.expr import Expr
from liftpy.ir.types import FLOATS, ScalarType, integer_range
from liftpy.language.embedded.lang import (
    add,
    map,  # noqa: A004
    mul,
    reduce,
    transpose,
    zip,  # noqa: A004
)
from liftpy.networks.operators.layouts import aligned_map, broadcast, each, narrowed, reshaped
from liftpy.networks.operators.node import Body, Node, Shape, decline, literal, operator
from liftpy.workloads.linear import inner, times


@operator("MatMul")
def matmul(node: Node) -> Body:
    """The product of the last two dimensions, for each pair of the broadcast ones before them.

    A vector on the left is a row, one on the right a column.
    """
    return product_of(node.shape(0), node.shape(1), node.result_shape)


def product_of(left: Shape, right: Shape, result: Shape) -> Callable[..., Expr]:
    """`matmul` of arrays of two shapes, as a function of these."""
    batch = result[: len(result) - (len(left) > 1) - (len(right) > 1)]

    def product(a: Any, b: Any) -> Any:
        if len(left) == 1 and len(right) == 1:
            return inner(a, b)
        if len(left) == 1:
            return b >> transpose() >> map(lambda column: inner(a, column))
        if len(right) == 1:
            return a >> map(lambda row: inner(row, b))
        return a >> times(b)

    def body(a: Expr, b: Expr) -> Expr:
        if not batch:
            return product(a, b)
        if batch[0] == 1 and len(batch) == 1:  # one product needs no map over it
            small = [reshaped(x, s, s[-2:]) for x, s in ((a, left), (b, right))]
            return reshaped(product(*small), result[1:], result)
        operands = [narrowed(x, s[:-2], batch, s[-2:]) for x, s in ((a, left), (b, right))]
        return aligned_map(product, operands, len(batch))

    return body


@operator("Gemm")
def gemm(node: Node) -> Body:
    """`alpha * A' * B' + beta * C`, where A' and B' may be transposed.

    With `alpha` and `beta` 1 and a vector C, its elements are where the sums begin.
    """
    t = node.type()
    alpha, beta = (factor(node, name, t) for name in ("alpha", "beta"))
    columns = node.result_shape[1]

    def body(a: Expr, b: Expr, c: Expr | None = None) -> Expr:
        rows = a >> transpose() if node.attribute("transA") else a
        cols = b if node.attribute("transB") else b >> transpose()
        if c is not None and alpha == beta == 1 and node.shape(2) in {(columns,), (1, columns)}:
            biases = reshaped(c, node.shape(2), (columns,))

            def biased(row: Any) -> Any:
                return zip(cols, biases) >> map(
                    lambda column, bias: zip(row, column) >> map(mul) >> reduce(add, bias)
                )

            return rows >> map(biased)
        products = rows >> map(lambda row: cols >> map(lambda column: inner(row, column)))
        if c is None or not beta:
            scaled = (lambda x: x) if alpha == 1 else (lambda x: literal(alpha, t) * x)
            return products if alpha == 1 else each(2, scaled)(products)

        def combined(x: Any, y: Any) -> Any:
            x = x if alpha == 1 else literal(alpha, t) * x
            return x + (y if beta == 1 else literal(beta, t) * y)

        shape: Shape = node.result_shape
        return broadcast(combined, [(products, shape), (c, node.shape(2))], shape)

    return body


def factor(node: Node, attribute: str, t: ScalarType) -> float:
    """A factor of a product of type `t`. Declined if this is a type of integers without it."""
    value = float(node.attribute(attribute))
    if t not in FLOATS:
        least, greatest = integer_range(t)
        if not value.is_integer() or not least <= value <= greatest:
            decline(f"{t} cannot represent {value:g}", attribute)
    return value
