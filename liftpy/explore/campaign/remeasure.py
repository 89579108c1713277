"""Measuring again what decides the front, when a campaign has its candidates.

Two candidates on the front whose intervals overlap may be there by noise: which is faster is not
known. Such are timed again until it is, or until enough has been measured of each. Searches are
told the first times only: what they draw must not hang on what was measured later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.outcome import Measured, Outcome, Stray, WrongResult
from liftpy.explore.measure.samples import ENOUGH_SECONDS, MOST_REPEATS, REPEATS, TIGHT
from liftpy.explore.space.candidate import Candidate

MOST_TIMES = 3
"""Of a candidate no more than so many times the samples of one measurement are taken."""


class Rows(Protocol):
    """A campaign that is being explored."""

    def front(self) -> list[Row]:
        """Its front as it is now."""
        ...

    def sharpen(self, key: str, outcome: Outcome) -> None:
        """Takes in what a measured candidate gave when it was measured again."""
        ...


def settled(row: Row) -> bool:
    """Whether measuring a candidate again would add nothing."""
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
    """The candidates of a front that it is worth to measure again, the fastest first.

    Those that may not belong there, and those that were so slow that they were hardly timed.
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
    """Measures undecided candidates, by key, while there is time; others of the front stay.

    A candidate that is wrong now is a wrong one; what else it comes to says nothing of it.
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
