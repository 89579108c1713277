"""A worker process and its loss: a hang or a crash costs that process only.

    python -m MODULE FD        FD: a socket to the process that started it

The worker is told a `Setup` first and says that it is `Ready`; then it answers requests, one after
another. It leaves when its starter does, even from within a hanging kernel. What it or a driver
prints is its starter's to keep.
"""

from __future__ import annotations

import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from liftpy.errors import InternalError, LiftError
from liftpy.explore.messages import Answer, Ready, Request, Setup, Unfit
from liftpy.explore.outcome import Crashed, Defect, TimedOut

START_LIMIT = 300.0
"""Seconds that a worker may take to import, derive the skeletons or open the device."""

LOG_LINES = 12

TRACEBACK = "Traceback (most recent call last):"
"""What Python prints when it dies of an exception: here that is liftpy's defect."""


# --- the starter's end ----------------------------------------------------------------------------


class Worker:
    """A worker that is started when first needed, and again after each loss.

    `does` says what for, `module` which code it runs; `command` may start something else.
    """

    def __init__(
        self, does: str, module: str, setup: Setup, command: Sequence[str] | None = None
    ) -> None:
        self.does = does
        self.setup = setup
        self.command = command or (sys.executable, "-m", module)
        self.started = 0
        self._process: Process | None = None
        self._ready = False

    def kill(self) -> None:
        """Ends the process at once; the next request gets another."""
        if self._process is not None:
            self._process.kill()
            self._process = None
        self._ready = False

    def begin(self) -> Process:
        """The process, started if there is none; `start` waits until it is ready."""
        if self._process is not None:
            return self._process
        process = self._process = Process(self.command)
        self.started += 1
        try:
            process.send(self.setup)
        except Lost as lost:
            self.kill()
            raise InternalError(f"the process that {self.does}: {lost}") from lost
        return process

    def start(self) -> Process:
        """The process, ready for requests.

        Raises LiftError if it cannot work on this machine, InternalError if it dies.
        """
        process = self.begin()
        if self._ready:
            return process
        try:
            answer = process.receive(START_LIMIT)
        except Lost as lost:
            self.kill()
            raise InternalError(f"the process that {self.does}: {lost}") from lost
        if isinstance(answer, Unfit):
            self.kill()
            raise LiftError(answer.message)
        if not isinstance(answer, Ready):
            self.kill()
            raise InternalError(f"the process that {self.does} said {answer!r}")
        self._ready = True
        return process

    def ask(self, request: Request, seconds: float, limit: float, doing: str) -> Any:
        """The answer to a request, or how the worker was lost; it is killed after so many seconds.

        `limit` is the user's, of which `seconds` are left.
        """
        process = self.start()
        try:
            process.send(request)
            return process.receive(seconds)
        except Lost as lost:
            self.kill()
            if lost.timed_out:
                return TimedOut(limit, doing)
            kind = Defect if TRACEBACK in str(lost) else Crashed
            return kind(f"while {doing}, {lost}")


class Lost(Exception):
    """The worker died, or said nothing for too long (`timed_out`)."""

    def __init__(self, how: str, *, timed_out: bool = False) -> None:
        super().__init__(how)
        self.timed_out = timed_out


class Process:
    """A process, the socket to it, and the file with what it prints."""

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


# --- the worker's end -----------------------------------------------------------------------------


def serve(make: Callable[[Setup], Callable[[Request], Answer]]) -> None:
    """Makes what answers requests, and answers them until the connection closes."""
    connection = Connection(int(sys.argv[1]))
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    try:
        answer = make(inbox.get())
    except LiftError as refusal:
        connection.send(Unfit(str(refusal)))
        return
    connection.send(Ready())
    while True:
        connection.send(answer(inbox.get()))


def _listen(connection: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    """Passes on what arrives; ends the process at once when the other side is gone."""
    while True:
        try:
            inbox.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)
