"""Error constants of triples, and a-priori bounds of their forward error in f32.

**gamma**: the worst over results i of the sum over j of `|at[i][j]| (sum_k |g[j][k]|)
(sum_l |bt[j][l]|)`, divided by r. For data of magnitude 1, it is the ratio of the intermediate sums
to the largest possible result. Scalings do not change it; nesting for two dimensions squares it.

**The bound.** With u = 2**-24, a sum or product of floats is the exact one times (1 + d), |d| <= u,
if nothing overflows or underflows. A straight-line program of such operations gives a sum over the
paths from its inputs to a result; each path is the product of its constants, times one (1 + d) for
each rounding on it: none for a power of two, one for an addition or for a product with a constant
that f32 holds, two for a product with a constant that is rounded itself. A result of the triple is
therefore a sum over paths through the transform of the kernel and that of the input, which meet in
one product (one rounding), then C - 1 additions for C channels in any order, then the output's
transform. A product of k factors (1 + d) differs from 1 by at most e(k) = k u / (1 - k u), so the
error is at most e(K) S, where K is the largest number of roundings on the paths to a result, and S
is the sum of the magnitudes of its paths (for C channels, C times that of one) for data of
magnitude 1 (N. Higham, "Accuracy and Stability of Numerical Algorithms"; for Winograd's transforms,
Barabasz and others as in `points`). S comes from the programs themselves, since shared
subexpressions that cancel make it larger than `|A||G||B|`. Fused multiply-adds leave out roundings:
the bound holds for them too. Kernels divide where a constant is no sum of powers of two; such a
quotient counts as a product with a rounded constant, which assumes that the device rounds quotients
correctly, as processors do. OpenCL allows 2.5 units in the last place, which the check of a
candidate counts (semantics/rounding.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from liftpy.errors import TransformRefused
from liftpy.winograd.linear import Form, Sharing, Straight
from liftpy.winograd.points import STANDARD, known_points
from liftpy.winograd.sharing import applied, separable
from liftpy.winograd.triple import LARGEST, Triple, cook_toom

UNIT = Fraction(1, 1 << 24)
"""Half the distance from 1 to the next larger f32: the relative error of one operation."""

DIGITS = 24
"""Binary digits of an f32."""

CHANNELS = range(1, (1 << 20) + 1)
"""Channels of a bound: their sum has far fewer roundings than 1 / u."""


def gamma(triple: Triple, dimensions: int = 1) -> Fraction:
    """The error constant in one or two dimensions.

    >>> from liftpy.winograd.triple import cook_toom
    >>> print(gamma(cook_toom(2, 3)), gamma(cook_toom(2, 3), 2))
    8/3 64/9
    """
    parts = [sum(map(abs, g)) * sum(map(abs, b)) for g, b in zip(triple.g, triple.bt, strict=True)]
    worst = max(
        sum((abs(a) * part for a, part in zip(row, parts, strict=True)), Fraction(0))
        for row in triple.at
    )
    return (worst / triple.r) ** dimensions


@dataclass(frozen=True)
class Transforms:
    """The three programs of a triple, in one form."""

    kernel: Straight
    input: Straight
    output: Straight

    @classmethod
    def of(cls, triple: Triple, form: Form, sharing: Sharing = Sharing.PAIRS) -> Transforms:
        """The programs of a triple."""
        return cls(*(applied(a, form, sharing) for a in (triple.g, triple.bt, triple.at)))


@dataclass(frozen=True)
class Growth:
    """The magnitude that a value can reach, and the most roundings on a path to it."""

    magnitude: Fraction
    roundings: int


def growth(program: Straight, values: Sequence[Growth]) -> list[Growth]:
    """For each result, the sum of the magnitudes of its paths, and the most roundings on one.

    >>> from liftpy.winograd.sharing import program
    >>> halves = program(((Fraction(1, 2), Fraction(1, 3)),))
    >>> growth(halves, [Growth(Fraction(1), 0)] * 2)
    [Growth(magnitude=Fraction(5, 6), roundings=3)]
    """
    return program.fold(
        values,
        lambda x, y, _: Growth(x.magnitude + y.magnitude, max(x.roundings, y.roundings) + 1),
        lambda factor, x: Growth(abs(factor) * x.magnitude, x.roundings + roundings(factor)),
        Growth(Fraction(0), 0),
    )


def roundings(factor: Fraction) -> int:
    """The roundings of a product with a constant in f32.

    >>> [roundings(Fraction(x)) for x in ("-1/4", "5/8", "1/3")]
    [0, 1, 2]
    """
    top, bottom = abs(factor.numerator), factor.denominator
    if bottom & (bottom - 1):
        return 2
    digits = (top // (top & -top)).bit_length() if top else 1
    return 0 if digits == 1 else 1 if digits <= DIGITS else 2


@dataclass(frozen=True)
class Bound:
    """A bound of the error of every result; `roundings` is K and `magnitude` S of the derivation.

    `absolute` holds for data of magnitude 1. `relative` is relative to the largest result of such
    data, which is the number of taps times that of channels.
    """

    roundings: int
    magnitude: Fraction
    absolute: Fraction
    relative: Fraction


def bound(transforms: Transforms, channels: int = 1) -> Bound:
    """The bound of three programs in f32, with products that are summed over channels.

    >>> from liftpy.winograd.triple import cook_toom
    >>> found = bound(Transforms.of(cook_toom(2, 3), Form.VECTOR))
    >>> print(found.roundings, found.magnitude, f"{float(found.relative):.2g}")
    6 8 9.5e-07
    """
    if channels not in CHANNELS:
        raise TransformRefused(
            f"a bound for {channels} channels is refused: it counts the roundings of their sum, "
            f"for {CHANNELS[0]} to {CHANNELS[-1]} channels. Give a number in this range"
        )
    one = Growth(Fraction(1), 0)
    kernel = growth(transforms.kernel, [one] * transforms.kernel.inputs)
    given = growth(transforms.input, [one] * transforms.input.inputs)
    products = [
        Growth(g.magnitude * d.magnitude * channels, g.roundings + d.roundings + channels)
        for g, d in zip(kernel, given, strict=True)
    ]
    results = growth(transforms.output, products)
    errors = [compounded(result.roundings) * result.magnitude for result in results]
    worst = max(range(len(errors)), key=errors.__getitem__)
    return Bound(
        results[worst].roundings,
        results[worst].magnitude,
        errors[worst],
        errors[worst] / (transforms.kernel.inputs * channels),
    )


def compounded(count: int) -> Fraction:
    """The largest distance from 1 of a product of `count` < 1 / u factors within u of 1."""
    return count * UNIT / (1 - count * UNIT)


FORMS = {1: Form.VECTOR, 2: Form.SEPARABLE}
"""The form that `bound_of` assumes, by the number of dimensions."""


def bound_of(triple: Triple, dimensions: int = 2, channels: int = 1) -> Bound:
    """The bound of the programs with shared pairs, separable in two dimensions."""
    return bound(Transforms.of(triple, FORMS[dimensions]), channels)


def bound_of_two(rows: Triple, columns: Triple, channels: int = 1) -> Bound:
    """The bound of two triples, one for the numbers of rows and one for those of columns.

    >>> from liftpy.winograd.triple import cook_toom
    >>> one, two = cook_toom(2, 3), cook_toom(4, 3)
    >>> bound_of_two(one, one) == bound_of(one)
    True
    >>> bound_of(one).absolute < bound_of_two(one, two).absolute < bound_of(two).absolute
    True
    """
    pairs = ((rows.g, columns.g), (rows.bt, columns.bt), (rows.at, columns.at))
    return bound(Transforms(*(separable(a, b, Sharing.PAIRS) for a, b in pairs)), channels)


def best_known(m: int, r: int, largest: int = LARGEST) -> Triple:
    """F(m, r) from the known points with the smallest gamma; the usual order if none is smaller.

    The order by gamma is the same in one and in two dimensions.

    >>> print(*best_known(4, 3).points)
    0 5/8 -5/8 3/2 -3/2
    """
    usual = cook_toom(m, r, largest=largest)
    if m == 1:
        return usual
    known = known_points(usual.n).values()
    return min((cook_toom(m, r, points, largest=largest) for points in known), key=gamma)


def check_error(triple: Triple, allowed: Fraction, dimensions: int = 2, channels: int = 1) -> Bound:
    """The bound of a triple. TransformRefused if its relative error is above the allowed one."""
    found = bound_of(triple, dimensions, channels)
    if found.relative <= allowed:
        return found
    points = ", ".join(map(str, triple.points)) or "(none)"
    raise TransformRefused(
        f"{triple} with the points {points} is refused: in {dimensions} "
        f"dimension{'s' if dimensions > 1 else ''} with {channels} "
        f"channel{'s' if channels > 1 else ''} its error in f32 is bounded by "
        f"{above(found.relative)} of the largest possible result, and {float(allowed):g} is "
        f"allowed. {smaller_error(triple, allowed, dimensions, channels)} an error of "
        f"{above(found.relative)}"
    )


def smaller_error(triple: Triple, allowed: Fraction, dimensions: int, channels: int) -> str:
    """A suggestion of other points, or fewer results at a time, with a bound that is allowed."""
    for m in range(min(triple.m, len(STANDARD) + 2 - triple.r), 0, -1):
        other = best_known(m, triple.r, triple.n)
        found = bound_of(other, dimensions, channels).relative
        if found <= allowed:
            points = ", ".join(map(str, other.points))
            how = f"with the points {points}" if points else "the direct algorithm"
            return f"Take {other}, {how}, whose bound is {above(found)}, or allow"
    return f"No F(m, {triple.r}) has a bound as small; allow"


def above(value: Fraction, digits: int = 2) -> str:
    """A bound as text, rounded up.

    >>> above(Fraction(1001, 10**9)), above(Fraction(1001, 10**9), 3)
    ('1.1e-06', '1.01e-06')
    """
    places = digits - 1
    text = f"{float(value):.{places}e}"
    if Fraction(text) >= value:
        return text
    number, exponent = text.split("e")
    return f"{float(Fraction(number) + Fraction(1, 10**places)):.{places}f}e{exponent}"
