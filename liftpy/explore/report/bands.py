"""The third figure of a front in a chart of two: bands of its values, each with a shape."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from liftpy.explore.campaign.campaign import coarse
from liftpy.explore.campaign.hypervolume import Costs
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.pareto import front
from liftpy.explore.report.wording import in_figure

MOST = 5
"""The most bands: as many as there are shapes and colours that are easy to tell apart."""

LIGHT = ("#1b1446", "#4a2a86", "#96308a", "#cf4446", "#dd7a08")
DARK = ("#fdf6bf", "#fdb97d", "#f1705d", "#c9508c", "#844ab0")
"""The colours of bands on white and on dark paper: the lowest band contrasts most, so that their
order is visible without colours, too."""

DASHES = ((), (9, 4), (3, 3), (9, 3, 3, 3), (2, 6))
"""The lengths of the dashes and gaps of the bands' lines; the first is solid."""


@dataclass(frozen=True)
class Bands:
    """The values of the figure `axis` in at most five bands, each with a value in it.

    A value belongs to the first of the `bounds`, which ascend, that is not lower. Bounds are powers
    of 2; 0 has its own band. With `axis` None, all candidates have one band.
    """

    axis: str | None
    bounds: tuple[float, ...]

    @classmethod
    def of(cls, rows: Sequence[Row], axis: str | None) -> Self:
        """The narrowest bands such that there are at most five."""
        if axis is None:
            return cls(None, (math.inf,))
        values = {coarse(value) for row in rows if (value := row.figure(axis)) is not None}
        powers = {round(math.log2(value)) for value in values if value > 0}
        zero = (0.0,) if 0 in values else ()
        step = 1
        while len(ends := {-(-power // step) * step for power in powers}) + len(zero) > MOST:
            step += 1
        return cls(axis, (*zero, *(2.0**end for end in sorted(ends))))

    def index(self, row: Row) -> int:
        """The band of a row, which has the figure."""
        return 0 if self.axis is None else bisect_left(self.bounds, row.figure(self.axis) or 0)

    def text(self, index: int) -> str:
        """The largest value of a band, as text."""
        bound = self.bounds[index]
        return "0" if bound == 0 else f"up to {in_figure(self.axis or '', bound)}"

    def stairs(self, best: Sequence[Row], axis: str) -> Iterator[tuple[int, list[Costs]]]:
        """For each band, the front of time and `axis` of the candidates in it and in lower ones.

        `best` are those on the front of all three figures. A band that adds nothing to the front of
        a lower one is left out.
        """
        before: list[Costs] = []
        for band in range(len(self.bounds)):
            mine = {c for row in best if self.index(row) <= band and (c := row.costs(axis))}
            here = front(mine, costs=lambda c: c)
            if here != before:
                yield band, here
            before = here
