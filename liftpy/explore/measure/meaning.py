"""What a program means on given inputs: what the bench compares results with, and its last word.

The meaning is evaluated in float64 at some points of the result, once for a campaign, and at the
places that the bench finds doubtful (liftpy/explore/measure/check.py).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.explore.measure.check import TOLERANCE, Checker, Error, Expected, PartChecker, Right
from liftpy.explore.measure.inputs import INPUT_SEED
from liftpy.explore.measure.outcome import WrongResult
from liftpy.ir.expr import Expr, FunCall, Program
from liftpy.ir.types import (
    F16,
    F32,
    F64,
    FLOATS,
    ArrayType,
    components,
)
from liftpy.ir.walk import children, scalars_in
from liftpy.primitives import AnyReduce, AnyScan
from liftpy.semantics.evaluate import Evaluated
from liftpy.semantics.room import evaluation_bytes

Array = NDArray[Any]

POINTS = 512
"""Points of the result at which it is compared with the meaning."""

WHOLE = 4096
"""Results of up to so many elements are compared whole."""

KEPT = 1 << 30
"""The values that a program names are kept if evaluating it takes at most so many bytes."""

TERMS = 1 << 15
"""Terms of a sum up to which the tolerance holds as it is: their f32 rounding is about as large."""


def choose_points(shape: tuple[int, ...], count: int, seed: int = INPUT_SEED) -> NDArray[np.int64]:
    """Indices of an array: every one of a small array; else corners, edges, and anywhere.

    A third of the points lie on an edge: some of their indices are the first or the last.
    """
    total = math.prod(shape)
    if total <= max(count, WHOLE):
        return np.indices(shape).reshape(len(shape), total).T.astype(np.int64)
    rng = np.random.default_rng(seed)
    last = np.array(shape) - 1
    corners = np.array(list(itertools.islice(itertools.product(*((0, n) for n in last)), count)))
    found = rng.integers(0, shape, (max(0, count - len(corners)), len(shape)))
    edge = found[: len(found) // 3]
    pinned = rng.random(edge.shape) < 0.5
    pinned[np.arange(len(edge)), rng.integers(0, len(shape), len(edge))] = True
    edge[pinned] = np.where(rng.random(edge.shape) < 0.5, 0, last)[pinned]
    return np.concatenate([corners, found]).astype(np.int64)


def expected(
    program: Program,
    arrays: dict[str, Any],
    *,
    points: int = POINTS,
    tolerance: float = TOLERANCE,
) -> tuple[Expected, ...]:
    """The meaning of a program, floats in float64, at points of each component of its result.

    `tolerance` is for f32 and for short sums (`allowed`).
    """
    meaning = Meaning(program, arrays)
    found: list[Expected] = []
    for part in components(program.type):
        chosen = choose_points(tuple(map(int, part.shape)), points)
        near = allowed(program, tolerance) if part.scalar in FLOATS else 0.0
        values = meaning.at(chosen, part.path)
        found.append(Expected(chosen, values, near, part.path))
    return tuple(found)


def allowed(program: Program, tolerance: float) -> float:
    """The largest relative difference of a program's floats, `tolerance` being that of short f32.

    That of other floats is in proportion to how finely they are spaced. Roundings of a long sum add
    up like the steps of a random walk (Higham and Mary, A new approach to probabilistic rounding
    error analysis, 2019): beyond `TERMS` it grows with the root of their number.
    """
    longer = math.sqrt(max(1.0, terms(program.body.body) / TERMS))
    return tolerance * roughness(program) * longer


def terms(expr: Expr) -> int:
    """How many numbers an element of the result adds up, or folds otherwise, at most."""
    own = 1
    if isinstance(expr, FunCall) and isinstance(expr.fun, AnyReduce | AnyScan):
        xs = expr.args[-1].type
        own = int(xs.length) if isinstance(xs, ArrayType) else 1
    return own * max((terms(part) for part in children(expr)), default=1)


def roughness(program: Program) -> float:
    """How far apart the numbers of the roughest float type of a program are, an f32 being 1."""
    spacing = {F16: 2.0**10, F32: 1.0, F64: 2.0**-20}
    used = scalars_in(program.body)
    return max((spacing[t] for t in FLOATS if t in used), default=1.0)


class Meaning:
    """What a program means on arrays: floats in float64, other numbers as they are written.

    If evaluating the program takes no more than `KEPT`, the values that it names are kept for
    elements that are requested later.
    """

    def __init__(self, program: Program, arrays: dict[str, Any]) -> None:
        self.program = program
        self._given = tuple(arrays[p.name] for p in program.params)
        self._kept: dict[type[np.float64] | None, Evaluated] = {}

    def at(self, points: NDArray[np.int64], component: tuple[int, ...] = ()) -> Array:
        """The meaning of a component at some points."""
        (scalar,) = (p.scalar for p in components(self.program.type) if p.path == component)
        dtype = np.float64 if scalar in FLOATS else None
        if dtype in self._kept:
            return np.asarray(self._kept[dtype].at(points, component))
        found = Evaluated(self.program, self._given, dtype)
        if evaluation_bytes(self.program.body, dtype, len(points)) <= KEPT:
            self._kept[dtype] = found
        return np.asarray(found.at(points, component))


class Judge:
    """Compares results with the meaning, in one process; remembers the first right one."""

    def __init__(
        self, program: Program, arrays: dict[str, Any], wanted: tuple[Expected, ...]
    ) -> None:
        self.meaning = Meaning(program, arrays)
        self.wanted = wanted
        self.checker = Checker(wanted)

    def judge(self, result: Any) -> Error | WrongResult:
        """The error of a result, over all of its components; or where it is wrong."""
        found = self.checker.check(result)
        if isinstance(found, WrongResult):
            return found
        return settled(self.meaning, self.wanted, found)


def settled(meaning: Meaning, wanted: tuple[Expected, ...], found: Right) -> Error | WrongResult:
    """The error of a result when the meaning is known where it was doubtful, or where it is wrong.

    `found` is what a checker of the same `wanted` said.
    """
    parts = {part.component: PartChecker(part) for part in wanted}
    largest = found.error.largest
    for doubt in found.doubts:
        meant = meaning.at(doubt.points, doubt.component)
        verdict = parts[doubt.component].compare(doubt.got, doubt.points, meant)
        if isinstance(verdict, WrongResult):
            return verdict
        largest = max(largest, verdict.largest)
    return Error(largest, found.error.rms)
