"""Linear maps: products of a matrix with an array.

The first three are laws of real numbers, since they change the order of sums: a linear map of a sum
is the sum of its results, two linear maps in a row are one, and maps of the rows and of the columns
of an array change places. With them a constant transform moves past a sum over channels, is joined
with another one before any data are known, or is applied in two dimensions one after the other. The
last is a law of any function: pairs of elements at equal places are taken place by place.
"""

from __future__ import annotations

from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Expr, FunCall, Literal, ScalarOp
from liftpy.ir.nat import Nat, nats
from liftpy.ir.types import F32
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    V,
    array,
    fmap,
    fold,
    get,
    k,
    m,
    n,
    transpose,
    unknown,
    zipped,
)

(h,) = nats("h")
ZERO = Literal(0.0, F32)
accumulate, g = unknown("f", F32), unknown("g", V)
matrix, other = array("matrix", F32, m, n), array("other", F32, n, k)
x, rows = array("x", F32, k), array("rows", F32, k, n)
square, second = array("rows", F32, n, k), array("other", F32, h, k)
lefts, rights = array("xs", T, n, k), array("ys", U, m, k)


def applied(linear: Expr, xs: Expr) -> Expr:
    """The product of a matrix with an array: a sum of products for each row."""
    return fmap(lambda row: fold(accumulate, ZERO, zipped(row, xs), "p"), linear, "row")


def sums(of: Expr) -> Expr:
    """The sum of each column."""
    return fmap(
        lambda column: fold(lambda a, y: FunCall(ScalarOp("+"), (a, y)), ZERO, column, "y"),
        transpose(of),
        "column",
    )


def of_columns(linear: Expr, of: Expr) -> Expr:
    """A linear map of each column."""
    return transpose(fmap(lambda column: applied(linear, column), transpose(of), "column"))


def law(name: str, left: Expr, right: Expr, *where: Nat) -> Rule:
    """A law of real numbers."""
    return Rule(
        name,
        "linear",
        left,
        right,
        where=tuple(at_least(1, size) for size in where),
        assuming=(Assumption("accumulates", "f"),),
        proof="polynomial",
    )


LINEAR_MAP_OF_SUMS = law(
    "linear_map_of_sums",
    applied(matrix, sums(rows)),
    sums(fmap(lambda row: applied(matrix, row), rows, "xs")),
)

LINEAR_MAP_TWICE = law(
    "linear_map_twice",
    applied(matrix, applied(other, x)),
    applied(
        fmap(
            lambda row: fmap(
                lambda column: fold(accumulate, ZERO, zipped(row, column), "p"),
                transpose(other),
                "column",
            ),
            matrix,
            "row",
        ),
        x,
    ),
    n,
)

LINEAR_MAPS_INTERCHANGE = law(
    "linear_maps_interchange",
    of_columns(matrix, fmap(lambda row: applied(second, row), square, "xs")),
    fmap(lambda row: applied(second, row), of_columns(matrix, square), "xs"),
    k,
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

RULES = (
    LINEAR_MAP_OF_SUMS,
    LINEAR_MAP_TWICE,
    LINEAR_MAPS_INTERCHANGE,
    MAPS_OF_ZIPS_INTERCHANGE,
)
