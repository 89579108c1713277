"""Allocation: which buffers share device memory, and the memory figures of a candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from liftpy.ir.types import Component, components, size_bytes
from liftpy.kernels.chain import Chain, GlobalBuffer
from liftpy.opencl.kernel import MemoryFigures


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
    """The allocation of each array. Temporaries with disjoint lifetimes share one, larger first."""
    placed: dict[GlobalArray, str] = {}
    shared: list[tuple[str, list[tuple[int, int]]]] = []
    temporaries = [
        (p, p.buffer.span)
        for p in parts
        if p.buffer.role == "temporary" and p.buffer.span is not None
    ]
    for p, span in sorted(temporaries, key=lambda t: (-t[0].bytes, name(t[0]))):
        for slot, spans in shared:
            if all(span[1] < first or last < span[0] for first, last in spans):
                spans.append(span)
                placed[p] = slot
                break
        else:
            shared.append((f"slot{len(shared)}", [span]))
            placed[p] = shared[-1][0]
    for p in parts:
        placed.setdefault(p, f"own_{name(p)}")
    return placed


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
