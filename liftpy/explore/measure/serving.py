"""The worker's end of a worker process (liftpy/explore/measure/process.py).

    python -m liftpy.explore.measure.starting MODULE FD    FD: a socket to the parent process

The worker receives a `Setup` and replies that it is `Ready`; then it answers requests, one after
another. It exits when its parent does, even while a kernel hangs.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeAlias

from liftpy.errors import LiftError
from liftpy.explore.measure.messages import Answer, Ready, Request, Setup, Unfit, WorkerPhase

Tell: TypeAlias = Callable[[WorkerPhase], None]


def serve(make: Callable[[Setup, Tell], Callable[[Request], Answer]]) -> None:
    """Answers requests with the function that `make` returns, until the connection closes.

    The function may announce the phases of an answer to the parent process.
    """
    connection = Connection(int(sys.argv[-1]))
    note = first_to_go()
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    try:
        answer = make(inbox.get(), connection.send)
    except LiftError as refusal:
        connection.send(Unfit(str(refusal)))
        return
    connection.send(Ready(note))
    while True:
        connection.send(answer(inbox.get()))


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
