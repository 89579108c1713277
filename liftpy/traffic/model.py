"""The modelled time and traffic of kernels, and how they are reported.

All of this is modelled: a time orders candidates, and predicts no measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.hardware import Hardware
from liftpy.traffic.reuse import Traffic

LATENCY = 4
"""Cycles from a multiply-add to the next one that uses its result; assumed."""


LATENCY_PART = "latency"
"""The name of the time of groups that execute one after the other and wait for results."""


@dataclass(frozen=True)
class ModelledKernel:
    """The modelled traffic of a kernel on all units, and the cycles of one unit.

    `arrays` has the traffic of each array. `issued` are loads and stores, as instructions, which
    move `moved` bytes.
    `waiting` has the cycles that a unit waits for each level after the first cache. If
    `overlapped`, other work-items compute while some wait. `resident` work-items are on a unit at a
    time, and `used` is the part of the lanes of their subgroups that has a work-item. `alone` has
    the cycles in which groups execute one after the other, each with its waiting for results.
    """

    name: str
    arrays: Mapping[str, Traffic]
    issued: float
    moved: float
    operations: float
    loads: float
    waiting: tuple[float, ...]
    units: int
    overlapped: bool = False
    resident: int = 1
    used: float = 1.0
    alone: float = 0.0

    @property
    def cycles(self) -> float:
        """The cycles of one unit."""
        busy = max(self.operations, self.loads, self.alone)
        return max(busy, *self.waiting) if self.overlapped else busy + sum(self.waiting)

    def spent(self, levels: Sequence[str]) -> dict[str, float]:
        """The cycles of each part of the time; `levels` are those after the first cache.

        If the parts overlap, the longest has all of them: it bounds the time.
        """
        busy = "operations" if self.operations >= self.loads else "loads"
        parts = {busy: max(self.operations, self.loads)}
        parts |= dict(zip(levels, self.waiting, strict=True))
        if self.overlapped:
            parts[LATENCY_PART] = self.alone
            longest = max(parts, key=lambda part: parts[part])
            return {longest: parts[longest]}
        return parts

    @property
    def traffic(self) -> Traffic:
        """The traffic of all arrays."""
        first, *rest = self.arrays.values()
        return sum(rest, first)


@dataclass(frozen=True)
class Modelled:
    """The modelled time and traffic of the run phase of a program on a device."""

    kernels: tuple[ModelledKernel, ...]
    hardware: Hardware

    @property
    def milliseconds(self) -> float:
        """The modelled time, with that of the launches."""
        return sum(map(self.time, self.kernels))

    def time(self, kernel: ModelledKernel) -> float:
        """The modelled milliseconds of one kernel."""
        return kernel.cycles / (1000 * self.hardware.clock) + self.hardware.launch_ns / 1e6

    @property
    def parts(self) -> dict[str, float]:
        """The milliseconds of each part of the time: computing, each level, launching.

        Computing is called `operations` or `loads`, by which of the two takes longer in a kernel.
        """
        names = ("operations", "loads", LATENCY_PART, *self.hardware.levels[1:], "launches")
        found = dict.fromkeys(names, 0.0)
        for kernel in self.kernels:
            for part, cycles in kernel.spent(self.hardware.levels[1:]).items():
                found[part] += cycles / (1000 * self.hardware.clock)
            found["launches"] += self.hardware.launch_ns / 1e6
        return found

    @property
    def bytes(self) -> dict[str, int]:
        """The bytes that each level after the first cache serves, and those written to memory."""
        line = self.hardware.sector
        found = dict.fromkeys((*self.hardware.levels[1:], "written"), 0)
        for kernel in self.kernels:
            traffic = kernel.traffic
            for level, count in zip(self.hardware.levels[1:], traffic.served, strict=True):
                found[level] += count * line
            found["written"] += traffic.stored * line
        return found

    @property
    def moved(self) -> float:
        """The bytes that loads and stores move, which the first cache serves."""
        return sum(kernel.moved for kernel in self.kernels)

    @property
    def issued(self) -> int:
        """The loads and stores that the first cache serves."""
        return round(sum(kernel.issued for kernel in self.kernels))

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON data; each time is in milliseconds."""
        return {
            "modelled_ms": self.milliseconds,
            "modelled_parts_ms": self.parts,
            "modelled_bytes": self.bytes,
            "modelled_loads": self.issued,
            "kernels": [
                {
                    "name": kernel.name,
                    "modelled_ms": self.time(kernel),
                    "resident_items": kernel.resident,
                    "used_lanes": kernel.used,
                    "modelled_bytes": {
                        array: dict(
                            zip(
                                (*self.hardware.levels[1:], "written"),
                                (n * self.hardware.sector for n in (*t.served, t.stored)),
                                strict=True,
                            )
                        )
                        for array, t in kernel.arrays.items()
                    },
                }
                for kernel in self.kernels
            ],
        }
