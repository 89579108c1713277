"""What a long command is doing, said on stderr while it does it.

In a pipe a line every few seconds; on a terminal the phase, until something draws more. It is told
by a thread of its own, and imports nothing heavy: it speaks before the rest of liftpy is there.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import psutil

LINES = 5.0
"""Seconds between two lines in a pipe."""

FRAMES = 0.5
"""Seconds between two looks at a terminal."""

ERASE = "\r\x1b[K"
MINUTE = 60


class Pulse:
    """Says what is being done: `doing`, a text, or what makes one each time.

    `began` is when the command began, of the clock `time.monotonic`; None where none does. On a
    terminal `draw` is called instead, where it is given.
    """

    def __init__(self) -> None:
        self.began: float | None = None
        self.doing: str | Callable[[], str] = "starting"
        self.draw: Callable[[], None] | None = None
        self._drawn = False

    @contextmanager
    def beating(self, began: float) -> Generator[None]:
        """Says it from now on until the end."""
        self.began, self.doing, self.draw, self._drawn = began, "starting", None, False
        live = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        beat = self.frame if live else self.line
        done = threading.Event()

        def run() -> None:
            while not done.wait(FRAMES if live else LINES):
                beat()

        thread = threading.Thread(target=run, name="liftpy-pulse", daemon=True)
        if live:
            beat()
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
            self.erase()
            self.began = None

    def text(self) -> str:
        """How long it has run, and what it does."""
        doing = self.doing if isinstance(self.doing, str) else self.doing()
        return f"{clock(time.monotonic() - (self.began or 0.0))} {doing}"

    def line(self) -> None:
        """A line of a pipe."""
        print(f"liftpy: {self.text()}", file=sys.stderr, flush=True)  # noqa: T201  typer is not there

    def frame(self) -> None:
        """What a terminal shows now."""
        if self.draw is not None:
            self.draw()
            return
        self._drawn = True
        sys.stderr.write(f"{ERASE}liftpy: {self.text()}")
        sys.stderr.flush()

    def erase(self) -> None:
        """Takes its line from the terminal: somebody else draws there now."""
        if self._drawn:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
        self._drawn = False


pulse = Pulse()


def of_this_process() -> AbstractContextManager[None]:
    """Says what the command of this process does, from now on until the end."""
    return pulse.beating(process_began())


def process_began() -> float:
    """When this process was started, of the clock `time.monotonic`."""
    return time.monotonic() - max(0.0, time.time() - psutil.Process().create_time())


def clock(seconds: float) -> str:
    """A duration as h:mm:ss."""
    minutes, rest = divmod(round(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}"
