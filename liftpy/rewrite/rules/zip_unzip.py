"""Laws of zip and unzip."""

from __future__ import annotations

from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    V,
    W,
    X,
    array,
    fmap,
    get,
    m,
    n,
    pair,
    transpose,
    unknown,
    unzip,
    zip_parts,
    zipped,
)

xs, ys, zs = array("xs", T, n), array("ys", U, n), array("zs", V, n)
xss, yss = array("xss", T, n, m), array("yss", U, n, m)
f, g, h = unknown("f", W), unknown("g", X), unknown("h", W)

MAP_ZIP_FIRST = Rule(
    "map_zip_first", "zip", fmap(lambda t: f(get(0, t)), zipped(xs, ys), "t"), fmap(f, xs)
)

MAP_ZIP_SECOND = Rule(
    "map_zip_second", "zip", fmap(lambda t: f(get(1, t)), zipped(xs, ys), "t"), fmap(f, ys)
)

MAP_OF_ZIP_OF_THREE = Rule(
    "map_of_zip_of_three",
    "zip",
    fmap(lambda t: h(get(0, t), get(1, t), get(2, t)), zipped(xs, ys, zs), "t"),
    fmap(
        lambda t: h(get(0, get(0, t)), get(1, get(0, t)), get(1, t)),
        zipped(zipped(xs, ys), zs),
        "t",
    ),
)

ZIP_SAME = Rule("zip_same", "zip", zipped(xs, xs), fmap(lambda x: pair(x, x), xs))

ZIP_SWAP = Rule(
    "zip_swap",
    "zip",
    zipped(xs, ys),
    fmap(lambda t: pair(get(1, t), get(0, t)), zipped(ys, xs), "t"),
)

ZIP_ROTATE_LEFT = Rule(
    "zip_rotate_left",
    "zip",
    zipped(xs, zipped(ys, zs)),
    fmap(
        lambda t: pair(get(0, get(0, t)), pair(get(1, get(0, t)), get(1, t))),
        zipped(zipped(xs, ys), zs),
        "t",
    ),
)

ZIP_ROTATE_RIGHT = Rule(
    "zip_rotate_right",
    "zip",
    zipped(zipped(xs, ys), zs),
    fmap(
        lambda t: pair(pair(get(0, t), get(0, get(1, t))), get(1, get(1, t))),
        zipped(xs, zipped(ys, zs)),
        "t",
    ),
)

ZIP_FLATTEN_FIRST = Rule(
    "zip_flatten_first",
    "zip",
    zipped(zipped(xs, ys), zs),
    fmap(lambda t: pair(pair(get(0, t), get(1, t)), get(2, t)), zipped(xs, ys, zs), "t"),
)

ZIP_FLATTEN_SECOND = Rule(
    "zip_flatten_second",
    "zip",
    zipped(xs, zipped(ys, zs)),
    fmap(lambda t: pair(get(0, t), pair(get(1, t), get(2, t))), zipped(xs, ys, zs), "t"),
)

ZIP_OF_MAP_FIRST = Rule(
    "zip_of_map_first",
    "zip",
    zipped(fmap(f, xs), ys),
    fmap(lambda t: pair(f(get(0, t)), get(1, t)), zipped(xs, ys), "t"),
)

ZIP_OF_MAP_SECOND = Rule(
    "zip_of_map_second",
    "zip",
    zipped(xs, fmap(f, ys)),
    fmap(lambda t: pair(get(0, t), f(get(1, t))), zipped(xs, ys), "t"),
)

ZIP_OF_MAPS = Rule(
    "zip_of_maps",
    "zip",
    zipped(fmap(f, xs), fmap(g, xs)),
    fmap(lambda x: pair(f(x), g(x)), xs),
)

PAIR_OF_MAPS = Rule(
    "pair_of_maps",
    "zip",
    pair(fmap(f, xs), fmap(g, xs)),
    unzip(fmap(lambda x: pair(f(x), g(x)), xs)),
)

UNZIP_OF_MAP = Rule("unzip_of_map", "zip", PAIR_OF_MAPS.right, PAIR_OF_MAPS.left)

ZIP_OF_TRANSPOSES = Rule(
    "zip_of_transposes",
    "zip",
    fmap(zip_parts, zipped(transpose(xss), transpose(yss)), "p"),
    transpose(fmap(zip_parts, zipped(xss, yss), "p")),
)

TRANSPOSE_OF_ZIPS = Rule(
    "transpose_of_zips", "zip", ZIP_OF_TRANSPOSES.right, ZIP_OF_TRANSPOSES.left
)

RULES = (
    MAP_ZIP_FIRST,
    MAP_ZIP_SECOND,
    MAP_OF_ZIP_OF_THREE,
    ZIP_SAME,
    ZIP_SWAP,
    ZIP_ROTATE_LEFT,
    ZIP_ROTATE_RIGHT,
    ZIP_FLATTEN_FIRST,
    ZIP_FLATTEN_SECOND,
    ZIP_OF_MAP_FIRST,
    ZIP_OF_MAP_SECOND,
    ZIP_OF_MAPS,
    PAIR_OF_MAPS,
    UNZIP_OF_MAP,
    ZIP_OF_TRANSPOSES,
    TRANSPOSE_OF_ZIPS,
)
