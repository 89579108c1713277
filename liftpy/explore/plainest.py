"""The candidate that a campaign measures first: the plainest one.

What a search draws first may be large, slow to build, or more than a driver takes. So that a
campaign soon has a time, and has one at all where any candidate works, its first place is that of a
candidate of the family `plain` whose code is short.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from liftpy.constraints.collect import statements
from liftpy.constraints.draw import first
from liftpy.explore.candidate import Candidate
from liftpy.explore.space import Space
from liftpy.kernels.chain import chain

PLAIN = "plain"
"""The family, and what a campaign's settings say of its first candidate."""

SHORT = 64
"""Statements of code: of what has no more than these, the shorter is no better."""

Burden: TypeAlias = tuple[int, bool, bool, bool, int]


def plainest(space: Space) -> Candidate | None:
    """The plainest candidate of a space, at its least sizes; None if there is none.

    Of the family `plain` where that is in the space. Short code comes first; then, that nothing is
    computed twice: stages are stored, and the innermost map is a loop, since what the elements of a
    row share is computed once for the row.
    """
    plain = [m for m in space.members if m.family == PLAIN and m.possible]
    found: list[tuple[Burden, Candidate]] = []
    for member in plain or space.members:
        if (point := first(member.system)) is not None:
            candidate = Candidate(space.program, member.skeleton, tuple(point.items()))
            found.append((burden(candidate), candidate))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def burden(candidate: Candidate) -> Burden:
    """What makes a candidate less plain; the smaller comes first."""
    kernels = chain(candidate.skeleton.program).kernels
    code = sum(int(statements(kernel.body).value(candidate.point)) for kernel in kernels)
    words = candidate.skeleton.words
    return (
        (code // SHORT).bit_length(),
        words.get("stages") == "fused",
        not in_rows(words.get("map", "")),
        words.get("pad", "fused") != "fused",
        len(kernels),
    )


def in_rows(mapping: str) -> bool:
    """Whether the outer maps are over global ids, the innermost of these in dimension 0, in a loop.

    >>> [in_rows(word) for word in ("glb1.glb0.seq", "glb0", "glb0.glb1.seq", "glb1.glb0")]
    [True, True, False, False]
    """
    levels = mapping.split(".")
    outer = levels[:-1] if len(levels) > 1 else levels
    return outer == [f"glb{k}" for k in reversed(range(len(outer)))] and (
        outer is levels or levels[-1] == "seq"
    )


def begun_with(candidate: Candidate | None, tried: Iterator[Candidate]) -> Iterator[Candidate]:
    """A candidate, and then those of a search, which does not have it again."""
    if candidate is None:
        yield from tried
        return
    others = (other for other in tried if other.key != candidate.key)
    for ordinal, one in enumerate(itertools.chain([candidate], others)):
        yield replace(one, ordinal=ordinal)
