"""A cost model: what is likely to make a candidate slow, estimated before anything is built.

It has five figures of a candidate's kernels, computed from the lowered form in microseconds. Each
is a logarithm to base 2, and is 0 in the ideal case:

- *lanes*: how many times wider the device's vectors are than the kernels';
- *stores*: how many lanes of a kernel's vectors are stored one after another, since they are not
  adjacent in its result;
- *registers*: how far a work-item's accumulators are from filling the registers. With more they are
  spilled; with fewer, each load serves fewer operations;
- *idle units*: how many times longer a kernel takes because its last round of work-items does not
  occupy all compute units;
- *traffic*: the bytes that all kernels move, relative to those of inputs, constants and result. The
  scratch of work-items is not counted: on a processor it stays in the cache.

The weight of each figure differs between programs: `Trend` begins with a guess and learns from the
trials. The model orders candidates and drops none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from liftpy.constraints.device import Device
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.nat import ONE, Nat, product
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType, size_bytes
from liftpy.ir.walk import every_part
from liftpy.kernels.chain import Chain, Kernel, chain
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.adjacent import stores_vectors

Figures: TypeAlias = tuple[float, float, float, float, float]

VECTORS = 32  # vector registers of a processor
SCALARS = 256  # registers of a work-item on other devices, 4 bytes each
ROUNDS = 64  # with this many rounds of work-items per unit, the last one does not matter
GUESS = (0.5, 0.5, 1.0, 0.5, 0.25)  # the cost of a doubling, in doublings of time, before any trial
FAITH = 4.0  # the weight of the guess, in trials


def figures(candidate: Candidate, device: Device) -> Figures:
    """Lanes, registers, idle units, traffic and stores of a candidate.

    Lanes and registers are those of the kernel that uses them best, since a kernel that only copies
    has no use for them. Idle units and stores are those of the worst kernel; traffic is that of all
    kernels.
    """
    cut, widths, apart = _cut(candidate.skeleton)
    at = candidate.point
    kernels = [(k, w) for k, w in zip(cut.kernels, widths, strict=True) if k.phase == "run"]
    lanes = min(_lanes(widest, at, device) for _, widest in kernels)
    registers = min(_registers(k, at, device) for k, _ in kernels)
    idle = max(_idle(k, at, device) for k, _ in kernels)
    moved = sum(_moved(k, at) for k, _ in kernels)
    least = sum(b.bytes.value(at) for b in cut.buffers if b.role in ("input", "constant", "output"))
    traffic = math.log2(max(1.0, moved / max(least, 1)))
    stores = max(math.log2(w.value(at)) for w in apart)
    return lanes, registers, idle, traffic, stores


@lru_cache(maxsize=4096)
def _cut(skeleton: Skeleton) -> tuple[Chain, tuple[tuple[Nat, ...], ...], tuple[Nat, ...]]:
    """The kernels, the widths of the vectors of each, and those whose lanes are stored apart."""
    cut = chain(skeleton.program)
    widths = tuple(tuple(dict.fromkeys(_widths(k))) for k in cut.kernels)
    pairs = zip(cut.kernels, widths, strict=True)
    apart = (w for k, own in pairs if k.phase == "run" and not stores_vectors(k.body) for w in own)
    return cut, widths, tuple(dict.fromkeys((ONE, *apart)))


def _widths(kernel: Kernel) -> list[Nat]:
    """The widths of the vectors that a kernel computes with."""
    return [w for part in every_part(kernel.body) for w in _vectors(part.type)] or [ONE]


def _vectors(t: Type) -> list[Nat]:
    match t:
        case VectorType(width=width):
            return [width]
        case ArrayType(element=element):
            return _vectors(element)
        case TupleType(elements=elements):
            return [w for e in elements for w in _vectors(e)]
        case _:
            return []


def _lanes(widths: Sequence[Nat], at: Mapping[str, int], device: Device) -> float:
    widest = max(w.value(at) for w in widths)
    return math.log2(max(1.0, device.vector_width / widest))


def _registers(kernel: Kernel, at: Mapping[str, int], device: Device) -> float:
    held = max(kernel.demand.private.value(at), 4)
    room = VECTORS * max(device.vector_width, 1) if device.type == "CPU" else SCALARS
    return abs(math.log2(held / (4 * room)))


def _idle(kernel: Kernel, at: Mapping[str, int], device: Device) -> float:
    items = product(kernel.demand.global_size()).value(at)
    group = product(kernel.demand.local_size()).value(at) if kernel.demand.groups else 1
    pieces, units = max(1, items // group), max(device.compute_units, 1)
    if pieces >= ROUNDS * units:
        return 0.0
    return math.log2(-(-pieces // units) * units / pieces)


def _moved(kernel: Kernel, at: Mapping[str, int]) -> int:
    return sum(size_bytes(p.type).value(at) for p in (*kernel.reads, kernel.writes))


class Trend:
    """A linear model of the logarithm of time (base 2) in the figures, fitted to trials.

    This is ridge regression towards `GUESS`: weights that the trials do not determine stay there.
    """

    def __init__(self, device: Device) -> None:
        self._device = device
        self._known: dict[str, Figures] = {}
        self._weights: npt.NDArray[np.float64] = np.array(GUESS)

    def figures(self, candidates: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """A row of figures for each candidate."""
        for c in candidates:
            if c.key not in self._known:
                self._known[c.key] = figures(c, self._device)
        return np.array([self._known[c.key] for c in candidates]).reshape(-1, len(GUESS))

    def fit(self, trials: Sequence[Trial], slowest: int) -> None:
        """Learns the cost of each figure; a trial without a time counts as slow as the slowest."""
        found = self.figures([t.candidate for t in trials])
        logs = np.log2([t.time_ns or slowest for t in trials])
        centred = found - found.mean(axis=0)
        guess = np.array(GUESS)
        left = centred.T @ centred + FAITH * np.eye(len(GUESS))
        self._weights = guess + np.linalg.solve(
            left, centred.T @ (logs - logs.mean() - centred @ guess)
        )

    def expected(self, candidates: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """The expected natural logarithm of each time, up to a constant."""
        return math.log(2) * (self.figures(candidates) @ self._weights)
