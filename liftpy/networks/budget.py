"""Which operation of a network a campaign continues with: where most time is expected to be saved.

All functions are pure: a decision depends only on what the campaigns of the operations have stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

FIRST, SECOND = 2, 9
"""How many candidates an operation has after its first two turns. The first two candidates are the
simplest one and, in large spaces, the one with the least modelled time."""

BALANCE = 10
"""How many arithmetic operations take about as long as moving a byte: an assumption that compares
operations before anything is measured."""

UNKNOWN = 0.5
"""The part of an operation's time that its next candidates are expected to save, if one or none of
its candidates is measured. The first one is the simplest form, which is rarely fast."""

HOPE = 0.5
"""The least part of an operation's time above its floor that its next candidates are expected to
save, after its first turn; half of this part after its second turn, and so on."""

FASTER = 1.25
"""The factor by which an operation may become faster than its floor: no rate so far is the limit of
the device."""

PACE = 5.0
"""The seconds that a candidate is expected to take if none was tried."""


@dataclass(frozen=True)
class State:
    """What is known of an operation that occurs `count` times in a network.

    `times` are the median times of its measured candidates in ms, in any order; `tried` is the
    number of all its candidates with an outcome, and `seconds` the time that these took. `finished`
    means that it gets no more candidates; `vain` is the number of its last turns that ended before
    a candidate was tried. `flops` are the arithmetic operations of its program, and `bytes` those
    of the arrays that it reads and writes; both are 0 if they are not known. Operations of the same
    `kind` are similar: what is fast for one is tried first for the others. One with an empty kind
    is similar to none.
    """

    count: int
    times: tuple[float, ...] = ()
    tried: int = 0
    seconds: float = 0.0
    finished: bool = False
    vain: int = 0
    flops: int = 0
    bytes: int = 0
    kind: str = ""

    @property
    def weight(self) -> int:
        """Its work in one run of the network, as an estimate of its share of the time."""
        return self.count * (self.flops + BALANCE * self.bytes)

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

    `gain` is the time in ms that the network is expected to save by this; None if the operation is
    chosen for another reason, `why`.
    """

    index: int
    samples: int
    gain: float | None = None
    why: str = "it has no time yet"


def target(tried: int, most: int) -> int:
    """The number of candidates at which an operation is compared with others again, at most `most`.

    Targets do not depend on where a campaign was interrupted.

    >>> [target(tried, 100) for tried in (0, 1, 2, 5, 9, 17, 18, 80)]
    [2, 9, 9, 9, 18, 18, 36, 100]
    """
    found = SECOND if tried else FIRST
    while found <= tried:
        found *= 2
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


@dataclass(frozen=True)
class Rates:
    """The highest rates of operations with a time: arithmetic operations and bytes in a ms.

    >>> rates = Rates.of([State(1, (2.0,), flops=600, bytes=100), State(1, (1.0,), bytes=90)])
    >>> rates
    Rates(flops=300.0, bytes=90.0)
    >>> rates.floor(State(1, (3.0,), flops=300, bytes=180))
    2.0
    """

    flops: float
    bytes: float

    @staticmethod
    def of(states: Sequence[State]) -> Rates:
        """The rates of the fastest operations."""
        timed = [(s, s.best) for s in states if s.best]
        return Rates(
            max((s.flops / best for s, best in timed), default=0.0),
            max((s.bytes / best for s, best in timed), default=0.0),
        )

    def floor(self, state: State) -> float:
        """The time in ms of an operation at these rates."""
        return max(
            state.flops / self.flops if self.flops else 0.0,
            state.bytes / self.bytes if self.bytes else 0.0,
        )

    def gain(self, state: State) -> float:
        """`expected_gain` of an operation, limited by what the rates of all operations allow.

        Two candidates with equal times say little about the others, so the gain is at least a part
        of the time above the floor; this part halves with each turn. An operation near its floor
        gains little, however slow its other candidates are.
        """
        seen = expected_gain(state.times)
        if state.best is None or not (state.flops or state.bytes):
            return seen
        floor = self.floor(state)
        turns = 1 + max(0, state.tried // SECOND).bit_length()
        return max(min(seen, state.best - floor / FASTER), (state.best - floor) * HOPE**turns)


def chosen(states: Sequence[State], most: int) -> NextOperation | None:
    """The next operation and its number of candidates; None if all have `most`, or are finished.

    The operation of each kind with the largest weight comes first (`leader`). Then each other
    operation gets one candidate, like the one that was fastest for its kind (`follower`). After
    that, it is the operation with the largest expected gain of the network for each second that it
    takes; the gain counts each occurrence.
    """
    open_ = {k: s for k, s in enumerate(states) if not s.finished and s.tried < most}
    if not open_:
        return None
    found = leader(states, open_, most) or follower(states, open_, most)
    if found is not None:
        return found
    rates = Rates.of(states)

    def rate(state: State) -> float:
        more = target(state.tried, most) - state.tried
        known = [s.best * s.count for s in states if s.best is not None]
        if state.best is None:  # as if it took the mean time of the others
            gain = UNKNOWN * sum(known) / max(1, len(known))
        else:
            gain = state.count * rates.gain(state)
        return gain / (more * state.pace)

    index, state = max(open_.items(), key=lambda pair: rate(pair[1]))
    gain = None if state.best is None else state.count * rates.gain(state)
    return NextOperation(index, target(state.tried, most), gain)


def leader(states: Sequence[State], open_: Mapping[int, State], most: int) -> NextOperation | None:
    """An operation of a kind of which no candidate was tried; None if there is none.

    It is one with the fewest turns in vain, and among these, one with the largest weight.
    """
    known = {state.kind for state in states if state.tried and state.kind}
    new = {k: s for k, s in open_.items() if not s.tried and s.kind not in known}
    index = min(new, key=lambda k: (new[k].vain, -new[k].weight), default=None)
    return None if index is None else NextOperation(index, target(0, most))


def follower(
    states: Sequence[State], open_: Mapping[int, State], most: int
) -> NextOperation | None:
    """The untried operation with the largest weight, for one candidate; None if there is none.

    Before that, an operation of its kind gets `SECOND` candidates if none has as many.
    """
    left = {k: s for k, s in open_.items() if not s.tried}
    index = min(left, key=lambda k: (left[k].vain, -left[k].weight), default=None)
    if index is None:
        return None
    kind = left[index].kind
    alike = {k: s for k, s in open_.items() if s.kind == kind and s.tried}
    if alike and not any(s.tried >= min(SECOND, most) for s in states if s.kind == kind):
        first = max(alike, key=lambda k: (alike[k].tried, alike[k].weight))
        return NextOperation(
            first, target(alike[first].tried, most), why="similar ones will begin with its best"
        )
    return NextOperation(index, 1, why="a candidate like the best of a similar one")
