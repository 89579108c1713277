"""Correlations of 8-bit integers by F(m, r): exact, as long as no number grows too large.

The kernels are transformed by `s` times G, with the least `s` that makes it integral, so all
numbers are integers and the products sum up to s times the result in each dimension. Transformed
tiles, kernels and sums of strips of channels are computed in f32, which does not round them; the
sums of all strips are added in i32. There the result is divided, which is exact if s times the
result is an i32. The types of tiles and kernels bound all numbers, so these are conditions on
sizes. From tiles of u8, 128 is subtracted, so that numbers are smaller; the results start from 128
times the sum of the kernel.

If each channel has a kernel of its own, there are no strips, and the results are
multiplied by the inverse of the factor in f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial

from liftpy.ir.constraint import Constraint, at_least, at_most, divides
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.nat import nats
from liftpy.ir.types import F32, I8, I32, U8, ScalarType, integer_range
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.correlation import (
    ZERO,
    ZEROS,
    Transform,
    channels,
    in_steps,
    kernel_of,
    of_columns,
    of_kernels,
    of_points,
    operated,
    scaled,
    triple,
    windows,
)
from liftpy.rewrite.rules.notation import (
    X,
    array,
    fmap,
    fold,
    get,
    let,
    split,
    transpose,
    unknown,
    zipped,
)
from liftpy.winograd.matrices import Matrix, matrix
from liftpy.winograd.triple import Triple
from liftpy.winograd.triple import integral as with_integers

LARGEST_I32 = 2**31 - 1

t, c, q, m = nats("t c q m")
accumulate = unknown("f", I32)

TYPES = {f"{one}_{two}": (one, two) for one in (U8, I8) for two in (U8, I8)}
"""The types of tiles and of kernels, by their part of a name."""

SIZES = {"integral": ((2, 2), (2, 3)), "integral_line": ((2, 3),), "integral_each": ((2, 3),)}
"""The m and r of the rules, by the beginnings of their names.

