"""Worker processes: a hang or a crash costs only the worker process.

This is the parent's end; the worker's end is `liftpy.explore.measure.serving`. The output of the
worker and of its driver is captured here.
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
from typing import Any, Self

import psutil

from liftpy.deadline import Deadline
from liftpy.errors import InternalError, WorkerRefused, plural
from liftpy.explore.measure.messages import Ready, Request, Setup, Unfit, WorkerPhase
from liftpy.explore.measure.outcome import Crashed, Defect, OutOfMemory, TimedOut
from liftpy.memory import available

START_LIMIT = 300.0
"""Seconds that a worker may take to import its modules and to prepare for requests."""

STARTS = 3
"""How often a worker is started if it dies before it is ready: another cause may have killed it."""

END_LIMIT = 10.0
"""Seconds that the system may take to end a process that was killed or closed its connection."""

LOG_LINES = 12

SHARE = 0.9
"""The part of the memory available when a worker starts that it may hold by default."""

LEFT_OVER = 0.2
"""The part of this that a process may hold when another campaign takes it over."""

LOOK = 0.05
"""Seconds between two checks of how much memory a worker holds."""

TRACEBACK = "Traceback (most recent call last):"
"""Python prints this when an exception ends it, which is a defect of liftpy."""


NEVER = Deadline()

START = "liftpy.explore.measure.starting"
"""The module that starts the code of a worker."""


class IdleProcesses:
    """Idle worker processes, kept for the next campaign so that none has to be started for it.

    Use it in a `with`, at whose end the processes are killed.
    """

    def __init__(self) -> None:
        self._idle: dict[tuple[str, ...], list[Process]] = {}

    def take(self, command: Sequence[str], ceiling: int) -> Process | None:
        """A process with this command that is alive and small enough, if there is one."""
        waiting = self._idle.get((*command,), [])
        while waiting:
            process = waiting.pop()
            if process.alive and process.renewed(ceiling):
                return process
            killed(process, "waited for a campaign")
        return None

    def put(self, command: Sequence[str], process: Process) -> None:
        """Keeps a process that waits for requests."""
        self._idle.setdefault((*command,), []).append(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for waiting in self._idle.values():
            while waiting:
                killed(waiting.pop(), "waited for a campaign")


class Worker:
    """A worker that is started when first needed, and again after each loss.

    `does` describes its task for messages, `module` has its code; `command` may start something
    else. `ceiling` bounds its resident memory, in bytes. (A limit of the operating system on its
    address space would count memory that a runtime maps and never touches, and a process that
    exceeds it can fail in any way.) At `deadline` the worker is killed, and TimeUp is raised.
    `idle` holds processes of earlier campaigns; `leave` adds this one.
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
        idle: IdleProcesses | None = None,
    ) -> None:
        self.does = does
        self.idle = idle
        self.setup = setup
        self.command = command or (sys.executable, "-m", START, module)
        self.ceiling = ceiling
        self.deadline = deadline
        self.started = 0
        self._process: Process | None = None
        self._ready = False
        self._reused = False  # whether the process has served another campaign
        self.turn = threading.RLock()
        """Held by the thread whose request is in progress; `ask` waits for it."""

    def kill(self) -> None:
        """Kills the process, even if a thread waits for it; the next request starts another.

        A process that the system does not end is left behind, with a warning in the log.
        """
        process, self._process = self._process, None
        self._ready = False
        if process is not None:
            killed(process, self.does)

    def leave(self) -> None:
        """Leaves the process to the next campaign if it waits for requests, or kills it."""
        if self.idle is not None and self._ready and self._process is not None:
            self.idle.put(self.command, self._process)
            self._process, self._ready = None, False
        else:
            self.kill()

    def begin(self) -> Process:
        """The process, started if none is alive; `start` waits until it is ready.

        A process that died between two requests is replaced: no candidate caused its death.
        """
        with self.turn:
            return self._begin()

    def _begin(self) -> Process:
        process = self._process
        if process is not None and process.alive:
            return process
        self.kill()
        ceiling = self.ceiling or int(SHARE * available())
        process = None if self.idle is None else self.idle.take(self.command, ceiling)
        self._reused = process is not None
        process = self._process = process or Process(self.command, ceiling)
        self.started += 1
        process.send(self.setup)
        return process

    def start(self) -> Process:
        """The process, ready for requests; if it dies before it is ready, it is started again.

        Raises WorkerRefused if it cannot work on this machine or dies `STARTS` times, InternalError
        if it dies of a defect.
        """
        with self.turn:
            return self._start()

    def _start(self) -> Process:
        process, tries = self._begin(), 1
        if self._ready:
            return process
        while True:
            reused = self._reused  # if it fails, an earlier campaign may be the cause
            try:
                answer = process.receive(min(START_LIMIT, self.deadline.left))
                if not (reused and isinstance(answer, Unfit)):
                    break
                self.kill()
            except Lost as lost:
                self.kill()
                self.deadline.refuse_if_over(f"the process that {self.does} was starting")
                if TRACEBACK in str(lost) and not reused:
                    raise InternalError(f"the process that {self.does}: {lost}") from lost
                if tries == STARTS or (isinstance(lost, TooSlow | TooLarge) and not reused):
                    raise WorkerRefused(
                        f"the process that {self.does} cannot be started "
                        f"({plural(tries, 'attempt')}): {lost}"
                    ) from lost
            process, tries = self._begin(), tries + (not reused)
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
        """The answer to a request, or the outcome if the worker is lost or killed after `seconds`.

        `limit` is the user's limit, of which `seconds` are left. The worker may announce phases
        with their own limits. Concurrent calls run one after another.
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
    """It did not answer in time."""


class TooLarge(Lost):
    """It holds more memory than it may."""

    def __init__(self, held: int, ceiling: int) -> None:
        super().__init__(f"it held {held >> 20} MiB; the limit is {ceiling >> 20} MiB")
        self.held = held
        self.ceiling = ceiling


def unreadable(error: Exception) -> str:
    """The text for bytes that are not a message, with the exception that they caused."""
    return f"its answer cannot be read: {type(error).__name__}: {error}"


def killed(process: Process, does: str) -> None:
    """Kills a process; a warning in the log if the system does not end it."""
    if why := process.kill():
        _say(
            f"the process that {does} {why}. Another one replaces it; until it ends, it may hold "
            "memory and the device, and disturb times"
        )


class Process:
    """A process, the socket to it, and the file with its output.

    `ceiling` is the memory it may hold, in bytes. If the process hangs, a message in either
    direction may stop halfway. So two threads transfer messages, and every wait has a limit.
    """

    def __init__(self, command: Sequence[str], ceiling: int) -> None:
        self._ceiling = ceiling
        self._printed = 0  # the bytes of its output that belong to earlier campaigns
        self._patience = END_LIMIT  # seconds to wait for its end after it was killed
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
                start_new_session=True,  # Ctrl-C goes to the campaign, which ends the worker
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
        """Whether it is running."""
        return self._process.poll() is None

    def renewed(self, ceiling: int) -> bool:
        """Prepares it for another campaign; False if it holds a large part of what it may hold."""
        self._ceiling = ceiling
        self._printed = os.fstat(self._log.fileno()).st_size
        try:
            return psutil.Process(self._process.pid).memory_info().rss < LEFT_OVER * ceiling
        except psutil.NoSuchProcess:
            return False

    def send(self, message: Any) -> None:
        """Queues a message; if it cannot be delivered, `receive` raises Lost."""
        self._outbox.put(pickle.dumps(message))

    def receive(self, seconds: float) -> Any:
        """The next message; raises Lost if it is late, or if the process died or is too large."""
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
            except Exception as error:  # invalid bytes may raise anything
                raise Lost(unreadable(error)) from error

    def _carry_out(self, connection: Connection) -> None:
        """Sends the queued messages until None is queued or the connection closes."""
        with connection:
            while (message := self._outbox.get()) is not None:
                try:
                    connection.send_bytes(message)
                except OSError:  # `receive` reports this, with the cause of death
                    return

    def _carry_in(self, connection: Connection) -> None:
        """Receives messages until an error, which is queued as the last message."""
        with connection:
            while True:
                try:
                    self._inbox.put(connection.recv_bytes())
                except Exception as end:  # noqa: BLE001  such as a length larger than the memory
                    self._inbox.put(end)
                    return

    def _weigh(self) -> None:
        """Raises TooLarge if the process holds more memory than it may."""
        try:
            held = psutil.Process(self._process.pid).memory_info().rss
        except psutil.NoSuchProcess:  # it died: the connection reports this
            return
        if held > self._ceiling:
            raise TooLarge(held, self._ceiling)

    def kill(self) -> str:
        """Kills the process; returns a warning if it has not ended within END_LIMIT, or ''."""
        held = self._held() if self._killed() is None else ""
        if held:  # a thread waits for it, so that it does not remain a zombie when it ends
            threading.Thread(target=self._process.wait, daemon=True).start()
        self._outbox.put(None)
        with suppress(OSError):  # another thread has closed it
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the two threads
        for thread in self._threads:
            thread.join()
        self._socket.close()
        self._log.close()
        return held

    def _code(self, seconds: float) -> int | None:
        """Its exit code; None if it does not end within this time."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(seconds)
        return None

    def _killed(self) -> int | None:
        """Kills the process; its exit code, or None if it does not end. Waits only once for it."""
        self._process.kill()
        seconds, self._patience = self._patience, 0.0
        return self._code(seconds)

    def _held(self) -> str:
        """The text for a process that was killed and has not ended, with its state."""
        pid = self._process.pid
        try:
            state = psutil.Process(pid).status()
        except psutil.NoSuchProcess:  # it has ended in the meantime
            return ""
        if self._process.poll() is not None:  # it has ended in the meantime
            return ""
        return (
            f"(process {pid}, state {state}) was killed and has not ended in {END_LIMIT:.0f} s: "
            "a driver or a debugger may hold it"
        )

    def _post_mortem(self) -> str:
        """How the process died, with the last lines of its output."""
        code = self._code(END_LIMIT)
        if code is None:
            code = self._killed()
        how = f"the process {_died(code)}"
        self._log.seek(self._printed)
        printed = self._log.read().decode(errors="replace").strip()
        lines = printed.splitlines()
        if not lines:
            return how
        heading = f"{TRACEBACK}\n" if TRACEBACK in printed else ""
        tail = "\n".join(lines[-LOG_LINES:])
        return f"{how}: {lines[-1]}\n{heading}{tail}"


@functools.cache
def _say(note: str) -> None:
    """Logs a note only once, since every worker may have the same note."""
    logging.getLogger(__name__).warning("%s", note)


def _died(code: int | None) -> str:
    """How a process ended, in words, from its exit code."""
    if code is None:
        return "closed its connection and was killed, but does not end"
    if code >= 0:
        return f"died with exit code {code}"
    known = {s.value: s.name for s in signal.Signals}
    return f"died with signal {known.get(-code, str(-code))}"


def _environment() -> dict[str, str]:
    """The environment of a worker, with this liftpy on its path."""
    root = str(Path(__file__).parents[3])
    path = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}
