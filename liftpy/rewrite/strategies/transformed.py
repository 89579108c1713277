"""Correlations with fewer products: a map over windows as products of transformed tiles.

From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(xs))`, in which `f` folds a window with
each of some kernels, to tiles whose correlations a rule computes by F(m, r) (rules/correlation.py).
The result is in three steps, each named by a `let`, so that each becomes a stage: `inputs` and
`filters` (transformed), and their `products`, which the result transforms back. If m does not
divide the number of windows, the array is padded further and the additional results are cropped.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import nat
from liftpy.ir.types import ArrayType
from liftpy.rewrite.strategies.epilogue import fused_inward
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.shapes import is_let
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategies.stage import (
    CROPPED,
    extend,
    is_tile_map,
    source,
    split_off,
    tile_windows,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    identity,
    outermost,
    rule,
    seq,
    where,
)

NAMED = ("inputs", "filters", "products")
"""The values between the steps."""


def winograd(m: int, r: int) -> Strategy:
    """Compute the correlations with windows of r x r points by F(m, r) in both dimensions."""

    def run(expr: Expr) -> Result:
        rows = expr.type
        columns = rows.element if isinstance(rows, ArrayType) else None
        if not isinstance(rows, ArrayType) or not isinstance(columns, ArrayType):
            return Failure("winograd", f"{rows} has no rows of results")
        counts = rows.length.constant, columns.length.constant
        if None in counts:
            return Failure("winograd", "the number of windows is open")
        down, right = (-count % m for count in counts if count is not None)
        tiled = seq(
            tile_windows(nat(m + r - 1)),
            outermost(
                where(is_tile_map, seq(split_off(0), source(rule(f"correlation_{m}_{r}"))), "tiles")
            ),
        )
        extended = seq(extend(nat(down), nat(right), padded=False), at_path(CROPPED, tiled))
        return seq(
            attempt(fused_inward),
            attempt(rule("map_fusion")),
            nest_reductions(),
            extended if down or right else tiled,
            rule("let_introduction", {"v": CROPPED}) if down or right else identity,
            named_outside,
        )(expr)

    return run


def named_outside(expr: Expr) -> Result:
    """Move the lets of the steps out of the layouts around them."""
    last = (1,) * len(NAMED)
    if is_let(expr):  # the results that are cropped; they stay a value of their own
        introduced, rest = at_path((0,), named_outside), identity
    else:
        path = next((p for p, e in outside_functions(expr) if is_let(e)), ())
        if not path:
            return Success(expr)
        introduced, rest = rule("let_introduction", {"v": path}), at_path(last, rule("let_inline"))
    outwards = (at_path(last[:k], rule("let_of_let")) for k in range(len(last)))
    return seq(introduced, *outwards, rest)(expr)
