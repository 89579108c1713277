"""A one-entry cache: the common beginning of a family's skeletons is derived once."""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.rewrite.strategy import Result, Strategy


def remembered(strategy: Strategy) -> Strategy:
    """Cache the last result of a strategy, and return it if the next expression is the same.

    It must be the same object, not an equal one: `0.0` and `-0.0` are equal, but not the same.
    """
    last: tuple[Expr, Result] | None = None

    def run(expr: Expr) -> Result:
        nonlocal last
        known = last
        if known is None or known[0] is not expr:
            known = last = (expr, strategy(expr))
        return known[1]

    return run
