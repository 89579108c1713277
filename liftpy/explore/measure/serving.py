"""The worker's end of a worker process (liftpy/explore/measure/process.py).

    python -m liftpy.explore.measure.starting MODULE FD    FD: a socket to who started it

The worker is told a `Setup` first and says that it is `Ready`; then it answers requests, one after
another. It leaves when its starter does, even from within a hanging kernel.
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
    """Makes what answers requests, and answers them until the connection closes.

    What is made may tell its starter of the stages of an answer.
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
    """Passes on what arrives; ends the process at once when the other side is gone."""
    while True:
        try:
            inbox.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)


def first_to_go(adjust: Path = Path("/proc/self/oom_score_adj")) -> str:
    """Asks Linux to end this process before all others when memory runs out; why it cannot."""
    try:
        if adjust.exists():
            adjust.write_text("1000")
    except OSError as error:
        return (
            f"{adjust} cannot be written ({error.strerror}): if memory runs out, the system may "
            "end another process than the one that measures or compiles a candidate"
        )
    return ""
