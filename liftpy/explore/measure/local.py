"""Measuring candidates on this machine: one worker compiles, another has the device.

A third may have the driver's compiler, so that it builds the next one meanwhile.
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
from liftpy.explore.measure.process import NEVER, Worker
from liftpy.explore.space.candidate import Candidate

COMPILING = "liftpy.explore.measure.compiling"
BENCH = "liftpy.explore.measure.bench"
BUILDING = "liftpy.explore.measure.building"


SHARE = 0.5
"""Of the time that a campaign has left, what one candidate may take."""

LEAST_SHARE = 10.0
"""Seconds that a share has at least: close to a campaign's end all candidates would be slow."""


@dataclass(frozen=True)
class Allowance:
    """The seconds that a candidate may take, and the option that says so."""

    seconds: float
    option: str = "--candidate-limit"

    def said(self, outcome: Outcome) -> Outcome:
        """The outcome; that the allowance was used up says which one that was."""
        if isinstance(outcome, TimedOut) and outcome.option == TimedOut.option:
            return replace(outcome, limit=self.seconds, option=self.option)
        return outcome


@dataclass(frozen=True)
class Limits:
    """The seconds that a candidate may take, of these the driver's compiler; the campaign's end.

    A candidate that is under way at the deadline has no outcome (TimeUp). One that takes a whole
    share of what was left when it began is too slow.
    """

    candidate: float
    build: float | None = None
    deadline: Deadline = NEVER

    def allowance(self) -> Allowance:
        """What a candidate that begins now may take."""
        share = max(SHARE * self.deadline.left, LEAST_SHARE)
        if share < self.candidate:
            return Allowance(share, "its share of --time-limit")
        return Allowance(self.candidate)


@dataclass(frozen=True)
class Prepared:
    """The kernels of a candidate, and what the driver made of them, if it was asked already.

    `seconds` is how long that took, of what it is allowed.
    """

    candidate: Compile
    compiled: Compiled
    built: Built | Outcome | None
    seconds: float
    allowed: Allowance


class Measurer:
    """The workers of a campaign, each started when first needed and again after each loss.

    `limits` has the seconds that one candidate may take: to compile, build, check and time it; a
    number is those of a campaign that has no end. `ceiling` is the memory that the bench may hold,
    in bytes. With `ahead` a third worker builds, so that one thread can prepare a candidate
    while another measures one. Use it in a `with`.
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
    ) -> None:
        self.limits = limits if isinstance(limits, Limits) else Limits(limits)
        end = self.limits.deadline
        self.compiler = Worker("compiles candidates", COMPILING, setup, compiling, deadline=end)
        self.bench = Worker(
            "measures candidates", BENCH, setup, benching, ceiling=ceiling, deadline=end
        )
        builder = Worker("builds candidates", BUILDING, setup, deadline=end)
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
        """Ends the workers at once; the next candidate gets others."""
        self.compiler.kill()
        self.bench.kill()
        builder = self.builder
        if builder is not None:
            builder.kill()

    def start(self) -> None:
        """Starts the workers that are not there; whoever prepares is waited for.

        Raises WorkerRefused if one cannot work on this machine, InternalError for a defect.
        """
        self.compiler.begin()
        self.bench.start()
        builder = self.builder
        if builder is not None:  # after the bench: the device may be for one process only
            try:
                builder.start()
            except WorkerRefused as refusal:
                self._do_without(refusal)
        self.compiler.start()

    def _do_without(self, refusal: WorkerRefused) -> None:
        """There is no builder any more: the bench builds."""
        logging.getLogger(__name__).warning("nothing is built ahead: %s", refusal)
        self.builder = None

    def prepare(self, candidate: Candidate) -> Prepared | Outcome:
        """All that is done before the device is needed."""
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
        """An answer, and the seconds of its allowance that a candidate has spent with it.

        What another one asks of the worker, and a new start of it, are not this candidate's time.
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

        `prepared` waits for what another thread has prepared: then only the bench is started here,
        as the other workers may be busy with the next one. Without it nothing is built ahead.

        If a process dies it is measured once more: something else may have killed it, such as a
        system without memory. WorkerRefused if there is no process to begin with.
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
        job = Measure(ready.compiled.module, best_ns, left, self.limits.build, binary)
        found, spent = self._ask(self.bench, job, ready.seconds, ready.allowed, "measuring it")
        if isinstance(found, Doubtful):
            doing = "evaluating the reference where the result is doubtful"
            found, _ = self._ask(self.compiler, Settle(found), spent, ready.allowed, doing)
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
