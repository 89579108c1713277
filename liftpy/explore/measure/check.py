"""Compare a candidate's result with the meaning of its program: the part that a bench can do.

The bench has expected values at some points (`liftpy.explore.measure.meaning`) and looks at every
element. Two kinds of elements are doubts: those that still hold the poison that the buffers were
filled with, and the one that differs most from that of the first correct candidate. The process
that knows the program settles doubts, so this module needs only numpy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from liftpy.explore.measure.outcome import WrongResult
from liftpy.ir.types import ScalarType
from liftpy.opencl.arguments import POISON, is_poison
from liftpy.semantics.storage import are_neighbours, from_storage

Array = NDArray[Any]


@dataclass(frozen=True)
class PointBounds:
    """The largest differences that are allowed at some points, apart from the tolerance.

    A form that stores values in other types has a meaning of its own: `around` has its values at
    the points. Then differences from these must not exceed `at`, and the tolerance is not used.
    """

    at: NDArray[np.float64]
    around: Array | None = None


Bounds: TypeAlias = PointBounds | None

TOLERANCE = 1e-5
"""The largest difference of a float result, relative to the largest value of the meaning."""

SUSPECTS = 32
"""How many elements of a component that look unwritten become doubts, at most."""


@dataclass(frozen=True)
class Expected:
    """The expected values of a component of a result at some points, and the tolerance.

    `bounds` has the largest error that rounding explains at each point, if it is known
    (`liftpy/explore/measure/bounding.py`): a difference must not exceed it either. `storage` is
    the type in which a result is stored, if that is a storage type.
    """

    points: NDArray[np.int64]
    values: Array
    tolerance: float = TOLERANCE
    component: tuple[int, ...] = ()
    bounds: Bounds = None
    storage: ScalarType | None = None

    @property
    def largest(self) -> float:
        """The largest finite magnitude of the values, or 1: differences are relative to it."""
        finite = np.abs(self.values[np.isfinite(self.values)].astype(np.float64))
        return float(finite.max(initial=0.0)) or 1.0


@dataclass(frozen=True)
class Error:
    """The error of a right result, relative to the largest value of the meaning.

    `largest` is the largest difference found; `rms` is the root mean square over the points that
    were chosen without regard to the result.
    """

    largest: float
    rms: float


def differences(got: Array, values: Array, wanted: Expected) -> NDArray[np.float64]:
    """The differences of `got` from `values`, relative to the largest value in `wanted`."""
    same = (got == values) | (np.isnan(got) & np.isnan(values))
    with np.errstate(invalid="ignore"):
        apart = np.abs(got.astype(np.float64) - values.astype(np.float64))
    apart = apart if values.dtype.kind == "f" else np.maximum(apart, 1.0)
    difference = np.where(same, 0.0, apart)
    return np.where(np.isnan(difference), np.inf, difference) / wanted.largest


@dataclass(frozen=True)
class Doubt:
    """Elements of a component that must be compared with the meaning, and their values."""

    component: tuple[int, ...]
    points: NDArray[np.int64]
    got: Array


@dataclass(frozen=True)
class Right:
    """A result that is right at all known points: its error there, and its doubtful elements."""

    error: Error
    doubts: tuple[Doubt, ...] = ()


class Checker:
    """Compares results with expected values; remembers the first right one."""

    def __init__(self, wanted: tuple[Expected, ...]) -> None:
        self.parts = tuple(PartChecker(part) for part in wanted)

    def check(self, result: Any, bounds: Sequence[Bounds] = ()) -> Right | WrongResult:
        """The error over all components and the doubts, or where the result is wrong.

        `bounds` has those of each component for the form of this candidate, if they are known.
        """
        largest, squares, points = 0.0, 0.0, 0
        doubts: list[Doubt] = []
        for part, own in zip_longest(self.parts, bounds):
            array = result
            for k in part.wanted.component:
                array = array[k]
            verdict = part.check(array, own)
            if isinstance(verdict, WrongResult):
                return verdict
            largest = max(largest, verdict.error.largest)
            squares += verdict.error.rms**2 * len(part.wanted.points)
            points += len(part.wanted.points)
            doubts += verdict.doubts
        return Right(Error(largest, math.sqrt(squares / points) if points else 0.0), tuple(doubts))


@dataclass
class PartChecker:
    """The checker of one component.

    `first` is the first result that was right at all points. Its elements that look unwritten are
    not compared: this module cannot tell whether they are.
    """

    wanted: Expected
    first: Array | None = field(default=None, init=False)
    unwritten: NDArray[np.bool_] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.compared = {tuple(point) for point in self.wanted.points.tolist()}

    def check(self, result: Array, bounds: Bounds = None) -> Right | WrongResult:
        """The error of a component and its doubts, or where it is wrong."""
        unwritten = _unwritten(result, self.wanted.storage)
        if self.wanted.storage is not None:
            result = from_storage(result, self.wanted.storage)
        points = self.wanted.points
        limits = self.wanted.bounds if bounds is None else bounds
        error = self.compare(result[tuple(points.T)], points, self.wanted.values, limits)
        if isinstance(error, WrongResult):
            return error
        suspects = self._suspects(result, unwritten)
        if self.first is None:
            self.first, self.unwritten = result, unwritten
        if not len(suspects):
            return Right(error)
        got = np.atleast_1d(result[tuple(suspects.T)])
        return Right(error, (Doubt(self.wanted.component, suspects, got),))

    def compare(
        self, found: Array, points: NDArray[np.int64], values: Array, bounds: Bounds = None
    ) -> Error | WrongResult:
        """The error of the elements `found` relative to `values`, or where they are wrong.

        An element is wrong if its difference exceeds the tolerance or its bound. In a storage type,
        it may always be the neighbour of the value: numbers that differ by a rounding may be stored
        as neighbours.
        """
        got = np.atleast_1d(found)
        difference = differences(got, values, self.wanted)
        if not difference.size:
            return Error(0.0, 0.0)
        around = None if bounds is None else bounds.around
        tolerance = self.wanted.tolerance if around is None else math.inf
        meant = values if around is None else around
        judged = difference if around is None else differences(got, meant, self.wanted)
        limits = np.inf if bounds is None else bounds.at / self.wanted.largest
        if self.wanted.storage is not None:
            judged = np.where(are_neighbours(got, meant, self.wanted.storage), 0.0, judged)
        worst = int((judged - np.minimum(tolerance, limits)).argmax())
        if judged[worst] > tolerance:
            return self._wrong(points[worst], meant[worst], got[worst])
        if bounds is not None and judged[worst] * self.wanted.largest > bounds.at[worst]:
            return self._wrong(points[worst], meant[worst], got[worst], float(bounds.at[worst]))
        return Error(float(difference.max()), math.sqrt(float(np.mean(difference**2))))

    def _wrong(
        self, point: NDArray[np.int64], value: Any, got: Any, bound: float | None = None
    ) -> WrongResult:
        where = tuple(int(i) for i in point)
        return WrongResult(where, float(value), float(got), self.wanted.component, bound=bound)

    def _suspects(self, result: Array, unwritten: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Where the result looks unwritten, and where it differs most from the first right one.

        Points that are compared anyway are left out: a meaning may take seconds to evaluate.
        """
        flat = np.flatnonzero(unwritten)
        if len(flat) > SUSPECTS:
            flat = flat[np.linspace(0, len(flat) - 1, SUSPECTS).astype(np.int64)]
        if self.first is not None and self.unwritten is not None and result.size:
            with np.errstate(invalid="ignore"):
                apart = np.abs(result.astype(np.float64) - self.first)
            apart = np.where(self.unwritten, 0.0, np.nan_to_num(apart, nan=0.0))
            if apart.any():
                flat = np.append(flat, apart.argmax())
        if not result.ndim:
            return np.zeros((0, 0), np.int64)  # its one element is compared
        places = np.stack(np.unravel_index(flat, result.shape), axis=-1).reshape(-1, result.ndim)
        new = [tuple(place) not in self.compared for place in places.tolist()]
        return places[np.array(new, np.bool_)]


