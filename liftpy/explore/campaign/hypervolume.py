"""The progress of a campaign after each candidate: the hypervolume of its front.

The hypervolume (Zitzler and Thiele 1998) is the area that the front dominates, up to a reference
point. Here both costs are on logarithmic scales, so that a factor of two counts the same
everywhere. The reference is a tenth beyond the slowest and the largest measured candidate. The area
is relative to that of an ideal candidate, which is as fast as the fastest and as small as the
smallest. So it rises from 0 to at most 1, and is 1 if one candidate is best in both costs.
Campaigns can be compared if they all use the same `Box`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from liftpy.explore.campaign.rows import ERROR
from liftpy.explore.measure.pareto import front

Costs: TypeAlias = tuple[int, float]
"""A time in ns, and a memory figure in bytes or an error."""

BEYOND = 1.1  # the reference point, relative to the worst costs

LEAST_ERROR = 2.0**-40
"""The least error on a logarithmic scale: of an error of 0, the logarithm is infinite."""


@dataclass(frozen=True)
class Box:
    """The frame of a hypervolume: the best costs of all candidates, and the reference point.

    Second costs below `least` count as `least`.
    """

    ideal: Costs
    reference: Costs
    least: float = 1

    @classmethod
    def around(cls, measured: Iterable[Costs], axis: str = "peak") -> Box:
        """The box of one or more measured candidates, whose second cost is the figure `axis`."""
        times, figures = zip(*measured, strict=True)
        least = LEAST_ERROR if axis == ERROR else 1
        largest = max(least, *figures) * BEYOND
        beyond = (
            math.ceil(max(1, *times) * BEYOND),
            largest if axis == ERROR else math.ceil(largest),
        )
        return cls((min(times), min(figures)), beyond, least)

    def volume(self, costs: Iterable[Costs]) -> float:
        """The hypervolume of the front of candidates with these costs, from 0 to 1.

        >>> box = Box((1, 1), (16, 16))
        >>> box.volume([]), box.volume([(4, 4)]), box.volume([(1, 4), (4, 1)]), box.volume([(1, 1)])
        (0.0, 0.25, 0.75, 1.0)
        """
        whole = math.prod(self._far(self.ideal))
        area = height = 0.0
        for point in front(costs, costs=lambda c: c):
            width, tall = self._far(point)
            area += width * max(0.0, tall - height)
            height = max(height, tall)
        return area / whole

    def _far(self, costs: Costs) -> tuple[float, float]:
        """The distance of costs from the reference along each axis; 0 if they are beyond it."""
        time = math.log2(self.reference[0] / max(1, costs[0]))
        figure = math.log2(self.reference[1] / max(self.least, costs[1]))
        return max(0.0, time), max(0.0, figure)


def growth(tried: Sequence[Costs | None], box: Box) -> list[float]:
    """The hypervolume after each candidate, in the order tried; None if it was not measured."""
    best: list[Costs] = []
    found: list[float] = []
    value = 0.0
    for costs in tried:
        if costs is not None:
            longer = front([*best, costs], costs=lambda c: c)
            if longer != best:
                best, value = longer, box.volume(longer)
        found.append(value)
    return found
