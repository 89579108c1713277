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

On a GPU they are:

- *lanes*: the lanes of all subgroups of a group, relative to its work-items;
- *registers*: how far the number of a work-item's accumulators is from `BLOCK`;
- *idle units*: the work-items that keep all units busy, relative to those of the kernel;
- *traffic*: as above, including copies to local memory;
- *loads*: the values that reductions load, relative to those of inputs, constants and result. In
  a kernel without local memory, each value counts as a sector.

The weight of each figure differs between programs: `Trend` begins with a guess and learns from the
trials. The model orders candidates and drops none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from liftpy.constraints.device import Device
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import ONE, ZERO, Nat, product
from liftpy.ir.primitive import function_of
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType, components, size_bytes
from liftpy.ir.walk import children, every_part, has_call
from liftpy.kernels.chain import Kernel, chain_of_skeleton
from liftpy.primitives import AnyMap, AnyReduce, ToLocal
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.adjacent import stores_vectors

Figures: TypeAlias = tuple[float, float, float, float, float]
Each: TypeAlias = Callable[[Nat], list[int]]
Logs: TypeAlias = Callable[[Iterable[float]], list[float]]

SUBGROUP = 32  # work-items of a GPU that execute together; assumed
SECTOR = 8  # words of 4 bytes that a GPU transfers at least
BLOCK = 48  # the ideal number of results of a work-item of a GPU
ITEMS = 256  # work-items that a unit of a GPU needs to be busy
VECTORS = 32  # vector registers of a processor
SCALARS = 256  # registers of a work-item on other devices, 4 bytes each
ROUNDS = 64  # with this many rounds of work-items per unit, the last one does not matter
GUESS = (0.5, 0.5, 1.0, 0.5, 0.25)  # the cost of a doubling, in doublings of time, before any trial
GPU_GUESS = (0.3, 0.5, 1.0, 0.2, 0.5)  # fitted to 605 candidates of VGG-16 on an H100
FAITH = 4.0  # the weight of the guess, in trials


def figures(candidate: Candidate, device: Device) -> Figures:
    """Lanes, registers, idle units, traffic and stores of a candidate: see `figures_at`."""
    return figures_at(candidate.skeleton, [candidate.point], device)[0]


