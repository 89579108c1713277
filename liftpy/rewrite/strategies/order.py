"""The order of the loops of a reduction over an array that joins several dimensions."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.primitives import Join, Map
from liftpy.rewrite.strategies.shapes import is_reduce, outer_reductions
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    rule,
    seq,
    where,
)


def innermost_first() -> Strategy:
    """Make the innermost loop of each reduction of an expression its outermost one.

    `reduce` over a join takes the rows one after another; over the join of the transposed array, it
    takes the columns. The operator must be associative and commutative.
    """
    one = where(is_reduce, seq(at_path((1,), joined), exchanged()), "reduction over a join")

    def run(expr: Expr) -> Result:
        paths = outer_reductions(expr)
        if not paths:
            return Failure("innermost_first", "nothing is reduced")
        return seq(*(at_path(path, one) for path in paths))(expr)

    return run


def exchanged() -> Strategy:
    """Reduce the columns of joined rows one after another, instead of the rows."""
    return seq(
        at_path((1, 0), rule("transpose_introduction")),
        rule("reduce_of_joined_transpose"),
        at_path((1, 0), attempt(rule("transpose_of_map_map"))),
    )


def joined(expr: Expr) -> Result:
    """Move the join below the maps and the zip of an array outside them."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Join):
        return Success(expr)
    if isinstance(expr, FunCall) and isinstance(expr.fun, Map):
        return seq(at_path((0,), joined), rule("map_of_join"))(expr)
    return rule("zip_of_joins")(expr)
