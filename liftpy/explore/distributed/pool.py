"""The pool of a cluster: candidates are compiled on this machine and measured by workers.

Only kernels are sent for each candidate: the expected values are sent once, and inputs are made
from a seed. A worker has one candidate at a time. If a worker is lost, its candidate goes to
another one, and later answers of the lost worker are ignored.
"""

from __future__ import annotations

import math
import os
import queue
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future as Promise
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from distributed import Future

from liftpy.explore.campaign.store import ATTEMPTS
from liftpy.explore.distributed import board
from liftpy.explore.distributed.cluster import Cluster, ClusterWorker, Failed, Gone, heard
from liftpy.explore.measure.measurer import COMPILING, Allowance, Limits
from liftpy.explore.measure.messages import (
    Answer,
    Compile,
    Compiled,
    Doubtful,
    Measure,
    Request,
    Settle,
    Setup,
)
from liftpy.explore.measure.outcome import Crashed, Outcome
from liftpy.explore.measure.pool import Finished, Notes
from liftpy.explore.measure.process import Worker
from liftpy.explore.space.candidate import Candidate

UNBOUNDED = Allowance(math.inf)


@dataclass
class Job:
    """A candidate in progress: `made` has its kernels, `lost` the workers lost while measuring it.

    `crashed`: whether a process that compiled or measured it has died once.
    """

    candidate: Candidate
    began: float
    made: Compiled | None = None
    allowed: Allowance = UNBOUNDED
    lost: tuple[str, ...] = ()
    noted: bool = False
    crashed: bool = False


