"""Until when a call may work: one value, which every phase asks.

A phase that is Python asks by itself: while it runs in `Deadline.phase`, `check` stands in its
loops, and costs a fraction of a microsecond. What cannot ask, such as a driver, runs in a worker
process, which is waited for no longer than `left` (liftpy/explore/measure/process.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from liftpy.errors import TimeUp

MANY = 1 << 12
"""Passes of a loop with short bodies between two looks at the clock."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the clock `time.monotonic`, `seconds` after its beginning; without them never.

    `told` is called with the name of each phase when it begins.

    >>> with Deadline.after(3600).phase("counting"):
    ...     check()
    >>> with Deadline.after(0).phase("counting"):
    ...     check()
    Traceback (most recent call last):
    ...
    liftpy.errors.TimeUp: the time limit of 0 s (--time-limit) ended while counting
    """

    at: float = math.inf
    seconds: float = math.inf
    told: Callable[[str], None] = lambda _: None

    @classmethod
    def after(
        cls,
        seconds: float | None,
        began: float | None = None,
        told: Callable[[str], None] = lambda _: None,
    ) -> Deadline:
        """So many seconds after a moment of the clock, or after now; None is never."""
        if seconds is None:
            return cls(told=told)
        return cls((time.monotonic() if began is None else began) + seconds, seconds, told)

    @property
    def left(self) -> float:
        """Seconds until then; 0 where it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether it has passed."""
        return time.monotonic() >= self.at

    def refuse_if_over(self, doing: str) -> None:
        """Raises TimeUp if it has passed: what was done then is said."""
        if self.over:
            raise TimeUp(f"the time limit of {self.seconds:g} s (--time-limit) ended while {doing}")

    @contextmanager
    def phase(self, doing: str) -> Generator[None]:
        """While it lasts, `check` in this thread asks this deadline."""
        self.told(doing)
        before = _IN_FORCE.set((self, doing))
        try:
            check()
            yield
        finally:
            _IN_FORCE.reset(before)


_IN_FORCE: ContextVar[tuple[Deadline, str] | None] = ContextVar("deadline", default=None)


def check() -> None:
    """Raises TimeUp if the deadline of the phase that this is in has passed."""
    now = _IN_FORCE.get()
    if now is not None and time.monotonic() >= now[0].at:
        deadline, doing = now
        deadline.refuse_if_over(doing)


def checked(numbers: range) -> Iterable[int]:
    """The numbers of a loop; in a long one `check` is called once in a while."""
    return numbers if len(numbers) <= MANY else _checked(numbers)


def _checked(numbers: range) -> Iterator[int]:
    for start in range(0, len(numbers), MANY):
        check()
        yield from numbers[start : start + MANY]


def seconds_left(most: float) -> float:
    """So many seconds, or those that the phase has left if they are fewer: a solver's limit."""
    now = _IN_FORCE.get()
    return most if now is None else min(most, now[0].left)
