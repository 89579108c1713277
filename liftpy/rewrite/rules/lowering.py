"""Lowering: which loop or parallel level does the work. Sound by definition."""

from __future__ import annotations

from liftpy.ir.expr import Param, call
from liftpy.primitives import MapGlb, MapLcl, MapSeq, MapWrg, ReduceSeq, ReduceSeqUnroll
from liftpy.primitives.levels import DIMENSIONS
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, array, fmap, fold, function, n, unknown

xs = array("xs", T, n)
z = Param("z", U)
f = unknown("f", U)
apply_f = function(f, x=T)
step = function(f, a=U, x=T)


MAP_TO_SEQ = Rule(
    "map_to_seq", "lowering", fmap(f, xs), call(MapSeq(apply_f), xs), proof="definition"
)
MAP_TO_GLB, MAP_TO_WRG, MAP_TO_LCL = (
    tuple(
        Rule(
            f"map_to_{level}_{d}",
            "lowering",
            fmap(f, xs),
            call(make(apply_f, d), xs),
            proof="definition",
        )
        for d in DIMENSIONS
    )
    for level, make in (("glb", MapGlb), ("wrg", MapWrg), ("lcl", MapLcl))
)
REDUCE_TO_SEQ = Rule(
    "reduce_to_seq", "lowering", fold(f, z, xs), call(ReduceSeq(step), z, xs), proof="definition"
)
REDUCE_TO_SEQ_UNROLL = Rule(
    "reduce_to_seq_unroll",
    "lowering",
    fold(f, z, xs),
    call(ReduceSeqUnroll(step), z, xs),
    proof="definition",
)
REDUCE_SEQ_UNROLL = Rule(
    "reduce_seq_unroll",
    "lowering",
    call(ReduceSeq(step), z, xs),
    call(ReduceSeqUnroll(step), z, xs),
    proof="definition",
)

RULES = (
    MAP_TO_SEQ,
    *MAP_TO_GLB,
    *MAP_TO_WRG,
    *MAP_TO_LCL,
    REDUCE_TO_SEQ,
    REDUCE_TO_SEQ_UNROLL,
    REDUCE_SEQ_UNROLL,
)
