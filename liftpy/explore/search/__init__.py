"""Searches: they choose the candidate of a space that a campaign tries next.

A search is a function of the space, a seed, the trials so far, and a predicate on allowed points.
It reads the trials, which grow while it runs, and yields candidates. A resumed campaign gives its
stored trials to the search again, so it continues with the same candidates. Points beyond a limit
that a driver reported are not allowed (`learned.py`). Each search that reads the trials has its own
file.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from liftpy.errors import ArgumentRefused, UnknownName
from liftpy.explore.optional import needing
from liftpy.explore.search import genetic, guided, local, narrowing
from liftpy.explore.search.stages import Prior, Search, by_stages, no_times
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, Drawing
from liftpy.explore.space.space import Space


def random(space: Space, seed: int, _: Sequence[Trial], allows: Allows) -> Iterator[Candidate]:
    """The published search: the draws of a seed."""
    return space.draws(seed, allows)


def exhaustive(
    space: Space, _seed: int, _trials: Sequence[Trial], allows: Allows
) -> Iterator[Candidate]:
    """Every candidate of a small space: the points of each skeleton, then those of partitions."""
    members = (
        (member.skeleton, member.points.unrank(k))
        for member in space.members
        for k in range(member.count())
    )
    products = (drawn for product in space.products for drawn in product.draws(Drawing(0)))
    allowed = (drawn for drawn in itertools.chain(members, products) if allows(*drawn))
    for ordinal, (skeleton, sizes) in enumerate(allowed):
        yield Candidate(space.program, skeleton, tuple(sizes.items()), ordinal)


def bred() -> Search:
    """The search `nsga2`, which needs an extra."""
    return needing("optuna", "nsga2", "liftpy.explore.search.nsga2", "the search nsga2").search


SEARCHES: dict[str, Callable[[Prior], Search]] = {
    "random": lambda _: random,
    "local": lambda prior: by_stages(local.search, prior),
    "guided": lambda prior: by_stages(guided.search, prior, guided.foreseen),
    "front": lambda prior: by_stages(guided.search, prior, guided.foreseen, for_front=True),
    "genetic": lambda prior: by_stages(genetic.search, prior),
    "narrowing": lambda prior: by_stages(narrowing.search, prior),
    "nsga2": lambda prior: by_stages(bred(), prior),
    "exhaustive": lambda _: exhaustive,
}
DEFAULT = "guided"
MODELLED = "front"
"""The default of modelled campaigns, which are for a device that is not attached."""
BLIND = frozenset({"random", "exhaustive"})
"""Searches that ignore times."""


def named(name: str, prior: Prior = no_times) -> Search:
    """The search called `name`, which begins with the times of stages that `prior` knows.

    Raises UnknownName with the names of all searches if there is no such search, LiftError if its
    library is missing, ArgumentRefused if it ignores times and `prior` is given.
    """
    if name not in SEARCHES:
        raise UnknownName(f"no search is named '{name}'; choose one of {', '.join(SEARCHES)}")
    if name in BLIND and prior is not no_times:
        others = ", ".join(other for other in SEARCHES if other not in BLIND)
        raise ArgumentRefused(
            f"the search {name} does not look at times, and cannot begin with those of other "
            f"campaigns: leave out --times, or choose one of {others}"
        )
    return SEARCHES[name](prior)


__all__ = ["BLIND", "DEFAULT", "MODELLED", "SEARCHES", "Prior", "Search", "Trial", "named"]
