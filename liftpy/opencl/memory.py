"""Allocation: which buffers share device memory, and the memory figures of a candidate."""

from __future__ import annotations

from collections.abc import Sequence

from liftpy.kernels.chain import Chain, GlobalBuffer
from liftpy.opencl.kernel import Memory


def slots(buffers: Sequence[GlobalBuffer]) -> dict[str, str]:
    """The allocation of each buffer. Temporaries that do not meet share one, larger first."""
    placed: dict[str, str] = {}
    shared: list[tuple[str, list[tuple[int, int]]]] = []
    temporaries = [(b, b.span) for b in buffers if b.role == "temporary" and b.span is not None]
    for b, span in sorted(temporaries, key=lambda t: (-int(t[0].bytes), t[0].param.name)):
        for name, spans in shared:
            if all(span[1] < first or last < span[0] for first, last in spans):
                spans.append(span)
                placed[b.param.name] = name
                break
        else:
            shared.append((f"slot{len(shared)}", [span]))
            placed[b.param.name] = shared[-1][0]
    for b in buffers:
        placed.setdefault(b.param.name, f"own_{b.param.name}")
    return placed


def figures(cut: Chain, local: int, private: int) -> Memory:
    """The memory figures of a candidate, in bytes (docs/design.md)."""
    peak = max(int(total) for total in cut.live_bytes())
    held = {"input", "constant", "packed", "output"}
    needed = sum(int(b.bytes) for b in cut.buffers if b.role in held and b.span is not None)
    placed = slots(cut.buffers)
    sizes: dict[str, int] = {}
    for b in cut.buffers:
        if b.span is not None:
            name = placed[b.param.name]
            sizes[name] = max(sizes.get(name, 0), int(b.bytes))
    prepare = sum(int(b.bytes) for b in cut.buffers if b.role in {"constant", "packed"})
    return Memory(peak, sum(sizes.values()), peak - needed, local, private, prepare)
