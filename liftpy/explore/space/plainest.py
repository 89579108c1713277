"""The candidate that a campaign measures first: usually the plainest one.

A search's first draws may be large, slow to build, or beyond a driver's limits. A campaign should
have a time soon, and should have one if any candidate works. So its first candidate is one of the
family `plain` whose code is short. If the model expects it to run for seconds, as where the ids of
dimension 0 are those of a short map, it is the one with the least modelled time. (That holds for
programs of one stage. The candidates of others are too many to model all of them.)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from liftpy.constraints.statements import statements
from liftpy.errors import LiftError, TimeUp
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member
from liftpy.explore.space.space import Space
from liftpy.kernels.chain import chain_of_skeleton
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import FUSED, HELD
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.time import modelled

PLAIN = "plain"
"""The name of the family, and the value of the setting `first` in a campaign's settings."""

SLOW = 1000.0
"""Milliseconds: a plainest candidate with a longer modelled time is not measured first."""

SHORT = 64
"""Statements of code: below this number, shorter code is no plainer."""

Plainness: TypeAlias = tuple[int, int, bool, bool, int]


def plainest(space: Space) -> Candidate | None:
    """The plainest candidate of a space, at its least sizes; None if the space is empty.

    It is of the family `plain` if the space contains that family. Short code counts most. Then
    nothing should be computed twice: stages are stored, and the innermost map is a loop, so that
    values shared by the elements of a row are computed once for the row.
    """
    plain = [m for m in space.members if m.family == PLAIN and m.possible]
    members = plain or ([] if space.products else space.members)
    found = [point for m in members if (point := at_least_sizes(m)) is not None]
    for product in (part for whole in space.products for part in whole.summands):
        stages = [plainest_of(group) for group in product.groups]
        each = [stage for stage in stages if stage is not None]
        if len(each) == len(stages):
            found.append(product.made(each))
    candidates = [Candidate(space.program, s, (*at.items(),)) for s, at in found]
    first = min(candidates, key=plainness, default=None)
    if first is None or space.products or len(candidates) == 1:
        return first
    hardware = hardware_of(space.device)

    def milliseconds(candidate: Candidate) -> float:
        lowered = candidate.skeleton.at(candidate.point)
        try:
            return modelled(lowered, space.device, hardware).milliseconds
        except TimeUp:
            raise
        except LiftError:  # it is refused again when it is compiled, with its reason
            return math.inf

    if milliseconds(first) <= SLOW:
        return first
    return min(candidates, key=lambda c: (milliseconds(c), plainness(c)))


def plainest_of(group: Sequence[Member]) -> Drawn | None:
    """The plainest point of the skeletons of a stage; None if there is none."""
    plain = [m for m in group if m.family == PLAIN and m.possible]
    found = [point for m in plain or group if (point := at_least_sizes(m)) is not None]
    return min(found, key=lambda drawn: plainness_of(*drawn), default=None)


def at_least_sizes(member: Member) -> Drawn | None:
    """The member's skeleton at its least sizes; None if it has no point."""
    point = member.points.completed()
    return None if point is None else (member.skeleton, point)


def plainness(candidate: Candidate) -> Plainness:
    """The sort key of a candidate: the smaller it is, the plainer the candidate."""
    return plainness_of(candidate.skeleton, candidate.point)


def plainness_of(skeleton: Skeleton, point: dict[str, int]) -> Plainness:
    """The sort key of a point of a skeleton, as in `plainness`."""
    kernels = chain_of_skeleton(skeleton.program).kernels
    code = sum(int(statements(kernel.body).value(point)) for kernel in kernels)
    words = [(name.rpartition(".")[2], word) for name, word in skeleton.words.items()]
    return (
        (code // SHORT).bit_length(),
        sum(word in {FUSED, HELD} and name != "pad" for name, word in words),
        not all(in_rows(word) for name, word in words if name == "map"),
        any(word != FUSED for name, word in words if name == "pad"),
        len(kernels),
    )


def in_rows(mapping: str) -> bool:
    """Whether the outer maps are over global ids, down to dimension 0, and the innermost is a loop.

    >>> [in_rows(word) for word in ("glb1.glb0.seq", "glb0", "glb0.glb1.seq", "glb1.glb0")]
    [True, True, False, False]
    """
    levels = mapping.split(".")
    outer = levels[:-1] if len(levels) > 1 else levels
    return outer == [f"glb{k}" for k in reversed(range(len(outer)))] and (
        outer is levels or levels[-1] == "seq"
    )


def begun_with(candidate: Candidate | None, tried: Iterator[Candidate]) -> Iterator[Candidate]:
    """`candidate` if given, then the candidates of a search without it, renumbered from 0."""
    if candidate is None:
        yield from tried
        return
    others = (other for other in tried if other.key != candidate.key)
    for ordinal, one in enumerate(itertools.chain([candidate], others)):
        yield replace(one, ordinal=ordinal)


def each_once(tried: Iterator[Candidate]) -> Iterator[Candidate]:
    """The candidates without duplicates: each is yielded where it first occurs."""
    seen: set[str] = set()
    for candidate in tried:
        if candidate.key not in seen:
            seen.add(candidate.key)
            yield candidate
