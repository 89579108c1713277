"""The meaning of a program on given inputs: the reference that results are compared with.

It is evaluated in float64 at some points of the result, once per campaign, and at the elements that
the bench finds doubtful (liftpy/explore/measure/check.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.explore.measure.check import (
    TOLERANCE,
    Bounds,
    Checker,
    Error,
    Expected,
    PartChecker,
    PointBounds,
    Right,
)
from liftpy.explore.measure.inputs import INPUT_SEED
from liftpy.explore.measure.outcome import WrongResult
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import Function, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import (
    F16,
    F32,
    F64,
    FLOATS,
    SCALARS,
    STORAGE,
    ArrayType,
    ScalarType,
    components,
)
from liftpy.ir.walk import children, every_part, scalars_in
from liftpy.primitives import AnyReduce, AnyScan
from liftpy.primitives.data_index import AnyReduceByIndex
from liftpy.semantics.evaluate import Evaluated
from liftpy.semantics.room import evaluation_bytes
from liftpy.semantics.rounding import ErrorBounds

Array = NDArray[Any]

POINTS = 512
"""The number of points at which a result is compared with the meaning."""

WHOLE = 4096
"""Results of up to this many elements are compared completely."""

KEPT = 1 << 30
"""The values that a program names are kept if evaluating it takes at most this many bytes."""

TERMS = 1 << 14
"""The longest sum for which the tolerance is not scaled: its f32 rounding is about as large."""


def choose_points(shape: tuple[int, ...], count: int, seed: int = INPUT_SEED) -> NDArray[np.int64]:
    """Indices into an array: all of a small array; otherwise corners, edges and random points.

    A third of the points that are not corners lie on an edge: some of their indices are the first
    or the last.
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
    """The meaning of a program at points of each component of its result, floats in float64.

    `tolerance` applies to f32 and short sums (`allowed`).
    """
    meaning = Meaning(program, arrays)
    found: list[Expected] = []
    for part in components(program.type):
        chosen = choose_points(tuple(map(int, part.shape)), points)
        near = allowed(program, tolerance) if has_floats(part.scalar) else 0.0
        values = meaning.at(chosen, part.path)
        storage = part.scalar if part.scalar in STORAGE else None
        found.append(Expected(chosen, values, near, part.path, storage=storage))
    return tuple(found)


def allowed(program: Program, tolerance: float) -> float:
    """The largest relative difference of a program's floats; `tolerance` is that of short f32 sums.

    For other float types it is proportional to their spacing. The roundings of a long sum add up
    like the steps of a random walk (Higham and Mary, A new approach to probabilistic rounding error
    analysis, 2019): beyond `TERMS` terms, it grows with the square root of their number.
    """
    longer = math.sqrt(max(1.0, terms(program.body.body) / TERMS))
    return tolerance * roughness(program) * longer + narrowed(program)


def narrowed(program: Program) -> float:
    """The relative spacing of the coarsest storage type to which a program converts; 0 if none.

    Numbers that differ by a rounding error may be converted to neighbouring values, which change
    what is computed with them. The difference of a result in a storage type is compared otherwise
    (`check.py`).
    """
    functions = applied(program.body.body)
    wanted = {SCALARS[f.op] for f in functions if isinstance(f, ScalarOp) and f.op in SCALARS}
    read = {*STORAGE.values()} & wanted  # otherwise only a result can be of a storage type
    return max(map(spacing, STORAGE.keys() & wanted), default=0.0) if read else 0.0


def spacing(t: ScalarType) -> float:
    """The largest distance of a value of a storage type from the next one, relative to the value.

    >>> from liftpy.ir.types import SCALARS
    >>> spacing(SCALARS["bf16"]) == 2**-7, spacing(SCALARS["flyte8"])
    (True, 3.0)
    """
    record = RECORDS[t.name]
    lost = RECORDS[record.base].exponent - record.exponent  # the next value is 2^(2^lost) as large
    return 2.0 ** (1 - record.significand) if not lost else 2.0**2**lost - 1


def applied(expr: Expr) -> Iterator[Function]:
    """What an expression applies, also in the bodies of user functions."""
    for part in every_part(expr):
        if isinstance(part, FunCall):
            yield part.fun
            if isinstance(part.fun, UserFun):
                yield from applied(part.fun.body)


def has_floats(t: ScalarType) -> bool:
    """Whether values of a type are computed as floats."""
    return STORAGE.get(t, t) in FLOATS


