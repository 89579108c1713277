"""Labels of the points of a chart, placed so that none overlaps another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from liftpy.explore.campaign.rows import Row

SHORT = 4
"""The least number of digits of an id that are shown."""

RINGS = (0.0, 1.0, 2.0, 3.0, 4.5, 6.0, 8.0)
"""The distances from its point at which a label is tried, in heights of the label."""

SIDES = ((1, -1), (1, 1), (-1, -1), (-1, 1), (1, 0), (-1, 0), (0, -1), (0, 1))


@dataclass(frozen=True)
class Rectangle:
    """A rectangle in a chart."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Rectangle) -> bool:
        """Whether the rectangles have more than an edge in common."""
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def holds(self, other: Rectangle) -> bool:
        """Whether the other rectangle lies inside this one."""
        across = self.left <= other.left and other.right <= self.right
        return across and self.top <= other.top and other.bottom <= self.bottom

    def nearest(self, x: float, y: float) -> tuple[float, float]:
        """The point of the rectangle that is nearest to (x, y)."""
        return min(max(x, self.left), self.right), min(max(y, self.top), self.bottom)


def leader(
    point: tuple[float, float], place: Rectangle, radius: float
) -> tuple[float, float] | None:
    """The end of a line from a point to its label; None if the label is next to the point."""
    end = place.nearest(*point)
    return end if math.dist(point, end) > 2 * radius else None


def short_ids(rows: Iterable[Row]) -> dict[str, str]:
    """The shortest prefix of each candidate's id that no other id begins with."""
    ids = sorted(row.id for row in rows)
    alike = [alike_for(*pair) for pair in itertools.pairwise(["", *ids, ""])]
    return {
        id_: id_[: max(SHORT, before + 1, after + 1)]
        for id_, before, after in zip(ids, alike[:-1], alike[1:], strict=True)
    }


def alike_for(one: str, other: str) -> int:
    """The length of the common prefix of two words.

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
    """A place for the label of each point, as near to it as possible; None if there is no room.

    sizes: width and height of each label. No place overlaps another one or the mark of a point (a
    square that reaches `radius` from it), or crosses the edge of the frame.

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
    """Possible places of a label around a point, the nearest ring first."""
    (x, y), (width, height) = point, size
    for ring, (right, down) in itertools.product(RINGS, SIDES):
        away = radius + ring * height
        left = x + away if right > 0 else x - away - width if right < 0 else x - width / 2
        top = y + away if down > 0 else y - away - height if down < 0 else y - height / 2
        yield Rectangle(left, top, left + width, top + height)