In two dimensions with another m, f32 does not represent a product of transformed numbers exactly.
"""


@dataclass(frozen=True)
class Scaled:
    """F(m, r) in integers: with `scale` times its G, the results are `scale` times as large."""

    triple: Triple
    g: Matrix
    scale: int

    @staticmethod
    def of(triple: Triple) -> Scaled:
        """F(m, r) with the least scale."""
        f = with_integers(triple)
        scale = math.lcm(*(x.denominator for row in f.g for x in row))
        return Scaled(f, matrix([x * scale for x in row] for row in f.g), scale)


def middle(t: ScalarType) -> int:
    """What is subtracted from numbers of a type to make their magnitudes as small as possible."""
    return (sum(integer_range(t)) + 1) // 2


def ends(t: ScalarType) -> tuple[int, int]:
    """The least and the greatest number of a type, less the middle."""
    least, most = integer_range(t)
    return least - middle(t), most - middle(t)


def magnitude(t: ScalarType) -> int:
    """The middle of a type plus the largest difference of one of its numbers from the middle."""
    return middle(t) + max(map(abs, ends(t)))


def size(a: Matrix, dimensions: int) -> int:
    """The largest sum of magnitudes in a row of a matrix, to the power of `dimensions`."""
    return int(max(sum(map(abs, row)) for row in a)) ** dimensions


def converted(less: int = 0) -> Transform:
    """`of_points` in f32 for points of another type; first, `less` is subtracted from each."""

    def number(x: Expr) -> Expr:
        own = operated("f32", x)
        return operated("-", own, Literal(float(less), F32)) if less else own

    return lambda matrices, points: of_points(matrices, fmap(number, points, "x"))


def sum_of_strips(x: Expr, y: Expr) -> Expr:
    """The sum of the products of two arrays: in f32 within strips of `m`, in i32 across them."""

    def strip(pair: Expr) -> Expr:
        return fold(
            lambda s, p: operated("+", s, operated("*", get(0, p), get(1, p))),
            ZERO,
            zipped(get(0, pair), get(1, pair)),
            "p",
        )

    return fold(
        lambda a, pair: operated("+", a, operated("i32", strip(pair))),
        ZEROS[I32],
        zipped(split(m, x), split(m, y)),
        "strip",
    )


def law(name: str, left: Expr, right: Expr, *where: Constraint, tunes: tuple[str, ...]) -> Rule:
    """A rule for arrays whose lengths satisfy conditions."""
    return Rule(
        name,
        "correlation of integers",
        left,
        right,
        where=where,
        assuming=(Assumption("accumulates", "f"),),
        tunes=tunes,
        proof="integral",
    )


def products(name: str, one: ScalarType, two: ScalarType, f: Scaled, dimensions: int = 2) -> Rule:
    """The correlations of tiles with as many points in each dimension by F(m, r)."""
    fs = (f.triple,) * dimensions
    n, r, scale = f.triple.n, f.triple.r, f.scale**dimensions
    tiles = array("tiles", one, t, *(n for _ in fs), c)
    others = array("others", X, q)
    kernel = taps, start = kernel_of(*(r for _ in fs), c, of=two, to=I32)
    less = middle(one)

    def from_(y: Expr) -> Expr:
        return y if less else start(y)

    def back(p: Expr) -> Expr:
        found = of_points((f.triple.at,) * dimensions, get(1, p))
        return let(
            get(0, p),
            lambda y: fmap(
                lambda x: operated("+", from_(y), scaled(Fraction(1, scale), x)), found, "x"
            ),
            "y",
        )

    def rows(pair: Expr) -> Expr:
        columns = transpose(get(1, pair))
        return fmap(lambda x: fmap(lambda y: sum_of_strips(x, y), columns, "y"), get(0, pair), "x")

    def columns_of(a: Matrix, x: Expr, less: int = 0) -> Expr:
        return of_columns((a,) * dimensions, x, converted(less))

    left = fmap(
        lambda tile: fmap(
            lambda part: of_kernels(part, others, kernel, dimensions, accumulate),
            windows(fs, tile),
            "part",
        ),
        tiles,
        "tile",
    )
    filters = transpose(fmap(lambda y: columns_of(f.g, taps(y)), others, "y"))

    def steps(starts: Expr) -> Expr:
        return in_steps(
            transpose(fmap(lambda tile: columns_of(f.triple.bt, tile, less), tiles, "tile")),
            fmap(transpose, filters),
            rows,
            lambda p: fmap(
                lambda tile: transpose(fmap(back, zipped(starts, transpose(tile)), "p")),
                transpose(p),
                "tile",
            ),
        )

    def with_middle(y: Expr) -> Expr:
        def added(a: Expr, x: Expr) -> Expr:
            return operated("+", a, operated("*", operated("i32", x), Literal(less, I32)))

        return fold(in_dimensions(dimensions, added), start(y), taps(y), "x")

    right = let(fmap(with_middle, others, "y"), steps, "starts") if less else steps(others)
    largest = largest_transformed(one, two, f, dimensions)
    summed = scale * r**dimensions * max(map(abs, ends(one))) * magnitude(two)
    return law(
        name,
        left,
        right,
        *(at_least(1, length) for length in (t, c, q)),
        divides(m, c),
        at_most(m * largest, LARGEST_EXACT),
        *([at_most(c * summed, LARGEST_I32)] if scale > 1 else []),
        tunes=("m",),
    )


def in_dimensions(
    dimensions: int, step: Callable[[Expr, Expr], Expr]
) -> Callable[[Expr, Expr], Expr]:
    """The step of a fold over the outer dimension of an array; it takes `step` for each number."""
    if not dimensions:
        return step
    inner = in_dimensions(dimensions - 1, step)
    return lambda a, xs: fold(inner, a, xs, "x")


def largest_transformed(one: ScalarType, two: ScalarType, f: Scaled, dimensions: int) -> int:
    """The largest magnitude of a product of a transformed tile and a transformed kernel."""
    tile = size(f.triple.bt, dimensions) * max(map(abs, ends(one)))
    return tile * size(f.g, dimensions) * magnitude(two)


def strips(name: str) -> int:
    """The largest number of channels whose products a rule sums in f32.

    >>> strips("integral_2_3_u8_i8"), strips("integral_line_2_3_u8_i8")
    (28, 170)
    """
    shape, sizes, types = NAMES[name]
    dimensions = 1 if shape == "integral_line" else 2
    f = Scaled.of(triple(*sizes))
    return LARGEST_EXACT // largest_transformed(*TYPES[types], f, dimensions)


def one_by_one(name: str, one: ScalarType, two: ScalarType, f: Scaled) -> Rule:
    """The correlations of square tiles of each channel with a kernel of its own."""
    fs = (f.triple, f.triple)
    n, r, scale = f.triple.n, f.triple.r, f.scale**2
    tiles, others = array("tiles", one, t, n, n, c), array("others", X, c)
    taps, start = kernel_of(r * r, of=two, to=I32)

    def folded_with(p: Expr) -> Expr:
        y = get(1, p)
        return fold(accumulate, start(y), zipped(get(0, p), taps(y)), "p")

    def of_channel(p: Expr) -> Expr:
        u, y = get(0, get(1, p)), get(1, get(1, p))
        products = fmap(
            lambda q: operated("*", get(0, q), get(1, q)),
            zipped(converted()((f.triple.bt,) * 2, get(0, p)), u),
            "q",
        )
        return fmap(
            lambda x: operated("+", start(y), operated("i32", scaled(Fraction(1, scale), x))),
            of_points((f.triple.at,) * 2, products),
            "x",
        )

    left = fmap(
        lambda tile: fmap(
            lambda part: fmap(folded_with, zipped(channels(part, 2), others), "p"),
            windows(fs, tile),
            "part",
        ),
        tiles,
        "tile",
    )
    right = let(
        fmap(lambda y: converted()((f.g, f.g), taps(y)), others, "y"),
        lambda us: fmap(
            lambda tile: transpose(
                fmap(of_channel, zipped(channels(tile, 2), zipped(us, others)), "p")
            ),
            tiles,
            "tile",
        ),
        "filters",
    )
    return law(name, left, right, at_least(1, c), tunes=())


SHAPES: dict[str, Callable[..., Rule]] = {
    "integral": products,
    "integral_line": partial(products, dimensions=1),
    "integral_each": one_by_one,
}
"""How the rules are made, by the beginnings of their names."""

NAMES = {
    f"{shape}_{m}_{r}_{types}": (shape, (m, r), types)
    for shape in SHAPES
    for m, r in SIZES[shape]
    for types in TYPES
}
"""The shape, m and r, and the types of each rule."""


@cache
def made(name: str) -> Rule:
    """The rule of a name; KeyError if there is none."""
    shape, sizes, types = NAMES[name]
    return SHAPES[shape](name, *TYPES[types], Scaled.of(triple(*sizes)))
