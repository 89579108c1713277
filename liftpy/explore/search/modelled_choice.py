"""The candidates of a space with the least modelled time.

Time adds up over stages, so each stage is chosen by itself. Of a stage, many draws are ordered by
the figures of `cost_model.py`, which are evaluated for all points of a skeleton at once. The first
ones are modelled (`liftpy.traffic`), which takes as long as lowering them to loops: milliseconds
for each. From the best one, the search moves to a faster neighbour as long as there is one.
Families and partitions are compared by the first few candidates of their stages; those that take
much longer than the best are not searched further, and not all of their stages are begun.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from liftpy.constraints.hardware import Hardware
from liftpy.deadline import check
from liftpy.explore.search.cost_model import GUESS, figures_at
from liftpy.explore.search.local import distance, stepped, steps_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member, subseed
from liftpy.explore.space.product import Product
from liftpy.explore.space.space import Space
from liftpy.pipeline import collection_paused
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.model import Modelled
from liftpy.traffic.time import modelled

WHOLE = "whole"  # the key of the program as one stage in a forecast
DRAWS = 1536  # draws of a stage that are ordered by figures, over all of its skeletons
FEW = 8  # at least so many of each skeleton
MODELLED = 12  # of these, how many are modelled
PROBED = 6  # of these, how many are modelled to compare families and partitions
NEIGHBOURS = 40  # the most neighbours that are modelled for a stage
FORMS = 6  # the most neighbours of a candidate that are of other skeletons
GAIN = 0.01  # the least part of the time that a faster neighbour saves
HOPELESS = 1.5  # a partition is abandoned if some of its stages take this many times the best time
UNLIKELY = 2.0  # a form is not searched if the best of `PROBED` take this many times the best time


@dataclass(frozen=True)
class Model:
    """A candidate with its modelled time; `alike` names its family or partition."""

    candidate: Candidate
    modelled: Modelled
    alike: str

    @property
    def milliseconds(self) -> float:
        """The modelled time."""
        return self.modelled.milliseconds


def least_modelled(space: Space) -> Candidate | None:
    """The candidate with the least modelled time of the families of a space; None without one.

    Families are compared by their first few candidates, and only the best one is searched further.
    """
    chooser = Chooser(space, hardware_of(space.device))
    families = [*families_of(space).values()]
    if not families:
        return None
    with collection_paused(kept=True):
        best = families[0]
        if len(families) > 1:
            best = min(families, key=lambda members: chooser.begun(members, PROBED).least)
        return chooser.candidate(chooser.stage(best).drawn)


@dataclass(frozen=True)
class Forecast:
    """What is modelled before anything is measured.

    `best` is a candidate of the form with the least modelled time. `milliseconds` has the times of
    partitions by key, and that of the program as one stage, with the key `WHOLE`; for those that
    are much slower than the best, they are lower bounds.
    """

    best: Candidate
    milliseconds: Mapping[str, float]


def forecast(space: Space) -> Forecast | None:
    """The forecast of a space; None if it has no candidates.

    Families and partitions are compared by a few candidates of each stage. Only the best one is
    searched further.
    """
    chooser = Chooser(space, hardware_of(space.device))
    found: list[tuple[Probe, float]] = []
    with collection_paused():
        for probe, spent in chooser.probed():
            found.append((probe, spent))
            chooser.bound = min(chooser.bound, spent)
        if not found:
            return None
        best, _ = min(found, key=lambda pair: pair[1])
        made = chooser.searched(best, math.inf)
    if made is None:
        return None
    families = families_of(space)
    times: dict[str, float] = {}
    for key, time in (*chooser.unlikely.items(), *((probe.key, time) for probe, time in found)):
        name = WHOLE if key in families else key
        times[name] = min(time, times.get(name, math.inf))
    return Forecast(made.candidate, times)


def families_of(space: Space) -> dict[str, list[Member]]:
    """The skeletons of each family that have points."""
    families: dict[str, list[Member]] = {}
    for member in space.members:
        if member.possible:
            families.setdefault(member.family, []).append(member)
    return families


@dataclass(frozen=True)
class StageModel:
    """A candidate of a stage, with its modelled time; None if it runs in the prepare phase."""

    drawn: Drawn
    modelled: Modelled | None

    @property
    def milliseconds(self) -> float:
        """The modelled time."""
        return 0.0 if self.modelled is None else self.modelled.milliseconds


@dataclass
class Begun:
    """A stage whose search has begun: the first candidates to model, and those already modelled.

    `others` are the first ones of families of which none is among the first `candidates`: the
    figures that order them do not compare families well. `known` has what is modelled by key.
    """

    candidates: list[tuple[Member, Candidate]]
    others: list[tuple[Member, Candidate]]
    known: dict[str, tuple[Member, StageModel]] = field(
        default_factory=dict[str, tuple[Member, StageModel]]
    )

    @property
    def least(self) -> float:
        """The least modelled time in milliseconds; 0 if nothing is modelled."""
        return min((stage.milliseconds for _, stage in self.known.values()), default=0.0)


@dataclass
class Known:
    """What is known in all spaces with common skeletons, whatever their programs.

    `ordered` has the draws of some skeletons in the order of their figures, `modelled` the models
    of points, by the identity of skeletons.
    """

    ordered: dict[tuple[int, ...], list[tuple[Member, dict[str, int]]]] = field(
        default_factory=dict[tuple[int, ...], list[tuple[Member, dict[str, int]]]]
    )
    modelled: dict[tuple[object, ...], StageModel] = field(
        default_factory=dict[tuple[object, ...], StageModel]
    )


@dataclass
class Probe:
    """A family or a partition; nothing of the stages in `left` is modelled yet."""

    key: str
    members: Sequence[Member]
    part: Product | None
    left: list[Sequence[Member]]


@dataclass
class Chooser:
    """The search for the least modelled time in a space; `bound` is the least one so far, in ms."""

    space: Space
    hardware: Hardware
    bound: float = math.inf
    left: dict[str, float] = field(default_factory=dict[str, float])
    unlikely: dict[str, float] = field(default_factory=dict[str, float])
    drawn: int = 0
    considered: int = 0
    _begun: dict[tuple[int, ...], Begun] = field(default_factory=dict[tuple[int, ...], "Begun"])
    _stages: dict[tuple[int, ...], StageModel] = field(
        default_factory=dict[tuple[int, ...], StageModel]
    )

    def models(self) -> list[Model]:
        """The best candidate of each family and of each partition that is not hopeless."""
        found: list[Model] = []
        for probe, _ in self.probed():
            made = self.searched(probe, self.bound)
            if made is not None:
                found.append(made)
                self.bound = min(self.bound, made.milliseconds)
        return found

    def probed(self) -> Iterator[tuple[Probe, float]]:
        """The families and partitions, each with its time by the first few candidates of a stage.

        Those that take more than `UNLIKELY` times the bound are left out. The next stage is always
        one of the form with the least time so far. So stages of forms that turn out to be much
        slower than the best are neither drawn from nor modelled.
        """
        probes = [Probe(name, ms, None, [ms]) for name, ms in families_of(self.space).items()]
        for whole in self.space.products:
            for part in whole.summands if whole.possible else ():
                groups = [group for group, constant in stages_of(part) if not constant]
                probes.append(Probe(whole.key, part.members, part, groups))
        waiting = [(0.0, k) for k in range(len(probes))]
        while waiting:
            spent, k = heapq.heappop(waiting)
            probe = probes[k]
            if spent > UNLIKELY * self.bound:
                self.unlikely[probe.key] = spent
            elif probe.left:
                more = self.begun(probe.left.pop(), PROBED).least
                heapq.heappush(waiting, (spent + more, k))
            else:
                yield probe, spent

    def searched(self, probe: Probe, bound: float) -> Model | None:
        """The best of a family or a partition; None if a stage takes longer than a bound allows."""
        part = probe.part
        if part is None:
            return self.model([self.stage(probe.members)], probe.key)
        stages = self.stages(part, probe.key, HOPELESS * bound)
        if stages is None:
            return None
        return self.model(stages, probe.key, part.made([stage.drawn for stage in stages]))

    def model(self, stages: list[StageModel], alike: str, drawn: Drawn | None = None) -> Model:
        """The candidate that these stages make."""
        skeleton, sizes = drawn or stages[0].drawn
        timed = (stage.modelled for stage in stages)
        kernels = tuple(k for one in timed if one is not None for k in one.kernels)
        made = Candidate(self.space.program, skeleton, tuple(sizes.items()))
        return Model(made, Modelled(kernels, self.hardware), alike)

    def stages(self, part: Product, key: str, bound: float) -> list[StageModel] | None:
        """The best of each stage of a partition; None if some of them take longer than a bound.

        The stages that take longest in the candidates that are known are searched first.
        """
        groups = [*stages_of(part)]
        least = [0.0 if packed else self.begun(group, PROBED).least for group, packed in groups]
        made: dict[int, StageModel] = {}
        for k in sorted(range(len(groups)), key=lambda k: -least[k]):
            group, packed = groups[k]
            made[k] = self.packed(group) if packed else self.stage(group)
            spent = sum(one.milliseconds for one in made.values())
            if spent > bound and len(made) < len(groups):
                self.left[key] = spent
                return None
        return [made[k] for k in range(len(groups))]

    def packed(self, members: Sequence[Member]) -> StageModel:
        """A candidate of a stage of constants, which is computed once, before the runs."""
        return StageModel(drawn_of(self.ordered(members)[0][1]), None)

    def stage(self, members: Sequence[Member]) -> StageModel:
        """The best of the skeletons of a stage; equal stages are chosen once."""
        key = tuple(map(id, members))
        if key not in self._stages:
            self._stages[key] = self._chosen(members)
        return self._stages[key]

    def begun(self, members: Sequence[Member], count: int) -> Begun:
        """A stage whose first few candidates are modelled."""
        key = tuple(map(id, members))
        if key not in self._begun:
            ordered = varied(self.ordered(members))
            others = of_other_families(ordered, PROBED)
            self._begun[key] = Begun(ordered[:MODELLED], others)
        begun = self._begun[key]
        self.model_all(begun, (*begun.candidates[:count], *begun.others))
        return begun

    def model_all(self, stage: Begun, candidates: Iterable[tuple[Member, Candidate]]) -> None:
        """Models those candidates of a stage that are not modelled yet."""
        known = self.space.common(Known).modelled
        for member, candidate in candidates:
            if candidate.key not in stage.known:
                at = id(member.skeleton), candidate.sizes
                if at not in known:
                    known[at] = self.modelled(candidate)
                stage.known[candidate.key] = member, known[at]

    def _chosen(self, members: Sequence[Member]) -> StageModel:
        begun = self.begun(members, MODELLED)
        best = min(begun.known.values(), key=lambda pair: pair[1].milliseconds)
        most = self.considered + NEIGHBOURS
        while (better := self.better(begun, members, best, most)) is not None:
            best = better
        return best[1]

    def better(
        self,
        stage: Begun,
        members: Sequence[Member],
        best: tuple[Member, StageModel],
        most: int,
    ) -> tuple[Member, StageModel] | None:
        """The first neighbour of a stage's best candidate that is faster; None if there is none.

        Neighbours are modelled until `considered` has reached `most`.
        """
        bound = (1 - GAIN) * best[1].milliseconds
        for member, candidate in self.neighbours(members, *best):
            if candidate.key not in stage.known:
                if self.considered >= most:
                    return None
                self.model_all(stage, [(member, candidate)])
                if stage.known[candidate.key][1].milliseconds < bound:
                    return stage.known[candidate.key]
        return None

    def neighbours(
        self, members: Sequence[Member], member: Member, stage: StageModel
    ) -> Iterator[tuple[Member, Candidate]]:
        """Candidates with other sizes, then those of other skeletons with the same sizes."""
        parent = self.candidate(stage.drawn)
        for steps in steps_of(sorted(dict(parent.sizes))):
            yield from self.stepped(member, parent, steps)
        others = [m for m in members if m.possible and m.family == member.family and m != member]
        others.sort(key=lambda other: distance(member.words, other.words))
        for other in others[:FORMS]:
            yield from self.stepped(other, parent, {})

    def stepped(
        self, member: Member, parent: Candidate, steps: Mapping[str, int]
    ) -> Iterator[tuple[Member, Candidate]]:
        """The candidate of a skeleton near another one, if there is one."""
        found = stepped(self.space, member, parent, steps)
        if found is not None:
            yield member, found

    def ordered(self, members: Sequence[Member]) -> list[tuple[Member, Candidate]]:
        """Draws of each skeleton, in the order of their figures."""
        known, key = self.space.common(Known).ordered, tuple(map(id, members))
        if key not in known:
            known[key] = self._ordered(members)
        return [(member, self.candidate((member.skeleton, at))) for member, at in known[key]]

    def _ordered(self, members: Sequence[Member]) -> list[tuple[Member, dict[str, int]]]:
        each = max(FEW, DRAWS // len(members))
        found: list[tuple[Member, dict[str, int]]] = []
        costs: list[float] = []
        for member in members:
            if member.possible:
                drawn = member.points.draws(subseed(0, member.key))
                points = [*itertools.islice(drawn, each)]
                found += ((member, at) for at in points)
                known = figures_at(member.skeleton, points, self.space.device)
                costs += (float(np.dot(figures, GUESS)) for figures in known)
        self.drawn += len(found)
        return [found[k] for k in sorted(range(len(found)), key=lambda k: costs[k])]

    def candidate(self, drawn: Drawn) -> Candidate:
        """A draw as a candidate."""
        skeleton, sizes = drawn
        return Candidate(self.space.program, skeleton, tuple(sizes.items()))

    def modelled(self, candidate: Candidate) -> StageModel:
        """The model of a candidate of a stage."""
        check()
        self.considered += 1
        lowered = candidate.skeleton.at(candidate.point)
        return StageModel(drawn_of(candidate), modelled(lowered, self.space.device, self.hardware))


def stages_of(part: Product) -> Iterator[tuple[Sequence[Member], bool]]:
    """The skeletons of each stage of a partition, and whether it depends on constants only."""
    last = len(part.groups) - 1
    for k, (stage, group) in enumerate(zip(part.partition.stages, part.groups, strict=True)):
        of = stage.program
        yield group, k < last and all(p.name in of.constants for p in of.params)


def drawn_of(candidate: Candidate) -> Drawn:
    """The skeleton and the sizes of a candidate."""
    return candidate.skeleton, candidate.point


def of_other_families(
    ordered: list[tuple[Member, Candidate]], count: int
) -> list[tuple[Member, Candidate]]:
    """The first candidate of each family that is not among the first `count` candidates."""
    families = {member.family for member, _ in ordered[:count]}
    found: list[tuple[Member, Candidate]] = []
    for member, candidate in ordered[count:]:
        if member.family not in families:
            families.add(member.family)
            found.append((member, candidate))
    return found


def varied(ordered: list[tuple[Member, Candidate]]) -> list[tuple[Member, Candidate]]:
    """Candidates in an order in which the first of each skeleton comes before any second."""
    ranks: dict[str, int] = {}
    numbered: list[tuple[int, int]] = []
    for k, (_, candidate) in enumerate(ordered):
        rank = ranks.get(candidate.skeleton.key, 0)
        ranks[candidate.skeleton.key] = rank + 1
        numbered.append((rank, k))
    return [ordered[k] for _, k in sorted(numbered)]
