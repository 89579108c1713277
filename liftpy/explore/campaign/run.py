"""One call of `explore`: it draws candidates, submits them to a pool, and stores their outcomes."""

from __future__ import annotations

import itertools
import statistics
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from liftpy.constraints.device import Device
from liftpy.deadline import Deadline
from liftpy.errors import LiftError, TimeUp
from liftpy.explore.campaign.store import ATTEMPTS, Store
from liftpy.explore.measure.learned import Lessons
from liftpy.explore.measure.messages import Compiled
from liftpy.explore.measure.outcome import Crashed, Outcome, Refused, counts
from liftpy.explore.measure.pareto import clear_front
from liftpy.explore.measure.pool import Pool
from liftpy.explore.measure.samples import Interval
from liftpy.explore.search import Trial
from liftpy.explore.space.candidate import Candidate

NEVER = Deadline()


@dataclass(frozen=True)
class Standing:
    """The best time on a device so far, and the size of its front of time and peak."""

    device: Device
    best_ns: int
    front: int


@dataclass(frozen=True)
class Progress:
    """The progress of a campaign, reported before each candidate, and after it with its outcome.

    `standings` has the devices that have measured something. `under_way` has the candidates in
    progress, the oldest first.
    """

    done: int
    samples: int
    counts: dict[str, int]
    standings: tuple[Standing, ...] = ()
    candidate: Candidate | None = None
    outcome: Outcome | None = None
    under_way: tuple[Candidate, ...] = ()


