"""One call of `explore`: candidates are drawn, given to a pool, and their outcomes taken up."""

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
    """Of a device, the best time so far and how many are on its front of time and peak."""

    device: Device
    best_ns: int
    front: int


@dataclass(frozen=True)
class Progress:
    """How far a campaign is: sent before a candidate is tried, and after, with its outcome.

    `standings` are of the devices that have measured something; of several candidates `under_way`
    the first has been so longest.
    """

    done: int
    samples: int
    counts: dict[str, int]
    standings: tuple[Standing, ...] = ()
    candidate: Candidate | None = None
    outcome: Outcome | None = None
    under_way: tuple[Candidate, ...] = ()


class CampaignRun:
    """What is done, what is under way, and what the search may know.

    When a search draws candidate k it has seen the outcomes of the candidates up to k - `lag`, in
    the order of drawing, whatever the order in which they came in. So it draws the same however
    long each took, and a campaign that is resumed gives it what it saw the first time.
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
        """The candidates with an outcome that the campaign has drawn, not only imported."""
        return self.done - self._strangers

    def follow(self, tried: Iterator[Candidate], pool: Pool) -> None:
        """Gives each candidate its outcome. TimeUp if the deadline comes before their end.

        What is under way then has no outcome, and is not to blame.
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
        if not pool.shares_fate:  # then no candidate is to blame for the end of an earlier call
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
                    self._take(pool)  # before others are derived (`exploring.Forms`)
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
        """Shows the search the outcome of the oldest candidate that it has not seen."""
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

    # --- what a pool says and asks ----------------------------------------------------------------

    def begin(self, candidate: Candidate) -> None:
        """Notes that a candidate is under way."""
        self.tell(candidate)
        self.store.begin(candidate)
        self._under_way[candidate.key] = candidate

    def compiled(self, candidate: Candidate, made: Compiled, device: Device) -> None:
        """Notes the kernels of a candidate, and the device that they are for."""
        self.store.compiled(candidate, made.module, made.sha, device)

    def best_ns(self, device: Device) -> int | None:
        """The shortest time so far on a device."""
        return self.store.best_ns(device)

    def suspect(self, candidate: Candidate) -> bool:
        """Whether a candidate was under way when an earlier call ended abruptly."""
        return self.store.attempts(candidate.key) > 0

    def tell(self, candidate: Candidate | None = None, outcome: Outcome | None = None) -> None:
        """Reports where the campaign stands."""
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
        if len(self._known) == 1:  # a migrated file may lack some candidates' device
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
    """A candidate, its times and peak, and the fingerprint of the device that has them."""

    candidate: Candidate
    time_ns: int | None
    peak: int | None
    launches: tuple[int, ...]
    device: str | None


def comparable(seen: list[Seen]) -> list[Trial]:
    """Trials whose times a search may compare.

    Times of two devices cannot be compared. Those of each are taken relative to its median, in
    units of the median of the device that has measured first.
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
