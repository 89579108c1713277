"""The front of two costs: the points that no other point beats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def dominates(a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether `a` is nowhere worse than `b` and somewhere better."""
    return a[0] <= b[0] and a[1] <= b[1] and a != b


def front(points: Iterable[T], costs: Callable[[T], tuple[float, float]]) -> list[T]:
    """The points that no other dominates, by rising first cost; equal points keep their order.

    >>> front([(3, 1), (1, 9), (2, 5), (2, 6), (1, 9)], costs=lambda p: p)
    [(1, 9), (1, 9), (2, 5), (3, 1)]
    """
    best: list[T] = []
    for point in sorted(points, key=costs):
        if not best or costs(point)[1] < costs(best[-1])[1] or costs(point) == costs(best[-1]):
            best.append(point)
    return best
