"""What a search knows of a candidate that was tried."""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.explore.candidate import Candidate


@dataclass(frozen=True)
class Trial:
    """A candidate, its time in ns and its peak in bytes; None where it was not measured."""

    candidate: Candidate
    time_ns: int | None
    peak: int | None
