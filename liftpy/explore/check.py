"""Whether a candidate computes what its program means: inputs, expected values, the comparison.

The meaning is evaluated in float64 at some points of the result, once for a campaign. Beyond those,
every element is looked at: elements that still hold the poison that the buffers were filled with,
and the one that differs most from the first right candidate's, become points as well.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.explore.outcome import WrongResult
from liftpy.ir.expr import Expr, FunCall, Program
from liftpy.ir.types import (
    F16,
    F32,
    F64,
    FLOATS,
    ArrayType,
    TupleType,
    Type,
    VectorType,
    components,
)
from liftpy.ir.walk import children, scalars_in
from liftpy.opencl.arguments import DTYPES, POISON
from liftpy.primitives import Reduce, Scan
from liftpy.semantics.evaluate import evaluate_at

Array = NDArray[Any]

POINTS = 512
"""Points of the result at which it is compared with the meaning."""

WHOLE = 4096
"""Results of up to so many elements are compared whole."""

TOLERANCE = 1e-5
"""Largest difference of a float result, relative to the largest value that the meaning has."""

TERMS = 1 << 15
"""Terms of a sum up to which the tolerance holds as it is: their f32 rounding is about as large."""

INPUT_SEED = 20240229
"""What the inputs are made from: the same arrays in every campaign."""

SUSPECTS = 32
DISTINCT = 1 << 22  # numbers between -1 and 1 that f32 tells apart, with room to spare


def inputs(program: Program, seed: int = INPUT_SEED) -> dict[str, Any]:
    """An array for each parameter, from a seed: numbers of both signs, no two equal in an array.

    An array of tuples is a tuple of arrays. A number by itself is not 0: it may be a factor of all.
    """
    streams = np.random.SeedSequence(seed).spawn(len(program.params))
    return {
        p.name: _arrays(p.type, np.random.default_rng(stream))
        for p, stream in zip(program.params, streams, strict=True)
    }


def _arrays(t: Type, rng: np.random.Generator, outer: tuple[int, ...] = ()) -> Any:
    if isinstance(t, ArrayType):
        return _arrays(t.element, rng, (*outer, int(t.length)))
    if isinstance(t, VectorType):
        return _arrays(t.element, rng, (*outer, int(t.width)))
    if isinstance(t, TupleType):
        return tuple(_arrays(e, rng, outer) for e in t.elements)
    return _numbers(str(t), outer, rng)


def _numbers(scalar: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    count = math.prod(shape)
    match scalar:
        case "bool":
            return rng.integers(0, 2, shape).astype(np.bool_)
        case "i8" | "i32" | "i64" if not shape:
            return np.asarray(rng.integers(2, 9), DTYPES[scalar])
        case "i8" | "i32" | "i64":
            return (rng.permutation(count) - count // 2).astype(DTYPES[scalar]).reshape(shape)
        case _:
            dtype = DTYPES[scalar]
            if not shape:
                return np.asarray(rng.uniform(0.5, 1), dtype)
            if count > DISTINCT:
                return rng.uniform(-0.5, 1, shape).astype(dtype)
            steps = (2 * rng.permutation(count) + 1 - count) / max(count, 1)
            return (0.75 * steps + 0.25).astype(dtype).reshape(shape)  # a sum is not zero


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


@dataclass(frozen=True)
class Expected:
    """What a component of a result must be: the meaning at points, and how close is near enough."""

    points: NDArray[np.int64]
    values: Array
    tolerance: float = TOLERANCE
    component: tuple[int, ...] = ()


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
    found: list[Expected] = []
    for part in components(program.type):
        chosen = choose_points(tuple(map(int, part.shape)), points)
        near = allowed(program, tolerance) if part.scalar in FLOATS else 0.0
        values = meaning_at(program, arrays, chosen, part.path)
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
    if isinstance(expr, FunCall) and isinstance(expr.fun, Reduce | Scan):
        xs = expr.args[-1].type
        own = int(xs.length) if isinstance(xs, ArrayType) else 1
    return own * max((terms(part) for part in children(expr)), default=1)


def roughness(program: Program) -> float:
    """How far apart the numbers of the roughest float type of a program are, an f32 being 1."""
    spacing = {F16: 2.0**10, F32: 1.0, F64: 2.0**-20}
    used = scalars_in(program.body)
    return max((spacing[t] for t in FLOATS if t in used), default=1.0)


def meaning_at(
    program: Program,
    arrays: dict[str, Any],
    points: NDArray[np.int64],
    component: tuple[int, ...] = (),
) -> Array:
    """The meaning of a component at some points: floats in float64, others as they are written."""
    given = [arrays[p.name] for p in program.params]
    (scalar,) = (part.scalar for part in components(program.type) if part.path == component)
    dtype = np.float64 if scalar in FLOATS else None
    return np.asarray(evaluate_at(program, points, *given, dtype=dtype, component=component))


class Judge:
    """Compares results with the meaning; remembers the first right one."""

    def __init__(
        self, program: Program, arrays: dict[str, Any], wanted: tuple[Expected, ...]
    ) -> None:
        self.parts = tuple(PartJudge(program, arrays, part) for part in wanted)

    def judge(self, result: Any) -> float | WrongResult:
        """The error of a result, the largest of its components'; or where it is wrong."""
        worst = 0.0
        for part in self.parts:
            array = result
            for k in part.wanted.component:
                array = array[k]
            verdict = part.judge(array)
            if isinstance(verdict, WrongResult):
                return verdict
            worst = max(worst, verdict)
        return worst


