"""The worker's end of a worker process (liftpy/explore/measure/process.py).

    python -m liftpy.explore.measure.starting MODULE FD    FD: a socket to the parent process

The worker receives a `Setup` and replies that it is `Ready`; then it answers requests, one after
another. A further `Setup` lets it work for another campaign without a restart. It exits when its
parent does, even while a kernel hangs.
"""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from liftpy.errors import InternalError, LiftError
from liftpy.explore.measure.messages import Answer, Ready, Request, Setup, Unfit, WorkerPhase

Tell: TypeAlias = Callable[[WorkerPhase], None]


class Server(Protocol):
    """What a worker does for a campaign."""

    def answer(self, request: Request, /) -> Answer:
        """The answer to a request."""
        ...

    def close(self) -> None:
        """Frees what it holds, such as memory of a device."""
        ...


class Serving:
    """The answers of a worker to its messages: each `Setup` makes a server, which gets requests.

    `make` returns the server of a campaign, which may tell the parent process the phases of an
    answer. `note` is for the user.
    """

    def __init__(self, make: Callable[[Setup, Tell], Server], tell: Tell, note: str = "") -> None:
        self._make = make
        self._tell = tell
        self._note = note
        self._server: Server | None = None

    def reply(self, message: Setup | Request) -> Answer | Ready | Unfit:
        """The answer to a message."""
        if not isinstance(message, Setup):
            if self._server is None:
                raise InternalError(f"a worker without a campaign was asked for {message!r}")
            return self._server.answer(message)
        if self._server is not None:
            self.close()
            gc.unfreeze()  # what a server holds may be in cycles, and large
            gc.collect()
        try:
            self._server = self._make(message, self._tell)
        except LiftError as refusal:
            return Unfit(str(refusal))
        return Ready(self._note)

    def close(self) -> None:
        """Closes the server of the present campaign."""
        if self._server is not None:
            self._server.close()
        self._server = None


def serve(make: Callable[[Setup, Tell], Server]) -> None:
    """Answers messages as `Serving` does, until the connection closes."""
    connection = Connection(int(sys.argv[-1]))
    note = first_to_go()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    serving = Serving(make, connection.send, note)
    while True:
        reply = serving.reply(inbox.get())
        connection.send(reply)
        if isinstance(reply, Unfit):
            return


def _listen(connection: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    """Queues arriving messages; ends the process immediately when the connection closes."""
    while True:
        try:
            inbox.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)


def first_to_go(adjust: Path = Path("/proc/self/oom_score_adj")) -> str:
    """Asks Linux to kill this process first if memory runs out; returns why it cannot, or ''."""
    try:
        if adjust.exists():
            adjust.write_text("1000")
    except OSError as error:
        return (
            f"{adjust} cannot be written ({error.strerror}): if memory runs out, the system may "
            "end another process than the one that measures or compiles a candidate"
        )
    return ""
