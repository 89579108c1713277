"""The costs of a candidate of an operation, or of an order of its tensors, for a plan to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Costs:
    """Nanoseconds, bytes of scratch, and the bytes of each constant that is read, by key.

    Operations may share constants, so their bytes are not compared as a sum.
    """

    time_ns: int
    scratch: int
    constants: Mapping[Any, int]

    def beats(self, other: Costs) -> bool:
        """Whether no plan is better with the other candidate."""
        return (
            self.time_ns <= other.time_ns
            and self.scratch <= other.scratch
            and self.constants.items() <= other.constants.items()
        )


Stored = tuple[str, bool]
"""A tensor by its name, and whether it is stored with channels last."""


@dataclass(frozen=True)
class Ordered:
    """An operation for certain orders of its tensors: its time, what it reads and stores."""

    time_ns: int
    reads: frozenset[Stored]
    stores: frozenset[Stored]
