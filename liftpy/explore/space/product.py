"""A partition of a program in a space: the skeletons of each stage, chosen independently.

The candidates of a partition are the product of those of its stages. They are counted by
multiplication, and a draw combines one draw of each stage; no list of combinations is made. With
conditions over several stages, a partition is a sum of such products (`across.py`).
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from liftpy.constraints.draw import Preference, Sampler
from liftpy.constraints.rng import Rng
from liftpy.constraints.system import ConstraintSystem
from liftpy.constraints.user import Wish, asked_too
from liftpy.explore.space.across import apart, crosses, sizes_of
from liftpy.explore.space.interleaving import interleaved
from liftpy.explore.space.member import Cost, Drawing, Drawn, Member, free, subseed
from liftpy.rewrite.composition import STAGES, composed, prefixed
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import FAMILY, Skeleton, key_of

Settings = Mapping[str, str | int]


@dataclass(frozen=True)
class Product:
    """A partition, and the members of each of its stages in their order.

    `across` has the user's conditions over sizes of several stages.
    """

    partition: Partition
    groups: tuple[tuple[Member, ...], ...]
    across: tuple[Wish, ...] = ()

    @cached_property
    def summands(self) -> tuple[Product, ...]:
        """Products without conditions over several stages; their union has the same candidates."""
        if not self.across:
            return (self,)
        return tuple(Product(self.partition, groups) for groups in apart(self.groups, self.across))

    def asking(self, wanted: Iterable[Wish]) -> Product:
        """This product with those of the conditions `wanted` that are over several stages."""
        more = tuple(wish for wish in wanted if crosses(wish, self.groups))
        return replace(self, across=(*self.across, *more)) if more else self

    @property
    def words(self) -> dict[str, str]:
        """The choices of the partition; those of its stages are open."""
        return {FAMILY: STAGES, **dict(self.partition.words)}

    @property
    def family(self) -> str:
        """The family for which its turns are counted."""
        return STAGES

    @property
    def key(self) -> str:
        """Its name, such as `stages(scores=stored)`."""
        return key_of(STAGES, self.partition.words)

    @property
    def members(self) -> tuple[Member, ...]:
        """The members of all stages."""
        return tuple(member for group in self.groups for member in group)

    @cached_property
    def possible(self) -> bool:
        """Whether it has candidates, without counting them."""
        if self.across:
            return any(part.possible for part in self.summands)
        return all(any(member.possible for member in group) for group in self.groups)

    def count(self) -> int:
        """The exact number of candidates."""
        if self.across:
            return sum(part.count() for part in self.summands)
        return math.prod(sum(m.count() for m in group) for group in self.groups)

    def parts(self, settings: Settings) -> list[dict[str, str | int]] | None:
        """The settings of each stage; None if one fits neither the partition nor a stage."""
        found: list[dict[str, str | int]] = [{} for _ in self.groups]
        for name, value in settings.items():
            if name in self.words:
                if self.words[name] != str(value):
                    return None
                continue
            mine = [
                k
                for k, group in enumerate(self.groups)
                if any(name in m.words or name in m.system.by_name for m in group)
            ]
            if not mine:
                return None
            found[mine[0]][name] = value
        return found

    def fitting(self, settings: Settings) -> Product | None:
        """The part that makes these choices and has these sizes, without counting."""
        parts = self.parts(settings)
        if parts is None:
            return None
        groups = [
            tuple(m for m in group if m.fits(mine))
            for group, mine in zip(self.groups, parts, strict=True)
        ]
        return replace(self, groups=tuple(groups)) if all(groups) else None

    def fits(self, settings: Settings) -> bool:
        """Whether some skeletons of its stages make these choices and have these sizes."""
        return self.fitting(settings) is not None

    def at(self, settings: Settings) -> Product | None:
        """The candidates with these settings; None if there are none."""
        fitting, parts = self.fitting(settings), self.parts(settings)
        if fitting is None or parts is None:
            return None
        groups = [
            tuple(fixed for m in group if (fixed := m.at(mine)) is not None)
            for group, mine in zip(fitting.groups, parts, strict=True)
        ]
        if not all(groups):
            return None
        found = replace(self, groups=tuple(groups))
        return found if not self.across or found.possible else None

    def only(self, kept: AbstractSet[int]) -> Product | None:
        """The part whose members have these `id`s; None if a stage has none."""
        groups = [tuple(m for m in group if id(m) in kept) for group in self.groups]
        return replace(self, groups=tuple(groups)) if all(groups) else None

    def restricted(self, more: Callable[[ConstraintSystem], ConstraintSystem]) -> Product:
        """This product with more conditions."""
        groups = (tuple(m.restricted(more) for m in group) for group in self.groups)
        return replace(self, groups=tuple(groups))

    def without_points(self, settings: Settings) -> Iterator[tuple[Member, Settings]]:
        """The members of the stages in which no point has the settings, and their settings."""
        for group, mine in zip(self.groups, self.parts(settings) or (), strict=False):
            fitting = [m for m in group if m.fits(mine)]
            if all(m.at(mine) is None for m in fitting):
                yield from ((m, mine) for m in fitting)
        fitting = self.fitting(settings)
        if self.across and fitting is not None:
            yield from ((joint, settings) for joint in fitting.joint())

    def joint(self) -> Iterator[Joint]:
        """One system of all stages for each condition across stages, to explain conflicts."""
        for wish in self.across:
            names = wish.constraint.names()
            each = [
                next((m for m in g if sizes_of(g, names) <= m.system.by_name.keys()), g[0])
                for g in self.groups
            ]
            parameters = tuple(p for m in each for p in m.system.parameters)
            clauses = tuple(clause for m in each for clause in m.system.clauses)
            system = asked_too(ConstraintSystem(parameters, clauses), self.across)
            yield Joint(composed(self.partition, [m.skeleton for m in each]), system)

    def without_sizes(self) -> Skeleton | None:
        """A skeleton in which no size is open, if there is one."""
        each = [
            next((m.skeleton for m in g if not m.skeleton.parameters), None) for g in self.groups
        ]
        made = tuple(skeleton for skeleton in each if skeleton is not None)
        return composed(self.partition, made) if len(made) == len(each) else None

    def exactly(self, names: AbstractSet[str]) -> Product | None:
        """The part whose choices and sizes have exactly these names."""
        groups = [
            tuple(m for m in group if {*m.words, *m.system.by_name} <= names)
            for group in self.groups
        ]
        reached = {n for group in groups for m in group for n in (*m.words, *m.system.by_name)}
        if not all(groups) or not names <= {*self.words, *reached}:
            return None
        stages = [stage.name for stage in self.partition.stages]
        mine = [{n for n in names if n.startswith(prefixed(stage, ""))} for stage in stages]
        whole = [
            tuple(m for m in group if {*m.words, *m.system.by_name} == own)
            for group, own in zip(groups, mine, strict=True)
        ]
        return replace(self, groups=tuple(whole)) if all(whole) else None

    def first(self, settings: Settings, seed: int) -> Drawn | None:
        """A candidate that agrees with settings; None if there is none."""
        fixed = self.at(settings)
        return None if fixed is None else next(fixed.draws(Drawing(seed)), None)

    def preferred(self, preference: Preference, cost: Cost = free) -> Drawn | None:
        """The candidate whose sizes a preference puts first; None if there is none.

        For each stage, it has the first skeleton of least cost among those with such a point.
        """
        for part in self.summands:
            each = [
                next((at for m in group if (at := m.preferred(preference)) is not None), None)
                for group in (sorted(group, key=cost) for group in part.groups)
            ]
            drawn = [at for at in each if at is not None]
            if len(drawn) == len(each):
                return part.made(drawn)
        return None

    def agreeing(self, settings: Settings) -> Iterator[Drawn]:
        """All candidates that agree with settings."""
        fixed = self.at(settings)
        if fixed is not None:
            yield from fixed.draws(Drawing(0))

    def made(self, drawn: Sequence[Drawn]) -> Drawn:
        """The candidate composed of one candidate of each stage."""
        skeleton = composed(self.partition, [own for own, _ in drawn])
        return skeleton, {name: size for _, sizes in drawn for name, size in sizes.items()}

    def draws(self, how: Drawing) -> Iterator[Drawn]:
        """The allowed candidates, each once, in an order that the seed determines.

        All stages advance together, each through its own candidates in the order of its seed. So n
        draws of the product contain n draws of each stage that has n or more candidates. With
        conditions across stages, each draw is from one of the summands, chosen with a probability
        proportional to the number of candidates it has left.
        """
        if self.across:
            yield from mixed(self.summands, how)
            return
        names = [stage.name for stage in self.partition.stages]
        stages = [
            Sequenced(interleaved(group, Drawing(subseed(how.seed, name), sampler=how.sampler)))
            for group, name in zip(self.groups, names, strict=True)
        ]
        counts = [stage.count(self.groups[k], how.sampler) for k, stage in enumerate(stages)]
        for k in range(math.prod(counts)):
            places = diagonal(k, counts)
            drawn = self.made([stage[place] for stage, place in zip(stages, places, strict=True)])
            if how.allows(*drawn):
                yield drawn


class Joint(Member):
    """A skeleton of several stages with the conditions of all of them."""


def mixed(parts: Sequence[Product], how: Drawing) -> Iterator[Drawn]:
    """The draws of several products, mixed uniformly, in an order that the seed determines."""
    rng = Rng(subseed(how.seed, "parts"))
    draws = [
        part.draws(replace(how, seed=subseed(how.seed, f"part {k}")))
        for k, part in enumerate(parts)
    ]
    left = [part.count() if how.sampler == "uniform" else 1 for part in parts]
    while any(left):
        place = bisect_right([*itertools.accumulate(left)], rng.below(sum(left)))
        found = next(draws[place], None)
        if found is None:  # the others were not allowed, or were not counted
            left[place] = 0
            continue
        left[place] -= how.sampler == "uniform"
        yield found


class Sequenced:
    """The elements of an iterator by position, each computed on first use."""

    def __init__(self, elements: Iterator[Drawn]) -> None:
        self.rest = elements
        self.known: list[Drawn] = []

    def __getitem__(self, place: int) -> Drawn:
        while len(self.known) <= place:
            self.known.append(next(self.rest))
        return self.known[place]

    def count(self, group: Sequence[Member], sampler: Sampler) -> int:
        """The number of elements; with the sampler that counts nothing, all are drawn for this."""
        if sampler == "uniform":
            return sum(member.count() for member in group)
        self.known += self.rest
        return len(self.known)


def diagonal(k: int, counts: Sequence[int]) -> tuple[int, ...]:
    """The k-th of all tuples of positions below `counts`, all positions advancing together.

    If two counts have a common divisor, their positions return to the same pair before all pairs
    have occurred; then the second is shifted by one.

    >>> [diagonal(k, (2, 2)) for k in range(4)]
    [(0, 0), (1, 1), (0, 1), (1, 0)]
    >>> len({diagonal(k, (4, 6, 3)) for k in range(72)})
    72
    """
    if len(counts) == 1:
        return (k,)
    *others, last = counts
    before = math.prod(others)
    return (*diagonal(k % before, others), (k + k // math.lcm(before, last)) % last)
