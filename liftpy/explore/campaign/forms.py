"""The space of a campaign, derived in two parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from liftpy.deadline import Deadline
from liftpy.explore.space.plainest import PLAIN
from liftpy.explore.space.space import Space
from liftpy.rewrite.partition import partitions
from liftpy.rewrite.strategies.families import FAMILIES

DERIVING = "deriving the program's forms"


@dataclass(frozen=True)
class Forms:
    """The space of a campaign: the part that contains its first candidate, and the whole.

    With `plain_first`, the first candidate is of the family `plain`, and is measured before the
    other families are derived. It requires that the user has no conditions, since these concern the
    whole space. `derive` returns the whole space, `derive_only` that of some families.
    """

    plain_first: bool
    derive: Callable[[], Space]
    derive_only: Callable[[tuple[str, ...]], Space]
    deadline: Deadline

    @cached_property
    def plain(self) -> Space | None:
        """The space of the family `plain`, if the first candidate is in it."""
        if not self.plain_first:
            return None
        with self.deadline.phase(DERIVING):
            found = self.derive_only((PLAIN,))
            return found if found.possible else None

    @property
    def beginning(self) -> Space:
        """The space of the first candidate: that of the family `plain`, or the whole."""
        return self.plain or self.whole

    @cached_property
    def whole(self) -> Space:
        """The space of all families."""
        plain = self.plain
        with self.deadline.phase(DERIVING):
            if plain is None or not all(p.is_whole for p in partitions(plain.program)):
                return self.derive()
            others = self.derive_only(tuple(name for name in FAMILIES if name != PLAIN))
            return replace(plain, members=(*plain.members, *others.members))

    def are_all(self, known: int) -> bool:
        """Whether `known` candidates are all; derives the whole space only if they may be."""
        return known >= self.beginning.count() and known == self.whole.count()