def terms(expr: Expr) -> int:
    """The most numbers that are summed or otherwise folded into one element of the result."""
    own = 1
    if isinstance(expr, FunCall) and isinstance(expr.fun, AnyReduce | AnyScan | AnyReduceByIndex):
        xs = expr.args[-1].type
        own = int(xs.length) if isinstance(xs, ArrayType) else 1
    return own * max((terms(part) for part in children(expr)), default=1)


def roughness(program: Program) -> float:
    """The spacing of the coarsest float type of a program, relative to that of f32."""
    spacing = {F16: 2.0**10, F32: 1.0, F64: 2.0**-20}
    used = scalars_in(program.body)
    return max((spacing[t] for t in FLOATS if t in used), default=1.0)


class Meaning:
    """The meaning of a program on arrays: floats in float64, other numbers in their own type.

    If evaluating the program takes at most `KEPT` bytes, the values that it names are kept for
    later requests.
    """

    def __init__(self, program: Program, arrays: dict[str, Any]) -> None:
        self.program = program
        self._given = tuple(arrays[p.name] for p in program.params)
        self._kept: dict[type[np.float64] | None, Evaluated] = {}

    def at(self, points: NDArray[np.int64], component: tuple[int, ...] = ()) -> Array:
        """The meaning of a component at some points."""
        (scalar,) = (p.scalar for p in components(self.program.type) if p.path == component)
        dtype = np.float64 if has_floats(scalar) else None
        if dtype in self._kept:
            return np.asarray(self._kept[dtype].at(points, component))
        found = Evaluated(self.program, self._given, dtype)
        if evaluation_bytes(self.program.body, dtype, len(points)) <= KEPT:
            self._kept[dtype] = found
        return np.asarray(found.at(points, component))


class Judge:
    """Compares results with the meaning in one process; remembers the first right one."""

    def __init__(
        self, program: Program, arrays: dict[str, Any], wanted: tuple[Expected, ...]
    ) -> None:
        self.meaning = Meaning(program, arrays)
        self.wanted = wanted
        self.checker = Checker(wanted)

    def judge(
        self, result: Any, bounds: ErrorBounds | NarrowedMeaning | None = None
    ) -> Error | WrongResult:
        """The error of a result over all its components, or where it is wrong.

        `bounds` are those of the form of the program that computed it.
        """
        found = self.checker.check(result, bounds_at(self.wanted, bounds))
        if isinstance(found, WrongResult):
            return found
        return settled(self.meaning, self.wanted, found, bounds)


@dataclass(frozen=True)
class NarrowedMeaning:
    """The meaning of a form that stores values in other types, with which its results are compared.

    `error` is the largest difference, relative to the largest value of a component.
    """

    meaning: Meaning
    error: float


def bounds_at(
    wanted: Sequence[Expected], bounds: ErrorBounds | NarrowedMeaning | None
) -> tuple[Bounds, ...]:
    """The bounds of each component at its points; none for numbers that are not floats."""
    if bounds is None:
        return ()
    return tuple(limits(part, bounds) for part in wanted)


def limits(part: Expected, bounds: ErrorBounds | NarrowedMeaning) -> Bounds:
    """The bounds of a component at its points; None for numbers that are not floats."""
    if part.values.dtype.kind != "f":
        return None
    if isinstance(bounds, NarrowedMeaning):
        around = bounds.meaning.at(part.points, part.component)
        return PointBounds(np.full(len(part.points), bounds.error * part.largest), around)
    return PointBounds(bounds.at(part.points, part.component))


def settled(
    meaning: Meaning,
    wanted: tuple[Expected, ...],
    found: Right,
    bounds: ErrorBounds | NarrowedMeaning | None = None,
) -> Error | WrongResult:
    """The error of a result, or where it is wrong, after its doubts are compared with the meaning.

    `found` is the verdict of a checker with the same `wanted` and the same `bounds`.
    """
    parts = {part.component: PartChecker(part) for part in wanted}
    largest = found.error.largest
    for doubt in found.doubts:
        meant = meaning.at(doubt.points, doubt.component)
        part = parts[doubt.component]
        (own,) = bounds_at([replace(part.wanted, points=doubt.points)], bounds) or (None,)
        verdict = part.compare(doubt.got, doubt.points, meant, own)
        if isinstance(verdict, WrongResult):
            return verdict
        largest = max(largest, verdict.largest)
    return Error(largest, found.error.rms)
