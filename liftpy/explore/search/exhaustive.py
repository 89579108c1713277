"""Exhaustive search, for small spaces: every candidate, in the order of their numbers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, Drawing
from liftpy.explore.space.space import Space


def search(
    space: Space, _seed: int, _trials: Sequence[Trial], allows: Allows
) -> Iterator[Candidate]:
    """The points of each skeleton, then the candidates of each partition."""
    members = (
        (member.skeleton, member.points.unrank(k))
        for member in space.members
        for k in range(member.count())
    )
    products = (drawn for product in space.products for drawn in product.draws(Drawing(0)))
    allowed = (drawn for drawn in itertools.chain(members, products) if allows(*drawn))
    for ordinal, (skeleton, sizes) in enumerate(allowed):
        yield Candidate(space.program, skeleton, tuple(sizes.items()), ordinal)
