"""Local search: random draws first, then mostly neighbours of the front so far.

A neighbour keeps the settings of its parent, except for one or two sizes or one structural choice,
which are drawn again. Sizes are drawn uniformly from those valid together with the kept ones.
Parents are candidates of the front of time and peak, the fastest more often than the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from liftpy.constraints.draw import Preference, nearest_first
from liftpy.constraints.rng import Rng
from liftpy.explore.measure.pareto import front
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, Member, subseed
from liftpy.explore.space.space import Space

FIRST = 24  # draws before any neighbour
FRESH = 4  # afterwards every `FRESH`th candidate is a draw: another valley may be deeper
FASTEST = 0.5  # how often the parent is the fastest; otherwise it is any of the front
CHOICE = 0.3  # how often a structural choice changes; otherwise sizes do
TWO = 0.4  # how often two sizes change together
TRIES = 16  # after this many neighbours in a row that were tried before, a draw is used


def search(space: Space, seed: int, trials: Sequence[Trial], allows: Allows) -> Iterator[Candidate]:
    """Draws and neighbours, each candidate once."""
    rng = Rng(subseed(seed, "local"))
    draws = space.draws(seed, allows)
    seen: set[str] = set()
    for ordinal in itertools.count():
        found = None
        if ordinal >= FIRST and ordinal % FRESH:
            found = unseen_neighbour(space, trials, allows, seen, rng)
        found = found or next((c for c in draws if c.key not in seen), None)
        if found is None:  # every candidate was drawn
            return
        seen.add(found.key)
        yield replace(found, ordinal=ordinal)


def unseen_neighbour(
    space: Space, trials: Sequence[Trial], allows: Allows, seen: set[str], rng: Rng
) -> Candidate | None:
    """A neighbour of the front; None if nothing was measured or all neighbours found are known."""
    best = parents(trials)
    for _ in range(TRIES if best else 0):
        found = neighbour(space, parent(best, rng), allows, rng)
        if found is not None and found.key not in seen:
            return found
    return None


def parents(trials: Sequence[Trial]) -> list[Candidate]:
    """The candidates of the front of time and peak, the fastest first."""
    measured = [
        (t.time_ns, t.peak, t.candidate)
        for t in trials
        if t.time_ns is not None and t.peak is not None
    ]
    return [candidate for *_, candidate in front(measured, costs=lambda m: (m[0], m[1]))]


def parent(best: Sequence[Candidate], rng: Rng) -> Candidate:
    """A random candidate of the front."""
    return best[0] if rng.random() < FASTEST else rng.choice(best)


def neighbour(space: Space, parent: Candidate, allows: Allows, rng: Rng) -> Candidate | None:
    """A candidate that differs from its parent in a structural choice or in one or two sizes."""
    member = space.by_key[parent.skeleton.key]
    near = alike(space, member, rng)
    if near and (not parent.sizes or rng.random() < CHOICE):
        member = rng.choice(near)
        changed = 0
    else:
        changed = 2 if rng.random() < TWO else 1
    return with_sizes(space, member, parent, changed, allows, rng)


def with_sizes(
    space: Space, member: Member, parent: Candidate, changed: int, allows: Allows, rng: Rng
) -> Candidate | None:
    """A candidate of a skeleton with its parent's sizes; at least `changed` of them are drawn anew.

    More are drawn where no candidate has the others. None if no candidate is allowed.
    """
    sizes = {n: v for n, v in parent.sizes if n in member.system.by_name}
    order = sorted(sizes)
    rng.shuffle(order)
    for freed in range(min(changed, len(order)), len(order) + 1):
        kept = {name: sizes[name] for name in order[freed:]}
        drawn = member.points.completed(keeping(kept, rng))
        if drawn is not None and allows(member.skeleton, drawn):
            return Candidate(space.program, member.skeleton, tuple(drawn.items()))
    return None


def keeping(kept: Mapping[str, int], rng: Rng) -> Preference:
    """A preference that keeps some sizes and draws the others."""

    def preference(name: str, values: Sequence[int]) -> Sequence[int]:
        if name in kept:
            return (kept[name],) if kept[name] in values else ()
        drawn = list(values)
        rng.shuffle(drawn)
        return drawn

    return preference


def steps_of(names: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """Steps of one size up (1) or down (-1), then of two sizes in opposite directions."""
    for name in names:
        yield {name: 1}
        yield {name: -1}
    for more, less in itertools.permutations(names, 2):
        yield {more: 1, less: -1}


def stepped(
    space: Space, member: Member, parent: Candidate, steps: Mapping[str, int]
) -> Candidate | None:
    """The candidate of a skeleton whose sizes are those of its parent, except for some steps.

    A size in `steps` takes the next value above (1) or below (-1) with which there is a candidate,
    and any other one the value nearest to its parent's, by the ratio. None if there is no such
    candidate.
    """
    sizes = dict(parent.sizes)
    near = nearest_first(sizes)

    def preference(name: str, values: Sequence[int]) -> Sequence[int]:
        step = steps.get(name, 0)
        return near(name, [v for v in values if not step or (v - sizes[name]) * step > 0])

    drawn = member.points.completed(preference)
    return (
        None if drawn is None else Candidate(space.program, member.skeleton, tuple(drawn.items()))
    )


def alike(space: Space, member: Member, rng: Rng) -> list[Member]:
    """The skeletons with the same family, another word for a random choice, and least distance."""
    family = [m for m in space.members if m.family == member.family]
    mine = member.words
    apart = [n for n in mine if len({m.words.get(n) for m in family}) > 1]
    if not apart:
        return []
    name = rng.choice(apart)
    others = [m for m in family if m.words.get(name) != mine[name]]
    far = [distance(mine, m.words) for m in others]
    return [m for m, n in zip(others, far, strict=True) if n == min(far)]


def distance(one: Mapping[str, str], two: Mapping[str, str]) -> int:
    """How many choices differ; in words of several levels, such as a mapping, how many levels."""
    return sum(
        a != b
        for name in one.keys() | two.keys()
        for a, b in zip_longest(*(w.get(name, "").split(".")[::-1] for w in (one, two)))
    )
