"""Measuring candidates of the front again when a campaign has all its candidates.

If the intervals of two candidates on the front overlap, it is not known which is faster, and one
may be there by noise. Both are timed again until this is known, or until each has enough samples.
Searches see only the first times: the drawn candidates must not depend on later measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.outcome import Measured, Outcome, Stray, WrongResult
from liftpy.explore.measure.samples import ENOUGH_SECONDS, MOST_REPEATS, REPEATS, TIGHT
from liftpy.explore.space.candidate import Candidate

MOST_TIMES = 3
"""The most samples of a candidate, as a multiple of those of one measurement."""


class Rows(Protocol):
    """A campaign that is being explored."""

    def front(self) -> list[Row]:
        """Its present front."""
        ...

    def sharpen(self, key: str, outcome: Outcome) -> None:
        """Stores the outcome of measuring a candidate again."""
        ...


def settled(row: Row) -> bool:
    """Whether a candidate needs no more samples."""
    if row.span is None or row.times_ns is None:
        return True
    return (
        (row.span.width <= TIGHT and not few(row))
        or len(row.times_ns) >= MOST_TIMES * MOST_REPEATS
        or sum(map(sum, row.times_ns)) >= MOST_TIMES * ENOUGH_SECONDS * 1e9
    )


def few(row: Row) -> bool:
    """Whether the samples of a candidate are too few to bound its median."""
    return row.times_ns is not None and len(row.times_ns) < REPEATS


def undecided(front: Iterable[Row]) -> list[Row]:
    """The candidates of a front that should be measured again, the fastest first.

    These are the candidates that may not belong there, and those with few samples because they are
    slow.
    """
    known = [(row, row.span) for row in front if row.span is not None]
    return [
        a
        for a, at in known
        if not settled(a)
        and (
            few(a) or any(a is not b and at.low <= to.high and to.low <= at.high for b, to in known)
        )
    ]


def remeasure(
    campaign: Rows,
    candidates: Mapping[str, Candidate],
    measure: Callable[[Candidate], Outcome],
    in_time: Callable[[], bool],
) -> None:
    """Measures undecided candidates again while there is time; `candidates` has them by key.

    A wrong result becomes the candidate's outcome. Other failures do not change its outcome.
    """
    failed: set[str] = set()
    while True:
        every = undecided(campaign.front())
        chosen = [row for row in every if row.id in candidates and row.id not in failed]
        if not chosen:
            return
        for row in chosen:
            if not in_time():
                return
            outcome = measure(candidates[row.id])
            if isinstance(outcome, Measured | WrongResult | Stray):
                campaign.sharpen(row.id, outcome)
            else:
                failed.add(row.id)
