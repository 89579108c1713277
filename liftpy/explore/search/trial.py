"""What a search knows of a candidate that was tried."""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.explore.space.candidate import Candidate


@dataclass(frozen=True)
class Trial:
    """A candidate, its time in ns and its peak in bytes; None where it was not measured.

    `launches` has the part of the time of each launch of the run phase, where that is known.
    """

    candidate: Candidate
    time_ns: int | None
    peak: int | None
    launches: tuple[int, ...] = ()
