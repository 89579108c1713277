"""Whether a candidate computed what its program means, as far as a bench can tell.

The bench has expected values at some points (liftpy/explore/meaning.py makes them) and looks at
every element: those that still hold the poison that the buffers were filled with, and the one that
differs most from the first right candidate's, are doubts, which the side that knows the program
settles. So this module needs numpy only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.explore.outcome import WrongResult
from liftpy.opencl.arguments import POISON

Array = NDArray[Any]

TOLERANCE = 1e-5
"""Largest difference of a float result, relative to the largest value that the meaning has."""

SUSPECTS = 32
"""Places of a component that look unwritten of which so many are looked into."""


@dataclass(frozen=True)
class Expected:
    """What a component of a result must be: the meaning at points, and how close is near enough."""

    points: NDArray[np.int64]
    values: Array
    tolerance: float = TOLERANCE
    component: tuple[int, ...] = ()


@dataclass(frozen=True)
class Doubt:
    """Places of a component at which the meaning has to be asked, and what stands there."""

    component: tuple[int, ...]
    points: NDArray[np.int64]
    got: Array


@dataclass(frozen=True)
class Right:
    """A result that is right at all points known: its error there, and where it is doubtful."""

    error: float
    doubts: tuple[Doubt, ...] = ()


class Checker:
    """Compares results with expected values; remembers the first right one."""

    def __init__(self, wanted: tuple[Expected, ...]) -> None:
        self.parts = tuple(PartChecker(part) for part in wanted)

    def check(self, result: Any) -> Right | WrongResult:
        """The largest error of its components, and doubts; or where a result is wrong."""
        worst = 0.0
        doubts: list[Doubt] = []
        for part in self.parts:
            array = result
            for k in part.wanted.component:
                array = array[k]
            verdict = part.check(array)
            if isinstance(verdict, WrongResult):
                return verdict
            worst = max(worst, verdict.error)
            doubts += verdict.doubts
        return Right(worst, tuple(doubts))


@dataclass
class PartChecker:
    """The checker of one component.

    `first` is the first result that was right at all points. Places that look unwritten in it are
    not compared: whether they are is not known here.
    """

    wanted: Expected
    first: Array | None = field(default=None, init=False)

    def check(self, result: Array) -> Right | WrongResult:
        """The error of a component and its doubts, or where it is wrong."""
        points = self.wanted.points
        error = self.compare(result[tuple(points.T)], points, self.wanted.values)
        if isinstance(error, WrongResult):
            return error
        suspects = self._suspects(result)
        if self.first is None:
            self.first = result
        if not len(suspects):
            return Right(error)
        got = np.atleast_1d(result[tuple(suspects.T)])
        return Right(error, (Doubt(self.wanted.component, suspects, got),))

    def compare(
        self, found: Array, points: NDArray[np.int64], values: Array
    ) -> float | WrongResult:
        """The largest error of what was found where `values` are meant, or where it is wrong."""
        got = np.atleast_1d(found)
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
        """Where the result looks unwritten, and where it differs most from the first right one."""
        flat = np.flatnonzero(_unwritten(result))
        if len(flat) > SUSPECTS:
            flat = flat[np.linspace(0, len(flat) - 1, SUSPECTS).astype(np.int64)]
        if self.first is not None and result.size:
            with np.errstate(invalid="ignore"):
                apart = np.abs(result.astype(np.float64) - self.first)
            apart = np.where(_unwritten(self.first), 0.0, np.nan_to_num(apart, nan=0.0))
            if apart.any():
                flat = np.append(flat, apart.argmax())
        if not result.ndim:
            return np.zeros((min(len(flat), 1), 0), np.int64)
        return np.stack(np.unravel_index(flat, result.shape), axis=-1).reshape(-1, result.ndim)


def _unwritten(result: Array) -> NDArray[np.bool_]:
    """Where a result holds what the buffers were filled with."""
    if result.dtype == np.bool_:
        return result.view(np.uint8) > 1
    if result.dtype.kind == "f":
        return np.isnan(result)
    return result == POISON[f"i{8 * result.dtype.itemsize}"]
