"""Caches of results: what the skeletons of a family have in common is derived once."""

from __future__ import annotations

from liftpy.ir.by_identity import by_identity
from liftpy.rewrite.strategy import Strategy, all_, attempt, deep, seq

MOST_PARTS = 1 << 12  # parts whose results `each_part` keeps


def remembered(strategy: Strategy, count: int = 1) -> Strategy:
    """Cache the last `count` results of a strategy, for expressions that occur again.

    It must be the same object, not an equal one: `0.0` and `-0.0` are equal, but not the same.
    """
    return by_identity(count)(strategy)


def each_part(strategy: Strategy) -> Strategy:
    """Apply the strategy once to every part on which it succeeds, outermost first; never fails.

    The results for parts that occur again are cached, so whether the strategy succeeds may depend
    on nothing but the part.
    """
    one = attempt(strategy)
    return deep(lambda again: remembered(seq(one, all_(again)), MOST_PARTS))
