"""Statistics of times: how sure a median is, and when there are samples enough.

Nothing is assumed of how times are distributed: they have long tails, and several modes.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

REPEATS = 6
"""Timed runs of a candidate, at least, unless it is slow: the fewest that bound a median."""

MOST_REPEATS = 50
ENOUGH_SECONDS = 0.5
"""A candidate is run until its median is `TIGHT`, so often, or until so much is measured."""

TIGHT = 0.02
"""How wide the interval of a median is when it is known well enough, relative to the median."""

SLOW = 5.0
SLOW_REPEATS = 2
SLOW_SECONDS = 0.25
FIRST_SECONDS = 0.125
"""A candidate that is `SLOW` times slower than the best so far is run so often, or until so much is
measured, as is the first one of all if a run of it takes `FIRST_SECONDS`. The run that was checked
is one of them."""

BEHIND = 0.2
"""How wide the interval of a candidate behind the best may be, relative to how far it is behind."""

FAR = 2.0
"""A candidate that is `FAR` times slower than the best is run `REPEATS` times, however wide its
interval is, and not timed again if it was disturbed."""

SETTLED = 0.9
"""Warming up ends with a run that takes more than so much of the time of the one before."""

MOST_WARM_UPS = 5

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median, and the interval in which the true one lies with `CONFIDENCE`."""

    middle: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval, relative to the median."""
        return (self.high - self.low) / self.middle if self.middle else math.inf


def interval_of(samples: Sequence[float]) -> Interval:
    """The median of samples and its interval, from the ranks of the samples alone.

    The true median is below the k-th smallest of n samples with the chance that fewer than k of n
    fair coins fall heads, and above the k-th largest likewise. The largest k is taken with which
    both together are unlikely enough; fewer than 6 samples say no more than their range.
    """
    ordered = sorted(samples)
    n = len(ordered)
    chance, k = 2.0 / 2**n, 1
    while chance + 2 * math.comb(n, k) / 2**n <= 1 - CONFIDENCE:
        chance += 2 * math.comb(n, k) / 2**n
        k += 1
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[n - k])


def is_slow(totals: Sequence[int], best_ns: int | None) -> bool:
    """Whether a candidate is `SLOW` times slower than the best; the first one, whether it is long.

    Who begins a campaign says how fast the device is about. More samples of it can wait until it is
    known that it is on the front (`remeasure.py`).
    """
    if best_ns is None:
        return statistics.median(totals) >= FIRST_SECONDS * 1e9
    return is_times(SLOW, totals, best_ns)


def enough(totals: Sequence[int], best_ns: int | None) -> bool:
    """Whether a candidate has been timed often enough to know its time.

    totals: nanoseconds of its runs. `best_ns` is the best candidate's time.
    """
    if not totals:
        return False
    if is_slow(totals, best_ns):
        return len(totals) >= SLOW_REPEATS or sum(totals) >= SLOW_SECONDS * 1e9
    if len(totals) < REPEATS:
        return False
    if len(totals) >= MOST_REPEATS or sum(totals) >= ENOUGH_SECONDS * 1e9:
        return True
    if is_times(FAR, totals, best_ns):
        return True
    span = interval_of(totals)
    behind = 0.0 if best_ns is None else BEHIND * (span.middle - best_ns)
    return span.high - span.low <= max(TIGHT * span.middle, behind)


def is_times(factor: float, totals: Sequence[int], best_ns: int | None) -> bool:
    """Whether every run took so many times as long as the best candidate, if there is one."""
    return best_ns is not None and min(totals) > factor * best_ns


class Budget:
    """So many seconds of the clock on the wall, from when this was made.

    A launch may take a thousand times as long as the device needs for what is launched.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._last = 0.0

    def of(self, what: Callable[[], T]) -> T:
        """Does something, and remembers how long it took."""
        before = self._clock()
        done = what()
        self._last = self._clock() - before
        return done

    def has(self, more: int = 1) -> bool:
        """Whether there is time for so many more of what was done last."""
        return self._clock() + more * self._last <= self._end


Row = tuple[int, ...]
"""Nanoseconds of each launch of a run."""


def sample(
    run: Callable[[], Sequence[int]],
    best_ns: int | None = None,
    seconds: float = math.inf,
    clock: Callable[[], float] = time.monotonic,
    checked: Row | None = None,
) -> tuple[Row, ...]:
    """Times of runs, after some to warm up; a row a run. There is at least one.

    `run` runs once and gives the nanoseconds of each launch. All runs together may take so many
    seconds, by the `clock`. `checked` is the run before these, of the same launches, in other
    memory: of a slow candidate it counts, of others it may have been cold.
    """
    budget = Budget(seconds, clock)
    if checked is not None and is_slow([sum(checked)], best_ns):
        rows = [checked]
        while budget.has() and not enough([sum(row) for row in rows], best_ns):
            rows.append(tuple(budget.of(run)))
            if not is_slow([sum(rows[-1])], best_ns):
                break
        else:
            return tuple(rows)
    last = 0
    for _ in range(MOST_WARM_UPS):
        before, last = last, sum(budget.of(run))
        if is_slow([last], best_ns) or not budget.has(2) or (before and last > SETTLED * before):
            break
    rows = [tuple(budget.of(run))]
    while budget.has() and not enough([sum(row) for row in rows], best_ns):
        rows.append(tuple(budget.of(run)))
    return tuple(rows)


# --- disturbance ----------------------------------------------------------------------------------

REMEMBERED = 101
"""Times of the reference kernel whose median is the usual one."""

DEPARTURE = 0.25
"""By how much the reference may depart from its usual time before samples are doubted."""

RETAKES = 2
"""How often doubted samples are taken again."""


class History:
    """The times of the reference kernel so far, in any unit."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=REMEMBERED)

    def take(self, duration: float) -> float:
        """How many times its usual time the reference takes now; 1 at first."""
        self._times.append(duration)
        return duration / statistics.median(self._times)


def farthest(ratios: Iterable[float]) -> float:
    """The ratio that is farthest from 1."""
    return max(ratios, key=lambda ratio: max(ratio, 1 / ratio))


def departs(ratio: float) -> bool:
    """Whether a multiple of the usual time is too far from 1, either way."""
    return max(ratio, 1 / ratio) > 1 + DEPARTURE


def undisturbed(
    take: Callable[[], tuple[Row, ...]],
    look: Callable[[], float],
    seconds: float,
    best_ns: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[tuple[Row, ...], float]:
    """Samples, and how many times its usual time the reference kernel took around them.

    `take` takes samples, `look` is the reference now. Where it departs before or after, samples are
    taken again, `RETAKES` times at most and while that fits into so many seconds of the `clock`,
    unless the candidate is `FAR` behind, or a slow first one; of all, those with the least
    departure count.
    """
    found: list[tuple[float, tuple[Row, ...]]] = []
    budget = Budget(seconds, clock)
    before = look()
    while True:
        rows = budget.of(take)
        after = look()
        found.append((farthest((before, after)), rows))
        totals = [sum(row) for row in rows]
        far = is_slow(totals, None) if best_ns is None else is_times(FAR, totals, best_ns)
        calm = not departs(found[-1][0])
        if calm or far or len(found) > RETAKES or not budget.has():
            break
        before = after
    ratio, rows = min(found, key=lambda f: max(f[0], 1 / f[0]))
    return rows, ratio
