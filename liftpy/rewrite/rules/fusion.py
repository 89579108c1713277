"""Fusion and fission of maps and reductions."""

from __future__ import annotations

from liftpy.ir.expr import Param
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, V, array, fmap, fold, get, n, unknown, zipped

xs, ys = array("xs", T, n), array("ys", U, n)
z = Param("z", V)
f, g = unknown("f", V), unknown("g", U)

MAP_FUSION = Rule("map_fusion", "fusion", fmap(f, fmap(g, xs), "y"), fmap(lambda x: f(g(x)), xs))

MAP_FISSION = Rule("map_fission", "fusion", fmap(lambda x: f(g(x)), xs), fmap(f, fmap(g, xs), "y"))

MAP_FISSION_ZIP = Rule(
    "map_fission_zip",
    "fusion",
    fmap(lambda x: f(x, g(x)), xs),
    fmap(lambda t: f(get(0, t), get(1, t)), zipped(xs, fmap(g, xs)), "t"),
)

REDUCE_MAP_FUSION = Rule(
    "reduce_map_fusion",
    "fusion",
    fold(f, z, fmap(g, xs), "y"),
    fold(lambda a, x: f(a, g(x)), z, xs),
    proof="lockstep",
)

MAP_IDENTITY = Rule("map_identity", "fusion", fmap(lambda x: x, xs), xs)

MAP_COPY = Rule("map_copy", "fusion", xs, fmap(lambda x: x, xs))

MAP_ZIP_FIRST = Rule(
    "map_zip_first", "fusion", fmap(lambda t: f(get(0, t)), zipped(xs, ys), "t"), fmap(f, xs)
)

MAP_ZIP_SECOND = Rule(
    "map_zip_second", "fusion", fmap(lambda t: f(get(1, t)), zipped(xs, ys), "t"), fmap(f, ys)
)

RULES = (
    MAP_FUSION,
    MAP_FISSION,
    MAP_FISSION_ZIP,
    REDUCE_MAP_FUSION,
    MAP_IDENTITY,
    MAP_COPY,
    MAP_ZIP_FIRST,
    MAP_ZIP_SECOND,
)
