"""Correlations of small tiles with fewer products: Winograd's algorithms, as rules.

A tile of n x n points has m x m windows of r x r points, n = m + r - 1. Correlating them takes
m^2 r^2 products for each channel and kernel. F(m, r) (liftpy/winograd) transforms tile and kernel
by constant matrices and takes n^2 products, one for each transformed element. The sums over the
channels are then n^2 matrix products, of tiles by channels with channels by kernels, and the
results are transformed back once for all channels. Rows and columns may differ in m and r, and
there may be one dimension only.

A transform of two dimensions is separable (a matrix for the columns, then one for the rows) or flat
(one program with an equation for each element of the result).

If each channel has a kernel of its own, nothing is summed over the channels. A tile of a channel is
then transformed, multiplied with its transformed kernel and transformed back in one step.

Windows of several rows may also be transformed along their rows only. The products of a window's
rows are added before the sums are transformed back, so a row is transformed once for all windows
that contain it, and the transformed values take less memory than those of two dimensions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, reduce
from typing import TypeAlias

from liftpy.errors import TransformRefused
from liftpy.ir.call import FunCall, call
from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, NatLike, nat, nats
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32, ScalarType, Type
from liftpy.primitives import Concat, Drop, Repeat, Take
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.notation import (
    X,
    array,
    element_of,
    fmap,
    fold,
    get,
    join,
    let,
    slide,
    split,
    transpose,
    unknown,
    zipped,
)
from liftpy.rewrite.rules.products import accumulate, folded
from liftpy.winograd.linear import ScaledValue, Step, Straight, Sum
from liftpy.winograd.matrices import Matrix, identity, kronecker
from liftpy.winograd.points import ACCURATE, Points, points
from liftpy.winograd.sharing import is_dyadic, program
from liftpy.winograd.triple import Triple, cook_toom

SIZES = ((2, 2), (4, 2), (2, 3), (4, 3), (6, 3), (2, 4), (4, 4), (2, 5), (4, 5), (2, 7))
"""The m and r of the rules: n = m + r - 1 up to 8 points."""

ZERO = Literal(0.0, F32)
ZEROS: dict[Type, Literal] = {F32: ZERO, I32: Literal(0, I32)}
"""The number 0 in each type in which results are computed."""

t, c, q, n, s = nats("t c q n s")

FLAT = ((4, 3), (2, 5))
"""The sizes (m, r) with rules for flat transforms.

