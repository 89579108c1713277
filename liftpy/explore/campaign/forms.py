"""The space of a campaign, derived in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
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
    and partitions. Forms by F(m, r) have the points of `bank`.
    """

    plain_first: bool
    derive: Callable[[], Space]
    derive_only: Callable[[Families, Made], Space]
    deadline: Deadline
    bank: Bank = USUAL

    @cached_property
    def plain(self) -> Space | None:
        """The space of the family `plain`, if the first candidate is in it."""
        if not self.plain_first:
            return None
        with self.deadline.phase(DERIVING):
            found = self.derive_only((PLAIN,), as_declared)
            return found if found.possible else None

    @property
    def beginning(self) -> Space:
        """The space of the first candidate: that of the family `plain`, or the whole."""
        return self.plain or self.whole

    @cached_property
    def direct(self) -> Space | None:
        """The space of all families that compute directly; None if that is the whole space."""
        plain = self.plain
        if plain is None:
            return None
        with self.deadline.phase(DERIVING):
            if next(other_forms(plain.program, self.bank), None) is None:
                return None
            found = self.derive_only(None, as_declared)
            return found if found.possible else None

    @cached_property
    def whole(self) -> Space:
        """The space of all families and partitions."""
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
        """Whether `known` candidates are all; derives the whole space only if they may be."""
        return known >= self.beginning.count() and known == self.whole.count()