class CampaignRun:
    """The state of a call: finished candidates, candidates in progress, what the search may know.

    When a search draws candidate k, it has seen the outcomes of the candidates up to k - `lag`, in
    drawing order, whatever the order in which they arrived. So its draws do not depend on how long
    candidates took, and a resumed campaign shows it the same outcomes as the first call.
    """

    def __init__(
        self,
        store: Store,
        device: Device,
        samples: int,
        lag: int,
        progress: Callable[[Progress], None],
        deadline: Deadline = NEVER,
    ) -> None:
        self.store = store
        self.samples = samples
        self.lag = lag
        self.progress = progress
        self.deadline = deadline
        self.done = store.done()
        self._strangers = store.strangers()
        self.trials: list[Trial] = []
        self.lessons = Lessons(device)
        self.drawn = 0
        self._limits = store.learned()
        self._known = store.identity.devices
        self._under_way: dict[str, Candidate] = {}
        self._seen: list[Seen] = []
        self._devices: set[str | None] = set()
        self._spans: dict[str, Interval | None] = {}
        self.tell()

    @property
    def known(self) -> set[str]:
        """The candidates with an outcome, without imported ones that the campaign has not drawn."""
        return self.done - self._strangers

    def follow(self, tried: Iterator[Candidate], pool: Pool) -> None:
        """Measures the candidates; raises TimeUp if the deadline passes before the last one.

        Candidates then in progress have no outcome, and are not blamed.
        """
        try:
            self._follow(tried, pool)
        except (KeyboardInterrupt, LiftError) as end:
            if isinstance(end, TimeUp):
                for finished in pool.halt():
                    self._finish(finished.candidate, finished.outcome)
            why = "stopped by the user" if isinstance(end, KeyboardInterrupt) else str(end)
            for key in self._under_way:
                self.store.excuse_if_possible(key, why.splitlines()[0])
            raise

    def _follow(self, tried: Iterator[Candidate], pool: Pool) -> None:
        if not pool.shares_fate:  # then no candidate can have ended an earlier call
            for key in self.store.under_way():
                self.store.excuse(key, "the campaign ended before it had an outcome")
        window: deque[Candidate] = deque()
        candidates = itertools.islice(tried, self.samples)
        while True:
            if len(window) == self.lag:
                self._settle(window.popleft(), pool)
            with self.deadline.phase("counting and drawing candidates"):
                candidate = next(candidates, None)
            if candidate is None:
                break
            if candidate.key not in self.done:
                self.deadline.refuse_if_over("candidates were measured")
                self._give(candidate, pool)
                while pool.shares_fate and not candidate.ordinal and candidate.key not in self.done:
                    self._take(pool)  # before other families are derived (`exploring.Forms`)
            elif candidate.key in self._strangers:
                self.store.place(candidate)
                self._strangers.discard(candidate.key)
            self.drawn = candidate.ordinal + 1
            window.append(candidate)
        for candidate in window:
            self._settle(candidate, pool)

    def _give(self, candidate: Candidate, pool: Pool) -> None:
        attempts = self.store.attempts(candidate.key)
        if pool.shares_fate and attempts >= ATTEMPTS:
            self.tell(candidate)
            how = f"the campaign ended abruptly {attempts} times while it was running"
            self._finish(candidate, Crashed(f"{how}; it is not tried again"))
        else:
            pool.submit(candidate)

    def _take(self, pool: Pool) -> None:
        finished = pool.next()
        self._finish(finished.candidate, finished.outcome)

    def _settle(self, candidate: Candidate, pool: Pool) -> None:
        """Shows the search the outcome of a candidate; the caller passes them in drawing order."""
        while candidate.key not in self.done:
            self._take(pool)
        time_ns, peak = self.store.costs(candidate.key)
        launches = self.store.launches(candidate.key)
        seen = Seen(candidate, time_ns, peak, launches, self.store.device_of(candidate.key))
        self._seen.append(seen)
        self._devices |= {seen.device} if time_ns is not None else set()
        if len(self._devices) > 1:
            self.trials[:] = comparable(self._seen)
        else:
            self.trials.append(Trial(candidate, time_ns, peak, launches))
        if candidate.key in self._limits:
            self.lessons.learn(candidate, self._limits[candidate.key])

    def _finish(self, candidate: Candidate, outcome: Outcome) -> None:
        self.store.end(candidate.key, outcome)
        self._under_way.pop(candidate.key, None)
        self.done.add(candidate.key)
        if isinstance(outcome, Refused) and outcome.limit is not None:
            self._limits[candidate.key] = outcome.limit
        self.tell(candidate, outcome)

    # --- called by a pool -------------------------------------------------------------------------

    def begin(self, candidate: Candidate) -> None:
        """Records that a candidate is in progress."""
        self.tell(candidate)
        self._under_way[candidate.key] = candidate  # first: Ctrl-C may interrupt the next line
        self.store.begin(candidate)

    def compiled(self, candidate: Candidate, made: Compiled, device: Device) -> None:
        """Records the kernels of a candidate, and the device that they are for."""
        self.store.compiled(candidate, made.module, made.sha, device)

    def best_ns(self, device: Device) -> int | None:
        """The shortest time so far on a device."""
        return self.store.best_ns(device)

    def suspect(self, candidate: Candidate) -> bool:
        """Whether a candidate was in progress when an earlier call ended abruptly."""
        return self.store.attempts(candidate.key) > 0

    def tell(self, candidate: Candidate | None = None, outcome: Outcome | None = None) -> None:
        """Reports the progress of the campaign."""
        found = counts(self.store.kinds())
        done = len(self.known)
        begins = {candidate.key: candidate} if candidate is not None and outcome is None else {}
        under_way = tuple((self._under_way | begins).values())
        self.progress(
            Progress(done, self.samples, found, self._standings(), candidate, outcome, under_way)
        )

    def _standings(self) -> tuple[Standing, ...]:
        points: dict[str | None, list[tuple[Interval, int]]] = {}
        for key, (device, peak) in self.store.points().items():
            if key not in self._spans:
                self._spans[key] = self.store.span(key)
            if (span := self._spans[key]) is not None:
                points.setdefault(device, []).append((span, peak))
        if len(self._known) == 1:  # a migrated file may lack the device of some candidates
            points = {self._known[0].fingerprint: list(itertools.chain(*points.values()))}
        return tuple(
            Standing(
                device,
                round(min(span.middle for span, _ in of)),
                len(clear_front(of, costs=lambda p: p)),
            )
            for device in self._known
            if (of := points.get(device.fingerprint))
        )


@dataclass(frozen=True)
class Seen:
    """A candidate, its times and peak, and the fingerprint of the device that measured them."""

    candidate: Candidate
    time_ns: int | None
    peak: int | None
    launches: tuple[int, ...]
    device: str | None


def comparable(seen: list[Seen]) -> list[Trial]:
    """Trials whose times a search may compare.

    Times of different devices cannot be compared directly. They are divided by their device's
    median, and multiplied by the median of the device that measured first.
    """
    times: dict[str | None, list[int]] = {}
    for trial in seen:
        if trial.time_ns is not None:
            times.setdefault(trial.device, []).append(trial.time_ns)
    medians = {device: statistics.median(of) for device, of in times.items()}
    unit = next(iter(medians.values()), 1)
    return [
        Trial(
            t.candidate,
            None if t.time_ns is None else round(t.time_ns * unit / medians[t.device]),
            t.peak,
            tuple(round(ns * unit / medians[t.device]) for ns in t.launches),
        )
        for t in seen
    ]
