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

from liftpy.errors import TypeRefused
from liftpy.explore.outcome import WrongResult
from liftpy.ir.expr import Program
from liftpy.ir.types import ArrayType, ScalarType, Type
from liftpy.opencl.arguments import DTYPES, POISON
from liftpy.semantics.evaluate import evaluate_at

Array = NDArray[Any]

POINTS = 512
"""Points of the result at which it is compared with the meaning."""

WHOLE = 4096
"""Results of up to so many elements are compared whole."""

TOLERANCE = 1e-5
"""Largest difference of a float result, relative to the largest value that the meaning has."""

INPUT_SEED = 20240229
"""What the inputs are made from: the same arrays in every campaign."""

SUSPECTS = 32
DISTINCT = 1 << 22  # numbers between -1 and 1 that f32 tells apart, with room to spare


def inputs(program: Program, seed: int = INPUT_SEED) -> dict[str, Array]:
    """An array for each parameter, from a seed: numbers of both signs, no two equal in an array."""
    streams = np.random.SeedSequence(seed).spawn(len(program.params))
    return {
        p.name: _numbers(*stored(p.name, p.type), np.random.default_rng(stream))
        for p, stream in zip(program.params, streams, strict=True)
    }


def stored(name: str, t: Type) -> tuple[str, tuple[int, ...]]:
    """The scalar and the shape of an array in a buffer; TypeRefused if it is something else."""
    shape: list[int] = []
    inner = t
    while isinstance(inner, ArrayType):
        shape.append(int(inner.length))
        inner = inner.element
    if not isinstance(inner, ScalarType):
        raise TypeRefused(f"{name} is {t}: a kernel takes and gives arrays of scalars only")
    return inner.name, tuple(shape)


def _numbers(scalar: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    count = math.prod(shape)
    match scalar:
        case "bool":
            return rng.integers(0, 2, shape).astype(np.bool_)
        case "i8" | "i32" | "i64":
            return (rng.permutation(count) - count // 2).astype(DTYPES[scalar]).reshape(shape)
        case _:
            dtype = DTYPES[scalar]
            if count > DISTINCT:
                return rng.uniform(-1, 1, shape).astype(dtype)
            steps = (2 * rng.permutation(count) + 1 - count) / max(count, 1)
            return steps.astype(dtype).reshape(shape)


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
    """What a result must be: the meaning at points, and how close is close enough."""

    points: NDArray[np.int64]
    values: NDArray[np.float64]
    tolerance: float = TOLERANCE


def expected(
    program: Program,
    arrays: dict[str, Array],
    *,
    points: int = POINTS,
    tolerance: float = TOLERANCE,
) -> Expected:
    """The meaning of a program, in float64, at points of its result."""
    scalar, shape = stored("the result", program.type)
    chosen = choose_points(shape, points)
    exact = 0.0 if scalar in {"i32", "bool"} else tolerance
    return Expected(chosen, meaning_at(program, arrays, chosen), exact)


def meaning_at(
    program: Program, arrays: dict[str, Array], points: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The meaning at some points."""
    given = [arrays[p.name] for p in program.params]
    found = evaluate_at(program, points, *given, dtype=np.float64)
    return np.asarray(found, np.float64)


@dataclass
class Judge:
    """Compares results with the meaning; remembers the first right one."""

    program: Program
    arrays: dict[str, Array]
    wanted: Expected
    first: Array | None = field(default=None, init=False)

    def judge(self, result: Array) -> float | WrongResult:
        """The error of a result, or where it is wrong."""
        verdict = self._compare(result, self.wanted.points, self.wanted.values)
        suspects = self._suspects(result)
        if isinstance(verdict, float) and len(suspects):
            more = self._compare(result, suspects, meaning_at(self.program, self.arrays, suspects))
            verdict = more if isinstance(more, WrongResult) else max(verdict, more)
        if isinstance(verdict, float) and self.first is None:
            self.first = result
        return verdict

    def _compare(
        self, result: Array, points: NDArray[np.int64], values: NDArray[np.float64]
    ) -> float | WrongResult:
        got = np.asarray(result[tuple(points.T)], np.float64)
        same = (got == values) | (np.isnan(got) & np.isnan(values))
        with np.errstate(invalid="ignore"):
            difference = np.where(same, 0.0, np.abs(got - values))
        difference = np.where(np.isnan(difference), np.inf, difference) / self._scale
        if not difference.size:
            return 0.0
        worst = int(difference.argmax())
        if difference[worst] > self.wanted.tolerance:
            where = tuple(int(i) for i in points[worst])
            return WrongResult(where, float(values[worst]), float(got[worst]))
        return float(difference[worst])

    @property
    def _scale(self) -> float:
        finite = np.abs(self.wanted.values[np.isfinite(self.wanted.values)])
        return float(finite.max(initial=0.0)) or 1.0

    def _suspects(self, result: Array) -> NDArray[np.int64]:
        """Where the result looks unwritten, and where it differs most from the first right one."""
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
        return np.stack(np.unravel_index(flat, result.shape), axis=-1).reshape(-1, result.ndim)
