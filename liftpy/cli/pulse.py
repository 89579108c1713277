"""Progress messages of a long command, on stderr.

In a pipe, it is a line every few seconds; on a terminal the phase, until the live view starts. A
separate thread prints it, and the module imports little, so that it works during slow imports.
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
"""Seconds between two updates of a terminal."""

ERASE = "\r\x1b[K"
MINUTE = 60


class Pulse:
    """Prints the current activity `doing`: a text, or a function that returns one.

    `began` is the `time.monotonic` of the command's start; None if no command runs. On a terminal,
    `draw` is called instead if it is set.
    """

    def __init__(self) -> None:
        self.began: float | None = None
        self.doing: str | Callable[[], str] = "starting"
        self.draw: Callable[[], None] | None = None
        self._drawn = False

    @contextmanager
    def beating(self, began: float) -> Generator[None]:
        """Prints progress until the context ends."""
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

    @contextmanager
    def phase(self, doing: str) -> Generator[None]:
        """Prints the progress of a phase, of a command that prints none or is printing it."""
        if self.began is not None:
            self.doing = doing
            yield
            return
        with self.beating(time.monotonic()):
            self.doing = doing
            yield

    def text(self) -> str:
        """The elapsed time and the current activity."""
        doing = self.doing if isinstance(self.doing, str) else self.doing()
        return f"{clock(time.monotonic() - (self.began or 0.0))} {doing}"

    def line(self) -> None:
        """Prints a line, for a pipe."""
        print(f"liftpy: {self.text()}", file=sys.stderr, flush=True)  # noqa: T201  typer is not loaded yet

    def frame(self) -> None:
        """Updates the terminal."""
        if self.draw is not None:
            self.draw()
            return
        self._drawn = True
        sys.stderr.write(f"{ERASE}liftpy: {self.text()}")
        sys.stderr.flush()

    def erase(self) -> None:
        """Erases its line from the terminal, before other output."""
        if self._drawn:
            sys.stderr.write(ERASE)
            sys.stderr.flush()
        self._drawn = False


pulse = Pulse()


def of_this_process() -> AbstractContextManager[None]:
    """Prints the progress of this process's command until the context ends."""
    return pulse.beating(process_began())


def process_began() -> float:
    """The start of this process, as a value of `time.monotonic`."""
    return time.monotonic() - max(0.0, time.time() - psutil.Process().create_time())


def clock(seconds: float) -> str:
    """A duration as h:mm:ss."""
    minutes, rest = divmod(round(seconds), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02}:{rest:02}"
