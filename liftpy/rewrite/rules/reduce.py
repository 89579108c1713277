"""Laws of reduce: blocks, nests, exchange with map, exchange of two folds."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, divides
from liftpy.ir.expr import Literal, Param
from liftpy.ir.types import ArrayType
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    S,
    T,
    U,
    V,
    array,
    fmap,
    fold,
    get,
    join,
    m,
    n,
    split,
    transpose,
    unknown,
    zipped,
)

xs, xss = array("xs", T, n), array("xss", T, n, m)
scalars, rows = array("xs", S, n), array("xss", S, n, m)
z, start = Param("z", U), Param("z", S)
e = Literal(ValueVar("e"), S)
f, op = unknown("f", U), unknown("f", S)
MONOID = (Assumption("associative", "f"), Assumption("neutral", "f", "e"))

REDUCE_SPLIT = Rule(
    "reduce_split",
    "reduce",
    fold(op, start, scalars),
    fold(op, start, fmap(lambda chunk: fold(op, e, chunk), split(m, scalars), "chunk")),
    where=(divides(m, n),),
    assuming=MONOID,
    tunes=("m",),
    proof="blocks",
)

REDUCE_OF_JOIN = Rule(
    "reduce_of_join",
    "reduce",
    fold(f, z, join(xss)),
    fold(lambda a, row: fold(f, a, row), z, xss, "row"),
    proof="nested",
)

REDUCE_EXCHANGE = Rule(
    "reduce_exchange",
    "reduce",
    fold(op, start, fmap(lambda row: fold(op, e, row), rows, "row"), "y"),
    fold(op, start, fmap(lambda column: fold(op, e, column), transpose(rows), "column"), "y"),
    where=(at_least(1, n),),
    assuming=(*MONOID, Assumption("commutative", "f")),
    proof="exchange",
)

init, source = unknown("init", U), unknown("source", ArrayType(V, m))
MAP_REDUCE_INTERCHANGE = Rule(
    "map_reduce_interchange",
    "reduce",
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

RULES = (REDUCE_SPLIT, REDUCE_OF_JOIN, REDUCE_EXCHANGE, MAP_REDUCE_INTERCHANGE)
