"""A member of a space: a skeleton with the sizes that satisfy its conditions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from liftpy.constraints.draw import Preference, Sampler, shared_points
from liftpy.constraints.draw import Space as Points
from liftpy.constraints.system import ConstraintSystem
from liftpy.explore.space.settings import is_number
from liftpy.rewrite.composition import key_of_stages, stage_words
from liftpy.rewrite.skeleton import Skeleton

Drawn: TypeAlias = tuple[Skeleton, dict[str, int]]
"""A skeleton and a point of it."""


Allows: TypeAlias = Callable[[Skeleton, Mapping[str, int]], bool]


def everything(_skeleton: Skeleton, _sizes: Mapping[str, int]) -> bool:
    """Allows every point."""
    return True


@dataclass(frozen=True)
class Drawing:
    """How candidates are drawn: see `Space.draws`."""

    seed: int
    allows: Allows = everything
    sampler: Sampler = "uniform"


def subseed(seed: int, name: str) -> int:
    """The seed of a part; it does not depend on which other parts exist."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8])


Cost: TypeAlias = "Callable[[Member], float]"
"""A cost by which skeletons are ordered: the least comes first."""


def free(_: Member) -> float:
    """The same cost for every skeleton."""
    return 0.0


@dataclass(frozen=True)
class Member:
    """A skeleton, the conditions on its sizes, and the points that satisfy them.

    `stage` is the name of the skeleton's stage; it is empty if the skeleton lowers the whole
    program.
    """

    skeleton: Skeleton
    system: ConstraintSystem
    stage: str = ""

    @cached_property
    def points(self) -> Points:
        """The valid sizes, counted on first use; equal conditions share them."""
        return shared_points(self.system)

    @property
    def possible(self) -> bool:
        """Whether it has points. This looks for one point and counts none."""
        return self.points.possible

    @property
    def words(self) -> Mapping[str, str]:
        """Its structural choices, the family first; in a stage, prefixed with the stage's name."""
        return self._words

    @cached_property
    def _words(self) -> Mapping[str, str]:
        return stage_words(self.stage, self.skeleton) if self.stage else self.skeleton.words

    @property
    def key(self) -> str:
        """The key of its skeleton; in a stage, prefixed with the stage's name."""
        own = self.skeleton.key
        return key_of_stages([(self.stage, own)]) if self.stage else own

    @property
    def members(self) -> tuple[Member, ...]:
        """Itself."""
        return (self,)

    def count(self) -> int:
        """The number of points."""
        return self.points.count()

    @property
    def family(self) -> str:
        """The family for which its turns are counted."""
        return self.skeleton.family

    def fits(self, settings: Mapping[str, str | int]) -> bool:
        """Whether it makes the choices in `settings` and has the sizes named there."""
        mine = self.words
        return all(
            mine[name] == str(value)
            if name in mine
            else name in self.system.by_name and is_number(value)
            for name, value in settings.items()
        )

    def fitting(self, settings: Mapping[str, str | int]) -> Member | None:
        """Itself, if it fits."""
        return self if self.fits(settings) else None

    def only(self, kept: AbstractSet[int]) -> Member | None:
        """Itself, if its `id` is in `kept`."""
        return self if id(self) in kept else None

    def restricted(self, more: Callable[[ConstraintSystem], ConstraintSystem]) -> Member:
        """This member with more conditions."""
        return replace(self, system=more(self.system))

    def without_points(
        self, settings: Mapping[str, str | int]
    ) -> Iterator[tuple[Member, Mapping[str, str | int]]]:
        """Itself and the settings, for a caller that found no point with them."""
        yield self, settings

    def sizes(self, settings: Mapping[str, str | int]) -> dict[str, int]:
        """The sizes among settings that this member has."""
        return {n: int(value) for n, value in settings.items() if n in self.system.by_name}

    def at(self, settings: Mapping[str, str | int]) -> Member | None:
        """This member with these sizes fixed, but still parameters; None if no point has them."""
        sizes = self.sizes(settings)
        if not sizes:
            return self if self.possible else None
        if self.system.broken(sizes):
            return None
        fixed = replace(self, system=self.system.fix(sizes))
        return fixed if fixed.possible else None

    def first(self, settings: Mapping[str, str | int], seed: int) -> Drawn | None:
        """Valid sizes that agree with settings; None if there are none."""
        sizes = self.sizes(settings)
        if sizes.keys() == self.system.by_name.keys():
            return (self.skeleton, sizes) if self.system.holds(sizes) else None
        fixed = self.at(settings)
        found = None if fixed is None else next(fixed.points.draws(seed), None)
        return None if found is None else (self.skeleton, found)

    def preferred(self, preference: Preference, cost: Cost = free) -> Drawn | None:
        """The point whose sizes a preference puts first; None if there is none."""
        del cost  # of the only skeleton
        found = self.points.completed(preference)
        return None if found is None else (self.skeleton, found)

    def agreeing(self, settings: Mapping[str, str | int]) -> Iterator[Drawn]:
        """All points that agree with settings."""
        sizes = self.sizes(settings)
        if sizes.keys() == self.system.by_name.keys():
            if self.system.holds(sizes):
                yield self.skeleton, {p.name: sizes[p.name] for p in self.system.parameters}
        elif (fixed := self.at(settings)) is not None:
            yield from ((self.skeleton, point) for point in fixed.points.draws(0))

    def without_sizes(self) -> Skeleton | None:
        """Its skeleton, if no size is open."""
        return None if self.skeleton.parameters else self.skeleton

    def exactly(self, names: AbstractSet[str]) -> Member | None:
        """Itself, if `names` are the names of its choices and sizes."""
        return self if {*self.words, *self.system.by_name} == names else None

    def draws(self, how: Drawing) -> Iterator[Drawn]:
        """The allowed points, each once, in an order that the seed determines."""
        drawn = self.points.draws(subseed(how.seed, self.skeleton.key), how.sampler)
        return ((self.skeleton, sizes) for sizes in drawn if how.allows(self.skeleton, sizes))
