"""Candidates that hold values, with what is best for these values where they are stored.

A value that is held in a block has a form and sizes of the same names as its own stage. What the
search for that stage has found is tried for the block, with each size of the block in turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from liftpy.explore.member import Drawing, Drawn, Member
from liftpy.rewrite.partition import RESULT, prefixed
from liftpy.rewrite.strategies.families.blocked import COLUMNS, FORM

Best = Mapping[str, Drawn]
"""The fastest candidate of each stored stage, by its name."""


def transferred(group: Sequence[Member], stage: str, best: Best) -> Iterator[Drawn]:
    """The members of a stage that hold values, with the best sizes of these; `stage` may be empty.

    Members whose values have other forms than the best are left out; the others take turns.
    """
    left: list[Iterator[Drawn]] = []
    for member in group:
        sizes = sizes_of(member, stage, best)
        fixed = member.at(sizes) if sizes else None
        if fixed is not None:
            left.append(fixed.draws(Drawing(0)))
    while left:
        drawn = [(points, next(points, None)) for points in left]
        yield from (point for _, point in drawn if point is not None)
        left = [points for points, point in drawn if point is not None]


def sizes_of(member: Member, stage: str, best: Best) -> dict[str, int]:
    """The sizes of a member's values that are best where they are stored; none in other forms."""
    words, found = member.skeleton.words, dict[str, int]()
    for name, word in words.items():
        value, _, choice = name.rpartition(".")
        if choice != FORM:
            continue
        own = best.get(stage if stage and value == RESULT else value)
        if own is None or own[0].family != word:
            return {}
        if own[0].words.get(COLUMNS) != words.get(prefixed(value, COLUMNS)):
            return {}
        for size, number in own[1].items():
            there = prefixed(value, size.rpartition(".")[2])
            there = prefixed(stage, there) if stage else there
            if there in member.system.by_name:
                found[there] = number
    return found
