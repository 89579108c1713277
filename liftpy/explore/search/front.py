"""Which partition may add a point to the front of time and peak.

A partition that has had few turns is taken to become faster: the more turns it has had, the less.
It may add a point if no candidate so far needs no more memory and is as fast as that. So partitions
with little memory are tuned too, and not only the fastest one (optimism in the face of uncertainty:
Lai and Robbins 1985).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from liftpy.explore.search.trial import Trial

OPTIMISM = 6.0
"""A partition with one turn is taken to become this many times faster, and one time more."""


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
    """The partition with the fewest turns of those that may add a point; None if there is none."""
    points = [(t.time_ns, t.peak) for t in trials if t.time_ns is not None and t.peak is not None]
    found: list[Arm] = []
    for arm in arms:
        if arm.ended or arm.peak is None:
            continue
        least = hope(expected(arm), arm.turns + arm.held)
        if not any(time <= least and peak <= arm.peak for time, peak in points):
            found.append(arm)
    return min(found, key=lambda arm: arm.turns + arm.held, default=None)
