"""The process that compiles, checks and times candidates, one after another.

    python -m liftpy.explore.worker FD        FD: a socket to the process that started it

It may hang, or be killed by a driver, without harm to the campaign: `liftpy.explore.measure` starts
another. It leaves when the campaign's process does, even from within a hanging kernel. What it or a
driver prints is its starter's to keep.
"""

from __future__ import annotations

import hashlib
import os
import queue
import sys
import threading
import time
from multiprocessing.connection import Connection
from typing import Any

from liftpy.compile import compile_candidate, skeletons
from liftpy.errors import BuildFailed as BuildRefused
from liftpy.errors import InternalError, KernelRefused, LiftError, a_few
from liftpy.explore.check import Judge, inputs
from liftpy.explore.measurement import run_poisoned, timed
from liftpy.explore.messages import Compile, Compiled, Measure, Ready, Request, Setup, Unfit
from liftpy.explore.outcome import (
    BuildFailed,
    Defect,
    KernelLimit,
    Measured,
    Outcome,
    Refused,
    WrongResult,
)
from liftpy.opencl.kernel import Module
from liftpy.opencl.run import Loaded, Session
from liftpy.primitives.text import parse

# --- the work -------------------------------------------------------------------------------------


def source_sha(source: str) -> str:
    """The hash by which kernels are compared."""
    return hashlib.sha256(source.encode()).hexdigest()


class Bench:
    """A device and what is needed to judge candidates of one program on it."""

    def __init__(self, setup: Setup) -> None:
        program = parse(setup.text)
        self.skeletons = {s.key: s for s in skeletons(program)}
        self.arrays = inputs(program, setup.input_seed)
        self.judge = Judge(program, self.arrays, setup.wanted)
        self.session = Session(setup.device)

    def compile(self, request: Compile) -> Compiled | Outcome:
        """The kernels of a candidate, or why there are none."""
        skeleton = self.skeletons.get(request.skeleton)
        if skeleton is None:
            known = a_few(self.skeletons)
            return Defect(f"the worker derived no skeleton {request.skeleton}; it has: {known}")
        try:
            module = compile_candidate(skeleton, request.sizes)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))
        return Compiled(module, source_sha(module.source))

    def measure(self, module: Module, request: Measure) -> Outcome:
        """The outcome of a candidate whose kernels are made."""
        deadline = time.monotonic() + request.seconds
        try:
            with self.session.load(module) as loaded:
                return self._judged(loaded, module, request.best_ns, deadline)
        except BuildRefused as failure:
            return BuildFailed(str(failure))
        except KernelRefused as refusal:
            limit = KernelLimit(refusal.kernel, refusal.figure, refusal.number)
            return Refused(str(refusal), limit)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))

    def _judged(
        self, loaded: Loaded, module: Module, best_ns: int | None, deadline: float
    ) -> Outcome:
        result = run_poisoned(loaded, self.arrays)
        if loaded.allocated_bytes != module.memory.allocated:
            return Defect(
                f"{module.name} says it allocates {module.memory.allocated} bytes, "
                f"clCreateBuffer was asked for {loaded.allocated_bytes}"
            )
        error = self.judge.judge(result)
        if isinstance(error, WrongResult):
            return error
        times = timed(loaded, best_ns, deadline - time.monotonic())
        return Measured(
            times,
            loaded.prepare_ns,
            module.memory,
            error.largest,
            error.rms,
            loaded.build_seconds,
            loaded.build_log,
        )


# --- the process ----------------------------------------------------------------------------------


def serve(connection: Connection) -> None:
    """Answers requests until the connection closes."""
    inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, inbox), daemon=True).start()
    try:
        bench = Bench(inbox.get())
    except LiftError as refusal:
        connection.send(Unfit(str(refusal)))
        return
    connection.send(Ready())
    compiled: Compiled | Outcome | None = None
    while True:
        request: Request = inbox.get()
        if isinstance(request, Compile):
            compiled = bench.compile(request)
            connection.send(compiled)
        elif isinstance(compiled, Compiled):
            connection.send(bench.measure(compiled.module, request))


def _listen(connection: Connection, inbox: queue.SimpleQueue[Any]) -> None:
    """Passes on what arrives; ends the process at once when the other side is gone."""
    while True:
        try:
            inbox.put(connection.recv())
        except (EOFError, OSError):
            os._exit(0)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
