"""Every candidate of a space, in the order of their numbers: for spaces that are small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liftpy.explore.candidate import Candidate
from liftpy.explore.search.trial import Trial
from liftpy.explore.space import Space


def search(space: Space, _seed: int, _trials: Sequence[Trial]) -> Iterator[Candidate]:
    """Skeleton by skeleton, point by point."""
    ordinal = 0
    for member in space.members:
        for k in range(member.points.count()):
            sizes = member.points.unrank(k)
            yield Candidate(space.program, member.skeleton, tuple(sizes.items()), ordinal)
            ordinal += 1
