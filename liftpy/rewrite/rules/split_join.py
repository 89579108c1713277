"""Laws of split and join."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, divides
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import T, U, array, fmap, get, join, m, n, split, unknown, zipped

xs, xss = array("xs", T, n), array("xss", T, n, m)
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

MAP_OF_JOIN = Rule(
    "map_of_join",
    "split and join",
    fmap(f, join(xss)),
    join(fmap(lambda row: fmap(f, row), xss, "row")),
)

SPLIT_OF_MAP = Rule(
    "split_of_map",
    "split and join",
    split(m, fmap(f, xs)),
    fmap(lambda chunk: fmap(f, chunk), split(m, xs), "chunk"),
)

MAP_MAP_JOIN = Rule(
    "map_map_join",
    "split and join",
    fmap(lambda row: fmap(f, row), xss, "row"),
    split(m, fmap(f, join(xss))),
    where=(at_least(1, m),),
)

ZIP_OF_JOINS = Rule(
    "zip_of_joins",
    "split and join",
    zipped(join(xss), join(yss)),
    join(fmap(lambda p: zipped(get(0, p), get(1, p)), zipped(xss, yss), "p")),
)

SPLIT_OF_ZIP = Rule(
    "split_of_zip",
    "split and join",
    split(m, zipped(xs, ys)),
    fmap(lambda p: zipped(get(0, p), get(1, p)), zipped(split(m, xs), split(m, ys)), "p"),
)

RULES = (
    SPLIT_JOIN,
    SPLIT_INTRODUCTION,
    JOIN_OF_SPLIT,
    SPLIT_OF_JOIN,
    MAP_OF_JOIN,
    SPLIT_OF_MAP,
    MAP_MAP_JOIN,
    ZIP_OF_JOINS,
    SPLIT_OF_ZIP,
)
