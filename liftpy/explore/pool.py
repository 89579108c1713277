"""Where candidates are measured: a pool takes them and gives their outcomes back.

The pool here is this machine; that of a cluster is `liftpy.explore.cluster`.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, Self

from liftpy.constraints.device import Device
from liftpy.explore.candidate import Candidate
from liftpy.explore.measure import Limits, Measurer
from liftpy.explore.messages import Compiled, Setup
from liftpy.explore.outcome import Outcome


class Notes(Protocol):
    """What a pool says before a candidate is launched, and what it asks."""

    def begin(self, candidate: Candidate) -> None:
        """The candidate is under way from now on."""
        ...

    def compiled(self, candidate: Candidate, made: Compiled, device: Device) -> None:
        """Its kernels, which are about to be launched on a device."""
        ...

    def best_ns(self, device: Device) -> int | None:
        """The shortest time measured so far on a device."""
        ...


@dataclass(frozen=True)
class Finished:
    """A candidate with its outcome."""

    candidate: Candidate
    outcome: Outcome


class Pool(Protocol):
    """Takes candidates, and gives them back with their outcomes, in any order."""

    shares_fate: bool
    """Whether a candidate can take the campaign with it: the device is in this machine."""

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        ...

    def next(self) -> Finished:
        """The next candidate that has its outcome; waits for it. One must have been submitted."""
        ...

    def halt(self) -> tuple[Candidate, ...]:
        """Begins no further candidate; those that are under way."""
        ...


class Site(Protocol):
    """Where a campaign measures: its devices, and a pool once it is known what is measured."""

    @property
    def devices(self) -> tuple[Device, ...]:
        """The kinds of devices that there are."""
        ...

    @property
    def limits(self) -> Device:
        """What candidates have to keep: the limits of all devices."""
        ...

    @property
    def lag(self) -> int:
        """So many candidates are without an outcome at a time."""
        ...

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> AbstractContextManager[Pool]:
        """Measures for a campaign."""
        ...


@dataclass(frozen=True)
class ThisMachine:
    """One device of this machine."""

    limits: Device
    lag: int = 1

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device."""
        return (self.limits,)

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> Here:
        """One candidate after another."""
        return Here(setup, limits, notes)


class Here:
    """This machine: one device, one candidate at a time. Use it in a `with`."""

    shares_fate = True

    def __init__(self, setup: Setup, limits: Limits, notes: Notes) -> None:
        self._device = setup.device
        self._notes = notes
        self._measurer = Measurer(setup, limits.candidate, build_limit=limits.build)
        self._waiting: deque[Candidate] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._measurer.kill()

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        self._waiting.append(candidate)

    def next(self) -> Finished:
        """Measures the candidate that has waited longest."""
        candidate = self._waiting.popleft()
        self._measurer.start()
        self._notes.begin(candidate)
        return Finished(candidate, self._measured(candidate))

    def again(self, candidate: Candidate) -> Outcome:
        """Measures a candidate once more, which has its outcome."""
        return self._measurer.measure(candidate)

    def _measured(self, candidate: Candidate) -> Outcome:
        best_ns = self._notes.best_ns(self._device)
        return self._measurer.measure(candidate, best_ns, partial(self._note, candidate))

    def _note(self, candidate: Candidate, made: Compiled) -> None:
        self._notes.compiled(candidate, made, self._device)

    def halt(self) -> tuple[Candidate, ...]:
        """Forgets what waits; nothing is under way between two outcomes."""
        self._waiting.clear()
        return ()