class ClusterPool:
    """The pool of a cluster. Use it in a `with`.

    `compilers` is how many candidates are compiled at a time on this machine.
    """

    shares_fate = False

    def __init__(
        self,
        cluster: Cluster,
        setup: Setup,
        limits: Limits,
        notes: Notes,
        compilers: int = max(1, (os.cpu_count() or 2) - 1),
    ) -> None:
        self._cluster = cluster
        self._setup = replace(setup, text="")  # a bench does not need it
        self._limits = limits
        self._notes = notes
        self._name = uuid.uuid4().hex
        self._compilers: queue.LifoQueue[Worker] = queue.LifoQueue()  # starts as few as needed
        self._all_compilers = [
            Worker("compiles candidates", COMPILING, setup, deadline=limits.deadline)
            for _ in range(compilers)
        ]
        for made in self._all_compilers:
            self._compilers.put(made)
        self._threads = ThreadPoolExecutor(compilers, thread_name_prefix="liftpy-compile")
        self._ready: deque[Job] = deque()
        self._jobs: dict[str, Job] = {}  # by the address of the worker
        self._begun: dict[str, Candidate] = {}  # candidates in progress, by key
        self._finished: deque[Finished] = deque()
        self._halted = False

    def __enter__(self) -> Self:
        self._cluster.on_lost = self._lost
        self._cluster.on_described = self._prepare
        try:
            for one in self._cluster.fit:
                self._prepare(one)
            while any(one.state == "preparing" for one in self._cluster.fit):
                self._limits.deadline.refuse_if_over("workers were getting ready")
                self._cluster.step()
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        self._cluster.dismiss(self._name)
        self._kill_compilers()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._kill_compilers()  # a thread may have restarted its process for a request

    def _kill_compilers(self) -> None:
        for worker in self._all_compilers:
            worker.kill()

    # --- the campaign's side ----------------------------------------------------------------------

    def submit(self, candidate: Candidate) -> None:
        """Starts to compile a candidate; it is measured when a worker is free."""
        self._start(Job(candidate, time.monotonic()))

    def next(self) -> Finished:
        """Waits for the next candidate that has an outcome."""
        while not self._finished:
            self._limits.deadline.refuse_if_over("candidates were compiled and measured")
            self._cluster.step()
            self._dispatch()
        return self._finished.popleft()

    def halt(self) -> tuple[Finished, ...]:
        """Starts no further candidate; returns those with outcomes that `next` has not returned."""
        self._halted = True
        self._ready.clear()
        return tuple(self._finished)

    # --- compiling --------------------------------------------------------------------------------

    def _in_thread(
        self, what: Callable[[Worker, Job], Any], job: Job, then: Callable[[Job, Any], None]
    ) -> None:
        """Calls `what` with a compiler process in a thread, then queues `then` with the result."""

        def work() -> Any:
            worker = self._compilers.get()
            try:
                return what(worker, job)
            finally:
                self._compilers.put(worker)

        def done(promise: Promise[Any]) -> None:
            if not promise.cancelled():
                self._cluster.events.put(lambda: then(job, promise.result()))

        self._threads.submit(work).add_done_callback(done)

    def _start(self, job: Job) -> None:
        self._in_thread(self._compile, job, self._compiled)

    def _compile(self, worker: Worker, job: Job) -> Answer:
        skeleton, sizes = job.candidate.skeleton.key, job.candidate.point
        return self._asked(worker, Compile(skeleton, sizes), "compiling it")

    def _asked(self, worker: Worker, request: Request, doing: str) -> Answer:
        allowed = self._limits.allowance()
        return allowed.said(worker.ask(request, allowed.seconds, allowed.seconds, doing))

    def _compiled(self, job: Job, answer: Any) -> None:
        if self._halted:
            return
        if isinstance(answer, Compiled):
            job.made = answer
            self._ready.append(job)
        elif self._once(job, answer):
            self._start(job)
        else:
            self._begin(job)
            self._finish(job, answer)

    def _begin(self, job: Job) -> None:
        if not job.noted:
            job.noted = True
            self._begun[job.candidate.key] = job.candidate
            self._notes.begin(job.candidate)

    # --- measuring --------------------------------------------------------------------------------

    def _prepare(self, one: ClusterWorker) -> None:
        """Starts the bench of a worker, if it may measure for this campaign."""
        if one.device is not None and self._cluster.examine(one):
            one.state = "preparing"
            setup = replace(self._setup, device=one.device)
            self._cluster.ask(one, partial(self._prepared, one), board.prepare, self._name, setup)

    def _prepared(self, one: ClusterWorker, future: Future[Any]) -> None:
        if not self._cluster.has(one):
            return
        try:
            why: str | None = heard(future)
        except Gone:
            self._cluster.lose(one)
            return
        except Failed as failure:
            why = str(failure)
        if why is None:
            one.state = "idle"
        else:
            self._cluster.refuse(one, why)

    def _dispatch(self) -> None:
        if not self._cluster.connected:
            return
        for one in self._cluster.boards.values():
            if not self._ready:
                return
            if one.state == "idle":
                self._give(one, self._ready.popleft())

    def _give(self, one: ClusterWorker, job: Job) -> None:
        if job.made is None or one.device is None:
            return
        self._begin(job)
        self._notes.compiled(job.candidate, job.made, one.device)
        best_ns = self._notes.best_ns(one.device)
        allowed = self._limits.allowance()
        made, build = job.made, self._limits.build
        request = Measure(made.module, best_ns, allowed.seconds, build, bounds=made.bounds)
        one.state = "busy"
        self._jobs[one.address] = job
        job.allowed = allowed
        then = partial(self._measured, one, job)
        self._cluster.ask(one, then, board.measure, self._name, request, allowed.seconds)

    def _measured(self, one: ClusterWorker, job: Job, future: Future[Any]) -> None:
        if self._jobs.get(one.address) is not job:
            return  # the worker was lost, and another one has the candidate
        del self._jobs[one.address]
        try:
            answer: Doubtful | Outcome | None = heard(future)
        except Gone:
            self._cluster.lose(one)
            self._ready.appendleft(job)
            return
        except Failed as failure:
            self._cluster.refuse(one, f"it could not measure: {failure}")
            self._again(job, one)
            return
        one.state = "idle"
        if answer is None:
            self._ready.appendleft(job)
            self._prepare(one)
        elif isinstance(answer, Doubtful):
            self._in_thread(partial(self._settle, answer), job, self._answered)
        else:
            self._answered(job, job.allowed.said(answer))

    def _answered(self, job: Job, outcome: Outcome) -> None:
        if self._once(job, outcome):
            self._ready.appendleft(job)
        else:
            self._finish(job, outcome)

    def _once(self, job: Job, outcome: Outcome) -> bool:
        """Whether a candidate is tried again: after its first crash, which may be accidental."""
        again = isinstance(outcome, Crashed) and not job.crashed
        job.crashed |= again
        return again

    def _settle(self, answer: Doubtful, worker: Worker, job: Job) -> Answer:
        doing = "evaluating the reference where the result is doubtful"
        candidate = Compile(job.candidate.skeleton.key, job.candidate.point)
        return self._asked(worker, Settle(answer, candidate), doing)

    def _lost(self, one: ClusterWorker) -> None:
        job = self._jobs.pop(one.address, None)
        if job is not None:
            self._again(job, one)

    def _again(self, job: Job, one: ClusterWorker) -> None:
        """Gives the candidate of a lost worker to another, unless too many were lost with it."""
        job.lost = (*job.lost, one.name)
        if len(job.lost) < ATTEMPTS:
            self._ready.appendleft(job)
        else:
            names = ", ".join(job.lost)
            self._finish(
                job, Crashed(f"{len(job.lost)} workers were lost while they measured it: {names}")
            )

    def _finish(self, job: Job, outcome: Outcome) -> None:
        self._begun.pop(job.candidate.key, None)
        self._finished.append(Finished(job.candidate, outcome))


class ClusterExecutor(Cluster):
    """A cluster as the executor of a campaign."""

    bounds = True
    measures = True

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> ClusterPool:
        """The pool that measures on the workers."""
        return ClusterPool(self, setup, limits, notes)