def figures_at(
    skeleton: Skeleton, points: Sequence[Mapping[str, int]], device: Device
) -> list[Figures]:
    """Lanes, registers, idle units, traffic and stores of each point of a skeleton.

    They are computed from expressions of the sizes, which are evaluated once for all points. Lanes
    and registers are those of the kernel that uses them best, since a kernel that only copies has
    no use for them. Idle units and stores are those of the worst kernel; traffic is that of all
    kernels.
    """
    if not points:
        return []
    cut = _cut(skeleton)
    at = {name: np.array([point[name] for point in points]) for name in points[0]}

    def each(size: Nat) -> list[int]:
        found = size.evaluate(at)
        return found.tolist() if isinstance(found, np.ndarray) else [int(found)] * len(points)

    def logs(values: Iterable[float]) -> list[float]:
        return [math.log2(value) for value in values]

    if device.type == "GPU":
        return _on_gpu(cut, each, logs, device)
    lanes: list[list[float]] = []
    registers: list[list[float]] = []
    idle: list[list[float]] = []
    for k in cut.kernels:
        widest = map(max, zip(*map(each, k.widths), strict=True))
        lanes.append(logs(max(1.0, device.vector_width / width) for width in widest))
        room = VECTORS * max(device.vector_width, 1) if device.type == "CPU" else SCALARS
        registers.append([abs(x) for x in logs(max(b, 4) / (4 * room) for b in each(k.private))])
        pieces = (max(1, n // g) for n, g in zip(each(k.items), each(k.group), strict=True))
        idle.append([_idle(n, device) for n in pieces])
    moved = zip(each(cut.moved), each(cut.least), strict=True)
    traffic = logs(max(1.0, all_ / max(least, 1)) for all_, least in moved)
    stores = logs(map(max, zip(*map(each, cut.apart), strict=True)))
    best = (map(min, zip(*rows, strict=True)) for rows in (lanes, registers))
    return [*zip(*best, map(max, zip(*idle, strict=True)), traffic, stores, strict=True)]


def _on_gpu(cut: SkeletonFigures, each: Each, logs: Logs, device: Device) -> list[Figures]:
    """The figures of `figures_at` for a GPU."""
    lanes, registers, idle = list[list[float]](), list[list[float]](), list[list[float]]()
    for k in cut.kernels:
        group, items = each(k.group), each(k.items)
        if k.grouped:
            lanes.append(logs(-(-n // SUBGROUP) * SUBGROUP / n for n in group))
        registers.append([abs(x) for x in logs(max(b, 4) / (4 * BLOCK) for b in each(k.private))])
        wanted = max(device.compute_units, 1) * ITEMS
        idle.append(logs(max(1.0, wanted / n) for n in items))
    least = each(cut.least)
    moved = zip(each(cut.moved), each(cut.copied), least, strict=True)
    traffic = logs(max(1.0, (all_ + copied) / max(n, 1)) for all_, copied, n in moved)
    loads = logs(max(1.0, 4 * n / max(m, 1)) for n, m in zip(each(cut.loads), least, strict=True))
    unused = map(max, zip(*(lanes or [[0.0] * len(least)]), strict=True))
    nearest = map(min, zip(*registers, strict=True))
    waiting = map(max, zip(*idle, strict=True))
    return [*zip(unused, nearest, waiting, traffic, loads, strict=True)]


@dataclass(frozen=True)
class KernelFigures:
    """What the figures of a kernel are computed from: expressions of the open sizes.

    `widths` are the numbers of lanes of its vectors, `private` the bytes of private memory of a
    work-item, `items` the number of work-items, `group` the number of work-items of a group.
    """

    widths: tuple[Nat, ...]
    private: Nat
    items: Nat
    group: Nat
    grouped: bool


@dataclass(frozen=True)
class SkeletonFigures:
    """What the figures of a skeleton are computed from: its kernels of the run phase.

    `apart` are the widths of vectors whose lanes are stored one by one, `moved` the bytes that all
    kernels read and write, `least` the bytes of the inputs, the constants and the result.
    """

    kernels: tuple[KernelFigures, ...]
    apart: tuple[Nat, ...]
    moved: Nat
    least: Nat
    copied: Nat
    loads: Nat


@lru_cache(maxsize=4096)
def _cut(skeleton: Skeleton) -> SkeletonFigures:
    """What the figures need of a skeleton's kernels.

    It does not depend on the numbers of the sizes, so it is computed once for all candidates.
    """
    cut = chain_of_skeleton(skeleton.program)
    kernels = [k for k in cut.kernels if k.phase == "run"]
    widths = [tuple(dict.fromkeys(_widths(k))) for k in kernels]
    pairs = zip(kernels, widths, strict=True)
    apart = (w for k, own in pairs if not stores_vectors(k.body) for w in own)
    read = (p for k in kernels for p in (*k.reads, *([k.writes] if k.updates else ())))
    again = {k.writes: k.repeats for k in kernels if k.fills_again}
    arrays = (*read, *(k.writes for k in kernels))
    moved = (size_bytes(p.type) * again.get(p, ONE) for p in arrays)
    least = (b.bytes for b in cut.buffers if b.role in ("input", "constant", "output"))
    return SkeletonFigures(
        tuple(_measured(k, own) for k, own in zip(kernels, widths, strict=True)),
        tuple(dict.fromkeys((ONE, *apart))),
        sum(moved, ZERO),
        sum(least, ZERO),
        sum((n for k in kernels for n in _counted(k.of_all, ONE, "copied")), ZERO),
        sum((n * _weight(k) for k in kernels for n in _counted(k.of_all, ONE, "loads")), ZERO),
    )


def _weight(kernel: Kernel) -> int:
    """The words that a load counts as: a sector, if the kernel copies nothing to local memory."""
    return 1 if has_call(kernel.body, ToLocal) else SECTOR


def _counted(expr: Expr, times: Nat, what: str) -> Iterator[Nat]:
    """The bytes that all work-items copy to local memory, or the values that their sums load."""
    if not isinstance(expr, FunCall):
        for part in children(expr):
            yield from _counted(part, times, what)
        return
    fun = expr.fun
    for arg in expr.args:
        yield from _counted(arg, times, what)
    if what == "copied" and isinstance(fun, ToLocal):
        yield times * size_bytes(expr.type)
    f = function_of(fun)
    if f is None:
        return
    if isinstance(fun, AnyMap | AnyReduce) and isinstance(expr.args[-1].type, ArrayType):
        times = times * expr.args[-1].type.length
        if what == "loads" and isinstance(fun, AnyReduce) and not has_call(f.body, AnyReduce):
            yield times * sum((product(c.shape) for c in components(f.params[1].type)), ZERO)
    yield from _counted(f.body, times, what)


def _measured(kernel: Kernel, widths: tuple[Nat, ...]) -> KernelFigures:
    """What the figures need of a kernel."""
    of = kernel.demand
    group = product(of.local_size()) if of.groups else ONE
    return KernelFigures(widths, of.private, product(of.global_size()), group, of.groups)


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


def _idle(pieces: int, device: Device) -> float:
    """How many times longer a kernel takes because its last round of pieces is not full."""
    units = max(device.compute_units, 1)
    if pieces >= ROUNDS * units:
        return 0.0
    return math.log2(-(-pieces // units) * units / pieces)


class Trend:
    """A linear model of the logarithm of time (base 2) in the figures, fitted to trials.

    This is ridge regression towards a guess: weights that the trials do not determine stay there.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._known: dict[str, Figures] = {}
        self._guess = np.array(GPU_GUESS if device.type == "GPU" else GUESS)
        self._weights: npt.NDArray[np.float64] = self._guess

    def figures(self, candidates: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """A row of figures for each candidate."""
        new: dict[int, list[Candidate]] = {}
        for c in candidates:
            if c.key not in self._known:
                new.setdefault(id(c.skeleton), []).append(c)
        for alike in new.values():
            points = [c.point for c in alike]
            found = figures_at(alike[0].skeleton, points, self.device)
            self._known |= zip((c.key for c in alike), found, strict=True)
        return np.array([self._known[c.key] for c in candidates]).reshape(-1, len(GUESS))

    def fit(self, trials: Sequence[Trial], slowest: int) -> None:
        """Learns the cost of each figure; a trial without a time counts as slow as the slowest."""
        found = self.figures([t.candidate for t in trials])
        logs = np.log2([t.time_ns or slowest for t in trials])
        centred = found - found.mean(axis=0)
        guess = self._guess
        left = centred.T @ centred + FAITH * np.eye(len(GUESS))
        self._weights = guess + np.linalg.solve(
            left, centred.T @ (logs - logs.mean() - centred @ guess)
        )

    def expected(self, candidates: Sequence[Candidate]) -> npt.NDArray[np.float64]:
        """The expected natural logarithm of each time, up to a constant."""
        return math.log(2) * (self.figures(candidates) @ self._weights)
