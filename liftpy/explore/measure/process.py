"""A worker process and its loss: a hang or a crash costs that process only.

This is the end of who starts it; its own is `liftpy.explore.measure.serving`. What it or a driver
prints is kept here.
"""

from __future__ import annotations

import functools
import logging
import os
import pickle
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import psutil

from liftpy.deadline import Deadline
from liftpy.errors import InternalError, WorkerRefused, plural
from liftpy.explore.measure.messages import Ready, Request, Setup, Unfit, WorkerPhase
from liftpy.explore.measure.outcome import Crashed, Defect, OutOfMemory, TimedOut

START_LIMIT = 300.0
"""Seconds that a worker may take to import, derive the skeletons or open the device."""

STARTS = 3
"""How often a worker is started that dies before it is ready: something else may have killed it."""

END_LIMIT = 10.0
"""Seconds that the system may take to end a process that was killed, or has said its last."""

LOG_LINES = 12

SHARE = 0.9
"""Of the memory that is free when a worker starts, what it may hold unless it is told otherwise."""

LOOK = 0.05
"""Seconds between two looks at how much memory a worker holds."""

TRACEBACK = "Traceback (most recent call last):"
"""What Python prints when it dies of an exception: here that is liftpy's defect."""


NEVER = Deadline()

START = "liftpy.explore.measure.starting"
"""The module that starts the code of a worker."""


