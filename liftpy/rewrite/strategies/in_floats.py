"""Sums of products of small integers in f32, as far as these are exact."""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.types import I32
from liftpy.ir.walk import at
from liftpy.rewrite.strategies.shapes import outer_reductions
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    choose,
    normalize,
    rule,
    seq,
)


def sums_in_f32(strip: NatLike) -> Strategy:
    """Compute each sum of an expression in f32, whole if it is exact, else in parts.

    The parts are the rows of a sum over a join, or strips of `strip` products; their sums are added
    in i32.
    """
    exact = rule("sum_in_f32", {"g": (1,)})
    strips = seq(rule("reduce_strip", m=strip), at_path((2,), exact))

    def one(expr: Expr) -> Result:
        return choose(exact, seq(rule("reduce_of_join"), FLAT, at_path((2,), one)), strips)(expr)

    def run(expr: Expr) -> Result:
        paths = outer_reductions(expr)
        if not paths or any(at(expr, path).type != I32 for path in paths):
            return Failure("sums_in_f32", "no sums of i32 are here")
        return seq(*(at_path(path, seq(FLAT, one)) for path in paths))(expr)

    return run


FLAT = normalize(choose(rule("reduce_map_fusion"), rule("zip_of_joins")))
"""Fuses maps into the sums that read them, and moves joins out of zips."""
