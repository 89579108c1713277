"""The command `liftpy`, which handles Ctrl-C, SIGTERM and SIGHUP from its start to its end.

This module imports little, so that the signal handlers are installed before the slow imports.
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
"""Seconds that a command has to clean up; native code does not see a signal until it returns."""

SENTENCES = {
    signal.SIGINT: "stopped",
    signal.SIGTERM: "stopped by SIGTERM",
    signal.SIGHUP: "stopped by SIGHUP",  # its terminal was closed
}


class Stop:
    """Handles Ctrl-C, SIGTERM, and SIGHUP unless it is ignored, as under `nohup`.

    While the command is running (`at_work`), the first signal raises KeyboardInterrupt, so that the
    command can clean up and report what is stored. The process exits immediately on a signal before
    or after that, on a second signal other than SIGHUP, and if the first one has no effect for
    `PATIENCE` seconds.
    """

    def __init__(self) -> None:
        self.came: signal.Signals | None = None
        self.at_work = False
        self.said = False

    def install(self) -> None:
        """Installs the handlers of the signals."""
        for number in SENTENCES:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self.heed)
        sys.unraisablehook = self._unraisable
        # Python calls `heed` between two bytecode instructions of the main thread, which may be
        # executing library code for long; the wakeup descriptor notifies another thread directly.
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def heed(self, number: int, _frame: FrameType | None) -> None:
        """Handles a signal."""
        if self.came is not None and number == signal.SIGHUP:
            return  # of a closed terminal, the system and the shell send one each
        first, self.came = self.came is None, signal.Signals(number)
        if first and self.at_work:
            raise KeyboardInterrupt
        self.leave()

    def leave(self) -> None:
        """Exits, with a message if none was printed. Worker processes end with this process."""
        came = self.came or signal.SIGINT
        try:
            if not self.said:
                self.said = True
                os.write(2, f"{SENTENCES[came]}\n".encode())
        finally:  # also if the terminal is gone
            os._exit(128 + came)

    def _watch(self, reading: int) -> None:
        """Ends a command that does not react to a signal."""
        while (number := os.read(reading, 1)[0]) not in SENTENCES:
            continue
        threading.Event().wait(PATIENCE)
        self.came = self.came or signal.Signals(number)
        self.leave()

    def _unraisable(self, what: sys.UnraisableHookArgs) -> None:
        """Handles a KeyboardInterrupt raised in a destructor, which Python does not propagate."""
        if self.came is not None and issubclass(what.exc_type, KeyboardInterrupt):
            self.leave()
        sys.__unraisablehook__(what)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and exits: 0 done, 1 refused, 2 usage, 3 nothing measured, 70 a defect.

    130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP. With `arguments`, for calls from Python,
    signals are left to the caller.
    """
    if arguments is not None:
        load("application").run(list(arguments))
        return
    stop = Stop()
    stop.install()
    if sys.argv[1:2] == ["explore"]:  # it and its imports take long: report progress from the start
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
        try:
            sys.stdout.flush()
        finally:
            stop.leave()
    stop.at_work = False
