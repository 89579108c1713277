"""The command `liftpy`: it can be stopped from its first moment to its last.

Nothing else is imported here before signals have their handlers: what a command needs comes after.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from liftpy.cli.loading import load

PATIENCE = 5.0
"""Seconds that a command has to tidy up; what is native does not see a signal before it returns."""

SENTENCES = {signal.SIGINT: "stopped", signal.SIGTERM: "stopped by SIGTERM"}


class Stop:
    """What Ctrl-C and SIGTERM do to a command.

    While it is at work, the first of them is a KeyboardInterrupt, so that it can tidy up and say
    what is kept. Before and after that, at the second one, and where nobody heeds the first one for
    `PATIENCE` seconds, the process ends at once.
    """

    def __init__(self) -> None:
        self.came: signal.Signals | None = None
        self.at_work = False
        self.said = False

    def install(self) -> None:
        """Takes over both signals."""
        for number in SENTENCES:
            signal.signal(number, self.heed)
        sys.unraisablehook = self._unraisable
        # Python calls `heed` between two instructions of the main thread, which may be far inside a
        # library; what the system writes here tells another thread at once.
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def heed(self, number: int, _frame: FrameType | None) -> None:
        """Called by Python for a signal."""
        first, self.came = self.came is None, signal.Signals(number)
        if first and self.at_work:
            raise KeyboardInterrupt
        self.leave()

    def leave(self) -> None:
        """Ends the process, with a sentence if there was none. Its workers end when it does."""
        came = self.came or signal.SIGINT
        if not self.said:
            self.said = True
            os.write(2, f"{SENTENCES[came]}\n".encode())
        os._exit(128 + came)

    def _watch(self, reading: int) -> None:
        """Ends a command that does not heed a signal."""
        while (number := os.read(reading, 1)[0]) not in SENTENCES:
            continue
        threading.Event().wait(PATIENCE)
        self.came = self.came or signal.Signals(number)
        self.leave()

    def _unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """A KeyboardInterrupt in a destructor goes nowhere else."""
        if self.came is not None and issubclass(what.exc_type, KeyboardInterrupt):
            self.leave()
        sys.__unraisablehook__(what)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 done, 1 refused, 2 usage, 3 nothing measured, 70 a defect.

    130 after Ctrl-C, 143 after SIGTERM; of commands that are given as `arguments`, from Python,
    signals are the caller's.
    """
    if arguments is not None:
        load("application").run(list(arguments))
        return
    stop = Stop()
    stop.install()
    if sys.argv[1:2] == ["explore"]:  # it takes long, its imports too: it says so at once
        with load("pulse").of_this_process():
            work(stop)
    else:
        work(stop)


def work(stop: Stop) -> None:
    """Runs the command of this process."""
    application = load("application")
    try:
        stop.at_work = True
        application.run(sys.argv[1:])
    except BaseException as end:
        stop.at_work = False
        if stop.came is None:
            raise
        stop.said = isinstance(end, application.StoppedAndSaid)
        sys.stdout.flush()
        stop.leave()
    stop.at_work = False
