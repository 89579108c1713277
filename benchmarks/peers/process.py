"""Peers in processes of their own.

Several of them bring the same libraries in other versions (TBB, OpenMP, LLVM), which harm each
other in one process; and one that dies takes nobody along. A process is stopped by signal while it
is not its turn: the threads of some libraries (ONNX Runtime, OpenBLAS) turn in circles for long
after their last call, and would take the processors of whoever comes next. liftpy's runtime is in
the benchmark's own process, and its threads sleep: the rests show it, in which none of that is
stopped.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

import numpy as np
from cases import CASES, CLAIMED
from turns import Figures, host, turn

from peers import PEERS
from peers.interface import LeftOut


class PeerDied(Exception):
    """The process of a peer ended."""


class Remote:
    """A peer in a process, started when first needed and again after it died."""

    def __init__(self, name: str, threads: int) -> None:
        self.name = name
        self.threads = threads
        self._process: Any = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def make(self, case: str) -> tuple[str, np.ndarray] | None:
        """Makes it ready for a case: its layout and result; None if it has nothing for that.

        `LeftOut` where the peer says so.
        """
        answer = self._ask(case)
        if isinstance(answer, LeftOut):
            raise answer
        return answer

    def turn(self) -> Figures:
        """One turn at the case that it is ready for."""
        return self._ask(None)

    def _ask(self, message: str | None) -> Any:
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(
                target=serve, args=(self.name, self.threads, theirs, os.getpid()), daemon=True
            )
            self._process.start()
            theirs.close()
        assert self._connection is not None
        try:
            os.kill(self._process.pid, signal.SIGCONT)
            self._connection.send(message)
            answer = self._connection.recv()
            os.kill(self._process.pid, signal.SIGSTOP)
        except (EOFError, OSError) as error:
            self._process.join()
            code = self._process.exitcode
            self._process = None
            raise PeerDied(f"its process ended with code {code}") from error
        return answer


PR_SET_PDEATHSIG = 1
"""Of Linux' prctl: the signal that this process gets when its starter ends (linux/prctl.h)."""


def end_with(starter: int) -> None:
    """Has the system end this process when its starter ends, however, and even if it is stopped.

    A starter that is killed cannot do that, and a process that is stopped cannot see it.
    """
    if sys.platform != "linux":
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != starter:  # it ended before it was asked for
        os._exit(1)


def serve(name: str, threads: int, connection: Connection, starter: int) -> None:
    """Answers until the other side is gone: a case's name makes it ready, None is a turn."""
    end_with(starter)
    peer = next(p for p in PEERS if p.name == name)
    made = None
    while True:
        try:
            message = connection.recv()
        except EOFError:
            return
        if message is None:
            assert made is not None
            connection.send(turn(host(made.run)))
            continue
        try:
            made = peer.make((CASES | CLAIMED)[message], threads)
        except LeftOut as why:
            connection.send(why)
            continue
        if made is None:
            connection.send(None)
            continue
        made.run()
        connection.send((made.layout, np.array(made.result())))
