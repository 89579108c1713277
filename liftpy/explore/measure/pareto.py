"""The front of two costs: the points that no other point beats, or that none clearly beats.

A campaign's front is always that of `clear_front`: `Campaign.pareto` computes it, and every table
and plot of it states its `rule`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from liftpy.explore.measure.samples import Interval

T = TypeVar("T")


def front(points: Iterable[T], costs: Callable[[T], tuple[float, float]]) -> list[T]:
    """The points that no other dominates, sorted by the first cost; equal points keep their order.

    >>> front([(3, 1), (1, 9), (2, 5), (2, 6), (1, 9)], costs=lambda p: p)
    [(1, 9), (1, 9), (2, 5), (3, 1)]
    """
    best: list[T] = []
    for point in sorted(points, key=costs):
        if not best or costs(point)[1] < costs(best[-1])[1] or costs(point) == costs(best[-1]):
            best.append(point)
    return best


def clear_front(points: Iterable[T], costs: Callable[[T], tuple[Interval, float]]) -> list[T]:
    """The points that no other clearly dominates, sorted by the median of the first cost.

    One point clearly dominates another if its second cost is no higher and the interval of its
    first cost lies entirely below the other's. So points that may be behind only by noise are kept.

    >>> a, b, c = Interval(10, 9, 11), Interval(12, 10.5, 13), Interval(20, 18, 22)
    >>> [p[0].middle for p in clear_front([(c, 5), (b, 5), (a, 5)], costs=lambda p: p)]
    [10, 12]
    """
    kept: list[T] = []
    found = [(*costs(point), point) for point in points]
    least = math.inf  # the lowest upper end of an interval among points of no higher second cost
    for _, group in itertools.groupby(sorted(found, key=_second), key=_second):
        alike = list(group)
        least = min([least, *(span.high for span, _, _ in alike)])
        kept += [point for span, _, point in alike if span.low <= least]
    return sorted(kept, key=lambda point: (costs(point)[0].middle, costs(point)[1]))


def rule(axis: str, *, modelled: bool = False) -> str:
    """A sentence that states which candidates are on the front of time and another figure.

    >>> rule("peak")[:62]
    'A measured candidate is on the front unless another one with n'
    """
    if modelled:
        return (
            f"All times are modelled. A candidate is on the front unless another one with no more "
            f"{axis} is faster."
        )
    return (
        f"A measured candidate is on the front unless another one with no more {axis} is clearly "
        "faster: the 95 % intervals of their median times do not overlap."
    )


def _second(found: tuple[Interval, float, T]) -> float:
    return found[1]
