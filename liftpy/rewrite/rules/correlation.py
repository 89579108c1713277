"""Correlations of small tiles with fewer products: Winograd's algorithms, as rules.

A tile of n x n points has m x m windows of r x r points, n = m + r - 1. Correlating them takes
m^2 r^2 products for each channel and kernel. F(m, r) (liftpy/winograd) transforms tile and kernel
by constant matrices and takes n^2 products, one for each transformed element. The sums over the
channels are then n^2 matrix products, of tiles by channels with channels by kernels, and the
results are transformed back once for all channels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import reduce

from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, FunCall, Literal, ScalarOp, call
from liftpy.ir.nat import nat, nats
from liftpy.ir.types import F32
from liftpy.primitives import Concat, Drop, Repeat, Take
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.notation import (
    X,
    array,
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
from liftpy.winograd.linear import Product, Step, Straight, Sum
from liftpy.winograd.matrices import Matrix
from liftpy.winograd.sharing import is_dyadic, program
from liftpy.winograd.triple import Triple, cook_toom, integral

SIZES = ((2, 3), (4, 3), (6, 3), (2, 5), (4, 5), (2, 7))
"""The m and r of the rules: squares of n = m + r - 1 up to 8 points."""

ZERO = Literal(0.0, F32)

t, c, q = nats("t c q")
accumulate = unknown("f", F32)


def operated(op: str, *args: Expr) -> Expr:
    """A scalar operator applied."""
    return FunCall(ScalarOp(op), args)


def scaled(factor: Fraction, x: Expr) -> Expr:
    """`factor * x`, with constants that f32 represents exactly: other factors divide."""
    if factor == -1:
        return operated("neg", x)
    if is_dyadic(factor):
        return operated("*", x, Literal(float(factor), F32))
    whole = scaled(Fraction(factor.numerator), x) if factor.numerator != 1 else x
    return operated("/", whole, Literal(float(factor.denominator), F32))


def element(xs: Expr, index: int) -> Callable[[tuple[Expr, ...]], Expr]:
    """`xs[index]`, whatever is known."""
    single = call(Take(nat(1)), call(Drop(nat(index)), xs))
    return lambda _: fold(lambda _, x: x, ZERO, single)


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
        def named(known: tuple[Expr, ...]) -> Expr:
            k = len(known)
            if k == code.inputs + len(code.steps):
                results = (ZERO if result is None else known[result] for result in code.results)
                return array_of([*results])
            value = element(xs, k) if k < code.inputs else computed(code.steps[k - code.inputs])
            if k not in shared:
                return named((*known, value(known)))
            return let(value(known), lambda t: named((*known, t)), f"t{k}")

        return named(())

    return run


def computed(step: Step) -> Callable[[tuple[Expr, ...]], Expr]:
    """A step of a straight-line program, given the values before it."""
    match step:
        case Sum(left, right, minus):
            return lambda known: operated("-" if minus else "+", known[left], known[right])
        case Product(factor, of):
            return lambda known: scaled(factor, known[of])


def both_ways(a: Matrix) -> Callable[[Expr], Expr]:
    """`a x a^T` of a small square array x: the columns, then the rows."""
    one = transformed(program(a))
    return lambda x: transpose(fmap(one, transpose(fmap(one, x, "row")), "row"))


def of_columns(a: Matrix, x: Expr) -> Expr:
    """`both_ways` for each column of a square of points: an array of columns for each point."""
    size = len(a[0])
    columns = transpose(join(x))
    return transpose(fmap(lambda d: join(both_ways(a)(split(size, d))), columns, "d"))


def products(f: Triple) -> Rule:
    """The correlations of tiles by F(m, r) in both dimensions."""
    n = f.n
    tiles, others = array("tiles", F32, t, n, n, c), array("others", X, q)
    taps = unknown("taps", array("taps", F32, f.r, f.r, c).type)
    start = unknown("start", F32)

    def correlated(part: Expr, y: Expr) -> Expr:
        def along(levels: int) -> Callable[[Expr, Expr], Expr]:
            if not levels:
                return accumulate
            return lambda a, p: fold(along(levels - 1), a, zipped(get(0, p), get(1, p)), "p")

        pairs = zipped(part, taps(y))
        return fold(along(2), start(y), pairs, "p")

    def windows(tile: Expr) -> Expr:
        rows = slide(f.r, 1, fmap(lambda row: slide(f.r, 1, row), tile, "row"))
        return join(fmap(transpose, rows, "rows"))

    def product(pair: Expr) -> Expr:
        def dot(x: Expr, y: Expr) -> Expr:
            return fold(accumulate, ZERO, zipped(x, y), "p")

        columns = transpose(get(1, pair))
        return fmap(lambda x: fmap(lambda y: dot(x, y), columns, "y"), get(0, pair))

    def result(of_tile: Expr) -> Expr:
        """From `[q][n * n]` the results and what they start from, `[m * m][q]`."""

        def back(p: Expr) -> Expr:
            results = join(both_ways(f.at)(split(n, get(1, p))))
            return let(
                get(0, p),
                lambda y: fmap(lambda x: operated("+", start(y), x), results, "x"),
                "y",
            )

        return transpose(fmap(back, zipped(others, of_tile), "p"))

    inputs = transpose(fmap(lambda tile: of_columns(f.bt, tile), tiles, "tile"))
    filters = fmap(transpose, transpose(fmap(lambda y: of_columns(f.g, taps(y)), others, "y")))
    return Rule(
        f"correlation_{f.m}_{f.r}",
        "correlation",
        fmap(
            lambda tile: fmap(
                lambda part: fmap(lambda y: correlated(part, y), others, "y"),
                windows(tile),
                "part",
            ),
            tiles,
            "tile",
        ),
        let(
            inputs,
            lambda v: let(
                filters,
                lambda u: let(
                    fmap(product, zipped(v, u), "point"),
                    lambda p: fmap(
                        lambda of_tile: result(transpose(of_tile)), transpose(p), "tile"
                    ),
                    "products",
                ),
                "filters",
            ),
            "inputs",
        ),
        where=(at_least(1, t), at_least(1, c), at_least(1, q)),
        assuming=(Assumption("accumulates", "f"),),
        proof="polynomial",
    )


RULES = tuple(products(integral(cook_toom(m, r))) for m, r in SIZES)
