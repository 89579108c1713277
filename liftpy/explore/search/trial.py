"""A trial: what a search knows about a candidate that was tried."""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.explore.space.candidate import Candidate


@dataclass(frozen=True)
class Trial:
    """A candidate, its time in ns and its peak in bytes; both None if it was not measured.

    `launches` has the time of each launch of the run phase in ns; it is empty if not known.
    """

    candidate: Candidate
    time_ns: int | None
    peak: int | None
    launches: tuple[int, ...] = ()
