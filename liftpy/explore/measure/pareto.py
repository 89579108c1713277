"""The front of two or three costs: the points that none beats, or that none clearly beats.

A campaign's front is always that of `clear_front`: `Campaign.pareto` computes it, and every table
and plot of it states its `rule`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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


def clear_front(
    points: Iterable[T], costs: Callable[[T], tuple[Interval, *tuple[float, ...]]]
) -> list[T]:
    """The points that no other clearly dominates, sorted by the median of the first cost.

    One point clearly dominates another if its other costs, one or several, are no higher and the
    interval of its first cost lies entirely below the other's. So points that may be slower only
    because of noise are kept.

    >>> a, b, c = Interval(10, 9, 11), Interval(12, 10.5, 13), Interval(20, 18, 22)
    >>> [p[0].middle for p in clear_front([(c, 5), (b, 5), (a, 5)], costs=lambda p: p)]
    [10, 12]
    """
    found = [(costs(point), point) for point in points]
    best: list[tuple[float, tuple[float, ...]]] = []  # upper ends of intervals, with other costs
    for (span, *rest), _ in sorted(found, key=lambda one: one[0][0].high):
        if not any(no_higher(other, rest) for _, other in best):
            best.append((span.high, tuple(rest)))
    kept = [
        (span.middle, rest, point)
        for (span, *rest), point in found
        if not any(high < span.low and no_higher(other, rest) for high, other in best)
    ]
    return [point for _, _, point in sorted(kept, key=lambda one: one[:2])]


def no_higher(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether no cost is higher than the corresponding other one."""
    return all(one <= other for one, other in zip(some, others, strict=True))


PROXY = (
    " The energy proxy is modelled bytes and counted operations, times the costs of a table; no "
    "energy is measured."
)


def name_of(axis: str) -> str:
    """A figure in words: the energy is always called a proxy.

    >>> name_of("energy"), name_of("peak")
    ('energy proxy', 'peak')
    """
    return "energy proxy" if axis == "energy" else axis


def no_more_of(axis: str) -> str:
    """The condition of a front on a figure."""
    if axis == "energy":
        return "no higher energy proxy (rounded up to two digits)"
    return f"no more {axis}"


def rule(axis: str, *, modelled: bool = False, also: str | None = None) -> str:
    """A sentence that states which candidates are on the front of time and one or two figures.

    >>> rule("peak")[:62]
    'A measured candidate is on the front unless another one with n'
    """
    no_more = " and ".join(no_more_of(figure) for figure in (axis, also) if figure is not None)
    if also is not None and "error" in {axis, also}:
        no_more += " (errors are rounded up to a power of 2)"
    proxy = PROXY if "energy" in {axis, also} else ""
    if modelled:
        return (
            "All times are modelled. A candidate is on the front unless another one with "
            f"{no_more} is faster.{proxy}"
        )
    return (
        f"A measured candidate is on the front unless another one with {no_more} is clearly "
        f"faster: the 95 % intervals of their median times do not overlap.{proxy}"
    )
