"""Narrowing search as published for Genvolution (specs: genvolution, section 2.4).

After each round, each of the fastest candidates gets neighbours, which share at least a given part
of its choices and sizes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from liftpy.constraints.rng import Rng
from liftpy.explore.search.local import keeping
from liftpy.explore.search.rounds import Propose, in_rounds
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows
from liftpy.explore.space.space import Space

KEPT = 6  # the candidates that get neighbours
SHARED = 0.6  # the part of a candidate's choices and sizes that a neighbour shares


def neighbours(space: Space, allows: Allows) -> Propose:
    """Draws a neighbour of the fastest candidates in turn."""

    def propose(best: Sequence[Candidate], number: int, rng: Rng) -> Candidate | None:
        parent = best[number % len(best)]
        words, sizes = space.by_key[parent.skeleton.key].words, dict(parent.sizes)
        names = [*words, *sizes]
        rng.shuffle(names)
        kept = {*names[: math.ceil(SHARED * len(names))]}
        same = {name: word for name, word in words.items() if name in kept}
        own = {name: size for name, size in sizes.items() if name in kept}
        alike = [
            m
            for m in space.members
            if same.items() <= m.words.items() and own.keys() <= m.system.by_name.keys()
        ]
        member = rng.choice(alike)
        drawn = member.points.completed(keeping(own, rng))
        if drawn is None or not allows(member.skeleton, drawn):
            return None
        return Candidate(space.program, member.skeleton, tuple(drawn.items()))

    return propose


search = in_rounds("narrowing", KEPT, neighbours)
