"""A trial: what a search knows about a candidate that was tried."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from liftpy.explore.space.candidate import Candidate
from liftpy.ir.nat import ZERO, Nat
from liftpy.kernels.chain import chain
from liftpy.rewrite.composition import StagedSkeleton


@dataclass(frozen=True)
class Trial:
    """A candidate, its time in ns and its peak in bytes; both None if it was not measured.

    `launches` has the time of each launch of the run phase in ns; it is empty if not known.
    """

    candidate: Candidate
    time_ns: int | None
    peak: int | None
    launches: tuple[int, ...] = ()


def launches_of(skeleton: StagedSkeleton, point: Mapping[str, int]) -> tuple[int, ...]:
    """The number of run-phase launches of each stage with these sizes, in the order of stages."""
    return tuple(count.value(point) for count in _launches_of(skeleton))


@lru_cache(maxsize=1024)
def _launches_of(skeleton: StagedSkeleton) -> tuple[Nat, ...]:
    """`launches_of` as functions of the sizes."""
    cut = chain(skeleton.program)
    writes = [kernel.writes for kernel in cut.run]
    ends: list[int] = []
    for name in skeleton.stored:
        buffer = cut.lets.get(name)
        before = ends[-1] if ends else 0
        last = max((k + 1 for k, out in enumerate(writes) if out == buffer), default=before)
        ends.append(max(before, last))
    ends.append(len(writes))
    return tuple(
        sum((kernel.repeats for kernel in cut.run[begin:end]), ZERO)
        for begin, end in itertools.pairwise([0, *ends])
    )
