"""Laws of transpose."""

from __future__ import annotations

from liftpy.ir.constraint import at_least
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, V, array, fmap, join, k, m, n, transpose, unknown

xs, ys = array("xs", T, n), array("ys", U, m)
xss, xsss = array("xss", T, n, m), array("xsss", T, n, m, k)
f, g = unknown("f", U), unknown("g", V)

TRANSPOSE_TWICE = Rule("transpose_twice", "transpose", transpose(transpose(xss)), xss)

TRANSPOSE_INTRODUCTION = Rule(
    "transpose_introduction",
    "transpose",
    xss,
    transpose(transpose(xss)),
    where=(at_least(1, n), at_least(1, m)),
)

TRANSPOSE_OF_MAP_MAP = Rule(
    "transpose_of_map_map",
    "transpose",
    transpose(fmap(lambda row: fmap(f, row), xss, "row")),
    fmap(lambda column: fmap(f, column), transpose(xss), "column"),
)

MAP_MAP_OF_TRANSPOSE = Rule(
    "map_map_of_transpose",
    "transpose",
    fmap(lambda column: fmap(f, column), transpose(xss), "column"),
    transpose(fmap(lambda row: fmap(f, row), xss, "row")),
)

TRANSPOSE_OF_MAP_JOIN = Rule(
    "transpose_of_map_join",
    "transpose",
    transpose(fmap(join, xsss, "row")),
    join(fmap(transpose, transpose(xsss), "column")),
)

MAP_INTERCHANGE = Rule(
    "map_interchange",
    "transpose",
    fmap(lambda x: fmap(lambda y: g(x, y), ys, "y"), xs),
    transpose(fmap(lambda y: fmap(lambda x: g(x, y), xs), ys, "y")),
    where=(at_least(1, m),),
)

RULES = (
    TRANSPOSE_TWICE,
    TRANSPOSE_INTRODUCTION,
    TRANSPOSE_OF_MAP_MAP,
    MAP_MAP_OF_TRANSPOSE,
    TRANSPOSE_OF_MAP_JOIN,
    MAP_INTERCHANGE,
)