For all others, the flat transform of a tile or of its results takes more operations than the
separable one.
"""

EACH = ((2, 3), (4, 3), (2, 5))
"""The sizes (m, r) with rules in which each channel has a kernel of its own."""

Transform: TypeAlias = Callable[[tuple[Matrix, ...], Expr], Expr]
"""Multiplies the points of a small array, given row by row, by a matrix for each dimension."""

Kernel: TypeAlias = tuple[Callable[..., Expr], Callable[..., Expr]]
"""From an element of `others`, the taps of a kernel and the value that its sums start from."""


def operated(op: str, *args: Expr) -> Expr:
    """A scalar operator applied."""
    return FunCall(ScalarOp(op), args)


def scaled(factor: Fraction, x: Expr) -> Expr:
    """`factor * x`, with constants that the type represents exactly; otherwise a quotient."""
    number = float if x.type == F32 else int
    if factor == -1:
        return operated("neg", x)
    if is_dyadic(factor) and number(factor) == factor:
        return operated("*", x, Literal(number(factor), x.type))
    whole = scaled(Fraction(factor.numerator), x) if factor.numerator != 1 else x
    return operated("/", whole, Literal(number(factor.denominator), x.type))


def element(xs: Expr, index: int) -> Expr:
    """`xs[index]`."""
    single = call(Take(nat(1)), call(Drop(nat(index)), xs))
    return fold(lambda _, x: x, ZEROS[element_of(xs)], single)


def array_of(values: list[Expr]) -> Expr:
    """The array of some scalars."""
    single = [call(Repeat(nat(1)), value) for value in values]
    return reduce(lambda rest, one: call(Concat(), one, rest), reversed(single))


def transformed(code: Straight) -> Callable[[Expr], Expr]:
    """A constant matrix applied to a small array, as straight-line code.

    What is used more than once is named by a `let`.
    """
    operands = [
        k
        for step in code.steps
        for k in ((step.left, step.right) if isinstance(step, Sum) else (step.of,))
    ]
    shared = {k for k, count in Counter([*operands, *code.results]).items() if count > 1}

    def run(xs: Expr) -> Expr:
        known: list[Expr] = []
        named: list[tuple[Param, Expr]] = []
        for k in range(code.inputs + len(code.steps)):
            made = k - code.inputs
            value = element(xs, k) if made < 0 else computed(code.steps[made], known)
            if k in shared:
                named.append((Param(f"t{k}", value.type), value))
                value = named[-1][0]
            known.append(value)
        zero = ZEROS[element_of(xs)]
        body = array_of([zero if result is None else known[result] for result in code.results])
        for name, value in reversed(named):
            body = call(Lambda((name,), body), value)
        return body

    return run


def computed(step: Step, known: Sequence[Expr]) -> Expr:
    """A step of a straight-line program, given the values before it."""
    match step:
        case Sum(left, right, minus):
            return operated("-" if minus else "+", known[left], known[right])
        case ScaledValue(factor, of):
            return scaled(factor, known[of])


def along(matrices: tuple[Matrix, ...]) -> Callable[[Expr], Expr]:
    """The product of a small array with a matrix for each of its dimensions, outermost first."""
    *outer, last = (transformed(programs(a)) if len(a[0]) > 1 else unchanged for a in matrices)

    def run(x: Expr) -> Expr:
        if not outer:
            return last(x)
        rows = fmap(last, x, "row") if last is not unchanged else x
        return transpose(fmap(outer[0], transpose(rows), "row"))

    return run


def unchanged(x: Expr) -> Expr:
    """The product with the matrix of one row and one column, which is 1."""
    return x


programs = cache(program)  # the same matrices belong to several rules


def of_points(matrices: tuple[Matrix, ...], points: Expr) -> Expr:
    """`along` for an array of all points, row by row."""
    run = along(matrices)
    return run(points) if len(matrices) == 1 else join(run(split(len(matrices[-1][0]), points)))


def flat(matrices: tuple[Matrix, ...], points: Expr) -> Expr:
    """The same as `of_points`, by one straight-line program for all dimensions."""
    return transformed(programs(reduce(kronecker, matrices)))(points)


def of_columns(matrices: tuple[Matrix, ...], x: Expr, by: Transform = of_points) -> Expr:
    """A transform of each column of an array of points: an array of columns for each point."""
    points = x if len(matrices) == 1 else join(x)
    return transpose(fmap(lambda d: by(matrices, d), transpose(points), "d"))


def of_kernels(
    part: Expr,
    others: Expr,
    kernel: Kernel,
    dimensions: int,
    innermost: Callable[..., Expr] = accumulate,
) -> Expr:
    """A window of some dimensions folded with the taps of each kernel; channels are innermost."""
    taps, start = kernel
    step = folded(dimensions, innermost)
    return fmap(lambda y: fold(step, start(y), zipped(part, taps(y)), "p"), others, "y")


def kernel_of(*lengths: NatLike, of: ScalarType = F32, to: ScalarType = F32) -> Kernel:
    """The unknown functions that give a kernel its taps and the value that its sums start from."""
    return unknown("taps", array("taps", of, *lengths).type), unknown("start", to)


def matrix_product(rows: Expr, columns: Expr, dimensions: int = 1) -> Expr:
    """For each row and each column, both arrays of some dimensions, the sum of their products."""
    step = folded(dimensions - 1)
    return fmap(lambda x: fmap(lambda y: fold(step, ZERO, zipped(x, y), "p"), columns, "y"), rows)


def results(
    fs: tuple[Triple, ...], of_tile: Expr, others: Expr, kernel: Kernel, by: Transform = of_points
) -> Expr:
    """From sums of products `[points][q]` the results and what they start from, `[windows][q]`."""
    _, start = kernel

    def back(p: Expr) -> Expr:
        found = by((*(f.at for f in fs),), get(1, p))
        return let(get(0, p), lambda y: fmap(lambda x: operated("+", start(y), x), found, "x"), "y")

    return transpose(fmap(back, zipped(others, transpose(of_tile)), "p"))


def in_steps(
    inputs: Expr, filters: Expr, product: Callable[[Expr], Expr], back: Callable[[Expr], Expr]
) -> Expr:
    """The three steps, each named: transformed tiles and kernels, products, results."""

    def multiplied(v: Expr, u: Expr) -> Expr:
        return let(fmap(product, zipped(v, u), "point"), back, "products")

    return let(inputs, lambda v: let(filters, lambda u: multiplied(v, u), "filters"), "inputs")


def correlation(name: str, left: Expr, right: Expr, *lengths: Nat) -> Rule:
    """A rule for arrays of any lengths."""
    return Rule(
        name,
        "correlation",
        left,
        right,
        where=tuple(at_least(1, length) for length in lengths),
        assuming=(Assumption("accumulates", "f"),),
        proof="polynomial",
    )


def windows(fs: tuple[Triple, ...], tile: Expr) -> Expr:
    """The windows of a tile, row by row."""
    if len(fs) == 1:
        return slide(fs[0].r, 1, tile)
    down, right = fs
    rows = slide(down.r, 1, fmap(lambda row: slide(right.r, 1, row), tile, "row"))
    return join(fmap(transpose, rows, "rows"))


def products(name: str, *fs: Triple, by: Transform = of_points) -> Rule:
    """The correlations of tiles by an F(m, r) for each dimension."""
    tiles, others = array("tiles", F32, t, *(f.n for f in fs), c), array("others", X, q)
    kernel = taps, _ = kernel_of(*(f.r for f in fs), c)

    bt, g = (*(f.bt for f in fs),), (*(f.g for f in fs),)
    filters = transpose(fmap(lambda y: of_columns(g, taps(y), by), others, "y"))
    left = fmap(
        lambda tile: fmap(
            lambda part: of_kernels(part, others, kernel, len(fs)), windows(fs, tile), "part"
        ),
        tiles,
        "tile",
    )
    right = in_steps(
        transpose(fmap(lambda tile: of_columns(bt, tile, by), tiles, "tile")),
        fmap(transpose, filters),
        lambda pair: matrix_product(get(0, pair), transpose(get(1, pair))),
        lambda p: fmap(lambda tile: results(fs, tile, others, kernel, by), transpose(p), "tile"),
    )
    return correlation(name, left, right, t, c, q)


def one_by_one(name: str, *fs: Triple) -> Rule:
    """The correlations of tiles by an F(m, r) for each dimension, of each channel with its kernel.

    Nothing is summed over channels, so all steps except the transform of the kernels are a single
    one. A single dimension is treated as two, the second of length 1, so that each step is a map.
    """
    tiles, others = array("tiles", F32, t, *(f.n for f in fs), c), array("others", X, c)
    taps, start = kernel_of(math.prod(f.r for f in fs))
    two = (*fs, ONE)[:2]
    bt, g, at = ((*(getattr(f, matrix) for f in two),) for matrix in ("bt", "g", "at"))

    def folded_with(p: Expr) -> Expr:
        y = get(1, p)
        return fold(accumulate, start(y), zipped(get(0, p), taps(y)), "p")

    def of_channel(p: Expr) -> Expr:
        u, y = get(0, get(1, p)), get(1, get(1, p))
        products = fmap(
            lambda q: operated("*", get(0, q), get(1, q)), zipped(of_points(bt, get(0, p)), u), "q"
        )
        return fmap(lambda x: operated("+", start(y), x), of_points(at, products), "x")

    left = fmap(
        lambda tile: fmap(
            lambda part: fmap(folded_with, zipped(channels(part, len(fs)), others), "p"),
            windows(fs, tile),
            "part",
        ),
        tiles,
        "tile",
    )
    right = let(
        fmap(lambda y: of_points(g, taps(y)), others, "y"),
        lambda us: fmap(
            lambda tile: transpose(
                fmap(of_channel, zipped(channels(tile, len(fs)), zipped(us, others)), "p")
            ),
            tiles,
            "tile",
        ),
        "filters",
    )
    return correlation(name, left, right, t, c)


def channels(x: Expr, dimensions: int) -> Expr:
    """The points of an array, row by row, for each channel."""
    return transpose(join(x) if dimensions == 2 else x)


def sums_of_rows(name: str, f: Triple) -> Rule:
    """The correlations of windows of `s` rows by F(m, r) along the rows.

    `tiles` has a row of tiles for each row of points. The products of a window's rows are added.
    """
    tiles, others = array("tiles", F32, n, t, f.n, c), array("others", X, q)
    kernel = taps, _ = kernel_of(s, f.r, c)

    def parts(tile: Expr) -> Expr:
        return transpose(fmap(lambda row: slide(f.r, 1, row), tile, "row"))

    def of_row(row: Expr) -> Expr:
        return transpose(fmap(lambda tile: of_columns((f.bt,), tile), row, "tile"))

    def filter_of(y: Expr) -> Expr:
        return transpose(fmap(lambda row: of_columns((f.g,), row), taps(y), "row"))

    def product(pair: Expr) -> Expr:
        columns = transpose(fmap(transpose, get(1, pair)))
        windows = slide(s, 1, get(0, pair))
        return fmap(lambda rows: matrix_product(transpose(rows), columns, 2), windows, "rows")

    left = fmap(
        lambda rows: fmap(
            lambda tile: fmap(
                lambda part: of_kernels(part, others, kernel, 2), parts(tile), "part"
            ),
            transpose(rows),
            "tile",
        ),
        slide(s, 1, tiles),
        "rows",
    )
    right = in_steps(
        transpose(fmap(of_row, tiles, "row")),
        fmap(lambda u: fmap(transpose, transpose(u)), transpose(fmap(filter_of, others, "y")), "u"),
        product,
        lambda p: fmap(
            lambda row: fmap(
                lambda tile: results((f,), tile, others, kernel), transpose(row), "tile"
            ),
            transpose(p),
            "row",
        ),
    )
    return correlation(name, left, right, t, c, q)


ONE = Triple(1, 1, (), *(identity(1),) * 3)
"""F(1, 1), for a dimension in which windows have one element."""

SHAPES: dict[str, Callable[..., Rule]] = {
    "correlation": lambda name, f, g=None: products(name, f, g or f),
    "correlation_flat": lambda name, f: products(name, f, f, by=flat),
    "correlation_rows": sums_of_rows,
    "correlation_column": lambda name, f: products(name, f, ONE),
    "correlation_line": products,
    "correlation_each": lambda name, f: one_by_one(name, f, f),
    "correlation_each_line": one_by_one,
}
"""How the rules of F(m, r) are made, by the beginnings of their names."""

SOME = {"correlation_flat": FLAT, "correlation_each": EACH, "correlation_each_line": EACH}
"""The sizes of the shapes that do not have a rule for each of `SIZES`."""

RECTANGLES = tuple((m, k, r) for m, r in SIZES for k, s in SIZES if r == s and m != k)
"""The numbers of rows and of columns of a tile's results, if they differ, and r."""

