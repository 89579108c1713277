"""Which partition may add a point to the front of time and peak.

A partition is assumed to become faster, by less the more turns it has had (`hope`). It may add a
point unless a candidate so far is at least as fast as this assumption and needs no more memory. So
partitions that need little memory are tuned too, and not only the fastest one (optimism in the face
of uncertainty: Lai and Robbins 1985).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from liftpy.explore.search.trial import Trial

OPTIMISM = 6.0
"""The times of a partition with `n` turns are assumed to fall by a factor of 1 + OPTIMISM / n."""


class Tried(Protocol):
    """A partition with the least peak of its candidates so far, and the turns it has had."""

    peak: int | None
    turns: int
    held: int
    ended: bool


Arm = TypeVar("Arm", bound=Tried)


def hope(time: float, turns: int) -> float:
    """The time that a partition may reach, given its present time and its turns.

    >>> hope(7.0, 1), hope(7.0, 6)
    (1.0, 3.5)
    """
    return time / (1 + OPTIMISM / max(1, turns))


def hopeful(
    arms: Iterable[Arm], expected: Callable[[Arm], float], trials: Sequence[Trial]
) -> Arm | None:
    """Of the partitions that may add a point, the one with the fewest turns; None without any."""
    points = [(t.time_ns, t.peak) for t in trials if t.time_ns is not None and t.peak is not None]
    found: list[Arm] = []
    for arm in arms:
        if arm.ended or arm.peak is None:
            continue
        least = hope(expected(arm), arm.turns + arm.held)
        if not any(time <= least and peak <= arm.peak for time, peak in points):
            found.append(arm)
    return min(found, key=lambda arm: arm.turns + arm.held, default=None)
