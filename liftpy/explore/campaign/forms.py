"""The space of a campaign, derived in parts; and those of several campaigns that take turns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from liftpy.deadline import Deadline
from liftpy.explore.space.given_points import with_points
from liftpy.explore.space.plainest import PLAIN
from liftpy.explore.space.space import Space
from liftpy.explore.space.units import families_for
from liftpy.ir.program import Program
from liftpy.rewrite.bank import USUAL, Bank
from liftpy.rewrite.forms import as_declared, other_forms, partitions
from liftpy.rewrite.partition import Partition

DERIVING = "deriving the program's forms"


Families: TypeAlias = tuple[str, ...] | None
Made: TypeAlias = Callable[[Program], Iterable[Partition]]
Parts: TypeAlias = dict[str, Space | None]
"""The parts of a campaign's space that are derived, by name: None for one that does not exist."""

MOST_SKELETONS = 10_000
"""The most skeletons of kept spaces. One takes 35 to 370 KiB, so these take up to 3 GB."""


class Spaces:
    """The spaces of campaigns that continue in turns in one process, so that each is derived once.

    Spaces that were not used for the longest time are given up while all together have more than
    `most` skeletons. The space of the last campaign is always kept.

    >>> spaces = Spaces()
    >>> spaces.of("a campaign") is spaces.of("a campaign")
    True
    """

    def __init__(self, most: int = MOST_SKELETONS) -> None:
        self.most = most
        self._known: OrderedDict[Hashable, Parts] = OrderedDict()

    def of(self, key: Hashable) -> Parts:
        """The parts of the space of a campaign with this key, to which its `Forms` adds others."""
        found = self._known.setdefault(key, {})
        self._known.move_to_end(key)
        while len(self._known) > 1 and sum(map(skeletons_in, self._known.values())) > self.most:
            self._known.popitem(last=False)
        return found


def skeletons_in(parts: Parts) -> int:
    """The number of skeletons in the parts of a space, which contain one another."""
    return max((len(space.every) for space in parts.values() if space is not None), default=0)


def joined(one: Space, other: Space) -> Space:
    """The space of the units of two spaces of a program."""
    members, products = (*one.members, *other.members), (*one.products, *other.products)
    left_out = (*one.left_out, *other.left_out)
    return replace(one, members=members, products=products, left_out=left_out)


@dataclass(frozen=True)
class Forms:
    """The space of a campaign: parts that contain its first candidates, and the whole.

    With `plain_first`, the first candidate is of the family `plain`, and is measured before the
    other families are derived. It requires that the user has no conditions, since these concern the
    whole space. `derive` returns the whole space, `derive_only` that of some families (None: all)
    and partitions. Forms by F(m, r) have the points of `bank`. `parts` has what was derived before.
    """

    plain_first: bool
    derive: Callable[[], Space]
    derive_only: Callable[[Families, Made], Space]
    deadline: Deadline
    bank: Bank = USUAL
    parts: Parts = field(default_factory=dict[str, Space | None])

    def _once(self, part: str, derive: Callable[[], Space | None]) -> Space | None:
        """A part of the space, derived on first use."""
        if part not in self.parts:
            self.parts[part] = derive()
        return self.parts[part]

    @property
    def plain(self) -> Space | None:
        """The space of the family `plain`, if the first candidate is in it."""
        return self._once("plain", self._plain)

    def _plain(self) -> Space | None:
        if not self.plain_first:
            return None
        with self.deadline.phase(DERIVING):
            found = self.derive_only((PLAIN,), as_declared)
            return found if found.possible else None

    @property
    def beginning(self) -> Space:
        """The space of the first candidate: that of the family `plain`, or the whole."""
        return self.plain or self.whole

    @property
    def direct(self) -> Space | None:
        """The space of all families that compute directly; None if that is the whole space."""
        return self._once("direct", self._direct)

    def _direct(self) -> Space | None:
        plain = self.plain
        if plain is None:
            return None
        with self.deadline.phase(DERIVING):
            if next(other_forms(plain.program, self.bank), None) is None:
                return None
            found = self.derive_only(None, as_declared)
            return found if found.possible else None

    @property
    def whole(self) -> Space:
        """The space of all families and partitions."""
        found = self.parts.get("whole")
        if found is None:
            found = self.parts["whole"] = self._whole()
        return found

    def _whole(self) -> Space:
        plain, beginning = self.plain, self.direct
        with self.deadline.phase(DERIVING):
            if plain is None:
                return self.derive()
            if beginning is not None:
                return joined(
                    beginning, self.derive_only(None, with_points(other_forms, self.bank))
                )
            if not all(p.is_whole for p in partitions(plain.program, self.bank)):
                return self.derive()
            others = tuple(name for name in families_for(plain.device) if name != PLAIN)
            return joined(plain, self.derive_only(others, with_points(partitions, self.bank)))

    def are_all(self, known: int) -> bool:
        """Whether `known` candidates are all; derives the whole space only if they may be.

        Nothing is derived for the first candidate of a campaign that was given one.
        """
        return bool(self.parts) and known >= self.beginning.count() and known == self.whole.count()
