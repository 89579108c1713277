"""Strategies for `at` and `reduceByIndex`: the choice `bins`."""

from __future__ import annotations

from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.walk import every_part
from liftpy.primitives import At, ReduceByIndex
from liftpy.rewrite.rules.by_index import OWNED, OWNED_RULES
from liftpy.rewrite.strategy import Result, Strategy, Success, choose, normalize, rule, seq

OWNED_BINS = "owned"
"""The choice `bins`: each bin is computed by its own fold over all pairs."""
IN_PLACE = "in_place"
"""The choice `bins`: one loop over the pairs updates the bins."""
PRIVATIZED = "privatized"
"""The choice `bins`: each chunk of the pairs has its own copy of the bins."""
ATOMIC = "atomic"
"""The choice `bins`: ids run over the pairs, each of which updates its bin atomically."""


def has_bins(expr: Expr) -> bool:
    """Whether an expression reduces by index."""
    return any(
        isinstance(p, FunCall) and isinstance(p.fun, ReduceByIndex) for p in every_part(expr)
    )


def bins_of(expr: Expr) -> tuple[str, ...]:
    """The values of the choice `bins`; none if the expression does not reduce by index.

    The last two apply only to some operators.
    """
    if not has_bins(expr):
        return ()
    result = owned_bins()(expr)
    known = isinstance(result, Success) and any(
        step.rule.startswith(OWNED_RULES) for step in result.steps
    )
    return (*((OWNED_BINS,) if known else ()), IN_PLACE, PRIVATIZED, ATOMIC)


@cache
def scalar_bins() -> Strategy:
    """Bins of rows as rows of bins; nothing else changes."""
    laws = "reduce_by_index_of_rows", "map_zip_first", "map_zip_second", "map_identity"
    apart = normalize(choose(*map(rule, laws)))

    def run(expr: Expr) -> Result:
        return apart(expr) if has_bins(expr) else Success(expr)

    return run


@cache
def owned_bins() -> Strategy:
    """Reductions by index as maps of folds, as far as there are rules for the types of bins."""
    return seq(scalar_bins(), normalize(choose(*(rule(made.name) for made in OWNED.values()))))


def prepared(word: str | None) -> Strategy:
    """The strategy for `owned` or `in_place` bins, or none; bins that are rows are taken apart."""
    return owned_bins() if word == OWNED_BINS else scalar_bins()


def reads_at_data(expr: Expr) -> bool:
    """Whether an expression reads or reduces at data-dependent indices."""
    return any(
        isinstance(p, FunCall) and isinstance(p.fun, At | ReduceByIndex) for p in every_part(expr)
    )
