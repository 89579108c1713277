"""Fusion and fission of maps, reductions and lets."""

from __future__ import annotations

from liftpy.ir.expr import Param
from liftpy.primitives import MapSeq, ReduceSeq
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    V,
    W,
    X,
    array,
    call,
    fmap,
    fold,
    function,
    get,
    let,
    lets,
    n,
    unknown,
    zipped,
)

xs, ys, v = array("xs", T, n), array("ys", W, n), Param("v", T)
v2, v3, v4 = Param("v2", U), Param("v3", V), Param("v4", W)
z, w = Param("z", V), Param("z", X)
f, g, h, e = unknown("f", V), unknown("g", U), unknown("h", X), unknown("e", V)

MAP_FUSION = Rule("map_fusion", "fusion", fmap(f, fmap(g, xs), "y"), fmap(lambda x: f(g(x)), xs))

MAP_FISSION = Rule("map_fission", "fusion", fmap(lambda x: f(g(x)), xs), fmap(f, fmap(g, xs), "y"))

MAP_FISSION_ZIP = Rule(
    "map_fission_zip",
    "fusion",
    fmap(lambda x: f(x, g(x)), xs),
    fmap(lambda t: f(get(0, t), get(1, t)), zipped(xs, fmap(g, xs)), "t"),
)

MAP_FISSION_BOTH = Rule(
    "map_fission_both",
    "fusion",
    fmap(lambda x: f(g(x), h(x)), xs),
    fmap(lambda t: f(get(0, t), get(1, t)), zipped(fmap(g, xs), fmap(h, xs)), "t"),
)

MAP_FISSION_BOTH_SECOND = Rule(
    "map_fission_both_second",
    "fusion",
    fmap(lambda t: f(get(0, t), g(get(1, t)), h(get(1, t))), zipped(ys, xs), "t"),
    fmap(
        lambda t: f(get(0, t), get(0, get(1, t)), get(1, get(1, t))),
        zipped(ys, zipped(fmap(g, xs), fmap(h, xs))),
        "t",
    ),
)

MAP_FISSION_FIRST = Rule(
    "map_fission_first",
    "fusion",
    fmap(lambda t: f(g(get(0, t)), get(1, t)), zipped(xs, ys), "t"),
    fmap(lambda t: f(get(0, t), get(1, t)), zipped(fmap(g, xs), ys), "t"),
)

MAP_FISSION_SECOND = Rule(
    "map_fission_second",
    "fusion",
    fmap(lambda t: f(get(0, t), g(get(1, t))), zipped(ys, xs), "t"),
    fmap(lambda t: f(get(0, t), get(1, t)), zipped(ys, fmap(g, xs)), "t"),
)

REDUCE_MAP_FUSION = Rule(
    "reduce_map_fusion",
    "fusion",
    fold(f, z, fmap(g, xs), "y"),
    fold(lambda a, x: f(a, g(x)), z, xs),
    proof="lockstep",
)

REDUCE_MAP_FISSION = Rule(
    "reduce_map_fission",
    "fusion",
    fold(lambda a, x: f(a, g(x)), z, xs),
    fold(f, z, fmap(g, xs), "y"),
    proof="lockstep",
)

REDUCE_FISSION_FIRST = Rule(
    "reduce_fission_first",
    "fusion",
    fold(lambda a, t: h(a, g(get(0, t)), get(1, t)), w, zipped(xs, ys), "t"),
    fold(lambda a, t: h(a, get(0, t), get(1, t)), w, zipped(fmap(g, xs), ys), "t"),
    proof="lockstep",
)

REDUCE_FISSION_SECOND = Rule(
    "reduce_fission_second",
    "fusion",
    fold(lambda a, t: h(a, get(0, t), g(get(1, t))), w, zipped(ys, xs), "t"),
    fold(lambda a, t: h(a, get(0, t), get(1, t)), w, zipped(ys, fmap(g, xs)), "t"),
    proof="lockstep",
)

MAP_SEQ_FUSION = Rule(
    "map_seq_fusion",
    "fusion",
    call(MapSeq(function(f, y=U)), call(MapSeq(function(g, x=T)), xs)),
    call(MapSeq(function(lambda x: f(g(x)), x=T)), xs),
)

REDUCE_SEQ_MAP_SEQ_FUSION = Rule(
    "reduce_seq_map_seq_fusion",
    "fusion",
    call(ReduceSeq(function(f, a=V, y=U)), z, call(MapSeq(function(g, x=T)), xs)),
    call(ReduceSeq(function(lambda a, x: f(a, g(x)), a=V, x=T)), z, xs),
    proof="lockstep",
)

LET_INLINE = Rule("let_inline", "fusion", let(v, f), f(v))

LET_INTRODUCTION = Rule("let_introduction", "fusion", f(v), let(v, f))

LET_OF_LET = Rule(
    "let_of_let",
    "fusion",
    let(let(v, g), f, "y"),
    let(v, lambda x: let(g(x), f, "y")),
)

# The values of a `let` do not see its variables; once it is split, later values may see the first.
LET_OF_TWO = Rule(
    "let_of_two",
    "fusion",
    lets(h, x=v, y=v2),
    let(v, lambda x: let(v2, lambda y: h(x, y), "y")),
)

LET_OF_THREE = Rule(
    "let_of_three",
    "fusion",
    lets(h, x=v, y=v2, z=v3),
    let(v, lambda x: lets(lambda y, z: h(x, y, z), y=v2, z=v3)),
)

LET_OF_FOUR = Rule(
    "let_of_four",
    "fusion",
    lets(h, x=v, y=v2, z=v3, u=v4),
    let(v, lambda x: lets(lambda y, z, u: h(x, y, z, u), y=v2, z=v3, u=v4)),
)

# The values that a map's function names become an array of values; one that is the same for all
# elements is computed once.
MAP_OF_LET = Rule(
    "map_of_let",
    "fusion",
    fmap(lambda x: let(g(x), lambda v: e(x, v), "v"), xs),
    let(
        fmap(g, xs),
        lambda vs: fmap(lambda t: e(get(0, t), get(1, t)), zipped(xs, vs), "t"),
        "vs",
    ),
)

MAP_OF_INVARIANT_LET = Rule(
    "map_of_invariant_let",
    "fusion",
    fmap(lambda x: let(v2, lambda v: e(x, v), "v"), xs),
    let(v2, lambda v: fmap(lambda x: e(x, v), xs), "v"),
)

RULES = (
    MAP_FUSION,
    MAP_FISSION,
    MAP_FISSION_ZIP,
    MAP_FISSION_BOTH,
    MAP_FISSION_BOTH_SECOND,
    MAP_FISSION_FIRST,
    MAP_FISSION_SECOND,
    REDUCE_MAP_FUSION,
    REDUCE_MAP_FISSION,
    REDUCE_FISSION_FIRST,
    REDUCE_FISSION_SECOND,
    MAP_SEQ_FUSION,
    REDUCE_SEQ_MAP_SEQ_FUSION,
    LET_INLINE,
    LET_INTRODUCTION,
    LET_OF_LET,
    LET_OF_TWO,
    LET_OF_THREE,
    LET_OF_FOUR,
    MAP_OF_LET,
    MAP_OF_INVARIANT_LET,
)
