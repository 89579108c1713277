"""Executors and pools: a pool takes candidates, measures them, and returns their outcomes.

The pool here measures on this machine; the pool of a cluster is in
`liftpy.explore.distributed.pool`.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from liftpy.constraints.device import Device
from liftpy.explore.measure.measurer import Limits, Measurer, Prepared
from liftpy.explore.measure.messages import Compiled, Setup
from liftpy.explore.measure.outcome import Outcome
from liftpy.explore.measure.process import IdleProcesses
from liftpy.explore.space.candidate import Candidate

KILLS = 0.1
"""Seconds between two attempts to kill the workers of a thread."""


class Notes(Protocol):
    """What a pool reports before a candidate is launched, and what it asks."""

    def begin(self, candidate: Candidate) -> None:
        """Records that the candidate is in progress."""
        ...

    def compiled(self, candidate: Candidate, made: Compiled, device: Device) -> None:
        """Records its kernels, which are about to be launched on a device."""
        ...

    def best_ns(self, device: Device) -> int | None:
        """The shortest time measured so far on a device."""
        ...

    def suspect(self, candidate: Candidate) -> bool:
        """Whether it was in progress when an earlier call ended abruptly."""
        ...


@dataclass(frozen=True)
class Finished:
    """A candidate with its outcome."""

    candidate: Candidate
    outcome: Outcome


class Pool(Protocol):
    """Takes candidates, and returns them with their outcomes, in any order."""

    shares_fate: bool
    """Whether a candidate can end the campaign abruptly: the device is in this machine."""

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        ...

    def next(self) -> Finished:
        """Waits for the next outcome; at least one candidate must have been submitted."""
        ...

    def halt(self) -> tuple[Finished, ...]:
        """Starts no further candidate; returns those with outcomes that `next` has not returned."""
        ...


class Executor(Protocol):
    """Where a campaign measures: its devices, and the pool that measures on them."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The kinds of devices."""
        ...

    @property
    def limits(self) -> Device:
        """A device with the limits that hold on all devices; candidates must satisfy them."""
        ...

    @property
    def lag(self) -> int:
        """How many candidates may be without an outcome at a time."""
        ...

    @property
    def measures(self) -> bool:
        """Whether kernels run and results are checked; otherwise times are modelled."""
        ...

    @property
    def bounds(self) -> bool:
        """Whether results can be compared with the bounds of their rounding errors, too."""
        ...

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> AbstractContextManager[Pool]:
        """The pool that measures for a campaign."""
        ...


def builds_ahead(device: Device) -> bool:
    """Whether the next candidate is prepared while one is measured.

    It is not if the device is the processor that would prepare it: this would disturb the times.
    """
    return device.type != "CPU"


@dataclass(frozen=True)
class LocalExecutor:
    """One device of this machine.

    `begun` is the lag of the campaign that is resumed, if any. `idle` holds the processes that
    earlier campaigns left, and gets those of this one.
    """

    limits: Device
    begun: int | None = None
    idle: IdleProcesses | None = None
    bounds: bool = True
    measures: bool = True

    @property
    def lag(self) -> int:
        """1 for the measured candidate, plus 1 if the next one is prepared at the same time."""
        if self.begun is not None:
            return self.begun
        return 2 if builds_ahead(self.limits) else 1

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device."""
        return (self.limits,)

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> LocalPool:
        """A pool that measures one candidate after another."""
        return LocalPool(setup, limits, notes, self.lag, self.idle)


class LocalPool:
    """This machine: one device, which measures one candidate at a time. Use it in a `with`.

    If kernels are built ahead and the `lag` permits, another thread with its own builder prepares
    the next candidate at the same time. A candidate that may have ended an earlier call runs by
    itself, so that no other is blamed with it.
    """

    shares_fate = True

    def __init__(
        self,
        setup: Setup,
        limits: Limits,
        notes: Notes,
        lag: int,
        idle: IdleProcesses | None = None,
    ) -> None:
        self._device = setup.device
        self._notes = notes
        self._ahead = lag > 1 and builds_ahead(setup.device)
        self._measurer = Measurer(setup, limits, ahead=self._ahead, idle=idle)
        self._waiting: deque[Candidate] = deque()
        self._suspects: set[str] = set()
        self._begun: dict[str, Future[Prepared | Outcome]] = {}
        self._under_way: set[Future[Prepared | Outcome]] = set()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="liftpy-prepare")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        if kind is None and not self._under_way:
            self._measurer.leave()
        self._measurer.kill()
        while left := self._under_way.copy():
            wait(left, timeout=KILLS)
            self._measurer.kill()  # the thread may have restarted a worker for a request
        self._measurer.kill()

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        self._waiting.append(candidate)
        if self._notes.suspect(candidate):
            self._suspects.add(candidate.key)

    def next(self) -> Finished:
        """Measures the candidate that has waited longest."""
        candidate = self._waiting.popleft()
        if not self._begun:  # otherwise the other thread uses them, and is not waited for
            self._measurer.start()
        prepared = self._begin(candidate)
        following = next(iter(self._waiting), None)
        if self._ahead and following and not self._suspects & {candidate.key, following.key}:
            self._begin(following)
        best_ns = self._notes.best_ns(self._device)
        note = partial(self._note, candidate)
        outcome = self._measurer.measure(candidate, best_ns, note, prepared.result)
        del self._begun[candidate.key]
        return Finished(candidate, outcome)

    def _begin(self, candidate: Candidate) -> Future[Prepared | Outcome]:
        """Starts to prepare a candidate, unless this has been done."""
        if candidate.key not in self._begun:
            self._notes.begin(candidate)
            promise = self._thread.submit(self._measurer.prepare, candidate)
            self._under_way.add(promise)
            promise.add_done_callback(self._under_way.discard)
            self._begun[candidate.key] = promise
        return self._begun[candidate.key]

    def again(self, candidate: Candidate) -> Outcome:
        """Measures a candidate that has its outcome once more."""
        return self._measurer.measure(candidate)

    def _note(self, candidate: Candidate, made: Compiled) -> None:
        self._notes.compiled(candidate, made, self._device)

    def halt(self) -> tuple[Finished, ...]:
        """Forgets waiting candidates; none has an outcome that `next` has not returned."""
        self._waiting.clear()
        return ()
