"""Measuring candidates on this machine: one worker compiles, another has the device."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from liftpy.errors import WorkerRefused
from liftpy.explore.candidate import Candidate
from liftpy.explore.messages import Compile, Compiled, Doubtful, Measure, Request, Settle, Setup
from liftpy.explore.outcome import Crashed, Outcome
from liftpy.explore.process import Worker

COMPILING = "liftpy.explore.compiling"
BENCH = "liftpy.explore.bench"


@dataclass(frozen=True)
class Limits:
    """The seconds that a candidate may take, and of these the driver's compiler."""

    candidate: float
    build: float | None = None


class Measurer:
    """The two workers of a campaign, each started when first needed and again after each loss.

    `limit` is the seconds that one candidate may take: to compile, build, check and time it; of
    these `build_limit` are for the driver's compiler. `ceiling` is the memory that the bench may
    hold, in bytes. Use it in a `with`.
    """

    def __init__(
        self,
        setup: Setup,
        limit: float,
        *,
        build_limit: float | None = None,
        ceiling: int | None = None,
        compiling: Sequence[str] | None = None,
        benching: Sequence[str] | None = None,
    ) -> None:
        self.limit = limit
        self.build_limit = build_limit
        self.compiler = Worker("compiles candidates", COMPILING, setup, compiling)
        self.bench = Worker("measures candidates", BENCH, setup, benching, ceiling=ceiling)

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
        """Ends the workers at once; the next candidate gets others."""
        self.compiler.kill()
        self.bench.kill()

    def start(self) -> None:
        """Starts the workers that are not there, at the same time.

        Raises WorkerRefused if one cannot work on this machine, InternalError for a defect.
        """
        self.compiler.begin()
        self.bench.begin()
        self.bench.start()
        self.compiler.start()

    def measure(
        self,
        candidate: Candidate,
        best_ns: int | None = None,
        on_compiled: Callable[[Compiled], None] = lambda _: None,
    ) -> Outcome:
        """The outcome of a candidate; `on_compiled` is called with its kernels before a launch.

        If a process dies it is measured once more: something else may have killed it, such as a
        system without memory. WorkerRefused if there is no process to begin with.
        """
        outcome = self._measure(candidate, best_ns, on_compiled)
        if not isinstance(outcome, Crashed):
            return outcome
        try:
            return self._measure(candidate, best_ns, on_compiled)
        except WorkerRefused as refusal:
            return Crashed(f"{outcome.how}\nafter that there was no other process: {refusal}")

    def _measure(
        self, candidate: Candidate, best_ns: int | None, on_compiled: Callable[[Compiled], None]
    ) -> Outcome:
        self.start()
        deadline = time.monotonic() + self.limit

        def ask(worker: Worker, request: Request, doing: str) -> Any:
            left = max(0.0, deadline - time.monotonic())
            return worker.ask(request, left, self.limit, doing)

        wanted = Compile(candidate.skeleton.key, candidate.assignment)
        compiled: Compiled | Outcome = ask(self.compiler, wanted, "compiling it")
        if not isinstance(compiled, Compiled):
            return compiled
        on_compiled(compiled)
        left = max(0.0, deadline - time.monotonic())
        job = Measure(compiled.module, best_ns, left, self.build_limit)
        found: Doubtful | Outcome = ask(self.bench, job, "measuring it")
        if not isinstance(found, Doubtful):
            return found
        return ask(self.compiler, Settle(found), "evaluating its meaning where it is doubtful")
