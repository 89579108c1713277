"""Lowering: the loop or parallel level that runs a primitive.

Each rule holds by definition, except `reduce_to_subgroups` and `reduce_to_items`, which change the
order of the fold.
"""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most
from liftpy.ir.expr import Param
from liftpy.ir.nat import nats
from liftpy.ir.types import ArrayType
from liftpy.primitives import (
    ExclusiveScan,
    ExclusiveScanSeq,
    Iterate,
    IterateSeq,
    MapGlb,
    MapHost,
    MapItem,
    MapLcl,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapSubgroup,
    MapWrg,
    ReduceInPlace,
    ReduceItems,
    ReduceSeq,
    ReduceSeqUnroll,
    ReduceSubgroups,
    Scan,
    ScanSeq,
    SlideSeq,
)
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import S, T, U, array, fmap, fold, function, n, slide, unknown
from liftpy.rewrite.rules.reduce import ABELIAN

xs, x = array("xs", T, n), Param("x", T)
scalars = array("xs", S, n)
z, start = Param("z", U), Param("z", S)
f, op, again = unknown("f", U), unknown("f", S), unknown("f", T)
times, size, stride, items = nats("times size step items")
apply_f = function(f, x=T)
step = function(f, a=U, x=T)


MAP_TO_SEQ = Rule(
    "map_to_seq", "lowering", fmap(f, xs), call(MapSeq(apply_f), xs), proof="definition"
)
MAP_TO_HOST = Rule(
    "map_to_host", "lowering", fmap(f, xs), call(MapHost(apply_f), xs), proof="definition"
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
MAP_TO_SUBGROUP = Rule(
    "map_to_subgroup",
    "lowering",
    fmap(f, xs),
    call(MapSubgroup(apply_f, items), xs),
    where=(at_least(1, items),),
    tunes=("items",),
    proof="definition",
)
MAP_TO_ITEM = Rule(
    "map_to_item", "lowering", fmap(f, xs), call(MapItem(apply_f), xs), proof="definition"
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
REDUCE_TO_IN_PLACE = Rule(
    "reduce_to_in_place",
    "lowering",
    fold(f, z, xs),
    call(ReduceInPlace(step), z, xs),
    proof="definition",
)
REDUCE_TO_SUBGROUPS = Rule(
    "reduce_to_subgroups",
    "lowering",
    fold(op, start, scalars),
    call(ReduceSubgroups(function(op, a=S, x=S)), start, scalars),
    assuming=ABELIAN,
    proof="permuted",
)
REDUCE_TO_ITEMS = Rule(
    "reduce_to_items",
    "lowering",
    fold(op, start, scalars),
    call(ReduceItems(function(op, a=S, x=S)), start, scalars),
    assuming=ABELIAN,
    proof="permuted",
)
REDUCE_SEQ_UNROLL = Rule(
    "reduce_seq_unroll",
    "lowering",
    call(ReduceSeq(step), z, xs),
    call(ReduceSeqUnroll(step), z, xs),
    proof="definition",
)
MAP_TO_SEQ_UNROLL = Rule(
    "map_to_seq_unroll",
    "lowering",
    fmap(f, xs),
    call(MapSeqUnroll(apply_f), xs),
    proof="definition",
)
MAP_TO_SEQ_AHEAD = Rule(
    "map_to_seq_ahead",
    "lowering",
    fmap(f, xs),
    call(MapSeqAhead(apply_f), xs),
    proof="definition",
)
SCAN_TO_SEQ = Rule(
    "scan_to_seq",
    "lowering",
    call(Scan(step), z, xs),
    call(ScanSeq(step), z, xs),
    proof="definition",
)
EXCLUSIVE_SCAN_TO_SEQ = Rule(
    "exclusive_scan_to_seq",
    "lowering",
    call(ExclusiveScan(step), z, xs),
    call(ExclusiveScanSeq(step), z, xs),
    proof="definition",
)
ITERATE_TO_SEQ = Rule(
    "iterate_to_seq",
    "lowering",
    call(Iterate(function(again, x=T), times), x),
    call(IterateSeq(function(again, x=T), times), x),
    proof="definition",
)
SLIDE_TO_SEQ = Rule(
    "slide_to_seq",
    "lowering",
    fmap(f, slide(size, stride, xs), "w"),
    call(SlideSeq(function(f, w=ArrayType(T, size)), size, stride), xs),
    where=(at_most(stride, size),),
    proof="definition",
)

RULES = (
    MAP_TO_SEQ,
    MAP_TO_HOST,
    *MAP_TO_GLB,
    *MAP_TO_WRG,
    *MAP_TO_LCL,
    MAP_TO_SUBGROUP,
    MAP_TO_ITEM,
    REDUCE_TO_SEQ,
    REDUCE_TO_SEQ_UNROLL,
    REDUCE_TO_IN_PLACE,
    REDUCE_TO_SUBGROUPS,
    REDUCE_TO_ITEMS,
    REDUCE_SEQ_UNROLL,
    MAP_TO_SEQ_UNROLL,
    MAP_TO_SEQ_AHEAD,
    SCAN_TO_SEQ,
    EXCLUSIVE_SCAN_TO_SEQ,
    ITERATE_TO_SEQ,
    SLIDE_TO_SEQ,
)