class Worker:
    """A worker that is started when first needed, and again after each loss.

    `does` says what for, `module` which code it runs; `command` may start something else. `ceiling`
    bounds its resident memory, in bytes. Nobody waits for it beyond `deadline`: it is killed then,
    and TimeUp is raised. (A limit of the operating system on its address space
    would count what a runtime maps and never touches; and who exceeds that dies of anything.)
    """

    def __init__(
        self,
        does: str,
        module: str,
        setup: Setup,
        command: Sequence[str] | None = None,
        *,
        ceiling: int | None = None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.does = does
        self.setup = setup
        self.command = command or (sys.executable, "-m", START, module)
        self.ceiling = ceiling
        self.deadline = deadline
        self.started = 0
        self._process: Process | None = None
        self._ready = False
        self.turn = threading.RLock()
        """Whose turn it is, of several threads: `ask` waits for it, and its holder asks next."""

    def kill(self) -> None:
        """Ends the process at once, whoever waits for it; the next request gets another.

        One that the system does not end is left behind, and the log says so.
        """
        process, self._process = self._process, None
        self._ready = False
        if process is not None and (why := process.kill()):
            _say(
                f"the process that {self.does} {why}. Another one replaces it; until it ends, it "
                "may hold memory and the device, and disturb times"
            )

    def begin(self) -> Process:
        """The process, started if there is none alive; `start` waits until it is ready.

        One that died between two requests did not die of a candidate.
        """
        with self.turn:
            return self._begin()

    def _begin(self) -> Process:
        process = self._process
        if process is not None and process.alive:
            return process
        self.kill()
        ceiling = self.ceiling or int(SHARE * psutil.virtual_memory().available)
        process = self._process = Process(self.command, ceiling)
        self.started += 1
        process.send(self.setup)
        return process

    def start(self) -> Process:
        """The process, ready for requests; one that dies before that is started again.

        Raises WorkerRefused if it cannot work on this machine, or dies `STARTS` times;
        InternalError if it dies of a defect.
        """
        with self.turn:
            return self._start()

    def _start(self) -> Process:
        process, tries = self._begin(), 1
        if self._ready:
            return process
        while True:
            try:
                answer = process.receive(min(START_LIMIT, self.deadline.left))
                break
            except Lost as lost:
                self.kill()
                self.deadline.refuse_if_over(f"the process that {self.does} was starting")
                if TRACEBACK in str(lost):
                    raise InternalError(f"the process that {self.does}: {lost}") from lost
                if tries == STARTS or isinstance(lost, TooSlow | TooLarge):
                    raise WorkerRefused(
                        f"the process that {self.does} cannot be started "
                        f"({plural(tries, 'attempt')}): {lost}"
                    ) from lost
            process, tries = self._begin(), tries + 1
        if isinstance(answer, Unfit):
            self.kill()
            raise WorkerRefused(answer.message)
        if not isinstance(answer, Ready):
            self.kill()
            raise InternalError(f"the process that {self.does} said {answer!r}")
        self._ready = True
        if answer.note:
            _say(answer.note)
        return process

    def ask(self, request: Request, seconds: float, limit: float, doing: str) -> Any:
        """The answer to a request, or how the worker was lost; it is killed after so many seconds.

        `limit` is the user's, of which `seconds` are left. The worker may announce stages, with
        limits of their own. Of several threads each waits until it is its turn.
        """
        with self.turn:
            return self._ask(request, seconds, limit, doing)

    def _ask(self, request: Request, seconds: float, limit: float, doing: str) -> Any:
        process = self._start()
        deadline = time.monotonic() + min(seconds, self.deadline.left)
        stage = WorkerPhase(doing)
        try:
            process.send(request)
            while True:
                left = max(0.0, deadline - time.monotonic())
                answer = process.receive(
                    left if stage.seconds is None else min(left, stage.seconds)
                )
                if not isinstance(answer, WorkerPhase):
                    return answer
                stage = answer
        except TooSlow:
            self.kill()
            self.deadline.refuse_if_over(stage.doing)
            if stage.seconds is not None and time.monotonic() < deadline:
                return TimedOut(stage.seconds, stage.doing, stage.option)
            return TimedOut(limit, stage.doing)
        except TooLarge as large:
            self.kill()
            return OutOfMemory(large.held, large.ceiling, stage.doing)
        except Lost as lost:
            self.kill()
            kind = Defect if TRACEBACK in str(lost) else Crashed
            return kind(f"while {stage.doing}, {lost}")


class Lost(Exception):
    """The worker died, or has to be killed."""


class TooSlow(Lost):
    """It said nothing for too long."""


class TooLarge(Lost):
    """It holds more memory than it may."""

    def __init__(self, held: int, ceiling: int) -> None:
        super().__init__(f"it held {held >> 20} MiB; the limit is {ceiling >> 20} MiB")
        self.held = held
        self.ceiling = ceiling


def unreadable(error: Exception) -> str:
    """That bytes are no message, and what Python raised for them."""
    return f"its answer cannot be read: {type(error).__name__}: {error}"


class Process:
    """A process, the socket to it, and the file with what it prints.

    `ceiling` is the memory it may hold, in bytes. When the process hangs, a message may stop in the
    middle, either way: two threads carry messages, so that whoever waits does so with a limit.
    """

    def __init__(self, command: Sequence[str], ceiling: int) -> None:
        self._ceiling = ceiling
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
        self._socket = ours
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._inbox: queue.SimpleQueue[bytes | Exception] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=carry, args=(Connection(os.dup(ours.fileno())),), daemon=True)
            for carry in (self._carry_out, self._carry_in)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether it runs still."""
        return self._process.poll() is None

    def send(self, message: Any) -> None:
        """Has a message sent. If nobody takes it, `receive` tells."""
        self._outbox.put(pickle.dumps(message))

    def receive(self, seconds: float) -> Any:
        """The next message. Raises Lost if it is not there in time or the process is too large."""
        deadline = time.monotonic() + seconds
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                came = self._inbox.get(timeout=min(LOOK, left))
            except queue.Empty:
                self._weigh()
                if left == 0:
                    raise TooSlow(f"it gave no answer for {seconds:.0f} s") from None
                continue
            if isinstance(came, EOFError | OSError):
                raise Lost(self._post_mortem()) from came
            if isinstance(came, Exception):
                raise Lost(unreadable(came)) from came
            try:
                return pickle.loads(came)  # noqa: S301  our own process
            except Exception as error:  # bytes that are no message may raise anything
                raise Lost(unreadable(error)) from error

    def _carry_out(self, connection: Connection) -> None:
        """Sends what is to be sent, until there is no more or nobody is there."""
        with connection:
            while (message := self._outbox.get()) is not None:
                try:
                    connection.send_bytes(message)
                except OSError:  # who waits for the answer is told, and of what it died
                    return

    def _carry_in(self, connection: Connection) -> None:
        """Receives what the process says, until it says no more: why not is the last message."""
        with connection:
            while True:
                try:
                    self._inbox.put(connection.recv_bytes())
                except Exception as end:  # noqa: BLE001  such as a length that no memory holds
                    self._inbox.put(end)
                    return

    def _weigh(self) -> None:
        """Raises TooLarge if the process holds more memory than it may."""
        try:
            held = psutil.Process(self._process.pid).memory_info().rss
        except psutil.NoSuchProcess:  # it died: the connection tells
            return
        if held > self._ceiling:
            raise TooLarge(held, self._ceiling)

    def kill(self) -> str:
        """Ends the process at once; what is to be said if the system does not within END_LIMIT."""
        self._process.kill()
        held = self._held() if self._code() is None else ""
        if held:  # nobody waits for it but a thread, lest it stay a zombie when it ends after all
            threading.Thread(target=self._process.wait, daemon=True).start()
        self._outbox.put(None)
        with suppress(OSError):  # another thread has closed it
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who reads or writes
        for thread in self._threads:
            thread.join()
        self._socket.close()
        self._log.close()
        return held

    def _code(self) -> int | None:
        """With what it ended; None if it does not within END_LIMIT."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(END_LIMIT)
        return None

    def _held(self) -> str:
        """That it was killed and is there, and what the system is doing with it."""
        pid = self._process.pid
        try:
            state = psutil.Process(pid).status()
        except psutil.NoSuchProcess:  # it has ended just now
            return ""
        if self._process.poll() is not None:  # likewise
            return ""
        return (
            f"(process {pid}, state {state}) was killed and has not ended in {END_LIMIT:.0f} s: "
            "a driver or a debugger may hold it"
        )

    def _post_mortem(self) -> str:
        """Of what the process died, with the end of what it printed."""
        code = self._code()
        if code is None:
            self._process.kill()
            code = self._code()
        how = f"the process {_died(code)}"
        self._log.seek(0)
        printed = self._log.read().decode(errors="replace").strip()
        lines = printed.splitlines()
        if not lines:
            return how
        heading = f"{TRACEBACK}\n" if TRACEBACK in printed else ""
        tail = "\n".join(lines[-LOG_LINES:])
        return f"{how}: {lines[-1]}\n{heading}{tail}"


@functools.cache
def _say(note: str) -> None:
    """Logs a note, the first time only: every worker may have it."""
    logging.getLogger(__name__).warning("%s", note)


def _died(code: int | None) -> str:
    """How a process ended, by its code."""
    if code is None:
        return "closed its connection and was killed, but does not end"
    if code >= 0:
        return f"died with exit code {code}"
    known = {s.value: s.name for s in signal.Signals}
    return f"died with signal {known.get(-code, str(-code))}"


def _environment() -> dict[str, str]:
    """The environment in which the worker finds this liftpy."""
    root = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
