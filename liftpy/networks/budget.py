"""Which operation of a network a campaign continues with: where most time is expected to be saved.

All functions are pure: a decision depends only on what the campaigns of the operations have stored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FIRST, SECOND = 2, 9
"""How many candidates an operation has after its first two turns. The first two candidates are the
simplest one and, in large spaces, the one with the least modelled time."""

UNKNOWN = 0.5
"""The part of an operation's time that its next candidates are expected to save, if one or none of
its candidates is measured. The first one is the simplest form, which is rarely fast."""

PACE = 5.0
"""The seconds that a candidate is expected to take if none was tried."""


@dataclass(frozen=True)
class State:
    """What is known of an operation that occurs `count` times in a network.

    `times` are the median times of its measured candidates in ms, in any order; `tried` is the
    number of all its candidates with an outcome, and `seconds` the time that these took. `finished`
    means that it gets no more candidates; `vain` is the number of its last turns that ended before
    a candidate was tried.
    """

    count: int
    times: tuple[float, ...] = ()
    tried: int = 0
    seconds: float = 0.0
    finished: bool = False
    vain: int = 0

    @property
    def best(self) -> float | None:
        """The least time in ms; None if no candidate is measured."""
        return min(self.times, default=None)

    @property
    def pace(self) -> float:
        """The seconds that one candidate takes."""
        return self.seconds / self.tried if self.tried and self.seconds else PACE


@dataclass(frozen=True)
class NextOperation:
    """The operation to continue with, by its index, until it has `samples` candidates.

    `gain` is the time in ms that the network is expected to save by this; None if the operation has
    no time yet.
    """

    index: int
    samples: int
    gain: float | None


def target(tried: int, most: int) -> int:
    """The number of candidates at which an operation is compared with others again, at most `most`.

    Targets do not depend on where a campaign was interrupted.

    >>> [target(tried, 100) for tried in (0, 1, 2, 5, 9, 17, 18, 80)]
    [2, 2, 9, 9, 18, 18, 36, 100]
    """
    found = FIRST
    while found <= tried:
        found = SECOND if found == FIRST else 2 * found
    return min(found, most)


def expected_gain(times: Sequence[float]) -> float:
    """The time in ms that as many candidates again are expected to save.

    It is as large a part of the least time as the last doubling saved: the least time of a random
    half of the candidates, on average, is compared with the least time of all.

    >>> expected_gain([4.0, 4.0, 4.0, 4.0])
    0.0
    >>> round(expected_gain([4.0, 8.0]), 3)  # a half has 6.0 on average: 4.0 * (1 - 4.0 / 6.0)
    1.333
    """
    n = len(times)
    if not n:
        return 0.0
    if n == 1:
        return UNKNOWN * times[0]
    ordered, half = sorted(times), n // 2
    chances = math.comb(n, half)
    # the k-th is the least of a half if the others of the half come after it
    before = sum(math.comb(n - 1 - k, half - 1) / chances * t for k, t in enumerate(ordered))
    return max(0.0, ordered[0] * (1 - ordered[0] / before)) if before else 0.0


def chosen(states: Sequence[State], most: int) -> NextOperation | None:
    """The next operation and its number of candidates; None if all have `most`, or are finished.

    Operations without any candidate come first, those with the fewest turns in vain. Then it is the
    one with the largest expected gain of the network, which counts each occurrence, for each second
    that it takes.
    """
    open_ = [(k, s) for k, s in enumerate(states) if not s.finished and s.tried < most]
    if not open_:
        return None
    untried = [(state.vain, k) for k, state in open_ if not state.tried]
    if untried:
        return NextOperation(min(untried)[1], target(0, most), None)

    def rate(pair: tuple[int, State]) -> float:
        state = pair[1]
        more = target(state.tried, most) - state.tried
        known = [s.best * s.count for s in states if s.best is not None]
        if state.best is None:  # as if it took the mean time of the others
            gain = UNKNOWN * sum(known) / max(1, len(known))
        else:
            gain = state.count * expected_gain(state.times)
        return gain / (more * state.pace)

    index, state = max(open_, key=rate)
    gain = None if state.best is None else state.count * expected_gain(state.times)
    return NextOperation(index, target(state.tried, most), gain)
