"""Any search, stage by stage: the time of a program is the sum of its stages' times.

Each stage has a search of its own, whose trials are the times of its kernels. A candidate of the
program is the next one of each stage, so a program of many stages takes about as many samples as
its hardest stage. Every few candidates, the fastest of each stage are tried together, and what is
best for a stored value is tried where it is held. Stages that differ in names only share a search.
Partitions take turns: each is begun, then the one that is expected to be fastest is preferred.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import repeat
from typing import TypeAlias

from liftpy.explore.candidate import Candidate
from liftpy.explore.member import Allows, Drawn, Member, everything, subseed
from liftpy.explore.product import Product
from liftpy.explore.search.held import transferred
from liftpy.explore.search.trial import Trial
from liftpy.explore.space import Space
from liftpy.ir.expr import Program
from liftpy.kernels.chain import chain
from liftpy.rewrite.partition import HELD, STORED, Stage, StagedSkeleton

Search: TypeAlias = Callable[[Space, int, Sequence[Trial], Allows], Iterator[Candidate]]

BEGIN = 24  # candidates in which each partition has its turn, before one is preferred
PATIENCE = 3  # turns of a partition without a time of each stage, after which it waits
OTHERS = 5  # each such candidate is of the partition that had the fewest
TOGETHER = 4  # each such candidate is made of the fastest of each stage
HOLDING = 3  # each such candidate holds values, of the forms and sizes that are best stored


def by_stages(search: Search) -> Search:
    """The search for programs of several stages; that of one stage is as it was."""

    def run(
        space: Space, seed: int, trials: Sequence[Trial], allows: Allows
    ) -> Iterator[Candidate]:
        if not space.products:
            return search(space, seed, trials, allows)
        return StageSearches(space, seed, trials, allows, search).candidates()

    return run


@lru_cache(maxsize=1024)
def launches_of(skeleton: StagedSkeleton) -> tuple[int, ...]:
    """The number of launches of the run phase of each stage, in their order."""
    cut = chain(skeleton.program)
    writes = [kernel.writes for kernel in cut.run]
    ends: list[int] = []
    for name in skeleton.stored:
        buffer = cut.lets.get(name)
        before = ends[-1] if ends else 0
        ends.append(max(before, writes.index(buffer) + 1) if buffer in writes else before)
    ends.append(len(writes))
    return tuple(end - begin for begin, end in itertools.pairwise([0, *ends]))


@dataclass
class Place:
    """A stage of a partition: what is searched for it, and how that is written there."""

    stage: Stage
    group: tuple[Member, ...]
    search: StageSearch

    def drawn(self, candidate: Candidate) -> Drawn:
        """A candidate of the stage's search as one of this place."""
        there = self.search.group
        if there is self.group:
            return candidate.skeleton, candidate.point
        where = self.search.places[candidate.skeleton.key]
        names = zip(
            there[where].skeleton.parameters, self.group[where].skeleton.parameters, strict=True
        )
        to = {old.name: new.name for old, new in names}
        return self.group[where].skeleton, {to[n]: size for n, size in candidate.sizes}

    def candidate(self, key: str, sizes: dict[str, int]) -> Candidate | None:
        """A point of this place as a candidate of the stage's search."""
        where = self.search.places.get(key)
        if where is None:
            return None
        names = zip(
            self.group[where].skeleton.parameters,
            self.search.group[where].skeleton.parameters,
            strict=True,
        )
        point = tuple((theirs.name, sizes[mine.name]) for mine, theirs in names)
        return Candidate(self.search.program, self.search.group[where].skeleton, point)


@dataclass
class StageSearch:
    """The search for a stage, and its trials."""

    group: tuple[Member, ...]
    program: Program
    tried: Iterator[Candidate]
    trials: list[Trial] = field(default_factory=list[Trial])
    best: Trial | None = None

    def __post_init__(self) -> None:
        self.places = {member.skeleton.key: k for k, member in enumerate(self.group)}

    def next(self) -> Candidate | None:
        """The next candidate, or the fastest where all were tried."""
        found = next(self.tried, None)
        if found is not None:
            return found
        return None if self.best is None else self.best.candidate

    def learn(self, trial: Trial) -> None:
        """Takes in the time of a candidate."""
        self.trials.append(trial)
        if trial.time_ns is not None and (
            self.best is None or trial.time_ns < (self.best.time_ns or 0)
        ):
            self.best = trial


