"""Scales of charts: the map from values to positions, and the ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

from liftpy.explore.campaign.hypervolume import LEAST_ERROR
from liftpy.explore.campaign.rows import ENERGY, ERROR

Unit = Literal["time", "bytes", "error", "energy", "intensity", "rate"]

UNITS: dict[Unit, list[tuple[str, float]]] = {
    "time": [("ns", 1), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
    "bytes": [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)],
    "error": [("relative to the largest value", 1)],
    "energy": [("pJ", 1), ("nJ", 1e3), ("µJ", 1e6), ("mJ", 1e9), ("J", 1e12)],
    "intensity": [("flop/B", 1)],
    "rate": [("Mflop/s", 1e-3), ("Gflop/s", 1), ("Tflop/s", 1e3)],
}
FLOOR: dict[Unit, float] = {"error": LEAST_ERROR, "intensity": 1e-9, "rate": 1e-9}
"""The least value on a logarithmic scale, which smaller ones count as; 1 for other units."""

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
    floor: float | None
    """The value that smaller ones count as, if the scale is logarithmic."""

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float, kind: Unit) -> Self:
        """A logarithmic scale that contains the values, in a unit that fits their middle."""
        floor = FLOOR.get(kind, 1)
        low, high = max(floor, min(values)) / SPREAD, max(floor, *values) * SPREAD
        widen = math.sqrt(max(1.0, LEAST / (high / low)))
        low, high = low / widen, high * widen
        unit, size = unit_of(math.sqrt(low * high), kind)
        return cls(low, high, start, end, unit, size, floor)

    @classmethod
    def linear(cls, low: float, high: float, start: float, end: float) -> Self:
        """A linear scale of plain numbers."""
        return cls(low, high, start, end, "", 1, None)

    @staticmethod
    def log(value: float) -> float:
        """The logarithm to base 2 of a value, which is taken as at least 1."""
        return math.log2(max(1, value))

    def at(self, value: float) -> float:
        """The position of a value."""
        return self._place(value if self.floor is None else max(self.floor, value))

    def _place(self, value: float) -> float:
        low, high, here = self.low, self.high, value
        if self.floor is not None:
            low, high, here = math.log2(low), math.log2(high), math.log2(value)
        place = self.start + (here - low) / (high - low) * (self.end - self.start)
        return round(place, 4)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """The positions of the ticks, each with its number in the unit."""
        found = [] if self.floor is None else self._powers()
        return [(self._place(v), f"{v / self.size:g}") for v in found or self._even()]

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
            float(f"{k * step:.9g}") * self.size
            for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
        ]


def unit_of(value: float, kind: Unit) -> tuple[str, float]:
    """The largest unit that is not larger than a value, and its size."""
    fitting = [(name, size) for name, size in UNITS[kind] if value >= size]
    return fitting[-1] if fitting else UNITS[kind][0]


def unit_of_axis(axis: str) -> Unit:
    """The unit of the second axis of a front."""
    return "error" if axis == ERROR else "energy" if axis == ENERGY else "bytes"
