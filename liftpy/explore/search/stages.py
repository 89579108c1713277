"""Any search, stage by stage: the time of a program is the sum of the times of its stages.

Each stage has its own search, whose trials are the times of its kernels. A candidate of the program
combines the next candidate of each stage, so a program of many stages needs about as many samples
as its hardest stage. The fastest of each stage are tried together whenever that promises the
fastest candidate so far; every few candidates, the best settings for a stored value are tried in a
partition that holds it. Stages that differ only in names share a search. The stages of F(m, r) with
one name are similar for all m: what is fastest for one is tried for the others. Partitions take
turns, those that are expected to be slow fewer; then the one that is expected to be fastest is
preferred. A forecast (`modelled_choice.py`) says what to expect of a partition without a time.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from liftpy.explore.search.front import hopeful
from liftpy.explore.search.held import Best, HeldSearch
from liftpy.explore.search.modelled_choice import WHOLE, Forecast
from liftpy.explore.search.stage_search import StagePlace, StageSearch
from liftpy.explore.search.trial import Trial, launches_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, Drawn, everything, subseed
from liftpy.explore.space.product import Product
from liftpy.explore.space.space import Space
from liftpy.rewrite.composition import StagedSkeleton
from liftpy.rewrite.partition import ALGORITHM
from liftpy.rewrite.stages import HELD, STORED, WINOGRAD

Search: TypeAlias = Callable[[Space, int, Sequence[Trial], Allows], Iterator[Candidate]]
Prior: TypeAlias = Callable[[Space], Sequence[Trial]]
"""Given the space of a stage, its trials from before the campaign."""

BEGIN = 24  # candidates for which the partitions take turns, before one is preferred
PATIENCE = 3  # turns of a partition without a time for each stage, after which it waits
OTHERS = 5  # every `OTHERS`th candidate is of the partition with the fewest turns
BEHIND = 8.0  # a turn of a partition that is k times slower counts as min(k, BEHIND) turns
GAIN = 0.99  # the fastest stages are combined if expected to take this part of the least time
TOGETHER = 4  # so they are on every `TOGETHER`th turn of a partition
HOLDING = 3  # every `HOLDING`th candidate holds values
NS_PER_MS = 1e6  # the scale of modelled times until some partition has a time
EXPECTED = 3  # every `EXPECTED`th of these is of the partition that is expected to be fastest


Foresee: TypeAlias = Callable[[Space], Forecast | None]
"""Given a space, what is modelled of it."""


def no_forecast(_: Space) -> Forecast | None:
    """Nothing: for searches that begin without a model."""
    return None


def no_times(_: Space) -> Sequence[Trial]:
    """No trials: the prior of a campaign without earlier times."""
    return ()


def by_stages(
    search: Search,
    prior: Prior = no_times,
    foresee: Foresee = no_forecast,
    *,
    for_front: bool = False,
) -> Search:
    """The search for programs of several stages; a program of one stage is left to `search`.

    `prior` knows trials from before the campaign (`StageSearch.known`). Without them, the search
    begins with the best candidate of a forecast, and prefers the partitions that it expects to be
    fast. With `for_front`, these take turns with partitions that may add a point to the front of
    time and peak (`front.py`).
    """

    def run(
        space: Space, seed: int, trials: Sequence[Trial], allows: Allows
    ) -> Iterator[Candidate]:
        if not space.products and prior is no_times:
            return search(space, seed, trials, allows)
        ahead = foresee if prior is no_times else no_forecast
        found = StageSearches(space, seed, trials, allows, search, prior, ahead)
        found.for_front = for_front
        return found.candidates()

    return run


@dataclass
class Arm:
    """A partition of the program, or the program as one stage, and how many turns it has had."""

    product: Product | None
    places: list[StagePlace]
    whole: StageSearch | None = None
    key: str = WHOLE  # in a forecast
    turns: int = 0
    held: int = 0  # candidates that were made by `holding`
    peak: int | None = None  # the least of its candidates
    ended: bool = False

    @cached_property
    def holding(self) -> list[HeldSearch]:
        """The searches for its stages that hold values."""
        if self.whole is not None:
            of = [m for m in self.whole.group if HELD in m.skeleton.words.values()]
            trials = self.whole.trials
            return [HeldSearch(of, "", trials, lambda c: (c.skeleton, c.point))] if of else []
        return [
            HeldSearch(place.group, place.stage.name, place.search.trials, place.drawn)
            for place in self.places
            if place.stage.holds
        ]

    @property
    def stores_all(self) -> bool:
        """Whether every value that may be stored is stored."""
        return self.product is not None and all(
            word == STORED for name, word in self.product.partition.words if name not in ALGORITHM
        )

    @property
    def algorithm(self) -> str:
        """The word of the algorithm by which it computes; empty for that of the program."""
        return dict(self.product.partition.words).get(WINOGRAD, "") if self.product else ""

    def has(self, keys: Mapping[str, str], sizes: Mapping[str, int]) -> bool:
        """Whether it has a candidate, given as skeletons of stages by name and their sizes."""
        return all(
            any(
                m.skeleton.key == keys[place.stage.name] and m.system.holds(sizes)
                for m in place.group
            )
            for place in self.places
        )

    def measured(self) -> float:
        """The total time of the fastest candidates of all stages, in ns.

        If a stage has no time yet the result is 0, or infinite after `PATIENCE` turns: the stage
        may never be measured.
        """
        searches = [place.search for place in self.places] if self.whole is None else [self.whole]
        best = [search.best for search in searches]
        if any(one is None for one in best):
            return math.inf if self.turns >= PATIENCE else 0.0
        return float(sum(one.time_ns or 0 for one in best if one is not None))


def times_slower(expected: float, least: float) -> float:
    """How many times longer an expected time is than the least one, up to `BEHIND`.

    It is 1 if one of them is not known.
    """
    return min(expected / least, BEHIND) if 0 < least < math.inf and expected else 1.0


class StageSearches:
    """The searches of all stages of a space."""

    def __init__(
        self,
        space: Space,
        seed: int,
        trials: Sequence[Trial],
        allows: Allows,
        search: Search,
        prior: Prior = no_times,
        foresee: Foresee = no_forecast,
    ) -> None:
        self.space, self.seed, self.trials, self.allows = space, seed, trials, allows
        self.search, self.prior, self.foresee = search, prior, foresee
        self.known: dict[object, StageSearch] = {}
        self.modelled: Mapping[str, float] = {}
        self.arms = [
            Arm(p, [*self.places_of(p)], key=whole.key)
            for whole in space.products
            for p in whole.summands
        ]
        if space.members:
            alone = replace(space, products=())
            whole = self.search_of(alone, seed, allows)
            self.arms.insert(0, Arm(None, [], whole))
        self.read = 0
        self.for_front = False

    def places_of(self, product: Product) -> Iterator[StagePlace]:
        """The stages of a partition, each with its search.

        If conditions join stages, a partition is a sum of several products, whose stages are alike
        only if they have the same sizes. The sampler `incremental` is for spaces that cannot be
        counted: stages are then alike if their constraints are equal.
        """
        counted = self.space.sampler == "uniform"
        apart = not counted or all(product is not whole for whole in self.space.products)
        for stage, group in zip(product.partition.stages, product.groups, strict=True):
            systems = tuple(m.system for m in group) if apart else ()  # with the stage's own names
            counts = tuple(m.count() for m in group) if counted else ()
            key = stage.text, stage.within, counts, systems
            if key not in self.known:
                space = self.space.of_stage(stage.program, group)
                seed = subseed(self.seed, stage.text)
                self.known[key] = self.search_of(space, seed, everything)
            yield StagePlace(stage, group, self.known[key])

    def search_of(self, space: Space, seed: int, allows: Allows) -> StageSearch:
        """The search for a stage with this space."""
        found: list[Trial] = []
        tried = self.search(space, seed, found, allows)
        return StageSearch(space.members, space.program, tried, found, self.prior(space))

    def candidates(self) -> Iterator[Candidate]:
        """Candidates of the program, each once."""
        seen: set[str] = set()
        first = self.foreseen()
        for ordinal in itertools.count():
            self.learn()
            found = first if first is not None and not ordinal else self.proposed(ordinal, seen)
            if found is None:
                yield from self.left(seen, ordinal)
                return
            seen.add(found.key)
            yield replace(found, ordinal=ordinal)

    def foreseen(self) -> Candidate | None:
        """The best candidate of the forecast, if there is one that is allowed."""
        ahead = self.space.once(self.foresee)
        if ahead is None:
            return None
        self.modelled = ahead.milliseconds
        found = ahead.best
        if not self.allows(found.skeleton, found.point):
            return None
        for place, there, _ in self.parts(found, ()):
            place.search.take(there)
        return found

    def proposed(self, ordinal: int, seen: set[str]) -> Candidate | None:
        """A candidate of the partition whose turn it is; None if no partition has a new one."""
        if ordinal >= BEGIN and not ordinal % HOLDING:
            found = next((c for c in self.holding(ordinal) if c.key not in seen), None)
            if found is not None and self.allows(found.skeleton, found.point):
                return found
        if ordinal >= BEGIN and (found := self.together(seen)) is not None:
            return found
        if self.for_front and ordinal >= BEGIN and ordinal % 2:
            arm = hopeful(self.arms, lambda one: self.expected(one, self.scale()), self.trials)
            if arm is not None and (found := self.next_of(arm, seen)) is not None:
                arm.turns += 1
                return found
        while arms := [arm for arm in self.arms if not arm.ended]:
            arm = self.chosen(arms, ordinal)
            found = self.next_of(arm, seen)
            if found is not None:
                arm.turns += 1
                return found
        return None

    def together(self, seen: set[str]) -> Candidate | None:
        """The fastest of each stage of a partition, if that is expected to be the fastest of all.

        Stages are tried with others that are slow, so the fastest of each may not have met yet.
        """
        least = min((t.time_ns for t in self.trials if t.time_ns is not None), default=0)
        known = [arm for arm in self.arms if arm.product is not None and arm.measured() > 0]
        for arm in sorted(known, key=Arm.measured):
            if arm.measured() > GAIN * least:
                return None
            best = [place.search.best and place.search.best.candidate for place in arm.places]
            found = self.made(arm, best)
            if (
                found is not None
                and found.key not in seen
                and self.allows(found.skeleton, found.point)
            ):
                return found
        return None

    def chosen(self, arms: list[Arm], ordinal: int) -> Arm:
        """The partition that has the next turn."""
        scale = self.scale()
        if ordinal >= BEGIN and ordinal % OTHERS:
            return min(arms, key=lambda arm: self.expected(arm, scale))
        least = self.least(scale)
        return min(
            arms, key=lambda arm: (arm.turns + 1) * times_slower(self.expected(arm, scale), least)
        )

    def behind(self, arm: Arm) -> float:
        """How many times slower than the fastest partition this one should be, up to `BEHIND`."""
        scale = self.scale()
        return times_slower(self.expected(arm, scale), self.least(scale))

    def scale(self) -> float:
        """The median ratio of known times of partitions, in ns, to modelled ones, in ms."""
        pairs = ((one.measured(), self.modelled.get(one.key)) for one in self.arms)
        ratios = [time / ms for time, ms in pairs if 0 < time < math.inf and ms]
        return statistics.median(ratios) if ratios else NS_PER_MS

    def expected(self, arm: Arm, scale: float) -> float:
        """The time of a partition in ns: `Arm.measured`, or else the modelled time, scaled."""
        known = arm.measured()
        return known or self.modelled.get(arm.key, 0.0) * scale

    def least(self, scale: float) -> float:
        """The least time of a partition in ns; 0 if none is known."""
        times = (self.expected(arm, scale) for arm in self.arms)
        return min((t for t in times if t), default=0.0)

    def holding(self, ordinal: int) -> Iterator[Candidate]:
        """Candidates that hold values; partitions with the fewest of them so far come first."""
        stored = {arm.algorithm: arm for arm in reversed(self.arms) if arm.stores_all}
        best = {
            word: {place.stage.name: place.fastest_of_forms() for place in arm.places}
            for word, arm in stored.items()
        }
        holding = (arm for arm in self.arms if arm.algorithm in stored and arm.holding)
        arms = sorted(holding, key=lambda arm: arm.held)
        if not ordinal // HOLDING % EXPECTED:
            scale = self.scale()
            arms.sort(key=lambda arm: self.expected(arm, scale))
        for arm in arms:
            for found in self.held(arm, best[arm.algorithm]):
                arm.held += 1
                yield found

    def held(self, arm: Arm, best: Best) -> Iterator[Candidate]:
        """The next candidates of a partition that hold values.

        Its other stages have their next candidates: each stage is timed by itself.
        """
        while (found := [search.next(best) for search in arm.holding]) and any(found):
            if arm.product is None:
                for skeleton, sizes in filter(None, found):
                    yield Candidate(self.space.program, skeleton, tuple(sizes.items()))
                continue
            new = {
                search.stage: drawn or search.fastest
                for search, drawn in zip(arm.holding, found, strict=True)
            }
            stages: list[Drawn | None] = []
            others: list[tuple[StageSearch, Candidate]] = []
            for place in arm.places:
                if place.stage.name in new:
                    stages.append(new[place.stage.name])
                elif (other := place.search.next()) is not None:
                    others.append((place.search, other))
                    stages.append(place.drawn(other))
            drawn = [one for one in stages if one is not None]
            if len(drawn) == len(arm.places):
                skeleton, sizes = arm.product.made(drawn)
                if self.allows(skeleton, sizes):
                    yield Candidate(self.space.program, skeleton, tuple(sizes.items()))
                    continue
            for search, other in others:
                search.waiting.append(other)
            if len(drawn) < len(arm.places):
                return

    def next_of(self, arm: Arm, seen: set[str]) -> Candidate | None:
        """An untried candidate of a partition; None if it has none, which ends the partition."""
        if arm.whole is not None:
            return self.next_of_whole(arm, arm.whole, seen)
        if not arm.turns % TOGETHER and self.behind(arm) < BEHIND:
            best = [place.search.fastest() for place in arm.places]
            if any(place.search.known for place in arm.places):  # the others may have no times
                pairs = zip(best, arm.places, strict=True)
                best = [place.search.next() if one is None else one for one, place in pairs]
            found = self.made(arm, best)
            if (
                found is not None
                and found.key not in seen
                and self.allows(found.skeleton, found.point)
            ):
                return found
        found = self.made(arm, [self.next_at(arm, place) for place in arm.places])
        if found is None or found.key in seen:
            arm.ended = True
            return None
        if not self.allows(found.skeleton, found.point):
            seen.add(found.key)  # where all stages are exhausted, it would come again
            return None
        return found

    def next_at(self, arm: Arm, place: StagePlace) -> Candidate | None:
        """The next candidate of a stage.

        Stages of one name are similar in the forms by F(m, r) for different m. What is best for the
        stage in the fastest form with a similar one comes first.
        """
        words = {"", arm.algorithm}
        others = [one for one in self.arms if arm.algorithm and one.algorithm not in words]
        for other in sorted(others, key=Arm.measured):
            for theirs in other.places:
                best = theirs.search.best
                if theirs.stage.name == place.stage.name and best is not None:
                    found = place.like(theirs.drawn(best.candidate))
                    if found is not None:
                        return found if place.search.take(found) else place.search.next()
        return place.search.next()

    def next_of_whole(self, arm: Arm, search: StageSearch, seen: set[str]) -> Candidate | None:
        """A candidate of the program as one stage, as in `next_of`."""
        if search.known and not arm.turns % TOGETHER:
            found = search.fastest()
            if found is not None and found.key not in seen:
                return found
        left = (c for c in search.tried if c.key not in search.times and c.key not in seen)
        found = next(left, None)
        arm.ended = found is None
        return found

    def made(self, arm: Arm, stages: Sequence[Candidate | None]) -> Candidate | None:
        """The candidate of the program that consists of these candidates of its stages."""
        known = [one for one in stages if one is not None]
        if arm.product is None or len(known) < len(stages):
            return None
        pairs = zip(arm.places, known, strict=True)
        skeleton, sizes = arm.product.made([place.drawn(one) for place, one in pairs])
        return Candidate(self.space.program, skeleton, tuple(sizes.items()))

    def left(self, seen: set[str], ordinal: int) -> Iterator[Candidate]:
        """The remaining candidates, which the searches of the stages did not combine."""
        for found in self.space.draws(self.seed, self.allows):
            if found.key not in seen:
                yield replace(found, ordinal=ordinal)
                ordinal += 1

    def learn(self) -> None:
        """Gives each stage its part of the trials since the last call."""
        self.read = min(self.read, len(self.trials))
        for trial in itertools.islice(self.trials, self.read, None):
            self.take_in(trial)
        self.read = len(self.trials)

    def take_in(self, trial: Trial) -> None:
        """Gives each stage its part of a trial."""
        arm = self.arm_of(trial.candidate)
        if arm is not None and trial.peak is not None:
            arm.peak = trial.peak if arm.peak is None else min(arm.peak, trial.peak)
        if not isinstance(trial.candidate.skeleton, StagedSkeleton):
            if arm is not None and arm.whole is not None:
                arm.whole.learn(trial)
            return
        for place, there, spent in self.parts(trial.candidate, trial.launches):
            place.search.learn(Trial(there, spent, trial.peak))

    def arm_of(self, candidate: Candidate) -> Arm | None:
        """The partition of a candidate, or the arm of the program as one stage."""
        if not isinstance(skeleton := candidate.skeleton, StagedSkeleton):
            return next((arm for arm in self.arms if arm.whole is not None), None)
        names, cuts = [name for name, _ in skeleton.stages], tuple(skeleton.choices)
        arms = [
            arm
            for arm in self.arms
            if arm.product is not None
            and [p.stage.name for p in arm.places] == names
            and arm.product.partition.words == cuts
        ]
        keys = {name: own.key for name, own in skeleton.stages}
        return next((a for a in arms if len(arms) == 1 or a.has(keys, candidate.point)), None)

    def parts(
        self, candidate: Candidate, launches: Sequence[int]
    ) -> Iterator[tuple[StagePlace, Candidate, int | None]]:
        """The part of a candidate in each stage of its partition, with the time of its launches.

        The time is None if some launch has no time. A candidate of one stage has no parts.
        """
        skeleton, arm = candidate.skeleton, self.arm_of(candidate)
        if not isinstance(skeleton, StagedSkeleton) or arm is None:
            return
        counts = launches_of(skeleton, candidate.point)
        known = len(launches) == sum(counts)
        times, sizes, own = iter(launches), candidate.point, dict(skeleton.stages)
        for place, count in zip(arm.places, counts, strict=True):
            there = place.candidate(own[place.stage.name].key, sizes)
            spent = sum(itertools.islice(times, count)) if known else None
            if there is not None:
                yield place, there, spent
