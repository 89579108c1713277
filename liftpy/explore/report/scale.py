"""Scales of charts: from values to places, and the values that are marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

Unit = Literal["time", "bytes", "number"]

UNITS: dict[Unit, list[tuple[str, float]]] = {
    "time": [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
    "bytes": [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    "number": [("", 1)],
}
SPREAD = 1.12  # how much room there is beyond the ends
LEAST = 1.5  # times as much has a logarithmic scale at least, from end to end
TICKS = 4


@dataclass(frozen=True)
class Scale:
    """From `low` to `high` in units of `size`, on places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    unit: str
    size: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[int], start: float, end: float, kind: Unit) -> Self:
        """A logarithmic scale that holds some values, in the unit that their middle asks for."""
        low, high = max(1, min(values)) / SPREAD, max(1, *values) * SPREAD
        widen = math.sqrt(max(1.0, LEAST / (high / low)))
        low, high = low / widen, high * widen
        unit, size = unit_of(math.sqrt(low * high), kind)
        return cls(low, high, start, end, unit, size, logarithmic=True)

    @classmethod
    def linear(cls, low: float, high: float, start: float, end: float) -> Self:
        """A linear scale of numbers."""
        return cls(low, high, start, end, "", 1, logarithmic=False)

    @staticmethod
    def log(value: float) -> float:
        """The logarithm of what is at least 1."""
        return math.log2(max(1, value))

    def at(self, value: float) -> float:
        """The place of a value."""
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            low, high, here = math.log2(low), math.log2(high), self.log(value)
        place = self.start + (here - low) / (high - low) * (self.end - self.start)
        return round(place, 4)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The places that are marked, each with its number in the unit."""
        found = self._powers() if self.logarithmic else []
        return [(self.at(v), f"{v / self.size:g}") for v in found or self._even()]

    def _powers(self) -> list[float]:
        """Powers of ten, with two and five between them where there are few; none if too few."""
        first = math.floor(math.log10(self.low / self.size))
        last = math.ceil(math.log10(self.high / self.size))
        for digits in ((1,), (1, 3), (1, 2, 5)):
            many = [d * 10**k * self.size for k in range(first, last + 1) for d in digits]
            found = [v for v in many if self.low <= v <= self.high]
            if len(found) >= TICKS:
                return found
        return []

    def _even(self) -> list[float]:
        """Round numbers at even distances."""
        low, high = self.low / self.size, self.high / self.size
        rough = (high - low) / TICKS
        power = 10 ** math.floor(math.log10(rough))
        step = next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= rough)
        return [
            round(k * step, 9) * self.size
            for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        ]


def unit_of(value: float, kind: Unit) -> tuple[str, float]:
    """The largest unit that a value reaches, and its size."""
    fitting = [(name, size) for name, size in UNITS[kind] if value >= size]
    return fitting[-1] if fitting else UNITS[kind][0]
