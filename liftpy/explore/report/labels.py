"""Names beside the points of a chart, so that none lies on another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from liftpy.explore.campaign.rows import Row

SHORT = 4
"""Digits of an id that are shown at least."""

RINGS = (0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0)
"""How far from its point a name is tried, in heights of it, the nearest first."""

SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (1, 0), (-1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class Rectangle:
    """A part of a chart: where it begins and ends in each direction."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        """Whether they have more than an edge in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Rectangle) -> bool:
        """Whether the other one lies inside."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of it that is nearest to another one."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def leader(
    point: tuple[float, float], place: Rectangle, radius: float
) -> tuple[float, float] | None:
    """Where a line from a point to its name ends; None where the name is next to the point."""
    end = place.nearest(*point)
    return end if math.dist(point, end) > 2 * radius else None


def short_ids(rows: Iterable[Row]) -> dict[str, str]:
    """The first digits of each candidate's id that no other candidate's id begins with."""
    ids = sorted(row.id for row in rows)
    alike = [alike_for(*pair) for pair in itertools.pairwise(["", *ids, ""])]
    return {
        id_: id_[: max(SHORT, before + 1, after + 1)]
        for id_, before, after in zip(ids, alike[:-1], alike[1:], strict=True)
    }


def alike_for(one: str, other: str) -> int:
    """With how many equal letters two words begin.

    >>> alike_for("3f2a", "3f01")
    2
    """
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def beside(
    points: Sequence[tuple[float, float]],
    sizes: Sequence[tuple[float, float]],
    frame: Rectangle,
    radius: float,
) -> list[Rectangle | None]:
    """A place for the name of each point, as near as there is room; None where there is none.

    sizes: width and height of each name. No place overlaps another one, a mark of any of the points
    (which reaches `radius` around it), or the edge of the frame.

    >>> beside([(5, 5)], [(4, 2)], Rectangle(0, 0, 20, 20), radius=1)
    [Rectangle(left=6.0, top=2.0, right=10.0, bottom=4.0)]
    """
    taken = [Rectangle(x - radius, y - radius, x + radius, y + radius) for x, y in points]
    found: list[Rectangle | None] = []
    for point, size in zip(points, sizes, strict=True):
        free = (
            place
            for place in _around(point, size, radius)
            if frame.holds(place) and not any(place.overlaps(other) for other in taken)
        )
        place = next(free, None)
        found.append(place)
        if place is not None:
            taken.append(place)
    return found


def _around(
    point: tuple[float, float], size: tuple[float, float], radius: float
) -> Iterator[Rectangle]:
    """Places around a point, ring by ring."""
    (x, y), (width, height) = point, size
    for ring, (right, down) in itertools.product(RINGS, SIDES):
        away = radius + ring * height
        left = x + away if right > 0 else x - away - width if right < 0 else x - width / 2
        top = y + away if down > 0 else y - away - height if down < 0 else y - height / 2
        yield Rectangle(left, top, left + width, top + height)
