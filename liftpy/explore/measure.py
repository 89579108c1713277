"""Measuring candidates in a process of their own: a hang or a crash costs that process only."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from liftpy.errors import InternalError, LiftError
from liftpy.explore.candidate import Candidate
from liftpy.explore.messages import Compile, Compiled, Measure, Ready, Setup, Unfit
from liftpy.explore.outcome import Crashed, Defect, Outcome, TimedOut

START_LIMIT = 300.0
"""Seconds that a worker may take to import, derive the skeletons and open the device."""

WORKER = (sys.executable, "-m", "liftpy.explore.worker")
LOG_LINES = 12

TRACEBACK = "Traceback (most recent call last):"
"""What Python prints when it dies of an exception: here that is liftpy's defect."""


class Measurer:
    """A worker process for one campaign, started when first needed and again after each loss.

    `limit` is the seconds that one candidate may take: to compile, build, check and time it. Use it
    in a `with`.
    """

    def __init__(self, setup: Setup, limit: float, command: Sequence[str] = WORKER) -> None:
        self.setup = setup
        self.limit = limit
        self.command = command
        self.started = 0
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends the worker at once; the next candidate gets another."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def start(self) -> Worker:
        """The worker, started if there is none.

        Raises LiftError if it cannot work on this machine, InternalError if it dies.
        """
        if self._worker is not None:
            return self._worker
        worker = self._worker = Worker(self.command)
        self.started += 1
        try:
            worker.send(self.setup)
            answer = worker.receive(START_LIMIT)
        except Lost as lost:
            self.kill()
            raise InternalError(f"the process that measures candidates: {lost}") from lost
        if isinstance(answer, Unfit):
            self.kill()
            raise LiftError(answer.message)
        if not isinstance(answer, Ready):
            self.kill()
            raise InternalError(f"the process that measures candidates said {answer!r}")
        return worker

    def measure(
        self,
        candidate: Candidate,
        best_ns: int | None = None,
        on_compiled: Callable[[Compiled], None] = lambda _: None,
    ) -> Outcome:
        """The outcome of a candidate; `on_compiled` is called with its kernels before a launch."""
        worker = self.start()
        deadline = time.monotonic() + self.limit
        doing = "compiling it"
        try:
            worker.send(Compile(candidate.skeleton.key, candidate.assignment))
            answer = worker.receive(self.limit)
            if not isinstance(answer, Compiled):
                return answer
            on_compiled(answer)
            doing = "building, checking and timing it"
            left = max(0.0, deadline - time.monotonic())
            worker.send(Measure(best_ns, left))
            return worker.receive(left)
        except Lost as lost:
            self.kill()
            if lost.timed_out:
                return TimedOut(self.limit, doing)
            kind = Defect if TRACEBACK in str(lost) else Crashed
            return kind(f"while {doing}, {lost}")


class Lost(Exception):
    """The worker died, or said nothing for too long (`timed_out`)."""

    def __init__(self, how: str, *, timed_out: bool = False) -> None:
        super().__init__(how)
        self.timed_out = timed_out


class Worker:
    """A worker process, the socket to it, and the file with what it prints."""

    def __init__(self, command: Sequence[str]) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the process
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the campaign, which ends the worker itself
            )
        self._connection = Connection(ours.detach())

    def send(self, message: Any) -> None:
        """Sends a message. Raises Lost if nobody is there."""
        try:
            self._connection.send(message)
        except OSError as error:
            raise Lost(self._post_mortem()) from error

    def receive(self, seconds: float) -> Any:
        """The next message. Raises Lost if it does not come in time."""
        try:
            if not self._connection.poll(seconds):
                raise Lost(f"it said nothing for {seconds:.0f} s", timed_out=True)
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise Lost(self._post_mortem()) from error

    def kill(self) -> None:
        """Ends the process at once."""
        self._connection.close()
        self._process.kill()
        self._process.wait()
        self._log.close()

    def _post_mortem(self) -> str:
        """Of what the process died, with the end of what it printed."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        how = f"exit code {code}" if code >= 0 else f"signal {_signal_name(-code)}"
        self._log.seek(0)
        printed = self._log.read().decode(errors="replace").strip()
        lines = printed.splitlines()
        if not lines:
            return f"the process died with {how}"
        heading = f"{TRACEBACK}\n" if TRACEBACK in printed else ""
        tail = "\n".join(lines[-LOG_LINES:])
        return f"the process died with {how}: {lines[-1]}\n{heading}{tail}"


def _signal_name(number: int) -> str:
    known = {s.value: s.name for s in signal.Signals}
    return known.get(number, str(number))


def _environment() -> dict[str, str]:
    """The environment in which the worker finds this liftpy."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
