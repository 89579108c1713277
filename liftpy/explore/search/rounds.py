"""Rounds: what the published searches of Genvolution have in common.

The first round is random draws. Each later round begins with the fastest candidates so far, and
proposes others from what these have in common with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from liftpy.constraints.rng import Rng
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, subseed
from liftpy.explore.space.space import Space

ROUND = 24  # candidates in a round
TRIES = 16  # after this many proposals in a row that were tried before, a draw is used

Propose: TypeAlias = Callable[[Sequence[Candidate], int, Rng], Candidate | None]
"""The next candidate of a round, from the fastest candidates, fastest first, and its number."""


def in_rounds(
    name: str, kept: int, propose: Callable[[Space, Allows], Propose]
) -> Callable[[Space, int, Sequence[Trial], Allows], Iterator[Candidate]]:
    """A search that proposes from the `kept` fastest candidates at the start of each round."""

    def search(
        space: Space, seed: int, trials: Sequence[Trial], allows: Allows
    ) -> Iterator[Candidate]:
        """Draws and proposals, each candidate once."""
        rng, draws = Rng(subseed(seed, name)), space.draws(seed, allows)
        proposed, seen = propose(space, allows), set[str]()
        best: Sequence[Candidate] = ()
        for ordinal in itertools.count():
            if ordinal % ROUND == 0:
                best = fastest(trials, kept)
            made = (proposed(best, ordinal % ROUND, rng) for _ in range(TRIES if best else 0))
            found = next((c for c in made if c is not None and c.key not in seen), None)
            found = found or next((c for c in draws if c.key not in seen), None)
            if found is None:  # every candidate was drawn
                return
            seen.add(found.key)
            yield replace(found, ordinal=ordinal)

    return search


def fastest(trials: Sequence[Trial], count: int) -> list[Candidate]:
    """The fastest candidates so far, the fastest first."""
    measured = [(t.time_ns, k) for k, t in enumerate(trials) if t.time_ns is not None]
    return [trials[k].candidate for _, k in sorted(measured)[:count]]
