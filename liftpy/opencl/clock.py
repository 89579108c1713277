"""Which clock times launches: the device's, or the host's if it has none that advances."""

from __future__ import annotations

from typing import Literal

Clock = Literal["device", "host"]

BY_HOST = "timed by the host's clock, since the device has no timestamps that advance"
"""The sentence for times that include the overhead of starting and awaiting each launch."""

PAUSE = 0.001
"""Seconds that the host waits between two commands to see whether the device's clock advances."""


def clock_of(first_start: int, last_end: int, between_ns: int) -> Clock:
    """The clock to use, from two commands between which the host waited for `between_ns`.

    The first was complete before the wait, and the second was enqueued after it. So by any clock,
    at least this time passes between the start of the first and the end of the second. Half of it
    is required, because a clock may be coarse.

    >>> clock_of(2, 3, 1_000_000)
    'host'
    >>> clock_of(5_000_000, 6_200_000, 1_000_000)
    'device'
    """
    return "device" if last_end - first_start >= between_ns / 2 else "host"
