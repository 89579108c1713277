"""The modelled time of a kernel on a GPU: subgroups in lockstep, and many work-items at once.

The work-items of a subgroup execute together; a group whose size is not a multiple of it leaves
lanes unused. A load takes as many cycles as the lines that they touch need (for local memory: as
its busiest bank needs). A unit has as many work-items at a time as its registers and local memory
permit: loops of a work-item go around all of these, so caches see their data together. While some
wait, others compute: the longest of operations, loads and waiting for each level bounds the time.

Memory is waited for, line by line, and cannot transfer more than its bandwidth. Unlike a processor,
neighbouring groups run on different units at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.ir.types import size_bytes
from liftpy.loops.lower import LoopKernel
from liftpy.traffic.model import LATENCY, ModelledKernel
from liftpy.traffic.nest import Access, Axis, Loop, Nest
from liftpy.traffic.reading import Counts, Reader
from liftpy.traffic.reuse import by_array, warm
from liftpy.traffic.subgroups import WORD, addresses, lanes, lines_of, rounds_of

OPERANDS = 64
"""Bytes of registers of a work-item beside its private memory; assumed."""

IN_FLIGHT = 4
"""Loads of a subgroup that may be under way at a time; assumed."""


@dataclass(frozen=True)
class Residency:
    """How the work-items of a kernel are placed on a GPU.

    `group` is the number of work-items that stay together: those of a group, or, without groups, a
    subgroup. A unit executes `groups` of them, `at_once` at a time.
    """

    units: int
    group: int
    groups: int
    at_once: int
    subgroup: int

    @property
    def subgroups(self) -> int:
        """The number of subgroups that a unit executes."""
        return self.groups * -(-self.group // self.subgroup)

    @property
    def used(self) -> float:
        """The part of the lanes that has a work-item."""
        return self.groups * self.group / (self.subgroups * self.subgroup)

    @property
    def resident(self) -> int:
        """The number of work-items that are on a unit at a time."""
        return self.at_once * self.group


def residency_of(code: LoopKernel, device: Device, hardware: Hardware) -> Residency:
    """The placement of a kernel: registers, local memory and the unit's limit bound it."""
    items = math.prod(code.global_size)
    grouped = code.kernel.demand.groups
    group = math.prod(code.local_size) if grouped else min(hardware.subgroup, items)
    groups = -(-items // group)
    units = min(max(device.compute_units, 1), groups)
    own = max(1, int(code.kernel.demand.private)) + OPERANDS
    most = min(hardware.resident_items, hardware.register_bytes // own)
    padded = -(-group // hardware.subgroup) * hardware.subgroup
    at_once = max(1, most // padded)
    if code.locals:
        local = sum(m.length * size_bytes(m.scalar).value({}) for m in code.locals)
        at_once = min(at_once, max(1, device.local_memory // max(1, local)))
    mine = -(-groups // units)
    return Residency(units, group, mine, min(at_once, mine), hardware.subgroup)


def kernel_on_gpu(code: LoopKernel, device: Device, hardware: Hardware) -> ModelledKernel:
    """The model of one kernel on a GPU."""
    placed = residency_of(code, device, hardware)
    names, batches, together, shares = axes_of(code, placed)
    reader = Reader("lid0" if code.kernel.demand.groups else "gid0", code.regular)
    body = side_by_side(reader.block(code.block, names, []), together)
    for axis in batches:
        body = (Loop(axis.name, axis.trips, body),)
    cold = by_array(body, hardware, shares)
    held = sum(size_bytes(p.type).value({}) for p in code.kernel.buffers)
    arrays = {array: warm(t, held, hardware, placed.units) for array, t in cold.items()}
    operations = computing(reader.counts, code, placed, hardware)
    issued, loads = loading(reader.counts, code, placed, hardware)
    inflight = min(
        hardware.outstanding_misses,
        IN_FLIGHT * max(1, -(-placed.resident // hardware.subgroup)),
    )
    waiting: list[float] = []
    for k, latency in enumerate(hardware.cache_latencies):
        lines = sum(t.served[k] for t in arrays.values())
        if k == len(hardware.cache_latencies) - 1:
            lines += sum(t.stored for t in arrays.values())
            bytes_per_cycle = hardware.memory_bandwidth / hardware.clock
            transferred = lines * hardware.cache_line / bytes_per_cycle
        else:
            transferred = 0.0
        waiting.append(max(lines * latency / placed.units / inflight, transferred))
    return ModelledKernel(
        code.name,
        arrays,
        issued * placed.units,
        reader.counts.moved * math.prod(code.global_size),
        operations,
        loads,
        tuple(waiting),
        placed.units,
        overlapped=True,
        resident=placed.resident,
        used=placed.used,
    )


def computing(counts: Counts, code: LoopKernel, placed: Residency, hardware: Hardware) -> float:
    """The cycles of a unit's operations, in which the lanes of vectors are computed one by one.

    Too few work-items and independent sums leave the pipes idle.
    """
    lanes_in_a_cycle = max(1.0, hardware.flops_per_cycle / 2)
    each = sum(width * count for width, count in counts.operations.items())
    total = each * placed.subgroups * placed.subgroup
    sums = max(1, int(code.kernel.demand.private) // WORD)
    idle = LATENCY * lanes_in_a_cycle / (placed.resident * sums)
    return total / lanes_in_a_cycle * max(1.0, idle)


def loading(
    counts: Counts, code: LoopKernel, placed: Residency, hardware: Hardware
) -> tuple[float, float]:
    """The loads and stores of a unit, each of a subgroup, and the cycles that they take."""
    grouped = code.kernel.demand.groups
    shape = code.local_size if grouped else code.global_size
    prefix = "lid" if grouped else "gid"
    items = [*lanes(shape, min(placed.group, hardware.subgroup), prefix)]
    issued = cycles = 0.0
    for cell, shifts, _, loops, times in counts.cells:
        size = size_bytes(cell.type).value({})
        width = cell.width * size
        starts = addresses(cell, loops, items)
        for shift in shifts:
            shifted = [start + size * shift for start in starts]
            if cell.memory.space == "local":
                rounds = float(rounds_of(shifted, width, hardware.load_bytes // WORD or 1))
            else:
                lines = lines_of(shifted, width, hardware.cache_line)
                rounds = max(1.0, lines * hardware.cache_line / hardware.load_bytes)
            issued += times * placed.subgroups
            cycles += times * placed.subgroups * rounds
    return issued, cycles


def axes_of(
    code: LoopKernel, placed: Residency
) -> tuple[Mapping[str, tuple[Axis, ...]], list[Axis], list[Axis], tuple[tuple[str, int], ...]]:
    """The digits of each id; the axes of batches, of what a unit has at once, and of the units.

    Groups go to the units in turn, dimension 0 first; then to the places of a unit; the rest are
    batches, one after the other. Without groups, the places of a unit have adjacent work-items.
    """
    grouped = code.kernel.demand.groups
    sizes = tuple(g // s for g, s in zip(code.global_size, code.local_size, strict=True))
    names: dict[str, tuple[Axis, ...]] = {}
    batches: list[Axis] = []
    together: list[Axis] = []
    shares: list[tuple[str, int]] = []
    units, places = placed.units, placed.at_once if grouped else placed.resident
    for d, count in enumerate(sizes if grouped else code.global_size):
        name = f"wid{d}" if grouped else f"gid{d}"
        split: dict[str, int] = {}
        left = count
        for kind in ("unit", "place") if grouped else ("place", "unit"):
            taken = min(units if kind == "unit" else places, left)
            split[kind], left = taken, -(-left // taken)
            if kind == "unit":
                units = -(-units // taken)
            else:
                places = -(-places // taken)
        first, second = list(split)
        axes = {
            first: Axis(f"{first} of {name}", split[first]),
            second: Axis(f"{second} of {name}", split[second], split[first]),
        }
        batch = Axis(f"batch of {name}", left, split[first] * split[second])
        names[name] = (*axes.values(), batch)
        batches += [batch] if left > 1 else []
        together += [axes["place"]] if axes["place"].trips > 1 else []
        shares += [(axes["unit"].name, axes["unit"].trips)] if axes["unit"].trips > 1 else []
    if grouped:
        for d, count in enumerate(code.local_size):
            lid = Axis(f"lid{d}", count)
            names[f"lid{d}"] = (lid,)
            together += [lid] if count > 1 else []
            group = (replace(a, stride=a.stride * count) for a in names[f"wid{d}"])
            names[f"gid{d}"] = (*group, lid)
    return names, batches, together, tuple(shares)


def side_by_side(body: tuple[Nest, ...], together: list[Axis]) -> tuple[Nest, ...]:
    """A nest of one work-item as all work-items of a unit execute it, in the same iterations."""
    found: list[Nest] = []
    accesses: list[Access] = []

    def finish() -> None:
        if accesses:
            inner: tuple[Nest, ...] = tuple(accesses)
            for axis in together:
                inner = (Loop(axis.name, axis.trips, inner),)
            found.extend(inner)
            accesses.clear()

    for part in body:
        if isinstance(part, Access):
            accesses.append(part)
        else:
            finish()
            found.append(Loop(part.axis, part.trips, side_by_side(part.body, together)))
    finish()
    return tuple(found)
