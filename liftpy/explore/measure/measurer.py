"""Measuring candidates on this machine: one worker compiles, another has the device.

A third worker may build the next candidate with the driver's compiler at the same time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from liftpy.deadline import Deadline
from liftpy.errors import WorkerRefused
from liftpy.explore.measure.messages import (
    Blame,
    Build,
    Built,
    Compile,
    Compiled,
    Cut,
    Doubtful,
    Inspect,
    Inspected,
    Measure,
    Request,
    Settle,
    Setup,
    Stored,
)
from liftpy.explore.measure.outcome import Crashed, Outcome, TimedOut, WrongResult
from liftpy.explore.measure.process import NEVER, IdleProcesses, Worker
from liftpy.explore.space.candidate import Candidate

COMPILING = "liftpy.explore.measure.compiling"
BENCH = "liftpy.explore.measure.bench"
BUILDING = "liftpy.explore.measure.building"


SHARE = 0.5
"""The part of a campaign's remaining time that one candidate may take."""

LEAST_SHARE = 10.0
"""The shortest share, in seconds: otherwise every candidate near the end would time out."""


@dataclass(frozen=True)
class Allowance:
    """The seconds that a candidate may take, and the option that sets this limit."""

    seconds: float
    option: str = "--candidate-limit"

    def said(self, outcome: Outcome) -> Outcome:
        """The outcome; a timeout of this allowance names its limit and option."""
        if isinstance(outcome, TimedOut) and outcome.option == TimedOut.option:
            return replace(outcome, limit=self.seconds, option=self.option)
        return outcome


@dataclass(frozen=True)
class Limits:
    """Limits in seconds for a candidate and for the driver's compiler, and the campaign's deadline.

    A candidate in progress at the deadline has no outcome (TimeUp). A candidate times out if it
    uses up its share of the time that was left when it began.
    """

    candidate: float
    build: float | None = None
    deadline: Deadline = NEVER

    def allowance(self) -> Allowance:
        """The allowance of a candidate that begins now."""
        share = max(SHARE * self.deadline.left, LEAST_SHARE)
        if share < self.candidate:
            return Allowance(share, "its share of --time-limit")
        return Allowance(self.candidate)


@dataclass(frozen=True)
class Prepared:
    """The kernels of a candidate, and, if they were built ahead, the result of the build.

    `seconds` is how much of its allowance the candidate has used.
    """

    candidate: Compile
    compiled: Compiled
    built: Built | Outcome | None
    seconds: float
    allowed: Allowance