NAMES = {
    **{
        f"{shape}_{m}_{r}": (shape, ((m, r),))
        for shape in SHAPES
        for m, r in SOME.get(shape, SIZES)
    },
    **{
        f"correlation_{m}_{r}_by_{k}_{r}": ("correlation", ((m, r), (k, r)))
        for m, k, r in RECTANGLES
    },
}
"""The shape of each rule, and m and r in each dimension."""


PointsOf: TypeAlias = tuple[tuple[tuple[int, int], Points], ...]
"""Points of some F(m, r), each by (m, r), for rules that do not have the usual ones."""

WORD = re.compile(r"[1-9]\.[1-9](_-?[0-9]+(/[1-9][0-9]*)?)+")
"""The points of one F(m, r) in a word."""

GIVEN = "@"
"""The separator between the name of a rule and the points that it is made from."""


def spelled_points(given: PointsOf) -> str:
    """Points as a word: no space, comma or bracket, which separate words.

    >>> spelled_points((((4, 3), points("0", "2", "-2", "1/2", "-1/2")),))
    '4.3_0_2_-2_1/2_-1/2'
    """
    return "+".join("_".join([f"{m}.{r}", *map(str, some)]) for (m, r), some in given)


def read_points(name: str) -> PointsOf:
    """The points in the name of a rule; none if it has the usual ones."""
    return points_of_word(name.partition(GIVEN)[2])


