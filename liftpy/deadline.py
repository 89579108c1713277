"""The deadline of a call: one value that every phase checks.

A phase in Python checks it itself: inside `Deadline.phase`, the loops of the phase call `check`,
which takes a fraction of a microsecond. Code that cannot check, such as a driver, runs in a worker
process with the timeout `left` (liftpy/explore/measure/process.py).
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
"""The number of iterations of a loop with a short body between two checks of the clock."""


@dataclass(frozen=True)
class Deadline:
    """A deadline on the clock `time.monotonic`, after a time limit of `seconds`; by default never.

    `told` is called with the name of each phase when the phase begins.

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
        """The deadline `seconds` after `began`, or after now; None means never."""
        if seconds is None:
            return cls(told=told)
        return cls((time.monotonic() if began is None else began) + seconds, seconds, told)

    @property
    def left(self) -> float:
        """Seconds until the deadline; 0 if it has passed."""
        return max(0.0, self.at - time.monotonic())

    @property
    def over(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self.at

    def refuse_if_over(self, doing: str) -> None:
        """Raises TimeUp if the deadline has passed; the message names the phase `doing`."""
        if self.over:
            raise TimeUp(f"the time limit of {self.seconds:g} s (--time-limit) ended while {doing}")

    @contextmanager
    def phase(self, doing: str) -> Generator[None]:
        """A context in which `check` in this thread checks this deadline."""
        self.told(doing)
        before = _IN_FORCE.set((self, doing))
        try:
            check()
            yield
        finally:
            _IN_FORCE.reset(before)


_IN_FORCE: ContextVar[tuple[Deadline, str] | None] = ContextVar("deadline", default=None)


def check() -> None:
    """Raises TimeUp if the deadline of the current phase has passed."""
    now = _IN_FORCE.get()
    if now is not None and time.monotonic() >= now[0].at:
        deadline, doing = now
        deadline.refuse_if_over(doing)


def checked(numbers: range) -> Iterable[int]:
    """The numbers of a loop; a long loop calls `check` periodically."""
    return numbers if len(numbers) <= MANY else _checked(numbers)


def _checked(numbers: range) -> Iterator[int]:
    for start in range(0, len(numbers), MANY):
        check()
        yield from numbers[start : start + MANY]


def seconds_left(most: float) -> float:
    """The timeout for a solver: `most` seconds, or the time left in the phase, if less."""
    now = _IN_FORCE.get()
    return most if now is None else min(most, now[0].left)
