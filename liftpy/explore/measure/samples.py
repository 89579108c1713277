"""Statistics of times: how certain a median is, and when there are enough samples.

Nothing is assumed about the distribution of times: they have long tails and several modes.
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
"""The fewest timed runs of a candidate that is not slow; fewer would not bound a median."""

MOST_REPEATS = 50
ENOUGH_SECONDS = 0.5
"""A candidate is run until its median is `TIGHT`, `MOST_REPEATS` times, or until its runs have
taken `ENOUGH_SECONDS` in total."""

TIGHT = 0.02
"""The width of a median's interval, relative to the median, at which it is known well enough."""

SLOW = 5.0
SLOW_REPEATS = 2
SLOW_SECONDS = 0.25
FIRST_SECONDS = 0.125
"""A candidate that is `SLOW` times slower than the best so far is run `SLOW_REPEATS` times, or
until its runs have taken `SLOW_SECONDS` in total. The same applies to a campaign's first candidate
if one of its runs takes `FIRST_SECONDS`. The checked run counts as one of them."""

BEHIND = 0.2
"""The allowed width of the interval of a candidate behind the best, relative to its distance from
the best."""

FAR = 2.0
"""A candidate that is `FAR` times slower than the best is run `REPEATS` times, however wide its
interval is, and is not timed again if it was disturbed."""

SETTLED = 0.9
"""The warm-up ends with a run that takes more than this part of the time of the previous run."""

MOST_WARM_UPS = 5

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """A median, and the interval in which the true median lies with `CONFIDENCE`."""

    middle: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """The width of the interval, relative to the median."""
        return (self.high - self.low) / self.middle if self.middle else math.inf


def interval_of(samples: Sequence[float]) -> Interval:
    """The median of samples and its interval, computed only from the ranks of the samples.

    The probability that the true median is below the k-th smallest of n samples is that of fewer
    than k heads in n fair coin tosses; the same holds for being above the k-th largest. The
    interval uses the largest k for which the sum of both is small enough; for fewer than 6 samples
    it is their range.
    """
    ordered = sorted(samples)
    n = len(ordered)
    chance, k = 2.0 / 2**n, 1
    while chance + 2 * math.comb(n, k) / 2**n <= 1 - CONFIDENCE:
        chance += 2 * math.comb(n, k) / 2**n
        k += 1
    return Interval(statistics.median(ordered), ordered[k - 1], ordered[n - k])


def is_slow(totals: Sequence[int], best_ns: int | None) -> bool:
    """Whether a candidate is `SLOW` times slower than the best, or, if it is the first, is slow.

    The first candidate shows roughly how fast the device is. More samples of it can wait until it
    is known to be on the front (`remeasure.py`).
    """
    if best_ns is None:
        return statistics.median(totals) >= FIRST_SECONDS * 1e9
    return is_times(SLOW, totals, best_ns)


def enough(totals: Sequence[int], best_ns: int | None) -> bool:
    """Whether a candidate has been timed often enough to know its time.

    `totals` has the nanoseconds of its runs; `best_ns` is the best candidate's time.
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
    """Whether every run took more than `factor` times as long as the best candidate, if any."""
    return best_ns is not None and min(totals) > factor * best_ns


class Budget:
    """A budget of wall-clock seconds, from its creation.

    Wall-clock time, because a launch may take a thousand times as long as its work on the device.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._last = 0.0

    def of(self, what: Callable[[], T]) -> T:
        """Calls `what`, and remembers how long it took."""
        before = self._clock()
        done = what()
        self._last = self._clock() - before
        return done

    def has(self, more: int = 1) -> bool:
        """Whether there is time for `more` calls that take as long as the last one."""
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
    """Times of runs after a warm-up, one row per run; at least one.

    `run` runs once and returns the nanoseconds of each launch. All runs together may take `seconds`
    by the `clock`. `checked` is the run before these, of the same launches in other memory. It
    counts as a sample of a slow candidate; for others it may have been cold.
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
"""How many times of the reference kernel are kept; their median is its usual time."""

DEPARTURE = 0.25
"""How far the reference may depart from its usual time before samples count as disturbed."""

RETAKES = 2
"""How often disturbed samples are taken again."""


class History:
    """The times of the reference kernel so far, in any unit."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=REMEMBERED)

    def take(self, duration: float) -> float:
        """Adds a time; returns it as a multiple of the usual time, 1 for the first."""
        self._times.append(duration)
        return duration / statistics.median(self._times)


def farthest(ratios: Iterable[float]) -> float:
    """The ratio that is farthest from 1."""
    return max(ratios, key=lambda ratio: max(ratio, 1 / ratio))


def departs(ratio: float) -> bool:
    """Whether a multiple of the usual time is too far from 1 in either direction."""
    return max(ratio, 1 / ratio) > 1 + DEPARTURE


def undisturbed(
    take: Callable[[], tuple[Row, ...]],
    look: Callable[[], float],
    seconds: float,
    best_ns: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[tuple[Row, ...], float]:
    """Samples, and the time of the reference kernel around them as a multiple of its usual time.

    `take` takes samples, `look` times the reference. If the reference departs from its usual time
    before or after, samples are taken again, at most `RETAKES` times and as long as this fits into
    `seconds` by the `clock`, unless the candidate is `FAR` behind or a slow first one. The samples
    with the least departure are returned.
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
