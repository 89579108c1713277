"""Sums of products as dot products: some devices have an instruction for four 8-bit integers.

The last dimension of a reduction is cut into vectors, and the products of each vector are added
first. Integers are added modulo 2^32, so this does not change the sum.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.nat import NatLike
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import I8, I32, U8
from liftpy.rewrite.reals import inside
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.shapes import body_of, is_reduce, outer_reductions
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    innermost,
    rule,
    seq,
    where,
)


def sums_of_dots(width: NatLike) -> Strategy:
    """Add the products of 8-bit integers of each reduction in vectors of `width` lanes.

    A reduction over a join of rows becomes nested reductions, of which the innermost one is cut.
    """
    vectors = seq(
        rule("reduce_map_fission", {"g": (1,)}),
        rule("vectorize_reduce", v=width),
        at_path((1,), seq(at_path((0,), rule("as_vector_of_map")), rule("map_fusion"))),
        rule("reduce_map_fusion"),
    )
    one = seq(nest_reductions(), innermost(where(adds_products, vectors, "sum of products")))

    def run(expr: Expr) -> Result:
        paths = outer_reductions(expr)
        if not paths:
            return Failure("sums_of_dots", "nothing is reduced")
        return seq(*(at_path(path, one) for path in paths))(expr)

    return run


def adds_products(expr: Expr) -> bool:
    """Whether an expression is a reduction whose steps add products of 8-bit integers."""
    return is_reduce(expr) and adds_a_product(body_of(expr))


def adds_a_product(expr: Expr) -> bool:
    """Whether an expression adds the product of two 8-bit integers to another value."""
    match expr:
        case FunCall(UserFun() | Lambda() as f, args):
            return adds_a_product(inside(f, args))
        case FunCall(ScalarOp("+"), (_, product)):
            return is_product(product)
        case _:
            return False


def is_product(expr: Expr) -> bool:
    """Whether an expression is the product of two 8-bit integers in i32."""
    match expr:
        case FunCall(UserFun() | Lambda() as f, args):
            return is_product(inside(f, args))
        case FunCall(ScalarOp("*"), (one, two)):
            return is_converted(one) and is_converted(two)
        case _:
            return False


def is_converted(expr: Expr) -> bool:
    """Whether an expression is an 8-bit integer that is converted to i32."""
    match expr:
        case FunCall(UserFun() | Lambda() as f, args):
            return is_converted(inside(f, args))
        case FunCall(ScalarOp(I32.name), (x,)):
            return x.type in (I8, U8)
        case _:
            return False
