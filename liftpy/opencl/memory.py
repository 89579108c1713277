"""Allocation: which buffers share device memory, and the memory figures of a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from liftpy.ir.types import Component, components, size_bytes
from liftpy.kernels.chain import Chain, GlobalBuffer
from liftpy.opencl.kernel import WRITTEN, MemoryFigures


@dataclass(frozen=True)
class GlobalArray:
    """An array of scalars in global memory: a buffer, or one component of a buffer of tuples."""

    buffer: GlobalBuffer
    component: Component

    @property
    def bytes(self) -> int:
        """Its size in bytes."""
        return int(size_bytes(self.component.type))


def arrays_of(buffers: Iterable[GlobalBuffer]) -> list[GlobalArray]:
    """The arrays of all buffers, one per component."""
    return [GlobalArray(b, component) for b in buffers for component in components(b.type)]


def slots(
    parts: Sequence[GlobalArray], name: Callable[[GlobalArray], str]
) -> dict[GlobalArray, str]:
    """The allocation of each array.

    Temporaries and outputs with disjoint lifetimes share one: the memory of an output is free until
    it is written. Larger arrays are placed first.
    """
    shared: list[list[GlobalArray]] = []
    sharing = (p for p in parts if p.buffer.role in WRITTEN and p.buffer.span is not None)
    for p in sorted(sharing, key=lambda p: (-p.bytes, name(p))):
        fitting = (slot for slot in shared if not any(meet(p, other) for other in slot))
        slot = next(fitting, None)
        if slot is None:
            shared.append([p])
        else:
            slot.append(p)
    placed = {p: f"own_{name(p)}" for p in parts}
    several = [slot for slot in shared if len(slot) > 1 or slot[0].buffer.role == "temporary"]
    for k, slot in enumerate(several):
        placed |= dict.fromkeys(slot, f"slot{k}")
    return placed


def meet(one: GlobalArray, other: GlobalArray) -> bool:
    """Whether two arrays are live while the same kernel runs."""
    mine, its = one.buffer.span, other.buffer.span
    return mine is not None and its is not None and mine[0] <= its[1] and its[0] <= mine[1]


def figures(
    cut: Chain, placed: Mapping[GlobalArray, str], local: int, private: int
) -> MemoryFigures:
    """The memory figures of a candidate, in bytes (docs/design.md)."""
    peak = max(int(total) for total in cut.live_bytes())
    held = {"input", "constant", "packed", "output"}
    needed = sum(int(b.bytes) for b in cut.buffers if b.role in held and b.span is not None)
    sizes: dict[str, int] = {}
    for p, slot in placed.items():
        if p.buffer.span is not None:
            sizes[slot] = max(sizes.get(slot, 0), p.bytes)
    prepare = sum(
        int(b.bytes)
        for b in cut.buffers
        if b.role in {"constant", "packed"} or (b.role == "temporary" and b.span is None)
    )
    return MemoryFigures(peak, sum(sizes.values()), peak - needed, local, private, prepare)
