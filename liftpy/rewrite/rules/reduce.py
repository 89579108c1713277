"""Laws of reduce: blocks, nests, order, start, pairs, folds that read other folds' results."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.constraint import at_least, divides
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.nat import var
from liftpy.ir.types import TupleType
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    R,
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
    join,
    let,
    m,
    n,
    pad,
    pair,
    permuted,
    split,
    transpose,
    unknown,
    zipped,
)

xs, xss = array("xs", T, n), array("xss", T, n, m)
ys = array("ys", V, n)
scalars, rows = array("xs", S, n), array("xss", S, n, m)
z, w, start = Param("z", U), Param("w", W), Param("z", S)
both = Param("z", TupleType((U, V)))
unit = ValueVar("e")
e = Literal(unit, S)
left, right, extra = var("left", None), var("right", None), var("extra", None)
f, op = unknown("f", U), unknown("f", S)
second, other = unknown("g", V), unknown("g", W)
MONOID = (Assumption("associative", "f"), Assumption("neutral", "f", "e"))
accumulate, rescale, of_row = unknown("k", R), unknown("r", R), unknown("g", S)
to_sum, initial, total = unknown("h", W), Param("w", W), Literal(unit, R)
RESCALES = (Assumption("rescales", "r", "k"), Assumption("keeps", "r", "e"))
ABELIAN = (Assumption("associative", "f"), Assumption("commutative", "f"))

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

REDUCE_OF_MAP_REDUCE = Rule(
    "reduce_of_map_reduce",
    "reduce",
    fold(op, start, fmap(lambda row: fold(op, e, row), rows, "row"), "y"),
    fold(op, start, join(rows), "y"),
    where=(at_least(1, m),),
    assuming=MONOID,
    proof="blocks",
)

REDUCE_BY_ROWS = Rule(
    "reduce_by_rows",
    "reduce",
    REDUCE_OF_MAP_REDUCE.right,
    REDUCE_OF_MAP_REDUCE.left,
    assuming=MONOID,
    proof="blocks",
)

REDUCE_STRIP = Rule(
    "reduce_strip",
    "reduce",
    fold(f, z, xs),
    fold(lambda a, chunk: fold(f, a, chunk), z, split(m, xs), "chunk"),
    where=(divides(m, n),),
    tunes=("m",),
    proof="nested",
)

REDUCE_OF_JOIN = Rule(
    "reduce_of_join",
    "reduce",
    fold(f, z, join(xss)),
    fold(lambda a, row: fold(f, a, row), z, xss, "row"),
    proof="nested",
)

REDUCE_OF_REDUCE = Rule(
    "reduce_of_reduce",
    "reduce",
    fold(lambda a, row: fold(f, a, row), z, xss, "row"),
    fold(f, z, join(xss)),
    where=(at_least(1, m),),
    proof="nested",
)

REDUCE_START = Rule(
    "reduce_start",
    "reduce",
    fold(op, start, scalars),
    op(start, fold(op, e, scalars)),
    assuming=MONOID,
    proof="carried",
)

REDUCE_FLIP = Rule(
    "reduce_flip",
    "reduce",
    fold(op, start, scalars),
    fold(lambda a, x: op(x, a), start, scalars),
    assuming=(Assumption("commutative", "f"),),
    proof="lockstep",
)

REDUCE_OF_REORDER = Rule(
    "reduce_of_reorder",
    "reduce",
    fold(op, start, permuted(scalars)),
    fold(op, start, scalars),
    assuming=ABELIAN,
    proof="permuted",
)

REDUCE_OF_JOINED_TRANSPOSE = Rule(
    "reduce_of_joined_transpose",
    "reduce",
    fold(op, start, join(transpose(rows))),
    fold(op, start, join(rows)),
    where=(at_least(1, m),),
    assuming=ABELIAN,
    proof="permuted",
)

REDUCE_EXTENSION = Rule(
    "reduce_extension",
    "reduce",
    fold(op, start, scalars),
    fold(op, start, pad(0, extra, unit, scalars)),
    where=(at_least(1, n), at_least(0, extra)),
    assuming=(Assumption("neutral", "f", "e"),),
    tunes=("extra",),
    proof="idle",
)

REDUCE_OF_PAD = Rule(
    "reduce_of_pad",
    "reduce",
    fold(op, start, pad(left, right, unit, scalars)),
    fold(op, start, scalars),
    where=(at_least(0, left), at_least(0, right)),
    assuming=(Assumption("neutral", "f", "e"),),
    proof="idle",
)

REDUCE_PAIR = Rule(
    "reduce_pair",
    "reduce",
    pair(fold(f, z, xs), fold(other, w, ys, "y")),
    fold(
        lambda a, t: pair(f(get(0, a), get(0, t)), other(get(1, a), get(1, t))),
        pair(z, w),
        zipped(xs, ys),
        "t",
    ),
    proof="lockstep",
)

REDUCE_FIRST = Rule(
    "reduce_first",
    "reduce",
    get(0, fold(lambda a, x: pair(f(get(0, a), x), second(a, x)), both, xs)),
    fold(f, get(0, both), xs),
    proof="lockstep",
)

REDUCE_SECOND = Rule(
    "reduce_second",
    "reduce",
    get(1, fold(lambda a, x: pair(f(a, x), second(get(1, a), x)), both, xs)),
    fold(second, get(1, both), xs),
    proof="lockstep",
)

REDUCE_FROM_FINITE = Rule(
    "reduce_from_finite",
    "reduce",
    fold(op, e, scalars),
    fold(op, Literal(ValueVar("d"), S), scalars),
    assuming=(Assumption("neutral", "f", "e"), Assumption("finite", "f", "d")),
    proof="lockstep",
)


def folded_twice(first: Expr, second: Callable[[Expr], Expr]) -> Expr:
    """`let m = first in let s = second(m) in body(m, s)`."""
    body = unknown("body", X)
    return let(first, lambda m: let(second(m), lambda s: body(m, s), "s"), "m")


REDUCE_ONLINE = Rule(
    "reduce_online",
    "reduce",
    folded_twice(
        fold(op, start, scalars),
        lambda most: fold(lambda s, x: accumulate(most, s, x), total, scalars),
    ),
    let(
        fold(
            lambda p, x: let(
                op(get(0, p), x),
                lambda n: pair(n, accumulate(n, rescale(get(0, p), n, get(1, p)), x)),
                "n",
            ),
            pair(start, total),
            scalars,
        ),
        lambda p: unknown("body", X)(get(0, p), get(1, p)),
        "p",
    ),
    assuming=RESCALES,
    proof="online",
)

REDUCE_ONLINE_OF_ROWS = Rule(
    "reduce_online_of_rows",
    "reduce",
    folded_twice(
        fold(op, start, fmap(of_row, rows, "row"), "y"),
        lambda most: fold(
            to_sum,
            initial,
            fmap(lambda row: fold(lambda s, x: accumulate(most, s, x), total, row), rows, "row"),
            "y",
        ),
    ),
    let(
        fmap(
            lambda row: let(
                of_row(row),
                lambda own: let(
                    fold(lambda s, x: accumulate(own, s, x), total, row),
                    lambda s: pair(own, s),
                    "s",
                ),
                "m",
            ),
            rows,
            "row",
        ),
        lambda pairs: folded_twice(
            fold(op, start, fmap(lambda p: get(0, p), pairs, "p"), "y"),
            lambda most: fold(
                to_sum,
                initial,
                fmap(lambda p: rescale(get(0, p), most, get(1, p)), pairs, "p"),
                "y",
            ),
        ),
        "ps",
    ),
    assuming=RESCALES,
    proof="rescaled",
)

RULES = (
    REDUCE_SPLIT,
    REDUCE_OF_MAP_REDUCE,
    REDUCE_BY_ROWS,
    REDUCE_STRIP,
    REDUCE_OF_JOIN,
    REDUCE_OF_REDUCE,
    REDUCE_START,
    REDUCE_FLIP,
    REDUCE_OF_REORDER,
    REDUCE_OF_JOINED_TRANSPOSE,
    REDUCE_EXTENSION,
    REDUCE_OF_PAD,
    REDUCE_PAIR,
    REDUCE_FIRST,
    REDUCE_SECOND,
    REDUCE_FROM_FINITE,
    REDUCE_ONLINE,
    REDUCE_ONLINE_OF_ROWS,
)
