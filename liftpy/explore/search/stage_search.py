"""The search for one stage, and the stage's place in a partition."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from liftpy.explore.measure.pareto import front
from liftpy.explore.search.held import form_of, nearest
from liftpy.explore.search.local import distance
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member
from liftpy.ir.program import Program
from liftpy.rewrite.stages import Stage

AGAIN = 3  # how many of the fastest earlier trials are measured again


@dataclass
class StageSearch:
    """The search for a stage, and its trials.

    `known` are trials from before the campaign. They determine what is tried first. Only the
    `AGAIN` fastest and their front of time and peak are measured again. `trials`, which the search
    reads, contains the known trials until they are measured again. The device may have been faster
    for the earlier trials, so their times are scaled by the median ratio of new to old times.
    """

    group: tuple[Member, ...]
    program: Program
    tried: Iterator[Candidate]
    trials: list[Trial] = field(default_factory=list[Trial])
    known: Sequence[Trial] = ()  # each has a time
    best: Trial | None = None
    waiting: list[Candidate] = field(default_factory=list[Candidate])  # proposed, and not tried
    taken: set[str] = field(default_factory=set[str])  # keys of what was proposed

    def __post_init__(self) -> None:
        self.places = {member.skeleton.key: k for k, member in enumerate(self.group)}
        self.times = {trial.candidate.key: trial.time_ns for trial in self.known}
        self.own: dict[str, Trial] = {}
        if self.known:
            self.rescale()

    def next(self) -> Candidate | None:
        """The next candidate without an earlier time, or the fastest if all were tried."""
        if self.waiting:
            return self.waiting.pop()
        known = self.times.keys() | self.taken
        found = next((c for c in self.tried if c.key not in known), None)
        if found is not None:
            self.taken.add(found.key)
            return found
        return None if self.best is None else self.best.candidate

    def take(self, candidate: Candidate) -> bool:
        """Whether a candidate from elsewhere is new; `next` then leaves it out."""
        known = {trial.candidate.key for trial in self.trials} | self.taken
        self.taken.add(candidate.key)
        return candidate.key not in known

    def fastest(self) -> Candidate | None:
        """The candidate to try with the fastest of other stages.

        This is the fastest, except while some of the fastest known trials, or of their front, are
        not yet measured in this campaign: then it is one of these. One may need less memory.
        """
        if self.known:
            now = {trial.candidate.key: trial for trial in self.trials}
            costs = [
                (now[key].time_ns or 0, trial.peak, now[key].candidate)  # the peak of its own trial
                for trial in self.known
                if now[key := trial.candidate.key].time_ns is not None and trial.peak is not None
            ]
            by_time = sorted(self.known, key=lambda trial: trial.time_ns or 0)
            promising = [trial.candidate for trial in by_time[:AGAIN]]
            promising += (candidate for *_, candidate in front(costs, costs=lambda of: of[:2]))
            for candidate in promising:
                if candidate.key not in self.own:
                    return candidate
        return None if self.best is None else self.best.candidate

    def learn(self, trial: Trial) -> None:
        """Adds the trial of a candidate."""
        if self.known:
            self.own[trial.candidate.key] = trial
            self.rescale()
            return
        self.trials.append(trial)
        if trial.time_ns is not None and (
            self.best is None or trial.time_ns < (self.best.time_ns or 0)
        ):
            self.best = trial

    def rescale(self) -> None:
        """Replaces the contents of `trials`, the list that the search reads, and the best."""
        self.trials[:] = rescaled(self.known, self.own)
        timed = [trial for trial in self.trials if trial.time_ns is not None]
        self.best = min(timed, key=lambda trial: trial.time_ns or 0, default=None)


def rescaled(known: Sequence[Trial], own: Mapping[str, Trial]) -> list[Trial]:
    """Known trials that were not measured again, with scaled times, then those of this campaign.

    The factor is the median ratio of the times of `own`, by key, to the known times of the same
    candidates; it is 1 if there is none.
    """
    times = {trial.candidate.key: trial.time_ns for trial in known}
    pairs = ((times.get(key), trial.time_ns) for key, trial in own.items())
    ratios = [now / then for then, now in pairs if then and now]
    ratio = statistics.median(ratios) if ratios else 1.0
    scaled = [
        replace(trial, time_ns=round((trial.time_ns or 0) * ratio))
        for trial in known
        if trial.candidate.key not in own
    ]
    return [*scaled, *own.values()]


@dataclass
class StagePlace:
    """A stage in a partition, with its search and the translation of names between the two."""

    stage: Stage
    group: tuple[Member, ...]
    search: StageSearch

    def drawn(self, candidate: Candidate) -> Drawn:
        """A candidate of the stage's search, translated to the names of this place."""
        there = self.search.group
        if there is self.group:
            return candidate.skeleton, candidate.point
        where = self.search.places[candidate.skeleton.key]
        names = zip(
            there[where].skeleton.parameters, self.group[where].skeleton.parameters, strict=True
        )
        to = {old.name: new.name for old, new in names}
        return self.group[where].skeleton, {to[n]: size for n, size in candidate.sizes}

    def fastest_of_forms(self) -> list[tuple[int, Drawn]]:
        """The fastest candidate of each form, with its time; fastest first."""
        found: dict[tuple[str, str | None], tuple[int, Drawn]] = {}
        for trial in self.search.trials:
            form, time = form_of(trial.candidate.skeleton), trial.time_ns
            if time is not None and (form not in found or time < found[form][0]):
                found[form] = time, self.drawn(trial.candidate)
        return sorted(found.values(), key=lambda known: known[0])

    def like(self, drawn: Drawn) -> Candidate | None:
        """The candidate with choices and sizes nearest to those of another partition's stage.

        None if no skeleton here is of the same family.
        """
        skeleton, sizes = drawn
        family = [m for m in self.group if m.family == skeleton.family]
        if not family:
            return None
        member = min(family, key=lambda m: distance(m.skeleton.words, skeleton.words))
        near = nearest(member, sizes)
        return None if near is None else self.candidate(member.skeleton.key, near)

    def candidate(self, key: str, sizes: dict[str, int]) -> Candidate | None:
        """A point of this place, translated to a candidate of the stage's search."""
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
