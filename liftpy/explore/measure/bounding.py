"""The bounds of rounding errors with which candidates are checked, for each form of a program.

Unless the user gives a tolerance, a candidate is wrong if an element differs from the meaning by
more than `TOLERANCE`, relative to the largest value, or by more than rounding explains: the bound
of that element for the form from which the candidate is derived, on the data of the check
(`liftpy/semantics/rounding.py`). So the error of a short sum is limited to much less than the
tolerance. For a long sum, and for most forms by F(m, r), the factor e(K) of the bound alone exceeds
the tolerance: then only the tolerance is used, and the bound is not evaluated. A bound that would
take long to evaluate (`QUICK`) is not used either.

A form that stores values in other types may differ from the meaning by more than the tolerance. Its
results are compared with its own meaning, in which these values are converted bit for bit.
Parameters are converted exactly. A computed value has a rounding error before its conversion, and
may be converted to a neighbour of the right one, so the tolerance is larger by the spacing of its
type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from liftpy.errors import TransformRefused
from liftpy.explore.measure.check import Bounds, Expected
from liftpy.explore.measure.meaning import Meaning, NarrowedMeaning, bounds_at, spacing
from liftpy.explore.space.precision import partition_of
from liftpy.ir.formats import QUANTISED
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import SCALARS
from liftpy.rewrite.algorithms import algorithms_of
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.semantics.room import evaluation_bytes
from liftpy.semantics.rounding import ErrorBounds, Unbounded
from liftpy.winograd.error import compounded

QUICK = 1 << 28
"""The bytes that evaluating bounds may take: they are evaluated while a candidate is compiled."""


def narrow_bounds(
    program: Program, arrays: dict[str, Any], wanted: Sequence[Expected]
) -> ErrorBounds | None:
    """The bounds of a program on arrays; None if the program has none, or if they are not used.

    Bounds are not used if their factor e(K) exceeds the tolerance, if the program itself stores
    numbers in storage types, or if their evaluation would take more than `QUICK` bytes: an
    evaluation that stores so much also takes long.
    """
    tolerance = max((part.tolerance for part in wanted), default=0.0)
    points = max((len(part.points) for part in wanted), default=0)
    try:
        bounds = ErrorBounds(program, arrays)
    except Unbounded:
        return None
    if bounds.stored or compounded(bounds.roundings) > tolerance:
        return None
    return bounds if evaluation_bytes(program.body, float, points) <= QUICK else None


def stored(
    partition: Partition, arrays: dict[str, Any], wanted: Sequence[Expected]
) -> NarrowedMeaning:
    """The meaning with which the results of a form with values in other types are compared."""
    tolerance = max((part.tolerance for part in wanted), default=0.0)
    given = {param.name for param in partition.program.params}
    computed = (SCALARS[t] for name, t in partition.storage if name not in given)
    rounded = (QUANTISED[t] for _, t in partition.storage if t in QUANTISED)
    apart = max((*map(spacing, computed), *(form.spacing for form in rounded)), default=0.0)
    return NarrowedMeaning(Meaning(partition.program, arrays), tolerance + apart)


class Bounding:
    """The bounds of the forms of a program at the points of a check, each computed once."""

    def __init__(
        self, program: Program, arrays: dict[str, Any], wanted: tuple[Expected, ...]
    ) -> None:
        self.program = program
        self.arrays = arrays
        self.wanted = wanted
        self._known: dict[tuple[tuple[str, str], ...], ErrorBounds | NarrowedMeaning | None] = {}
        self._at_points: dict[tuple[tuple[str, str], ...], tuple[Bounds, ...]] = {}

    def bounds(self, skeleton: Skeleton) -> ErrorBounds | NarrowedMeaning | None:
        """The bounds of the form of a skeleton, if they are narrow."""
        partition = partition_of(skeleton)
        key = form_of(partition)
        if key not in self._known:
            self._known[key] = self._of(partition)
        return self._known[key]

    def at_points(self, skeleton: Skeleton) -> tuple[Bounds, ...]:
        """Those bounds at the points of the check, for each component; empty if there are none."""
        key = form_of(partition_of(skeleton))
        if key not in self._at_points:
            self._at_points[key] = bounds_at(self.wanted, self.bounds(skeleton))
        return self._at_points[key]

    def _of(self, partition: Partition | None) -> ErrorBounds | NarrowedMeaning | None:
        form = self.program
        if partition is not None and partition.storage:
            return stored(partition, self.arrays, self.wanted)
        if partition is not None and partition.other_algorithm:
            tolerance = max((part.tolerance for part in self.wanted), default=0.0)
            try:
                if any(a.bound.relative > tolerance for a in algorithms_of(partition)):
                    return None
            except TransformRefused:  # more channels than a bound can count
                return None
            form = Program(form.name, Lambda(form.params, partition.cut_form), form.constants)
        return narrow_bounds(form, self.arrays, self.wanted)


def form_of(partition: Partition | None) -> tuple[tuple[str, str], ...]:
    """The words of a form that computes with another algorithm, or the types of one that stores.

    Empty for all others: these add the same numbers, in another order.
    """
    if partition is None:
        return ()
    return partition.words if partition.other_algorithm else partition.storage
