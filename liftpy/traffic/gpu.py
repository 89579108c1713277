"""The modelled time of a kernel on a GPU: subgroups in lockstep, and many work-items at once.

The work-items of a subgroup execute together; a group whose size is not a multiple of it leaves
lanes unused. A load takes as many cycles as its sectors and its busiest set of lines need (in local
memory: as its busiest bank needs). A unit has as many groups at a time as its registers, its local
memory and its limits permit. They execute the loops of a work-item side by side, so caches see the
data of all of them. While some wait, others compute: the time is the longest of operations, loads,
waiting for each level, and groups that execute one after the other and wait for results.

Memory is waited for, line by line, and cannot transfer more than its bandwidth. Unlike a processor,
neighbouring groups run on different units at the same time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.ir.types import size_bytes
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Barrier,
    Block,
    For,
)
from liftpy.loops.values import (
    SUBGROUP_LOCAL_ID,
    Cell,
)
from liftpy.opencl.printer import is_whole
from liftpy.primitives.lowered import TEXEL
from liftpy.traffic.model import LATENCY, ModelledKernel
from liftpy.traffic.nest import Access, Axis, Loop, Nest
from liftpy.traffic.reading import Counts, Place, Reader
from liftpy.traffic.reuse import Traffic, by_array, warm
from liftpy.traffic.subgroups import (
    WORD,
    WorkItem,
    addresses,
    axes_of_items,
    lanes,
    lines_of,
    rounds_of,
    step_of,
)

OPERANDS = 64
"""Bytes of registers of a work-item beside its private memory; assumed."""

IN_FLIGHT = 4
"""Loads of a subgroup that may be under way at a time; assumed."""

UNROLLED = 4
"""Iterations of a loop that wait together: NVIDIA's driver 580.159.04 unrolls loops by four."""


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
    def beside(self) -> int:
        """The number of subgroups that are on a unit at a time."""
        return self.at_once * -(-self.group // self.subgroup)

    @property
    def turns(self) -> int:
        """The number of times that a unit executes as many groups as it has at once."""
        return -(-self.groups // self.at_once)

    @property
    def used(self) -> float:
        """The part of the lanes that has a work-item."""
        return self.groups * self.group / (self.subgroups * self.subgroup)

    @property
    def resident(self) -> int:
        """The number of work-items that are on a unit at a time."""
        return self.at_once * self.group


def residency_of(code: LoopKernel, device: Device, hardware: Hardware) -> Residency:
    """The placement of a kernel: registers, local memory and the unit's limits bound it."""
    items = math.prod(code.global_size)
    grouped = code.kernel.demand.groups
    group = math.prod(code.local_size) if grouped else min(hardware.subgroup, items)
    groups = -(-items // group)
    units = min(max(device.compute_units, 1), groups)
    own = max(1, int(code.kernel.demand.private)) + OPERANDS
    own = min(own, hardware.item_register_bytes)
    most = min(hardware.resident_items, hardware.register_bytes // own)
    padded = -(-group // hardware.subgroup) * hardware.subgroup
    at_once = max(1, min(most // padded, hardware.resident_groups))
    if code.locals:
        local = sum(m.length * size_bytes(m.scalar).value({}) for m in code.locals)
        at_once = min(at_once, max(1, hardware.unit_local_memory // max(1, local)))
    mine = -(-groups // units)
    return Residency(units, group, mine, min(at_once, mine), hardware.subgroup)


def kernel_on_gpu(code: LoopKernel, device: Device, hardware: Hardware) -> ModelledKernel:
    """The model of one kernel on a GPU."""
    placed = residency_of(code, device, hardware)
    names, batches, together, shares = axes_of(code, placed)
    first = names["lid0"][0].name if code.kernel.demand.groups else "gid0"
    ids = {**code.ranges, SUBGROUP_LOCAL_ID: hardware.subgroup}
    reader = Reader(first, code.regular, ids, hardware.subgroup)
    body = side_by_side(reader.block(code.block, names, []), together)
    for axis in batches:
        body = (Loop(axis.name, axis.trips, body),)
    cold = by_array(body, hardware, shares)
    held = sum(size_bytes(p.type).value({}) for p in code.kernel.buffers)
    arrays = {array: warm(t, held, hardware, placed.units) for array, t in cold.items()}
    issued, loads = loading(reader.counts, code, placed, hardware)
    operations = computing(reader.counts, code, placed, hardware, issued)
    alone = waited(reader, arrays, placed, hardware) * placed.turns
    alone += (operations + loads) / placed.at_once
    return ModelledKernel(
        code.name,
        arrays,
        issued * placed.units,
        reader.counts.moved * math.prod(code.global_size),
        operations,
        loads,
        tuple(transferring(arrays, placed, hardware)),
        placed.units,
        overlapped=True,
        resident=placed.resident,
        used=placed.used,
        alone=alone,
    )


def transferring(
    arrays: Mapping[str, Traffic], placed: Residency, hardware: Hardware
) -> Iterator[float]:
    """The cycles in which each level after the first cache transfers what a unit needs of it.

    At most `outstanding_misses` lines are under way at a time, and at most `IN_FLIGHT` loads of
    each subgroup.
    """
    inflight = min(hardware.outstanding_misses, IN_FLIGHT * placed.beside)
    *_, memory = range(len(hardware.cache_latencies))
    for k, latency in enumerate(hardware.cache_latencies):
        sectors = sum(t.served[k] + (t.stored if k == memory else 0) for t in arrays.values())
        transferred = sectors * hardware.sector
        cycles = transferred / hardware.cache_line * latency / placed.units / inflight
        if k == memory:
            cycles = max(cycles, transferred * hardware.clock / hardware.memory_bandwidth)
        yield cycles


def computing(
    counts: Counts, code: LoopKernel, placed: Residency, hardware: Hardware, issued: float
) -> float:
    """The cycles in which a unit issues its instructions; lanes of vectors are computed in turn.

    Too few work-items and independent sums leave the pipes idle. `issued` counts loads and stores.
    """
    lanes_in_a_cycle = max(1.0, hardware.flops_per_cycle / 2)
    each = sum(width * count for width, count in counts.operations.items())
    operations = each * placed.subgroups
    sums = max(1, int(code.kernel.demand.private) // WORD)
    idle = LATENCY * lanes_in_a_cycle / (placed.beside * placed.subgroup * sums)
    cycles = operations * placed.subgroup / lanes_in_a_cycle * max(1.0, idle)
    # each scheduler issues one instruction in a cycle
    turns = -(-placed.beside // hardware.instructions)
    return max(cycles, (operations + issued) / placed.beside * turns)


def loading(
    counts: Counts, code: LoopKernel, placed: Residency, hardware: Hardware
) -> tuple[float, float]:
    """The number of loads and stores of a unit's subgroups, and the cycles that they take.

    Sums for which a work-item has no registers are loaded and stored at each operation.
    """
    items = [*first_items(code, placed)]
    issued = cycles = 0.0
    for place in counts.cells:
        starts = addresses(place.cell, place.loops, items)
        size = size_bytes(place.cell.type).value({})
        for shift in place.shifts:
            for at, width in pieces_of(place.cell, shift, hardware):
                shifted = [start + size * shift + at for start in starts]
                executed = place.times * placed.subgroups
                issued += executed
                cycles += executed * cycles_of(place.cell, shifted, width, hardware)
    held = max(1, int(code.kernel.demand.private))
    spilled = max(0.0, 1 - max(0, hardware.item_register_bytes - OPERANDS) / held)
    each = sum(width * count for width, count in counts.operations.items())
    again = 2 * spilled * each * placed.subgroups
    return issued + again, cycles + again


def first_items(code: LoopKernel, placed: Residency) -> Iterator[WorkItem]:
    """The work-items of the first subgroup."""
    grouped = code.kernel.demand.groups
    shape, prefix = (code.local_size, "lid") if grouped else (code.global_size, "gid")
    return lanes(shape, min(placed.group, placed.subgroup), prefix)


def pieces_of(cell: Cell, shift: int, hardware: Hardware) -> Iterator[tuple[int, int]]:
    """The loads or stores that an access becomes: the offset of each, and its width, in bytes.

    The access is `shift` elements after the cell. An image is read in texels.
    """
    size = size_bytes(cell.type).value({})
    width = cell.width * size
    whole = is_whole(cell) and shift % cell.width == 0
    part = width if whole else min(width, max(hardware.unaligned_bytes, size))
    if cell.memory.space == "image":
        part = min(width, TEXEL * size)
    return ((at, min(part, width - at)) for at in range(0, width, part))


def cycles_of(cell: Cell, starts: Sequence[int], width: int, hardware: Hardware) -> float:
    """The cycles that a load or store of a subgroup takes, of `width` bytes from each address.

    In local memory, the busiest bank bounds it; otherwise the lines that are looked up one after
    the other, and the sectors that are transferred.
    """
    if not starts:
        return 1.0
    if cell.memory.space == "local":
        return float(rounds_of(starts, width, hardware.load_bytes // WORD or 1))
    sectors = lines_of(starts, width, hardware.sector)
    lookups = rounds_of(starts, width, hardware.line_lookups, hardware.cache_line)
    return max(1.0, lookups, sectors * hardware.sector / hardware.load_bytes)


def waited(
    reader: Reader, arrays: Mapping[str, Traffic], placed: Residency, hardware: Hardware
) -> float:
    """The cycles that a subgroup waits for what it loads, if no other one has work.

    Loads of one block are under way together, and so are those of several iterations of an
    innermost loop, which drivers unroll. What the first cache does not have takes longer.
    """
    subgroups = placed.units * placed.subgroups
    loads = [place for place in reader.counts.cells if not place.stores]
    requests: dict[str, float] = {}
    blocks: dict[tuple[For, ...], list[Place]] = {}
    for place in loads:
        name = place.cell.memory.name
        many = place.times * len(place.shifts) * subgroups
        requests[name] = requests.get(name, 0.0) + many
        blocks.setdefault(place.loops, []).append(place)
    cycles = 0.0
    for loops, places in blocks.items():
        latency = float(hardware.load_latency)
        for k, more in enumerate(hardware.cache_latencies):
            missed = sum(
                len(place.shifts) * arrays[name].served[k] / requests[name]
                for place in places
                if (name := place.cell.memory.name) in arrays
            )
            latency += more * min(1.0, missed)
        together = unrolled(loops[-1], reader.regular) if loops else 1
        cycles += max(place.times for place in places) * latency / together
    return cycles


def unrolled(loop: For, regular: AbstractSet[str]) -> int:
    """How many iterations of a loop a driver's compiler executes together.

    These are those of an innermost loop whose number of iterations is the same for all work-items.
    """
    if not (isinstance(loop.first, int) and is_straight(loop.body, regular)):
        return 1
    return max(1, min(UNROLLED, -(-(loop.bound - loop.first) // step_of(loop))))


def is_straight(block: Block, regular: AbstractSet[str]) -> bool:
    """Whether a block has no barrier, and no loops but those that stand for their iterations."""
    return not any(
        isinstance(s, Barrier)
        or (isinstance(s, For) and not (s.counter in regular and is_straight(s.body, regular)))
        for s in block
    )


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
            own = (Axis(f"lid{d}", count),) if d else axes_of_items(code, placed.subgroup)
            names |= {axis.name: (replace(axis, stride=1),) for axis in own}
            names[f"lid{d}"] = own
            together += [axis for axis in own if axis.trips > 1]
            group = (replace(a, stride=a.stride * count) for a in names[f"wid{d}"])
            names[f"gid{d}"] = (*group, *own)
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
