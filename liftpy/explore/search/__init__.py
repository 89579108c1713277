"""Searches: which candidate of a space a campaign tries next.

A search is a function of the space, a seed, the trials so far, and what is allowed. It reads the
trials, which grow while it runs, and yields candidates; so a campaign that was stopped goes on with
the same ones, its stored trials being given to the search again. What drivers refused is not
allowed any more (`learned.py`). One file each.
"""

from __future__ import annotations

from collections.abc import Callable

from liftpy.errors import UnknownName
from liftpy.explore.extras import needing
from liftpy.explore.search import exhaustive, guided, local, uniform
from liftpy.explore.search.stages import Search, by_stages
from liftpy.explore.search.trial import Trial


def bred() -> Search:
    """The search of the extra `nsga2`."""
    return needing("optuna", "nsga2", "liftpy.explore.search.nsga2", "the search nsga2").search


SEARCHES: dict[str, Callable[[], Search]] = {
    "random": lambda: uniform.search,
    "local": lambda: by_stages(local.search),
    "guided": lambda: by_stages(guided.search),
    "nsga2": lambda: by_stages(bred()),
    "exhaustive": lambda: exhaustive.search,
}
DEFAULT = "guided"


def named(name: str) -> Search:
    """The search of a name. UnknownName with the names there are, LiftError without its library."""
    if name not in SEARCHES:
        raise UnknownName(f"no search is named '{name}'; choose one of {', '.join(SEARCHES)}")
    return SEARCHES[name]()


__all__ = ["DEFAULT", "SEARCHES", "Search", "Trial", "named"]
