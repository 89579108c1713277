"""The published search: the draws of a seed, independent of their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows
from liftpy.explore.space.space import Space


def search(
    space: Space, seed: int, _trials: Sequence[Trial], allows: Allows
) -> Iterator[Candidate]:
    """The draws of `space` with `seed`."""
    return space.draws(seed, allows)
