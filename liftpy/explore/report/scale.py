"""Scales of charts: the map from values to positions, and the ticks."""

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
SPREAD = 1.12  # the margin beyond the least and the greatest value, as a factor
LEAST = 1.5  # the least ratio of the ends of a logarithmic scale
TICKS = 4


@dataclass(frozen=True)
class Scale:
    """Maps values from `low` to `high` to positions from `start` to `end`; a unit is `size`."""

    low: float
    high: float
    start: float
    end: float
    unit: str
    size: float
    logarithmic: bool

    @classmethod
    def of(cls, values: Sequence[int], start: float, end: float, kind: Unit) -> Self:
        """A logarithmic scale that contains the values, in a unit that fits their middle."""
        low, high = max(1, min(values)) / SPREAD, max(1, *values) * SPREAD
        widen = math.sqrt(max(1.0, LEAST / (high / low)))
        low, high = low / widen, high * widen
        unit, size = unit_of(math.sqrt(low * high), kind)
        return cls(low, high, start, end, unit, size, logarithmic=True)

    @classmethod
    def linear(cls, low: float, high: float, start: float, end: float) -> Self:
        """A linear scale of plain numbers."""
        return cls(low, high, start, end, "", 1, logarithmic=False)

    @staticmethod
    def log(value: float) -> float:
        """The logarithm to base 2 of a value, which is taken as at least 1."""
        return math.log2(max(1, value))

    def at(self, value: float) -> float:
        """The position of a value."""
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            low, high, here = math.log2(low), math.log2(high), self.log(value)
        place = self.start + (here - low) / (high - low) * (self.end - self.start)
        return round(place, 4)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions of the ticks, each with its number in the unit."""
        found = self._powers() if self.logarithmic else []
        return [(self.at(v), f"{v / self.size:g}") for v in found or self._even()]

    def _powers(self) -> list[float]:
        """Powers of ten, with multiples between them if these are few; empty if still too few."""
        first = math.floor(math.log10(self.low / self.size))
        last = math.ceil(math.log10(self.high / self.size))
        for digits in ((1,), (1, 3), (1, 2, 5)):
            many = [d * 10**k * self.size for k in range(first, last + 1) for d in digits]
            found = [v for v in many if self.low <= v <= self.high]
            if len(found) >= TICKS:
                return found
        return []

    def _even(self) -> list[float]:
        """Evenly spaced round numbers."""
        low, high = self.low / self.size, self.high / self.size
        rough = (high - low) / TICKS
        power = 10 ** math.floor(math.log10(rough))
        step = next(d * power for d in (1, 2, 2.5, 5, 10) if d * power >= rough)
        return [
            round(k * step, 9) * self.size
            for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        ]


def unit_of(value: float, kind: Unit) -> tuple[str, float]:
    """The largest unit that is not larger than a value, and its size."""
    fitting = [(name, size) for name, size in UNITS[kind] if value >= size]
    return fitting[-1] if fitting else UNITS[kind][0]
