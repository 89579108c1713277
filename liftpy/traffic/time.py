"""The modelled time of kernels: operations, loads, and waiting for each level of the hierarchy.

A compute unit takes the longer of its operations and its loads from the first cache, and waits for
lines of the other levels: `latency / outstanding_misses` cycles each (Little's law). The units work
at the same time. A kernel whose operations are scalar is taken to be vectorized over work-items of
dimension 0, as OpenCL drivers do; loads that are not adjacent there are made one by one. All of
this is modelled: a time orders candidates, and predicts no measurement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.ir.types import size_bytes
from liftpy.loops.lower import LoopKernel
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import chain_of, collection_paused, loops_of
from liftpy.primitives.dialects import LoweredProgram
from liftpy.traffic.reading import Work, work_of
from liftpy.traffic.reuse import Traffic, by_array

LAUNCH = 5.0
"""Microseconds that a launch takes; assumed."""

LATENCY = 4
"""Cycles from a multiply-add to the next one that uses its result; assumed."""

OPERANDS = 3
"""Vector registers that hold operands rather than sums; assumed."""

PORTS = 2
"""Loads from the first cache in a cycle; assumed."""


@dataclass(frozen=True)
class ModelledKernel:
    """The modelled traffic of a kernel on all units, and the cycles of one unit.

    `arrays` has the traffic of each array. `issued` are loads and stores, as instructions.
    `waiting` has the cycles that a unit waits for each level after the first cache.
    """

    name: str
    arrays: Mapping[str, Traffic]
    issued: float
    operations: float
    loads: float
    waiting: tuple[float, ...]
    units: int

    @property
    def cycles(self) -> float:
        """The cycles of one unit."""
        return max(self.operations, self.loads) + sum(self.waiting)

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
        return kernel.cycles / (1000 * self.hardware.clock) + LAUNCH / 1000

    @property
    def parts(self) -> dict[str, float]:
        """The milliseconds of each part of the time: computing, each level, launching.

        Computing is called `operations` or `loads`, by which of the two takes longer in a kernel.
        """
        found = dict.fromkeys(("operations", "loads", *self.hardware.levels[1:], "launches"), 0.0)
        for kernel in self.kernels:
            name = "operations" if kernel.operations >= kernel.loads else "loads"
            found[name] += max(kernel.operations, kernel.loads) / (1000 * self.hardware.clock)
            for level, cycles in zip(self.hardware.levels[1:], kernel.waiting, strict=True):
                found[level] += cycles / (1000 * self.hardware.clock)
            found["launches"] += LAUNCH / 1000
        return found

    @property
    def bytes(self) -> dict[str, int]:
        """The bytes that each level after the first cache serves, and those written to memory."""
        line = self.hardware.cache_line
        found = dict.fromkeys((*self.hardware.levels[1:], "written"), 0)
        for kernel in self.kernels:
            traffic = kernel.traffic
            for level, count in zip(self.hardware.levels[1:], traffic.served, strict=True):
                found[level] += count * line
            found["written"] += traffic.stored * line
        return found

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
                    "modelled_bytes": {
                        array: dict(
                            zip(
                                (*self.hardware.levels[1:], "written"),
                                (n * self.hardware.cache_line for n in (*t.served, t.stored)),
                                strict=True,
                            )
                        )
                        for array, t in kernel.arrays.items()
                    },
                }
                for kernel in self.kernels
            ],
        }


def modelled(lowered: LoweredProgram, device: Device, hardware: Hardware) -> Modelled:
    """The modelled traffic and time of a lowered program whose sizes are numbers."""
    with collection_paused():
        cut = chain_of(lowered)
        codes = loops_of(cut.run, buffer_names(cut))
        return Modelled(tuple(kernel_of(c, device, hardware) for c in codes), hardware)


def kernel_of(code: LoopKernel, device: Device, hardware: Hardware) -> ModelledKernel:
    """The model of one kernel."""
    work = work_of(code, max(device.compute_units, 1))
    cold = by_array(work.nest, hardware, work.shares)
    held = sum(size_bytes(p.type).value({}) for p in code.kernel.buffers)
    arrays = {array: warm(t, held, hardware, work.units) for array, t in cold.items()}
    operations, issued = computing(work, device, hardware)
    waiting = [0.0 for _ in hardware.cache_sizes]
    for traffic in arrays.values():
        for k, count in enumerate(traffic.served):
            written = traffic.stored if k == len(waiting) - 1 else 0
            waiting[k] += (count + written) * hardware.cache_latencies[k] / work.units
    return ModelledKernel(
        work.name,
        arrays,
        issued * work.units,
        operations,
        issued / PORTS,
        tuple(cycles / hardware.outstanding_misses for cycles in waiting),
        work.units,
    )


def warm(traffic: Traffic, held: int, hardware: Hardware, units: int) -> Traffic:
    """The traffic in one of many runs of a kernel that reads and writes `held` bytes.

    A cache with room for all of them has them from the run before, or from the kernel that wrote
    them: times are measured in repeated runs. Only caches that all units share are taken into
    account. What is stored past the caches is written to memory in each run.
    """
    for level, sharing in enumerate(hardware.cache_units):
        if level and sharing >= units and hardware.room(level) >= held:
            kept = traffic.served[: level - 1]
            here = sum(traffic.served[level - 1 :])
            past = not any(traffic.served)
            rest = (0,) * (len(traffic.served) - level)
            return Traffic((*kept, here, *rest), traffic.stored if past else 0)
    return traffic


def computing(work: Work, device: Device, hardware: Hardware) -> tuple[float, float]:
    """The cycles of a unit's operations, and its loads and stores as instructions.

    Too few independent sums leave the pipes idle; what exceeds the registers is spilled.
    """
    processor = device.type == "CPU"
    lanes = max(device.vector_width, 1) if processor else hardware.flops_per_cycle // 2
    pipes = max(1.0, hardware.flops_per_cycle / (2 * lanes))
    widest = max(work.counts.operations, default=1)
    across = not processor or (widest == 1 and work.first >= lanes)
    slots = sum(
        count * (width / lanes if across else -(-width // lanes))
        for width, count in work.counts.operations.items()
    )
    issued = sum(
        count * loads_of(width, size, stride, lanes, across=across)
        for (width, size, stride), count in work.counts.loads.items()
    )
    vectors = max(1.0, work.private / 4 / (1 if across else min(widest, lanes)))
    if processor:
        spilled = max(0.0, 1 - (hardware.vector_registers - OPERANDS) / vectors)
        issued += 2 * spilled * slots
        slots *= max(1.0, LATENCY * pipes / vectors)
    return slots / pipes, issued


def loads_of(width: int, size: int, stride: int | None, lanes: int, *, across: bool) -> float:
    """The load instructions of an access, for each work-item.

    If adjacent work-items share a vector, those that access one address or adjacent ones load it
    together.
    """
    if not across:
        return -(-width // lanes)
    return width / lanes if stride in (0, size * width) else float(width)
