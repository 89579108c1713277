"""Offline search: a search on stored measurements, without a device, to try out searches.

A candidate has the outcome that the database stores for it. The search may try only candidates that
are stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace

from liftpy.errors import StoreRefused
from liftpy.explore import search as searches
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.hypervolume import Box, Costs, growth
from liftpy.explore.search import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.space import Space
from liftpy.rewrite.skeleton import Skeleton


@dataclass(frozen=True)
class OfflineSearch:
    """The trials of a search, in order; times in ns, memory in bytes.

    `known` is the number of stored candidates of the space, `box` the box of those that were
    measured.
    """

    trials: tuple[Trial, ...]
    known: int
    box: Box

    @property
    def costs(self) -> list[Costs | None]:
        """Time and peak of each trial; None if it was not measured."""
        return [costs_of(trial) for trial in self.trials]

    @property
    def volumes(self) -> list[float]:
        """The hypervolume after each trial."""
        return growth(self.costs, self.box)

    @property
    def fastest(self) -> list[int | None]:
        """The best time after each trial; None until one was measured."""
        found: list[int | None] = []
        best: int | None = None
        for costs in self.costs:
            if costs is not None and (best is None or costs[0] < best):
                best = costs[0]
            found.append(best)
        return found

    def reached(self, near: float) -> int | None:
        """The number of trials until the best time is at most `1 + near` times the best stored one.

        None if it never is.
        """
        limit = self.box.ideal[0] * (1 + near)
        return next(
            (k for k, best in enumerate(self.fastest, 1) if best is not None and best <= limit),
            None,
        )


def search_offline(
    stored: Campaign, space: Space, name: str, seed: int, samples: int
) -> OfflineSearch:
    """The first trials of a search among the stored candidates of one device that have one stage.

    Raises StoreRefused if none of them was measured or all candidates of the program have several
    stages, UnknownName if the campaign has several devices (`Campaign.on`).
    """
    stored = stored.on()
    if not space.members:
        raise StoreRefused(
            f"{space.program.name} has several stages, each of which is searched separately: few "
            "combinations of their choices are stored. Name a program of one stage"
        )
    space = replace(space, products=())
    kinds = {member.skeleton.key: member.skeleton for member in space.members}
    known: dict[str, Trial] = {}
    for row in stored.rows:
        if (skeleton := kinds.get(row.skeleton)) is None or row.outcome in ("running", "pending"):
            continue
        sizes = tuple((p.name, int(row.assignment[p.name])) for p in skeleton.parameters)
        candidate = Candidate(space.program, skeleton, sizes)
        if candidate.key == row.id:
            known[row.id] = Trial(candidate, row.time_ns, row.peak)
    measured = [costs for trial in known.values() if (costs := costs_of(trial)) is not None]
    if not measured:
        raise StoreRefused(
            f"{stored.path} has no measured candidate of this space of {space.program.name}: it "
            f"has {len(stored.rows)} of {stored.identity.program}, made by liftpy "
            f"{stored.identity.version}. Name its program and the options of its space"
        )

    points = {(t.candidate.skeleton.key, frozenset(t.candidate.sizes)) for t in known.values()}

    def allows(skeleton: Skeleton, sizes: Mapping[str, int]) -> bool:
        return (skeleton.key, frozenset(sizes.items())) in points

    trials: list[Trial] = []
    tried = searches.named(name)(space, seed, trials, allows)
    for candidate in itertools.islice(tried, samples):
        there = known[candidate.key]
        trials.append(Trial(candidate, there.time_ns, there.peak))
    return OfflineSearch(tuple(trials), len(known), Box.around(measured))


def costs_of(trial: Trial) -> Costs | None:
    """Time and peak of a trial; None if it was not measured."""
    measured = trial.time_ns is not None and trial.peak is not None
    return (trial.time_ns or 0, trial.peak or 0) if measured else None
