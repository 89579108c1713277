"""Interchange of maps and reductions."""

from __future__ import annotations

from liftpy.ir.constraint import at_least
from liftpy.ir.expr import Literal, Param
from liftpy.ir.types import ArrayType
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    S,
    T,
    U,
    V,
    W,
    X,
    array,
    fmap,
    fold,
    get,
    k,
    m,
    n,
    pair,
    transpose,
    unknown,
    zipped,
)

xs, ys, zs = array("xs", T, n), array("ys", U, m), array("zs", V, n)
xss, rows = array("xss", T, n, m), array("xss", S, n, m)
start, e = Param("z", S), Literal(ValueVar("e"), S)
starts = array("zs", U, m)
f, g, op = unknown("f", U), unknown("g", V), unknown("f", S)
init, source = unknown("init", U), unknown("source", ArrayType(V, m))
others, acc = array("ys", U, m), unknown("f", X)
of_both = unknown("init", X)
left, right = unknown("left", ArrayType(V, k)), unknown("right", ArrayType(W, k))

MAP_INTERCHANGE = Rule(
    "map_interchange",
    "interchange",
    fmap(lambda x: fmap(lambda y: g(x, y), ys, "y"), xs),
    transpose(fmap(lambda y: fmap(lambda x: g(x, y), xs), ys, "y")),
    where=(at_least(1, m),),
)

MAP_MAP_INTERCHANGE = Rule(
    "map_map_interchange",
    "interchange",
    fmap(lambda x: fmap(lambda y: f(x, y), source(x), "y"), xs),
    transpose(
        fmap(
            lambda column: fmap(lambda t: f(get(0, t), get(1, t)), zipped(xs, column), "t"),
            transpose(fmap(source, xs)),
            "column",
        )
    ),
    where=(at_least(1, n), at_least(1, m)),
)

TRANSPOSE_OF_MAPS_OF_ZIP = Rule(
    "transpose_of_maps_of_zip",
    "interchange",
    transpose(fmap(lambda t: fmap(lambda x: f(x, get(1, t)), get(0, t)), zipped(xss, zs), "t")),
    fmap(
        lambda column: fmap(lambda t: f(get(0, t), get(1, t)), zipped(column, zs), "t"),
        transpose(xss),
        "column",
    ),
)

MAPS_OF_ZIP_OF_TRANSPOSE = Rule(
    "maps_of_zip_of_transpose",
    "interchange",
    TRANSPOSE_OF_MAPS_OF_ZIP.right,
    TRANSPOSE_OF_MAPS_OF_ZIP.left,
)

MAP_REDUCE_INTERCHANGE = Rule(
    "map_reduce_interchange",
    "interchange",
    fmap(lambda x: fold(f, init(x), source(x), "y"), xs),
    fold(
        lambda a, column: fmap(lambda t: f(get(0, t), get(1, t)), zipped(a, column), "t"),
        fmap(init, xs),
        transpose(fmap(source, xs)),
        "column",
    ),
    where=(at_least(1, n),),
    proof="lockstep",
)

REDUCE_MAP_INTERCHANGE = Rule(
    "reduce_map_interchange",
    "interchange",
    fold(
        lambda a, row: fmap(lambda t: f(get(0, t), get(1, t)), zipped(a, row), "t"),
        starts,
        xss,
        "row",
    ),
    fmap(
        lambda t: fold(f, get(0, t), get(1, t)),
        zipped(starts, transpose(xss)),
        "t",
    ),
    where=(at_least(1, n),),
    proof="lockstep",
)

#: Each step of the fold on the right reads one element of each array: an outer product.
MAPS_REDUCE_INTERCHANGE = Rule(
    "maps_reduce_interchange",
    "interchange",
    fmap(
        lambda x: fmap(
            lambda y: fold(acc, of_both(x, y), zipped(left(x), right(y)), "t"), others, "y"
        ),
        xs,
    ),
    fold(
        lambda a, step: fmap(
            lambda row: fmap(
                lambda t: acc(get(0, t), pair(get(1, row), get(1, t))),
                zipped(get(0, row), get(1, step)),
                "t",
            ),
            zipped(a, get(0, step)),
            "row",
        ),
        fmap(lambda x: fmap(lambda y: of_both(x, y), others, "y"), xs),
        zipped(transpose(fmap(left, xs)), transpose(fmap(right, others, "y"))),
        "step",
    ),
    where=(at_least(1, n), at_least(1, m)),
    proof="lockstep",
)

REDUCE_EXCHANGE = Rule(
    "reduce_exchange",
    "interchange",
    fold(op, start, fmap(lambda row: fold(op, e, row), rows, "row"), "y"),
    fold(op, start, fmap(lambda column: fold(op, e, column), transpose(rows), "column"), "y"),
    where=(at_least(1, n),),
    assuming=(
        Assumption("associative", "f"),
        Assumption("neutral", "f", "e"),
        Assumption("commutative", "f"),
    ),
    proof="exchange",
)

RULES = (
    MAP_INTERCHANGE,
    MAP_MAP_INTERCHANGE,
    TRANSPOSE_OF_MAPS_OF_ZIP,
    MAPS_OF_ZIP_OF_TRANSPOSE,
    MAP_REDUCE_INTERCHANGE,
    REDUCE_MAP_INTERCHANGE,
    MAPS_REDUCE_INTERCHANGE,
    REDUCE_EXCHANGE,
)
