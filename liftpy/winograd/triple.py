"""Triples of matrices that compute a short correlation with the fewest products.

F(m, r) gives m results of a filter of r taps from n = m + r - 1 inputs with n products
(S. Winograd, "Arithmetic Complexity of Computations", 1980). The construction from points is that
of Toom and Cook (R. Blahut, "Fast Algorithms for Signal Processing"): two polynomials are evaluated
at n - 1 points and at infinity, the values are multiplied, and the product of the polynomials is
interpolated. Correlation is the transpose of this product. All arithmetic is exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from liftpy.errors import TransformRefused
from liftpy.winograd.matrices import Exact, Matrix, columns, exact, identity, matrix, times
from liftpy.winograd.points import STANDARD, Points, standard_points

TAPS = range(2, 8)
"""The numbers of taps that are supported."""

LARGEST = 8
"""The default limit of n: from 8 products to 9, the error in f32 grows tenfold."""


@dataclass(frozen=True)
class Triple:
    """F(m, r): `at ((g w) * (bt d))` is the correlation of n inputs d with r taps w.

    `at` has m rows of n, `g` n rows of r, and `bt` n rows of n. `points` are the finite points of
    the construction; the direct algorithm has none. Result i is the sum of `w[k] d[i + k]`.
    Raises TransformRefused if the matrices have other shapes or compute anything else.

    >>> f = cook_toom(2, 3)
    >>> print(*f.correlate(matrix([[1, 10, 100]])[0], matrix([[1, 2, 3, 4]])[0]))
    321 432
    """

    m: int
    r: int
    points: Points
    at: Matrix
    g: Matrix
    bt: Matrix

    def __post_init__(self) -> None:
        shapes = {"at": (self.m, self.n), "g": (self.n, self.r), "bt": (self.n, self.n)}
        for name, (rows, width) in shapes.items():
            found: Matrix = getattr(self, name)
            if len(found) != rows or any(len(row) != width for row in found):
                raise TransformRefused(
                    f"the triple of {self} is refused: {name} has {len(found)} rows of "
                    f"{columns(found)}, and F(m, r) needs {rows} rows of {width} there. Make it "
                    f"with cook_toom({self.m}, {self.r})"
                )
        self._check()

    def __str__(self) -> str:
        return f"F({self.m}, {self.r})"

    @property
    def n(self) -> int:
        """The number of inputs, and of products."""
        return self.m + self.r - 1

    def _check(self) -> None:
        """Compares the coefficients of the bilinear form with those of the correlation.

        The sum over j of `at[i][j] g[j][k] bt[j][l]` is the coefficient of `w[k] d[l]` in result i:
        1 if l = i + k, otherwise 0. These are equations of rationals, so they hold for all data.
        """
        for i, row in enumerate(self.at):
            for k in range(self.r):
                weights = [a * g[k] for a, g in zip(row, self.g, strict=True)]
                for l in range(self.n):  # noqa: E741  the index of the literature
                    found = sum(
                        (w * b[l] for w, b in zip(weights, self.bt, strict=True)), Fraction(0)
                    )
                    if found != int(l == i + k):
                        raise TransformRefused(
                            f"the triple of {self} is refused: in result {i}, the product of tap "
                            f"{k} and input {l} has the coefficient {found}, and a correlation has "
                            f"{int(l == i + k)} there. Make the triple with "
                            f"cook_toom({self.m}, {self.r}), or correct its matrices"
                        )

    def correlate(self, w: Sequence[Fraction], d: Sequence[Fraction]) -> tuple[Fraction, ...]:
        """The m results for r taps and n inputs, computed exactly with the matrices."""
        products = [x * y for x, y in zip(times(self.g, w), times(self.bt, d), strict=True)]
        return times(self.at, products)


def cook_toom(
    m: int,
    r: int,
    points: Sequence[Exact] | None = None,
    *,
    scale: Sequence[Exact] | None = None,
    scale_output: Sequence[Exact] | None = None,
    largest: int = LARGEST,
) -> Triple:
    """F(m, r) from n - 1 distinct points and infinity, with n = m + r - 1.

    The default of `points` is the usual order, and for m = 1 the direct algorithm. Row j of `bt` is
    multiplied by `scale[j]`, column j of `at` by `scale_output[j]`, and row j of `g` is divided by
    both, which moves fractions and signs into the transform of the kernel. `largest` limits n.
    TransformRefused if sizes, points or factors make no triple.

    >>> f = cook_toom(2, 3, scale=(-1, 1, 1, -1), scale_output=(1, 1, 1, -1))
    >>> for row in f.bt: print(*row)
    1 0 -1 0
    0 1 1 0
    0 -1 1 0
    0 1 0 -1
    >>> for row in f.g: print(*row)
    1 0 0
    1/2 1/2 1/2
    1/2 -1/2 1/2
    0 0 1
    """
    check_sizes(m, r, largest)
    n = m + r - 1
    if m == 1 and points is None:
        direct = matrix([[1] * n]), identity(n), identity(n)
        return scaled(Triple(m, r, (), *direct), scale, scale_output)
    chosen = check_points(m, r, standard_points(n) if points is None else points)
    at = [[*(p**i for p in chosen), Fraction(int(i == m - 1))] for i in range(m)]
    g: list[list[Fraction]] = []
    bt: list[list[Fraction]] = []
    for j, p in enumerate(chosen):
        others = chosen[:j] + chosen[j + 1 :]
        g.append([p**k / math.prod((p - q for q in others), start=Fraction(1)) for k in range(r)])
        bt.append([*with_roots(others), Fraction(0)])
    g.append([Fraction(int(k == r - 1)) for k in range(r)])
    bt.append(with_roots(chosen))
    return scaled(Triple(m, r, chosen, matrix(at), matrix(g), matrix(bt)), scale, scale_output)


def integral(triple: Triple) -> Triple:
    """The triple, scaled so that columns of `at` and rows of `bt` are coprime integers.

    All fractions are then in `g`, which is applied to constants.

    >>> f = integral(cook_toom(4, 3, ("0", "1", "-1", "1/2", "-2")))
    >>> print(*f.bt[3], *(row[3] for row in f.at))
    0 -2 -1 2 1 0 8 4 2 1
    """
    rows = [primitive(row) for row in triple.bt]
    return scaled(triple, rows, [primitive(column) for column in zip(*triple.at, strict=True)])


def primitive(values: Sequence[Fraction]) -> Fraction:
    """The factor that makes values coprime integers."""
    denominators = math.lcm(*(v.denominator for v in values))
    return Fraction(denominators, math.gcd(*(int(v * denominators) for v in values)) or 1)


def scaled(
    triple: Triple, scale: Sequence[Exact] | None, scale_output: Sequence[Exact] | None
) -> Triple:
    """A triple with other scalings (`cook_toom`). TransformRefused if a factor is 0."""
    if scale is None and scale_output is None:
        return triple
    inputs = factors(triple, scale, "rows of B^T")
    outputs = factors(triple, scale_output, "columns of A^T")
    return Triple(
        triple.m,
        triple.r,
        triple.points,
        matrix([a * t for a, t in zip(row, outputs, strict=True)] for row in triple.at),
        matrix(
            [x / (s * t) for x in row] for row, s, t in zip(triple.g, inputs, outputs, strict=True)
        ),
        matrix([x * s for x in row] for row, s in zip(triple.bt, inputs, strict=True)),
    )


def factors(triple: Triple, given: Sequence[Exact] | None, what: str) -> list[Fraction]:
    """The n factors of a scaling, by default 1."""
    if given is None:
        return [Fraction(1)] * triple.n
    found = [exact(s, f"factor {j} of the {what} of {triple}") for j, s in enumerate(given)]
    if len(found) != triple.n or 0 in found:
        why = (
            f"there are {len(found)} factors"
            if len(found) != triple.n
            else f"factor {found.index(Fraction(0))} is 0, by which G cannot be divided"
        )
        raise TransformRefused(
            f"the scaling of the {what} of {triple} is refused: {why}. Give {triple.n} factors "
            "that are not 0"
        )
    return found


def check_sizes(m: int, r: int, largest: int) -> None:
    """Refuses sizes without a triple, and those with more than `largest` products."""
    if m < 1:
        raise TransformRefused(
            f"F({m}, {r}) is refused: {m} results at a time are none. Ask for m = 1, which is the "
            "direct algorithm, or more"
        )
    if r not in TAPS:
        raise TransformRefused(
            f"F({m}, {r}) is refused: a filter has {TAPS[0]} to {TAPS[-1]} taps here, not {r}. "
            "Compute it directly, or split it into filters of such lengths, whose results are added"
        )
    if m + r - 1 > largest:
        fits = largest - r + 1
        instead = f"Ask for m = {fits}" if fits >= 1 else "Compute it directly"
        allowed = m + r - 1 <= len(STANDARD) + 1
        more = f", or allow {m + r - 1} (`largest`, --largest)" if allowed else ""
        raise TransformRefused(
            f"F({m}, {r}) is refused: it has m + r - 1 = {m + r - 1} products in a row, more than "
            f"{largest}, and its error in f32 grows with them. {instead}{more}"
        )


def check_points(m: int, r: int, given: Sequence[Exact]) -> Points:
    """The points of F(m, r) as fractions. TransformRefused unless they are n - 1 distinct ones."""
    found = tuple(exact(p, f"point {j} of F({m}, {r})") for j, p in enumerate(given))
    needed = m + r - 2
    if len(found) != needed:
        raise TransformRefused(
            f"the points {', '.join(map(str, found)) or '(none)'} of F({m}, {r}) are refused: they "
            f"are too {'few' if len(found) < needed else 'many'}, {len(found)} where "
            f"m + r - 2 = {needed} are needed besides infinity. "
            f"{remedy(found, needed)}"
        )
    for j, p in enumerate(found):
        if p in found[:j]:
            raise TransformRefused(
                f"the points {', '.join(map(str, found))} of F({m}, {r}) are refused: points "
                f"{found.index(p)} and {j} are both {p}, and equal points make one equation twice. "
                f"Replace one, for instance by {unused(found, 1)[0]}"
            )
    return found


def remedy(found: Points, needed: int) -> str:
    """As many distinct points as needed: the given ones, completed from the usual order."""
    kept = tuple(dict.fromkeys(found))[:needed]
    return f"Give {', '.join(map(str, kept + unused(kept, needed - len(kept)))) or 'none'}"


def unused(found: Points, count: int) -> Points:
    """The first `count` points of the usual order, then integers, that are not in `found`."""
    more = (*standard_points(2 * LARGEST), *map(Fraction, range(5, 5 + len(found) + count)))
    return tuple(p for p in more if p not in found)[:count]


def with_roots(roots: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the product of all `x - root`, constant first.

    >>> print(*with_roots(matrix([[1, -1]])[0]))
    -1 0 1
    """
    found = [Fraction(1)]
    for root in roots:
        shifted, kept = [Fraction(0), *found], [*found, Fraction(0)]
        found = [s - root * k for s, k in zip(shifted, kept, strict=True)]
    return found
