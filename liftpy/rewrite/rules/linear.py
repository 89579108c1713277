"""Linear maps: products of a matrix with an array.

The first three laws change the order of sums, so they hold for real numbers: a linear map of a sum
is the sum of its results, two linear maps in a row are one, and a map of the rows commutes with a
map of the columns. They move a constant transform past a sum over channels, merge two constant
transforms, and apply transforms to two dimensions in either order. The fourth law holds for any
function: it collects the pairs of elements at one place, so that elementwise products of channels
become a product of two matrices for each place. The last law is one of real numbers again: a sum of
products, scaled and shifted, is a sum of products with scaled factors that starts from the shifted
value.
"""

from __future__ import annotations

from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import nats
from liftpy.ir.types import F32
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.correlation import ZERO, matrix_product
from liftpy.rewrite.rules.notation import (
    S,
    T,
    U,
    V,
    array,
    fmap,
    fold,
    get,
    k,
    let,
    m,
    n,
    transpose,
    unknown,
    zipped,
)
from liftpy.rewrite.rules.products import ACCUMULATES, accumulate

(q,) = nats("q")
add, g = unknown("h", F32), unknown("g", V)
matrix, other = array("matrix", F32, m, n), array("other", F32, n, k)
x, rows = array("x", F32, k), array("rows", F32, k, n)
square, second = array("rows", F32, n, k), array("other", F32, q, k)
start, numbers, factors = Param("z", S), array("xs", S, n), array("ys", S, n)
shift, scale = unknown("h", S), unknown("r", S)
lefts, rights = array("xs", T, n, k), array("ys", U, m, k)


def applied(linear: Expr, xs: Expr) -> Expr:
    """The product of a matrix with an array: a sum of products for each row."""
    return fmap(lambda row: fold(accumulate, ZERO, zipped(row, xs), "p"), linear, "row")


def sums(of: Expr) -> Expr:
    """The sum of each column."""
    return fmap(lambda column: fold(add, ZERO, column, "y"), transpose(of), "column")


def of_columns(linear: Expr, of: Expr) -> Expr:
    """A linear map of each column."""
    return transpose(fmap(lambda column: applied(linear, column), transpose(of), "column"))


LINEAR_MAP_OF_SUMS = Rule(
    "linear_map_of_sums",
    "linear",
    applied(matrix, sums(rows)),
    sums(fmap(lambda row: applied(matrix, row), rows, "xs")),
    assuming=(*ACCUMULATES, Assumption("adds", "h")),
    proof="polynomial",
)

LINEAR_MAP_TWICE = Rule(
    "linear_map_twice",
    "linear",
    applied(matrix, applied(other, x)),
    applied(matrix_product(matrix, transpose(other)), x),
    where=(at_least(1, n),),
    assuming=ACCUMULATES,
    proof="polynomial",
)

LINEAR_MAPS_INTERCHANGE = Rule(
    "linear_maps_interchange",
    "linear",
    of_columns(matrix, fmap(lambda row: applied(second, row), square, "xs")),
    fmap(lambda row: applied(second, row), of_columns(matrix, square), "xs"),
    where=(at_least(1, k),),
    assuming=ACCUMULATES,
    proof="polynomial",
)

MAPS_OF_ZIPS_INTERCHANGE = Rule(
    "maps_of_zips_interchange",
    "linear",
    fmap(
        lambda xs: fmap(
            lambda ys: fmap(lambda p: g(get(0, p), get(1, p)), zipped(xs, ys), "p"), rights, "ys"
        ),
        lefts,
        "xs",
    ),
    fmap(
        transpose,
        transpose(
            fmap(
                lambda place: fmap(
                    lambda a: fmap(lambda b: g(a, b), get(1, place), "b"), get(0, place), "a"
                ),
                zipped(transpose(lefts), transpose(rights)),
                "place",
            )
        ),
        "row",
    ),
    where=(at_least(1, n), at_least(1, m), at_least(1, k)),
)

SCALED_PRODUCTS = Rule(
    "scaled_products",
    "linear",
    let(fold(unknown("f", S), start, zipped(numbers, factors), "p"), shift, "v"),
    fold(unknown("f", S), shift(start), zipped(numbers, fmap(scale, factors, "y")), "p"),
    assuming=(*ACCUMULATES, Assumption("scales", "r", "h")),
    proof="polynomial",
)

RULES = (
    LINEAR_MAP_OF_SUMS,
    LINEAR_MAP_TWICE,
    LINEAR_MAPS_INTERCHANGE,
    MAPS_OF_ZIPS_INTERCHANGE,
    SCALED_PRODUCTS,
)