@dataclass
class PartJudge:
    """The judge of one component."""

    program: Program
    arrays: dict[str, Any]
    wanted: Expected
    first: Array | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.compared = {tuple(point) for point in self.wanted.points.tolist()}

    def judge(self, result: Array) -> float | WrongResult:
        """The error of a component, or where it is wrong."""
        verdict = self._compare(result, self.wanted.points, self.wanted.values)
        suspects = self._suspects(result)
        if isinstance(verdict, float) and len(suspects):
            meant = meaning_at(self.program, self.arrays, suspects, self.wanted.component)
            more = self._compare(result, suspects, meant)
            verdict = more if isinstance(more, WrongResult) else max(verdict, more)
        if isinstance(verdict, float) and self.first is None:
            self.first = result
        return verdict

    def _compare(
        self, result: Array, points: NDArray[np.int64], values: Array
    ) -> float | WrongResult:
        got = np.atleast_1d(result[tuple(points.T)])
        same = (got == values) | (np.isnan(got) & np.isnan(values))
        with np.errstate(invalid="ignore"):
            apart = np.abs(got.astype(np.float64) - values.astype(np.float64))
        floats = got.dtype.kind == "f"
        difference = np.where(same, 0.0, apart if floats else np.maximum(apart, 1.0))
        difference = np.where(np.isnan(difference), np.inf, difference) / self._scale
        if not difference.size:
            return 0.0
        worst = int(difference.argmax())
        if difference[worst] > self.wanted.tolerance:
            where = tuple(int(i) for i in points[worst])
            return WrongResult(
                where, float(values[worst]), float(got[worst]), self.wanted.component
            )
        return float(difference[worst])

    @property
    def _scale(self) -> float:
        values = self.wanted.values.astype(np.float64)
        finite = np.abs(values[np.isfinite(values)])
        return float(finite.max(initial=0.0)) or 1.0

    def _suspects(self, result: Array) -> NDArray[np.int64]:
        """Where the result looks unwritten, and where it differs most from the first right one.

        Without the points that are compared anyway: a meaning may take seconds to evaluate.
        """
        if result.dtype == np.bool_:
            poisoned = result.view(np.uint8) > 1
        elif result.dtype.kind == "f":
            poisoned = np.isnan(result)
        else:
            poisoned = result == POISON[f"i{8 * result.dtype.itemsize}"]
        flat = np.flatnonzero(poisoned)
        if len(flat) > SUSPECTS:
            flat = flat[np.linspace(0, len(flat) - 1, SUSPECTS).astype(np.int64)]
        if self.first is not None and result.size:
            with np.errstate(invalid="ignore"):
                apart = np.abs(result.astype(np.float64) - self.first)
            flat = np.append(flat, np.nan_to_num(apart, nan=0.0).argmax())
        if not result.ndim:
            return np.zeros((0, 0), np.int64)  # its one element is compared
        places = np.stack(np.unravel_index(flat, result.shape), axis=-1).reshape(-1, result.ndim)
        new = [tuple(place) not in self.compared for place in places.tolist()]
        return places[np.array(new, np.bool_)]
