"""The program of a matrix: without sharing, with shared sets, with shared pairs.

**none**: each row of the matrix is an equation. Within an equation, terms whose coefficients have
the same magnitude are added before they are multiplied; nothing is shared between equations.

**sets**: the hierarchy of common subexpressions that is published for generated Winograd
transforms. In each equation, the signed variables whose coefficients have the same magnitude form a
set. Level 0 contains the sets of all equations; level k + 1 contains the intersections, of two
variables or more, of any two sets of level k, where the signs of a set may be inverted as a whole.
A set of two equations is also in level 1. A set of an equation is then written with members of
level 1: the largest member that is a subset, or whose negative is, is replaced by a reference until
none is left. Members of level 1 are written with members of level 2 in the same way, and so on.

**pairs**: a pair of terms that has the same proportion in two or more equations becomes a new
variable, the most frequent pair first. Since proportions other than 1 count, `x + 4y` is shared by
`x + z + 4y` and `2x - z + 8y`, which have no common set.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cache
from typing import TypeAlias

from liftpy.errors import InternalError
from liftpy.winograd.linear import Builder, Form, Sharing, Signed, Straight
from liftpy.winograd.matrices import Matrix, columns, kronecker


def program(a: Matrix, sharing: Sharing = Sharing.PAIRS) -> Straight:
    """The program of `a x`.

    >>> from liftpy.winograd.triple import cook_toom
    >>> print(program(cook_toom(2, 3).g))
    t0 = x0 + x2
    t1 = -x0
    t2 = x1 + t0
    t3 = 1/2 * t2
    t4 = t0 - x1
    t5 = 1/2 * t4
    y0 = t1
    y1 = t3
    y2 = t5
    y3 = x2
    """
    made = {Sharing.NONE: plainly, Sharing.SETS: by_sets, Sharing.PAIRS: by_pairs}[sharing](a)
    if made.matrix() != a:
        raise InternalError(f"the program with {sharing} applies another matrix than {a}")
    return made


def flat(left: Matrix, right: Matrix, sharing: Sharing = Sharing.PAIRS) -> Straight:
    """The program of `left X right^T` with one equation for each result; arrays are row-major."""
    return program(kronecker(left, right), sharing)


def separable(left: Matrix, right: Matrix, sharing: Sharing = Sharing.PAIRS) -> Straight:
    """The program of `left X right^T`: `left` on each column, then `right` on each row.

    Arrays are row-major. Each pass repeats the program of its matrix.
    """
    on_columns, on_rows = program(left, sharing), program(right, sharing)
    width = columns(right)
    builder = Builder(columns(left) * width, shared=sharing is not Sharing.NONE)
    passed = [builder.inline(on_columns, range(c, builder.inputs, width)) for c in range(width)]
    rows = [builder.inline(on_rows, row) for row in zip(*passed, strict=True)]
    return builder.program([value for row in rows for value in row])


@cache
def applied(a: Matrix, form: Form, sharing: Sharing = Sharing.PAIRS) -> Straight:
    """The program of a matrix in a form: `a x`, or `a X a^T` flat or separable."""
    match form:
        case Form.VECTOR:
            return program(a, sharing)
        case Form.FLAT:
            return flat(a, a, sharing)
        case Form.SEPARABLE:
            return separable(a, a, sharing)


# --- nothing shared ------------------------------------------------------------------------------


def grouped(terms: Iterable[tuple[int, Fraction]]) -> list[tuple[Fraction, list[Signed]]]:
    """Terms `(value, coefficient)`, grouped by the magnitude of the coefficient."""
    groups: dict[Fraction, list[Signed]] = {}
    for value, factor in terms:
        if factor:
            groups.setdefault(abs(factor), []).append((value, factor < 0))
    return list(groups.items())


def plainly(a: Matrix) -> Straight:
    """The program of a matrix, equation by equation."""
    builder = Builder(columns(a), shared=False)
    return builder.program(
        [builder.combination(groups) if (groups := grouped(enumerate(row))) else None for row in a]
    )


# --- sets ----------------------------------------------------------------------------------------


class Sets:
    """Sets of signed variables as integers: bit v is +v, and bit v + width is -v."""

    def __init__(self, a: Matrix) -> None:
        self.width = columns(a)
        self.builder = Builder(self.width)
        self.rows = [
            [(factor, self.set_of(members)) for factor, members in grouped(enumerate(row))]
            for row in a
        ]
        times = Counter(self.canonical(s) for row in self.rows for _, s in row)
        self.levels = [sorted(times)]
        again = {s for s, count in times.items() if count > 1 and s.bit_count() > 1}
        while following := self.intersections(self.levels[-1]) | again:
            if following == set(self.levels[-1]):
                break
            self.levels.append(sorted(following, key=self.rank))
            again = set[int]()
        self.values: dict[int, Signed] = {}

    def set_of(self, members: Iterable[Signed]) -> int:
        """Signed variables as a set."""
        return sum(1 << (v + self.width if minus else v) for v, minus in members)

    def members(self, s: int) -> list[Signed]:
        """The signed variables of a set."""
        return [(v % self.width, v >= self.width) for v in range(2 * self.width) if s >> v & 1]

    def negative(self, s: int) -> int:
        """The set with all signs changed."""
        return s >> self.width | (s & ((1 << self.width) - 1)) << self.width

    def canonical(self, s: int) -> int:
        """The same for a set and its negative."""
        return max(s, self.negative(s))

    def rank(self, s: int) -> tuple[int, list[int], int]:
        """The order of substitution: large sets first. Ties are open: this order shares most."""
        variables = sorted(v for v, _ in self.members(s))
        return -s.bit_count(), [-v for v in variables], s

    def intersections(self, level: Sequence[int]) -> set[int]:
        """The intersections of any two sets of a level, one of which may be negated."""
        negatives = [self.negative(s) for s in level]
        return {
            self.canonical(common)
            for i, one in enumerate(level)
            for other in (*level[:i], *negatives[:i])
            if (common := one & other) & (common - 1)  # two bits or more
        }

    def parts(self, s: int, level: int, but: int | None = None) -> list[Signed]:
        """A set as members of a level, the largest first, and the remaining variables."""
        found: list[Signed] = []
        for member in self.levels[level] if level < len(self.levels) else ():
            for part, minus in ((member, False), (self.negative(member), True)):
                if part & s == part and member != but:
                    value, turned = self.value(member, level)
                    found.append((value, turned != minus))
                    s &= ~part
        return found + self.members(s)

    def value(self, member: int, level: int) -> Signed:
        """The sum of a member of a level, computed at its first use."""
        if member not in self.values:
            self.values[member] = self.builder.total(self.parts(member, level + 1, member))
        return self.values[member]

    def row(self, row: Sequence[tuple[Fraction, int]]) -> int | None:
        """The value of an equation."""
        if not row:
            return None
        return self.builder.combination([(factor, self.parts(s, 1)) for factor, s in row])


def by_sets(a: Matrix) -> Straight:
    """The program of a matrix with the hierarchy of sets."""
    sets = Sets(a)
    return sets.builder.program([sets.row(row) for row in sets.rows])


# --- pairs ---------------------------------------------------------------------------------------

Pair: TypeAlias = tuple[int, int, int, int]
"""Variables u < v and their coefficients, reduced to coprime integers, the first positive."""


class Pairs:
    """Equations with integer coefficients and a factor, and an index of their pairs of terms."""

    def __init__(self, a: Matrix) -> None:
        self.units = [Fraction(1)] * columns(a)
        self.factors: list[Fraction] = []
        self.rows: list[dict[int, int]] = []
        for row in a:
            common = math.lcm(*(x.denominator for x in row))
            self.rows.append({v: int(x * common) for v, x in enumerate(row) if x})
            self.factors.append(Fraction(1, common))
        self.places: dict[Pair, set[int]] = {}
        self.heap: list[tuple[int, int, Pair]] = []
        self.defined: list[Pair] = []
        for i, row in enumerate(self.rows):
            seen: list[int] = []
            for v in row:
                self.enter(i, v, seen)
                seen.append(v)

    def pair(self, i: int, u: int, v: int) -> Pair:
        """Two terms of an equation as a pair."""
        u, v = min(u, v), max(u, v)
        x, y = self.rows[i][u], self.rows[i][v]
        divisor = math.gcd(x, y) if x > 0 else -math.gcd(x, y)
        return u, v, x // divisor, y // divisor

    def enter(self, i: int, v: int, others: Iterable[int]) -> None:
        """Adds the pairs of one term of an equation with others to the index."""
        for u in others:
            pair = self.pair(i, u, v)
            places = self.places.setdefault(pair, set())
            places.add(i)
            self.offer(pair)

    def offer(self, pair: Pair) -> None:
        """Puts a pair of several equations on the heap, with their number."""
        if (count := len(self.places[pair])) > 1:
            heapq.heappush(self.heap, (-count, abs(pair[2]) + abs(pair[3]), pair))

    def best(self) -> Pair | None:
        """The pair of the most equations; None if no pair is in two of them."""
        while self.heap:
            count, _, pair = heapq.heappop(self.heap)
            if len(self.places.get(pair, ())) == -count:
                return pair
        return None

    def replace(self, pair: Pair) -> None:
        """Replaces a pair by a new variable in all its equations."""
        u, v, x, _ = pair
        new = len(self.units) + len(self.defined)
        self.defined.append(pair)
        for i in sorted(self.places[pair]):
            row = self.rows[i]
            gone = {self.pair(i, old, w) for old in (u, v) for w in row if w != old}
            for other in gone:
                self.places[other].discard(i)
                self.offer(other)
            coefficient = row.pop(u) // x
            del row[v]
            others = list(row)
            row[new] = coefficient
            self.enter(i, new, others)

    def emitted(self) -> Straight:
        """The program. A new variable is scaled so that one of its terms needs no product."""
        builder = Builder(len(self.units))
        values = list(range(len(self.units)))
        units = list(self.units)
        for u, v, x, y in self.defined:
            terms = [x / units[u], y / units[v]]
            unit = normal(*terms)
            units.append(unit)
            groups = grouped([(values[u], terms[0] * unit), (values[v], terms[1] * unit)])
            values.append(builder.combination(groups))
        return builder.program(
            [
                builder.combination(
                    grouped((values[v], c * factor / units[v]) for v, c in row.items())
                )
                if row
                else None
                for row, factor in zip(self.rows, self.factors, strict=True)
            ]
        )


def normal(x: Fraction, y: Fraction) -> Fraction:
    """The scale of `x u + y v`: one coefficient becomes 1 if the other is then exact in binary.

    If that fails for both, they become coprime integers.

    >>> print(normal(Fraction(4), Fraction(-17)), normal(Fraction(3), Fraction(2)))
    1/4 1/2
    """
    for one, other in ((x, y), (y, x)):
        if is_dyadic(other / one):
            return 1 / one
    common = math.lcm(x.denominator, y.denominator)
    return Fraction(common, math.gcd(int(x * common), int(y * common)))


def is_dyadic(x: Fraction) -> bool:
    """Whether a number is an integer over a power of two."""
    return x.denominator & (x.denominator - 1) == 0


def by_pairs(a: Matrix) -> Straight:
    """The program of a matrix with shared pairs."""
    pairs = Pairs(a)
    while (pair := pairs.best()) is not None:
        pairs.replace(pair)
    return pairs.emitted()
