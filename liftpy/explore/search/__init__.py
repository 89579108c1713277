"""Searches: which candidate of a space a campaign tries next.

A search is a function of the space, a seed, the trials so far, and what is allowed. It reads the
trials, which grow while it runs, and yields candidates; so a campaign that was stopped goes on with
the same ones, its stored trials being given to the search again. What drivers refused is not
allowed any more (`learned.py`). One file each.
"""

from __future__ import annotations

from collections.abc import Callable

from liftpy.errors import ArgumentRefused, UnknownName
from liftpy.explore.optional import needing
from liftpy.explore.search import exhaustive, guided, local, uniform
from liftpy.explore.search.stages import Prior, Search, by_stages, no_times
from liftpy.explore.search.trial import Trial


def bred() -> Search:
    """The search of the extra `nsga2`."""
    return needing("optuna", "nsga2", "liftpy.explore.search.nsga2", "the search nsga2").search


SEARCHES: dict[str, Callable[[Prior], Search]] = {
    "random": lambda _: uniform.search,
    "local": lambda prior: by_stages(local.search, prior),
    "guided": lambda prior: by_stages(guided.search, prior),
    "nsga2": lambda prior: by_stages(bred(), prior),
    "exhaustive": lambda _: exhaustive.search,
}
DEFAULT = "guided"
BLIND = frozenset({"random", "exhaustive"})
"""Searches that do not look at times."""


def named(name: str, prior: Prior = no_times) -> Search:
    """The search of a name, which begins with the times of stages that `prior` knows.

    UnknownName with the names of all searches, LiftError if its library is missing, ArgumentRefused
    for times that it would not look at.
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


__all__ = ["BLIND", "DEFAULT", "SEARCHES", "Prior", "Search", "Trial", "named"]
