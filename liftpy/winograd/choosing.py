"""Points and scalings with a small error: by the bound of their triple, or by measurement.

The sets of points are those of `points.py`, and every set of 0 and pairs p, -p of `MAGNITUDES`,
with one more point if their number is even (or without 0). The `SHORTLIST` sets with the smallest
gamma are compared further, each with three scalings: none; integers in A^T and B^T; and powers of
two that bring the largest entry of each row of B^T and column of A^T to 1 or up to twice that. By
theory, powers of two change neither the bound nor the error (they round nothing), except through
the subexpressions that are shared.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cache, cached_property

import numpy as np

from liftpy.winograd.error import FORMS, Bound, Transforms, bound
from liftpy.winograd.measured import measured_error
from liftpy.winograd.points import Points, known_points, points
from liftpy.winograd.sharing import is_dyadic
from liftpy.winograd.triple import Triple, cook_toom, integral, scaled

MAGNITUDES = points(
    "1", "2", "1/2", "4", "1/4", "3", "1/3", "3/2", "2/3", "3/4", "4/3", "5/8", "8/5", "5/4", "4/5"
)
"""The magnitudes of points that are tried."""

SHORTLIST = 30
"""How many sets of points, those with the smallest gamma, are compared further."""


class Scaling(StrEnum):
    """How the rows of B^T and the columns of A^T are scaled: `powers` are those of two."""

    NONE = "none"
    INTEGERS = "integers"
    POWERS = "powers"


class By(StrEnum):
    """What is minimised: the a-priori bound, or the measured error."""

    BOUND = "bound"
    MEASURED = "measured"


@dataclass(frozen=True)
class RatedTriple:
    """A triple with its scaling, and what can be said about it for a number of channels."""

    triple: Triple
    scaling: Scaling
    channels: int
    dimensions: int

    @cached_property
    def transforms(self) -> Transforms:
        """Its programs, with shared pairs."""
        return Transforms.of(self.triple, FORMS[self.dimensions])

    @cached_property
    def bound(self) -> Bound:
        """The a-priori bound of its error."""
        return bound(self.transforms, self.channels)

    @cached_property
    def measured(self) -> float:
        """The measured error."""
        return measured_error(self.triple, self.channels, dimensions=self.dimensions)

    @cached_property
    def operations(self) -> int:
        """The additions and multiplications of a tile at run time: of B^T and of A^T."""
        both = self.transforms.input.counts, self.transforms.output.counts
        return sum(c.additions + c.multiplications for c in both)

    def error(self, by: By) -> Fraction | float:
        """What is minimised."""
        return self.bound.relative if by is By.BOUND else self.measured


def sets(count: int) -> Iterator[Points]:
    """The sets of `count` points that are tried, without those of `points.py`.

    A set and its negative have the same error, so an unpaired point is positive.

    >>> print(*next(sets(4)))
    0 1 -1 2
    """
    pairs = (count - 1) // 2
    for chosen in itertools.combinations(MAGNITUDES, pairs):
        both = (Fraction(0), *(s * p for p in chosen for s in (1, -1)))
        if count % 2:
            yield both
        else:
            yield from ((*both, p) for p in MAGNITUDES if p not in chosen)
    if not count % 2:
        for chosen in itertools.combinations(MAGNITUDES, count // 2):
            yield tuple(s * p for p in chosen for s in (1, -1))


@cache
def shortlist(m: int, r: int, largest: int) -> tuple[Triple, ...]:
    """The triples with the smallest gamma, that of the usual points among them."""
    usual = cook_toom(m, r, largest=largest)
    if m == 1:
        return (usual,)
    every = dict.fromkeys([*known_points(usual.n).values(), *sets(usual.n - 1)])
    best = heapq.nsmallest(SHORTLIST, every, key=lambda some: near_gamma(m, r, some))
    few = dict.fromkeys([usual.points, *best])
    return tuple(cook_toom(m, r, some, largest=largest) for some in few)


def near_gamma(m: int, r: int, some: Points) -> float:
    """`gamma` of the triple from some points in floating point: a thousand times as fast.

    >>> round(near_gamma(2, 3, points("0", "1", "-1")), 6)
    2.666667
    """
    at = np.array([float(p) for p in some])
    powers = np.abs(at)[:, np.newaxis] ** np.arange(max(m, r))
    apart = at[:, np.newaxis] - at
    np.fill_diagonal(apart, 1)
    kernels = powers[:, :r].sum(axis=1) / np.abs(apart.prod(axis=1))
    inputs = [np.abs(np.poly(np.delete(at, j))).sum() for j in range(len(at))]
    results = (powers[:, :m] * (kernels * inputs)[:, np.newaxis]).sum(axis=0)
    results[-1] += np.abs(np.poly(at)).sum()
    return float(results.max()) / r


def by_powers(triple: Triple) -> Triple:
    """The triple with powers of two as factors of the rows of B^T and the columns of A^T."""

    def factors(rows: Iterable[Iterable[Fraction]]) -> list[Fraction]:
        largest = (max(map(abs, row)) for row in rows)
        return [Fraction(2) ** -math.floor(math.log2(x)) for x in largest]

    return scaled(triple, factors(triple.bt), factors(zip(*triple.at, strict=True)))


SCALED: dict[Scaling, Callable[[Triple], Triple]] = {
    Scaling.NONE: lambda triple: triple,
    Scaling.INTEGERS: integral,
    Scaling.POWERS: by_powers,
}


def scalings(triple: Triple, channels: int, dimensions: int) -> Iterator[RatedTriple]:
    """A triple with each scaling."""
    return (RatedTriple(how(triple), name, channels, dimensions) for name, how in SCALED.items())


@dataclass(frozen=True)
class PointsFound:
    """What a search has found, beside the usual points with integers in A^T and B^T.

    `best` has the smallest error. `light` has the smallest error of those that take no more
    operations at run time than `usual`.
    """

    usual: RatedTriple
    best: RatedTriple
    light: RatedTriple


def choose(
    m: int, r: int, by: By, largest: int, channels: int = 16, dimensions: int = 2
) -> PointsFound:
    """The points and scalings of F(m, r) with the smallest error; of equal ones, the least work.

    >>> print(*choose(2, 3, By.BOUND, 8).best.triple.points)
    0 1 -1
    """
    first, *others = shortlist(m, r, largest)
    usual = {choice.scaling: choice for choice in scalings(first, channels, dimensions)}
    tried = [*usual.values(), *(c for t in others for c in scalings(t, channels, dimensions))]
    tried.sort(key=lambda choice: (choice.error(by), choice.operations))
    integers = usual[Scaling.INTEGERS]
    light = next(choice for choice in tried if choice.operations <= integers.operations)
    return PointsFound(integers, tried[0], light)


BETTER = {By.BOUND: 2, By.MEASURED: 1}
"""How many times smaller an error must be for rules to use other points than the usual ones."""


@cache
def of_rules(m: int, r: int, by: By) -> Points:
    """The points with which rules compute F(m, r), in two dimensions and with 16 channels.

    Only sets that f32 represents exactly count, and only those whose transforms take at most a
    quarter more operations than with the usual points. Nothing is scaled. Of sets that differ only
    in their order, the first counts.

    >>> print(*of_rules(4, 3, By.BOUND), "and", *of_rules(4, 3, By.MEASURED))
    0 2 -2 1/2 -1/2 and 0 3/2 -3/2 5/8 -5/8
    """
    found: dict[frozenset[Fraction], RatedTriple] = {}
    for some in shortlist(m, r, m + r - 1):
        found.setdefault(frozenset(some.points), RatedTriple(some, Scaling.NONE, 16, 2))
    usual, *tried = found.values()
    exact = (c for c in tried if all(map(is_dyadic, c.triple.points)))
    allowed = [c for c in exact if 4 * c.operations <= 5 * usual.operations]
    best = min(allowed, key=lambda c: c.error(by), default=usual)
    chosen = best if BETTER[by] * best.error(by) <= usual.error(by) else usual
    return chosen.triple.points
