"""The kinds of random programs, each a function from a seed to a program, and ranges of seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from liftpy.ir.program import Program
from tests.fuzz.data_indices import indexing
from tests.fuzz.generator import make, nested
from tests.fuzz.stages import chained

MAKERS: dict[str, Callable[[int], Program]] = {
    "any": make,
    "lets": nested,
    "stages": chained,
    "indices": indexing,
}


@dataclass(frozen=True)
class Part:
    """A range of seeds of a kind of programs."""

    kind: str
    start: int
    count: int

    @classmethod
    def of(cls, text: str) -> Part:
        """The part that `KIND:START:COUNT` names."""
        kind, start, count = text.split(":")
        return cls(kind, int(start), int(count))

    def __str__(self) -> str:
        return f"{self.kind}:{self.start}:{self.count}"

    @property
    def seeds(self) -> range:
        """Its seeds."""
        return range(self.start, self.start + self.count)

    @property
    def halves(self) -> tuple[Part, Part]:
        """Two parts of at least one seed each."""
        half = self.count // 2
        rest = Part(self.kind, self.start + half, self.count - half)
        return Part(self.kind, self.start, half), rest
