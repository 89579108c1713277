"""Genetic selection as published for Genvolution (specs: genvolution, section 2.4).

After each round the space is rebuilt from the values that occur in the fastest candidates: for each
choice and each size, the set of its values. There are no crossovers and no mutations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from liftpy.constraints.draw import Preference
from liftpy.constraints.rng import Rng
from liftpy.explore.search.rounds import Propose, in_rounds
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows
from liftpy.explore.space.space import Space

KEPT = 8  # the candidates whose values are kept


def from_values(space: Space, allows: Allows) -> Propose:
    """Draws a candidate whose choices and sizes all occur in the fastest candidates."""

    def propose(best: Sequence[Candidate], _: int, rng: Rng) -> Candidate | None:
        values = values_of(space, best)
        alive = [m for m in space.members if all(w in values[n] for n, w in m.words.items())]
        member = rng.choice(alive)
        drawn = member.points.completed(among(values, rng))
        if drawn is None or not allows(member.skeleton, drawn):
            return None
        return Candidate(space.program, member.skeleton, tuple(drawn.items()))

    return propose


def values_of(space: Space, candidates: Sequence[Candidate]) -> Mapping[str, set[str | int]]:
    """The values of each choice and each size in some candidates."""
    found: defaultdict[str, set[str | int]] = defaultdict(set)
    for candidate in candidates:
        for name, value in (*space.by_key[candidate.skeleton.key].words.items(), *candidate.sizes):
            found[name].add(value)
    return found


def among(values: Mapping[str, Collection[str | int]], rng: Rng) -> Preference:
    """A preference for the known values of each size, in random order."""

    def preference(name: str, valid: Sequence[int]) -> Sequence[int]:
        kept = [value for value in valid if value in values[name]]
        rng.shuffle(kept)
        return kept

    return preference


search = in_rounds("genetic", KEPT, from_values)
