"""Laws of split and join."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, divides
from liftpy.ir.nat import var
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    join,
    k,
    m,
    n,
    split,
    unknown,
    zip_parts,
    zipped,
)

q = var("q")
xs, xss, xsss = array("xs", T, n), array("xss", T, n, m), array("xsss", T, n, m, k)
ys, yss = array("ys", U, n), array("yss", U, n, m)
f = unknown("f", U)

SPLIT_JOIN = Rule(
    "split_join",
    "split and join",
    fmap(f, xs),
    join(fmap(lambda chunk: fmap(f, chunk), split(m, xs), "chunk")),
    where=(divides(m, n),),
    tunes=("m",),
)

SPLIT_INTRODUCTION = Rule(
    "split_introduction",
    "split and join",
    xs,
    join(split(m, xs)),
    where=(divides(m, n),),
    tunes=("m",),
)

JOIN_OF_SPLIT = Rule("join_of_split", "split and join", join(split(m, xs)), xs)

SPLIT_OF_JOIN = Rule("split_of_join", "split and join", split(m, join(xss)), xss)

JOIN_INTRODUCTION = Rule(
    "join_introduction",
    "split and join",
    xss,
    split(m, join(xss)),
    where=(at_least(1, m),),
)

SPLIT_OF_JOIN_FINER = Rule(
    "split_of_join_finer",
    "split and join",
    split(q, join(xss)),
    join(fmap(lambda row: split(q, row), xss, "row")),
    where=(divides(q, m),),
)

SPLIT_OF_JOIN_COARSER = Rule(
    "split_of_join_coarser",
    "split and join",
    split(q * m, join(array("xss", T, n * q, m))),
    fmap(join, split(q, array("xss", T, n * q, m)), "rows"),
)

MAP_OF_JOIN = Rule(
    "map_of_join",
    "split and join",
    fmap(f, join(xss)),
    join(fmap(lambda row: fmap(f, row), xss, "row")),
)

JOIN_OF_MAP_MAP = Rule("join_of_map_map", "split and join", MAP_OF_JOIN.right, MAP_OF_JOIN.left)

SPLIT_OF_MAP = Rule(
    "split_of_map",
    "split and join",
    split(m, fmap(f, xs)),
    fmap(lambda chunk: fmap(f, chunk), split(m, xs), "chunk"),
)

MAP_MAP_OF_SPLIT = Rule("map_map_of_split", "split and join", SPLIT_OF_MAP.right, SPLIT_OF_MAP.left)

MAP_MAP_JOIN = Rule(
    "map_map_join",
    "split and join",
    fmap(lambda row: fmap(f, row), xss, "row"),
    split(m, fmap(f, join(xss))),
    where=(at_least(1, m),),
)

JOIN_OF_JOIN = Rule(
    "join_of_join",
    "split and join",
    join(join(xsss)),
    join(fmap(join, xsss, "rows")),
)

JOIN_OF_MAP_JOIN = Rule("join_of_map_join", "split and join", JOIN_OF_JOIN.right, JOIN_OF_JOIN.left)

SPLIT_OF_SPLIT = Rule(
    "split_of_split",
    "split and join",
    split(k, split(m, array("xs", T, n * k * m))),
    fmap(lambda chunk: split(m, chunk), split(k * m, array("xs", T, n * k * m)), "chunk"),
)

MAP_SPLIT_OF_SPLIT = Rule(
    "map_split_of_split",
    "split and join",
    fmap(lambda chunk: split(m, chunk), split(q * m, array("xs", T, n * q * m)), "chunk"),
    split(q, split(m, array("xs", T, n * q * m))),
)

ZIP_OF_JOINS = Rule(
    "zip_of_joins",
    "split and join",
    zipped(join(xss), join(yss)),
    join(fmap(zip_parts, zipped(xss, yss), "p")),
)

JOIN_OF_ZIPS = Rule("join_of_zips", "split and join", ZIP_OF_JOINS.right, ZIP_OF_JOINS.left)

SPLIT_OF_ZIP = Rule(
    "split_of_zip",
    "split and join",
    split(m, zipped(xs, ys)),
    fmap(zip_parts, zipped(split(m, xs), split(m, ys)), "p"),
)

ZIP_OF_SPLITS = Rule("zip_of_splits", "split and join", SPLIT_OF_ZIP.right, SPLIT_OF_ZIP.left)

RULES = (
    SPLIT_JOIN,
    SPLIT_INTRODUCTION,
    JOIN_OF_SPLIT,
    SPLIT_OF_JOIN,
    JOIN_INTRODUCTION,
    SPLIT_OF_JOIN_FINER,
    SPLIT_OF_JOIN_COARSER,
    MAP_OF_JOIN,
    JOIN_OF_MAP_MAP,
    SPLIT_OF_MAP,
    MAP_MAP_OF_SPLIT,
    MAP_MAP_JOIN,
    JOIN_OF_JOIN,
    JOIN_OF_MAP_JOIN,
    SPLIT_OF_SPLIT,
    MAP_SPLIT_OF_SPLIT,
    ZIP_OF_JOINS,
    JOIN_OF_ZIPS,
    SPLIT_OF_ZIP,
    ZIP_OF_SPLITS,
)