@dataclass
class Arm:
    """A partition of the program, or the program as one stage, and how often it had a turn."""

    product: Product | None
    places: list[Place]
    whole: StageSearch | None = None
    turns: int = 0
    ended: bool = False

    @property
    def holds(self) -> bool:
        """Whether some of its candidates hold values."""
        if self.whole is not None:
            return any(HELD in member.skeleton.words.values() for member in self.whole.group)
        return any(place.stage.holds for place in self.places)

    @property
    def stores_all(self) -> bool:
        """Whether every value that may be is stored."""
        return self.product is not None and all(
            word == STORED for _, word in self.product.partition.words
        )

    def expected(self) -> float:
        """The time that the fastest of each stage take together, in ns.

        If one is unknown it is 0, but infinite after some turns: it may never be measured.
        """
        searches = [place.search for place in self.places] if self.whole is None else [self.whole]
        best = [search.best for search in searches]
        if any(one is None for one in best):
            return math.inf if self.turns >= PATIENCE else 0.0
        return float(sum(one.time_ns or 0 for one in best if one is not None))


class StageSearches:
    """The searches of all stages of a space."""

    def __init__(
        self, space: Space, seed: int, trials: Sequence[Trial], allows: Allows, search: Search
    ) -> None:
        self.space, self.seed, self.trials, self.allows = space, seed, trials, allows
        self.search = search
        self.known: dict[object, StageSearch] = {}
        self.arms = [Arm(p, [*self.places_of(p)]) for p in space.products]
        if space.members:
            alone = replace(space, products=())
            found: list[Trial] = []
            tried = search(alone, seed, found, allows)
            whole = StageSearch(space.members, space.program, tried, found)
            self.arms.insert(0, Arm(None, [], whole))
        self.read = 0

    def places_of(self, product: Product) -> Iterator[Place]:
        """The stages of a partition, each with its search."""
        for stage, group in zip(product.partition.stages, product.groups, strict=True):
            key = stage.text, stage.within, tuple(m.count() for m in group)
            if key not in self.known:
                space = Space(stage.program, self.space.device, group, sampler=self.space.sampler)
                found: list[Trial] = []
                seed = subseed(self.seed, stage.text)
                tried = self.search(space, seed, found, everything)
                self.known[key] = StageSearch(group, stage.program, tried, found)
            yield Place(stage, group, self.known[key])

    def candidates(self) -> Iterator[Candidate]:
        """Candidates of the program, each once."""
        seen: set[str] = set()
        for ordinal in itertools.count():
            self.learn()
            found = self.proposed(ordinal, seen)
            if found is None:
                yield from self.left(seen, ordinal)
                return
            seen.add(found.key)
            yield replace(found, ordinal=ordinal)

    def proposed(self, ordinal: int, seen: set[str]) -> Candidate | None:
        """A candidate of the partition whose turn it is; None where none has others."""
        if ordinal >= BEGIN and not ordinal % HOLDING:
            found = next((c for c in self.holding(ordinal) if c.key not in seen), None)
            if found is not None and self.allows(found.skeleton, found.point):
                return found
        while arms := [arm for arm in self.arms if not arm.ended]:
            arm = self.chosen(arms, ordinal)
            found = self.next_of(arm, ordinal, seen)
            if found is not None:
                arm.turns += 1
                return found
        return None

    def chosen(self, arms: list[Arm], ordinal: int) -> Arm:
        """The partition whose turn it is."""
        if ordinal < BEGIN or not ordinal % OTHERS:
            return min(arms, key=lambda arm: arm.turns)
        return min(arms, key=lambda arm: arm.expected())

    def holding(self, ordinal: int) -> Iterator[Candidate]:
        """Candidates that hold values as they are best stored, of the partitions in turn."""
        holding = [arm for arm in self.arms if arm.holds]
        stored = [arm for arm in self.arms if arm.product is not None and arm.stores_all]
        if not holding or not stored:
            return
        best: dict[str, Drawn] = {}
        for place in stored[0].places:
            if place.search.best is None:
                return
            best[place.stage.name] = place.drawn(place.search.best.candidate)
        start = ordinal // HOLDING % len(holding)
        for arm in (*holding[start:], *holding[:start]):
            yield from self.as_stored(arm, best)

    def as_stored(self, arm: Arm, best: Mapping[str, Drawn]) -> Iterator[Candidate]:
        """The candidates of a partition that hold values as they are best stored."""
        if arm.whole is not None:
            for skeleton, point in transferred(arm.whole.group, "", best):
                yield Candidate(self.space.program, skeleton, tuple(point.items()))
            return
        stages: list[Iterator[Drawn]] = []
        for place in arm.places:
            if place.stage.holds:
                stages.append(transferred(place.group, place.stage.name, best))
            elif place.search.best is not None:
                stages.append(repeat(place.drawn(place.search.best.candidate)))
        if arm.product is not None and len(stages) == len(arm.places):
            for drawn in zip(*stages, strict=False):
                skeleton, sizes = arm.product.made(drawn)
                yield Candidate(self.space.program, skeleton, tuple(sizes.items()))

    def next_of(self, arm: Arm, ordinal: int, seen: set[str]) -> Candidate | None:
        """A candidate of a partition that was not tried; None, and an end, if it has no other."""
        if arm.whole is not None:
            found = next(arm.whole.tried, None)
            arm.ended = found is None
            return found
        if not ordinal % TOGETHER:
            best = [place.search.best for place in arm.places]
            found = self.made(arm, [None if one is None else one.candidate for one in best])
            if found is not None and found.key not in seen:
                return found
        found = self.made(arm, [place.search.next() for place in arm.places])
        if found is None or found.key in seen or not self.allows(found.skeleton, found.point):
            arm.ended = found is None or found.key in seen
            return None
        return found

    def made(self, arm: Arm, stages: Sequence[Candidate | None]) -> Candidate | None:
        """The candidate of the program that candidates of its stages make."""
        known = [one for one in stages if one is not None]
        if arm.product is None or len(known) < len(stages):
            return None
        pairs = zip(arm.places, known, strict=True)
        skeleton, sizes = arm.product.made([place.drawn(one) for place, one in pairs])
        return Candidate(self.space.program, skeleton, tuple(sizes.items()))

    def left(self, seen: set[str], ordinal: int) -> Iterator[Candidate]:
        """What the searches of stages did not put together."""
        for found in self.space.draws(self.seed, self.allows):
            if found.key not in seen:
                yield replace(found, ordinal=ordinal)
                ordinal += 1

    def learn(self) -> None:
        """Gives each stage its part of the trials since the last time."""
        self.read = min(self.read, len(self.trials))
        for trial in itertools.islice(self.trials, self.read, None):
            self.take_in(trial)
        self.read = len(self.trials)

    def take_in(self, trial: Trial) -> None:
        """Gives each stage its part of a trial."""
        skeleton = trial.candidate.skeleton
        if not isinstance(skeleton, StagedSkeleton):
            for arm in self.arms:
                if arm.whole is not None:
                    arm.whole.learn(trial)
            return
        counts = launches_of(skeleton)
        known = len(trial.launches) == sum(counts)
        times = iter(trial.launches)
        sizes = trial.candidate.point
        own = dict(skeleton.stages)
        names = [name for name, _ in skeleton.stages]
        cuts = tuple(skeleton.choices)
        arm = next(
            arm
            for arm in self.arms
            if arm.product is not None
            and [p.stage.name for p in arm.places] == names
            and arm.product.partition.words == cuts
        )
        for place, count in zip(arm.places, counts, strict=True):
            there = place.candidate(own[place.stage.name].key, sizes)
            spent = sum(itertools.islice(times, count)) if known else None
            if there is not None:
                place.search.learn(Trial(there, spent, trial.peak))