def points_of_word(texts: str) -> PointsOf:
    """The points that `spelled_points` wrote. TransformRefused for any other text.

    >>> points_of_word("2.2_0_1/2"), points_of_word("")
    ((((2, 2), (Fraction(0, 1), Fraction(1, 2))),), ())
    """
    found: list[tuple[tuple[int, int], Points]] = []
    for text in texts.split("+") if texts else ():
        if WORD.fullmatch(text) is None:
            raise TransformRefused(
                f"the points {texts} are refused: {text!r} does not begin with m.r, or has a point "
                "that is no integer and no fraction. Give m, r and the points as in "
                f"{spelled_points(tuple(ACCURATE.items())[1:2])}"
            )
        size, *some = text.split("_")
        m, r = size.split(".")
        found.append(((int(m), int(r)), points(*some)))
    return tuple(found)


def base_of(name: str) -> str:
    """The name of the rule that has the usual points."""
    return name.partition(GIVEN)[0]


def with_points(name: str, given: PointsOf) -> str:
    """The name of the rule with those of the given points that are for its m and r.

    Rules of integers have the usual points only.
    """
    sizes = NAMES[name][1] if name in NAMES else ()
    own = tuple((size, some) for size, some in given if size in sizes)
    return f"{name}{GIVEN}{spelled_points(own)}" if own else name


@cache
def made(name: str) -> Rule:
    """The rule of a name, which may contain points; KeyError if there is none."""
    shape, triples = parts_of(name)
    return SHAPES[shape](name, *triples)


def parts_of(name: str) -> tuple[str, tuple[Triple, ...]]:
    """The shape of a rule and its F(m, r) in each dimension; KeyError if no rule has the name."""
    shape, sizes = NAMES[base_of(name)]
    given = dict(read_points(name))
    return shape, tuple(triple(*size, given.get(size)) for size in sizes)


@cache
def triple(m: int, r: int, given: Points | None = None) -> Triple:
    """F(m, r) as the rules have it, or from given points."""
    return cook_toom(m, r, given or ACCURATE.get((m, r)))