def _unwritten(result: Array, storage: ScalarType | None) -> NDArray[np.bool_]:
    """A mask of the elements that hold the poison that the buffers were filled with."""
    if storage is not None:
        return is_poison(result, storage.name)
    if result.dtype == np.bool_:
        return result.view(np.uint8) > 1
    if result.dtype.kind == "f":
        return np.isnan(result)
    return result == POISON[f"{result.dtype.kind}{8 * result.dtype.itemsize}"]


def all_nan(name: str, value: Any) -> Iterator[str]:
    """A sentence for an array that is NaN everywhere, or for each such part of a tuple.

    >>> list(all_nan("x", np.array([np.nan, np.nan])))
    ['x is NaN in all of its 2 elements']
    """
    if isinstance(value, tuple):
        for k, part in enumerate(cast("tuple[Any, ...]", value)):
            yield from all_nan(f"{name}.{k}", part)
        return
    array = np.asarray(value)
    if array.dtype.kind == "f" and array.size and bool(np.isnan(array).all()):
        yield f"{name} is NaN in all of its {array.size} elements"


def nothing_compared(wanted: Sequence[Expected]) -> Iterator[str]:
    """A sentence for each component whose meaning is NaN at all points of the comparison."""
    for part in wanted:
        name = ".".join(["the meaning of the result", *map(str, part.component)])
        for said in all_nan(name, part.values):
            yield f"{said} that are compared: results cannot be checked there"