class Measurer:
    """The workers of a campaign, each started when first needed and again after each loss.

    `limits` bounds the seconds to compile, build, check and time one candidate; a number is the
    limit of a candidate in a campaign without a deadline. `ceiling` is the memory that the bench
    may hold, in bytes. `idle` has processes of earlier campaigns. With `ahead`, a third worker
    builds, so that one thread can prepare a candidate while another measures one. Use it in a
    `with`.
    """

    def __init__(
        self,
        setup: Setup,
        limits: Limits | float,
        *,
        ceiling: int | None = None,
        ahead: bool = False,
        compiling: Sequence[str] | None = None,
        benching: Sequence[str] | None = None,
        idle: IdleProcesses | None = None,
    ) -> None:
        self.limits = limits if isinstance(limits, Limits) else Limits(limits)
        end = self.limits.deadline
        self.compiler = Worker(
            "compiles candidates", COMPILING, setup, compiling, deadline=end, idle=idle
        )
        self.bench = Worker(
            "measures candidates", BENCH, setup, benching, ceiling=ceiling, deadline=end, idle=idle
        )
        builder = Worker("builds candidates", BUILDING, setup, deadline=end, idle=idle)
        self.builder = builder if ahead else None

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
        """Kills the workers; the next candidate gets new ones."""
        self.compiler.kill()
        self.bench.kill()
        builder = self.builder
        if builder is not None:
            builder.kill()

    def leave(self) -> None:
        """Leaves the workers to the next campaign; none may be busy."""
        for worker in filter(None, (self.compiler, self.bench, self.builder)):
            worker.leave()

    def start(self) -> None:
        """Starts the missing workers; waits for a thread that prepares a candidate.

        Raises WorkerRefused if one cannot work on this machine, InternalError for a defect.
        """
        self.compiler.begin()
        self.bench.start()
        builder = self.builder
        if builder is not None:  # after the bench: the device may admit only one process
            try:
                builder.start()
            except WorkerRefused as refusal:
                self._do_without(refusal)
        self.compiler.start()

    def _do_without(self, refusal: WorkerRefused) -> None:
        """Continues without a builder: the bench builds."""
        logging.getLogger(__name__).warning("nothing is built ahead: %s", refusal)
        self.builder = None

    def prepare(self, candidate: Candidate) -> Prepared | Outcome:
        """Compiles a candidate, and builds it if there is a builder: all work before a launch."""
        ready = self._compile(candidate)
        builder = self.builder
        if builder is None or not isinstance(ready, Prepared):
            return ready
        order = Build(ready.compiled.module, self.limits.build)
        try:
            built, seconds = self._ask(builder, order, ready.seconds, ready.allowed, "building it")
        except WorkerRefused as refusal:
            self._do_without(refusal)
            return ready
        return replace(ready, built=built, seconds=seconds)

    def _compile(self, candidate: Candidate) -> Prepared | Outcome:
        wanted = Compile(candidate.skeleton.key, candidate.point)
        allowed = self.limits.allowance()
        compiled, seconds = self._ask(self.compiler, wanted, 0.0, allowed, "compiling it")
        if not isinstance(compiled, Compiled):
            return compiled
        return Prepared(wanted, compiled, None, seconds, allowed)

    def _ask(
        self, worker: Worker, request: Request, spent: float, allowed: Allowance, doing: str
    ) -> tuple[Any, float]:
        """An answer, and the seconds of its allowance that a candidate has used afterwards.

        Requests of other candidates and restarts of the worker do not count.
        """
        with worker.turn:
            worker.start()
            began = time.monotonic()
            left = max(0.0, allowed.seconds - spent)
            answer = allowed.said(worker.ask(request, left, allowed.seconds, doing))
            return answer, spent + time.monotonic() - began

    def measure(
        self,
        candidate: Candidate,
        best_ns: int | None = None,
        on_compiled: Callable[[Compiled], None] = lambda _: None,
        prepared: Callable[[], Prepared | Outcome] | None = None,
    ) -> Outcome:
        """The outcome of a candidate; `on_compiled` is called with its kernels before a launch.

        `prepared` waits for the result of another thread. Then only the bench is started here,
        since the other workers may be busy with the next candidate. Without it nothing is built
        ahead.

        If a process dies, the candidate is measured once more, because something else may have
        killed the process, for example a lack of memory. Raises WorkerRefused if a process cannot
        be started for the first measurement.
        """
        if prepared is None:
            outcome = self._measure_alone(candidate, best_ns, on_compiled)
        else:
            self.bench.start()
            outcome = self._measure(prepared(), best_ns, on_compiled)
        if not isinstance(outcome, Crashed):
            return outcome
        try:
            return self._measure_alone(candidate, best_ns, on_compiled)
        except WorkerRefused as refusal:
            return Crashed(f"{outcome.how}\nno other process could be started: {refusal}")

    def _measure_alone(
        self, candidate: Candidate, best_ns: int | None, on_compiled: Callable[[Compiled], None]
    ) -> Outcome:
        self.compiler.begin()
        self.bench.start()
        return self._measure(self._compile(candidate), best_ns, on_compiled)

    def _measure(
        self,
        ready: Prepared | Outcome,
        best_ns: int | None,
        on_compiled: Callable[[Compiled], None],
    ) -> Outcome:
        if not isinstance(ready, Prepared):
            return ready
        on_compiled(ready.compiled)
        binary = None
        if isinstance(ready.built, Built):
            binary = ready.built.binary
        elif ready.built is not None:
            return ready.built
        left = max(0.0, min(ready.allowed.seconds - ready.seconds, self.limits.deadline.left))
        made = ready.compiled
        job = Measure(made.module, best_ns, left, self.limits.build, binary, made.bounds)
        found, spent = self._ask(self.bench, job, ready.seconds, ready.allowed, "measuring it")
        if isinstance(found, Doubtful):
            doing = "evaluating the reference where the result is doubtful"
            order = Settle(found, ready.candidate)
            found, _ = self._ask(self.compiler, order, spent, ready.allowed, doing)
        return self._blamed(found, ready) if isinstance(found, WrongResult) else found

    def _blamed(self, wrong: WrongResult, ready: Prepared) -> WrongResult:
        """A wrong result with the first stage that is wrong, if that can be found (`blame.py`)."""
        allowed, doing = self.limits.allowance(), "looking for the stage that is wrong"
        there, spent = self._ask(self.compiler, Cut(ready.candidate), 0.0, allowed, doing)
        if not isinstance(there, Stored) or not there.values:
            return wrong
        look = Inspect(ready.compiled.module, there.values)
        found, spent = self._ask(self.bench, look, spent, allowed, doing)
        if not isinstance(found, Inspected):
            return wrong
        blame = Blame(ready.candidate, wrong, there, found)
        said, _ = self._ask(self.compiler, blame, spent, allowed, doing)
        return said if isinstance(said, WrongResult) else wrong
