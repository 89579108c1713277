"""Laws of concat, take, drop, splitAt, repeat, generate, slideStrict and unslide."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import NatLike, nat, nats
from liftpy.ir.types import I32
from liftpy.primitives import (
    Concat,
    Drop,
    Generate,
    Slide,
    SlideStrict,
    SplitAt,
    Unslide,
)
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    fold,
    function,
    get,
    join,
    k,
    m,
    n,
    pair,
    repeat,
    slide,
    split,
    take,
    transpose,
    unknown,
    zipped,
)

size, step = nats("size step")
xs, ys, zs = array("xs", T, n), array("ys", T, m), array("zs", T, k)
us, xss = array("us", U, n), array("xss", T, n, m)
windows = array("xss", T, n, size)
v, z, w = Param("v", T), Param("z", U), Param("w", U)
f, g = unknown("f", U), unknown("g", T)


def drop(count: NatLike, array_: Expr) -> Expr:
    """`drop(count)` of an array."""
    return call(Drop(nat(count)), array_)


def concat(one: Expr, two: Expr) -> Expr:
    """`concat` of two arrays."""
    return call(Concat(), one, two)


def split_at(first: NatLike, array_: Expr) -> Expr:
    """`splitAt(first)` of an array."""
    return call(SplitAt(nat(first)), array_)


CONCAT_OF_PARTS = Rule("concat_of_parts", "parts", concat(take(k, xs), drop(k, xs)), xs)

SPLIT_IN_TWO = Rule(
    "split_in_two",
    "parts",
    xs,
    concat(take(k, xs), drop(k, xs)),
    where=(at_least(1, k), at_most(k, n - 1)),
    tunes=("k",),
)

FIRST_OF_SPLIT_AT = Rule("first_of_split_at", "parts", get(0, split_at(k, xs)), take(k, xs))

REST_OF_SPLIT_AT = Rule("rest_of_split_at", "parts", get(1, split_at(k, xs)), drop(k, xs))

SPLIT_AT_AS_PARTS = Rule(
    "split_at_as_parts", "parts", split_at(k, xs), pair(take(k, xs), drop(k, xs))
)

TAKE_OF_CONCAT = Rule("take_of_concat", "parts", take(n, concat(xs, ys)), xs)

DROP_OF_CONCAT = Rule("drop_of_concat", "parts", drop(n, concat(xs, ys)), ys)

CONCAT_OF_CONCAT = Rule(
    "concat_of_concat", "parts", concat(concat(xs, ys), zs), concat(xs, concat(ys, zs))
)

CONCAT_OF_CONCAT_BACK = Rule(
    "concat_of_concat_back", "parts", CONCAT_OF_CONCAT.right, CONCAT_OF_CONCAT.left
)

MAP_OF_CONCAT = Rule(
    "map_of_concat", "parts", fmap(f, concat(xs, ys)), concat(fmap(f, xs), fmap(f, ys))
)

CONCAT_OF_MAPS = Rule("concat_of_maps", "parts", MAP_OF_CONCAT.right, MAP_OF_CONCAT.left)

REDUCE_OF_CONCAT = Rule(
    "reduce_of_concat",
    "parts",
    fold(f, z, concat(xs, ys)),
    fold(f, fold(f, z, xs), ys),
    proof="sequel",
)

TAKE_ALL = Rule("take_all", "parts", take(n, xs), xs)

DROP_NOTHING = Rule("drop_nothing", "parts", drop(0, xs), xs)

TAKE_OF_TAKE = Rule("take_of_take", "parts", take(k, take(m, xs)), take(k, xs))

DROP_OF_DROP = Rule("drop_of_drop", "parts", drop(k, drop(m, xs)), drop(m + k, xs))

DROP_OF_TAKE = Rule("drop_of_take", "parts", drop(k, take(m, xs)), take(m - k, drop(k, xs)))

TAKE_OF_DROP = Rule("take_of_drop", "parts", take(k, drop(m, xs)), drop(m, take(m + k, xs)))

TAKE_OF_MAP = Rule("take_of_map", "parts", take(k, fmap(f, xs)), fmap(f, take(k, xs)))

MAP_OF_TAKE = Rule("map_of_take", "parts", TAKE_OF_MAP.right, TAKE_OF_MAP.left)

DROP_OF_MAP = Rule("drop_of_map", "parts", drop(k, fmap(f, xs)), fmap(f, drop(k, xs)))

MAP_OF_DROP = Rule("map_of_drop", "parts", DROP_OF_MAP.right, DROP_OF_MAP.left)

TAKE_OF_ZIP = Rule(
    "take_of_zip", "parts", take(k, zipped(xs, us)), zipped(take(k, xs), take(k, us))
)

DROP_OF_ZIP = Rule(
    "drop_of_zip", "parts", drop(k, zipped(xs, us)), zipped(drop(k, xs), drop(k, us))
)

TAKE_OF_SPLIT = Rule("take_of_split", "parts", take(k, split(m, xs)), split(m, take(k * m, xs)))

DROP_OF_SPLIT = Rule("drop_of_split", "parts", drop(k, split(m, xs)), split(m, drop(k * m, xs)))

TAKE_OF_JOIN = Rule("take_of_join", "parts", take(k * m, join(xss)), join(take(k, xss)))

DROP_OF_JOIN = Rule("drop_of_join", "parts", drop(k * m, join(xss)), join(drop(k, xss)))

TAKE_OF_SLIDE = Rule(
    "take_of_slide",
    "parts",
    take(k, slide(size, step, xs)),
    slide(size, step, take((k - 1) * step + size, xs)),
)

DROP_OF_SLIDE = Rule(
    "drop_of_slide",
    "parts",
    drop(k, slide(size, step, xs)),
    slide(size, step, drop(k * step, xs)),
)

MAP_TAKE_OF_SLIDE = Rule(
    "map_take_of_slide",
    "parts",
    fmap(lambda w: take(k, w), slide(size, step, xs), "w"),
    slide(k, step, take(n - (size - k), xs)),
)

MAP_DROP_OF_SLIDE = Rule(
    "map_drop_of_slide",
    "parts",
    fmap(lambda w: drop(k, w), slide(size, step, xs), "w"),
    slide(size - k, step, drop(k, xs)),
)

TAKE_OF_TRANSPOSE = Rule(
    "take_of_transpose",
    "parts",
    take(k, transpose(xss)),
    transpose(fmap(lambda row: take(k, row), xss, "row")),
)

TRANSPOSE_OF_TAKE = Rule(
    "transpose_of_take",
    "parts",
    transpose(take(k, xss)),
    fmap(lambda column: take(k, column), transpose(xss), "column"),
)

DROP_OF_TRANSPOSE = Rule(
    "drop_of_transpose",
    "parts",
    drop(k, transpose(xss)),
    transpose(fmap(lambda row: drop(k, row), xss, "row")),
)

MAP_OF_REPEAT = Rule("map_of_repeat", "parts", fmap(f, repeat(n, v)), repeat(n, f(v)))

MAP_AS_REPEAT = Rule(
    "map_as_repeat",
    "parts",
    fmap(lambda _: w, xs),
    repeat(n, w),
    where=(at_least(1, n),),
)

MAP_BY_ONES = Rule("map_by_ones", "parts", fmap(f, xs), join(fmap(lambda x: repeat(1, f(x)), xs)))

SPLIT_OF_REPEAT = Rule(
    "split_of_repeat", "parts", split(m, repeat(n, v)), repeat(n // m, repeat(m, v))
)

TRANSPOSE_OF_REPEATS = Rule(
    "transpose_of_repeats",
    "parts",
    transpose(fmap(lambda x: repeat(m, f(x)), xs)),
    repeat(m, fmap(f, xs)),
)

MAP_OF_GENERATE = Rule(
    "map_of_generate",
    "parts",
    fmap(f, call(Generate(n, function(g, i=I32))), "y"),
    call(Generate(n, function(lambda i: f(g(i)), i=I32))),
)

GENERATE_AS_MAP = Rule(
    "generate_as_map",
    "parts",
    call(Generate(n, function(g, i=I32))),
    fmap(g, call(Generate(n, function(lambda i: i, i=I32))), "i"),
)

SLIDE_AS_STRICT = Rule(
    "slide_as_strict",
    "parts",
    slide(size, step, xs),
    call(SlideStrict(size, step), xs),
    where=(divides(step, n - size),),
)

SLIDE_STRICT_AS_SLIDE = Rule(
    "slide_strict_as_slide", "parts", call(SlideStrict(size, step), xs), slide(size, step, xs)
)

UNSLIDE_OF_SLIDE = Rule(
    "unslide_of_slide",
    "parts",
    call(Unslide(size, step), slide(size, step, xs)),
    take((Slide(size, step).windows(n) - 1) * step + size, xs),
)

UNSLIDE_OF_SLIDE_STRICT = Rule(
    "unslide_of_slide_strict",
    "parts",
    call(Unslide(size, step), call(SlideStrict(size, step), xs)),
    xs,
)

UNSLIDE_DISJOINT = Rule(
    "unslide_disjoint", "parts", call(Unslide(size, size), windows), join(windows)
)

RULES = (
    CONCAT_OF_PARTS,
    SPLIT_IN_TWO,
    FIRST_OF_SPLIT_AT,
    REST_OF_SPLIT_AT,
    SPLIT_AT_AS_PARTS,
    TAKE_OF_CONCAT,
    DROP_OF_CONCAT,
    CONCAT_OF_CONCAT,
    CONCAT_OF_CONCAT_BACK,
    MAP_OF_CONCAT,
    CONCAT_OF_MAPS,
    REDUCE_OF_CONCAT,
    TAKE_ALL,
    DROP_NOTHING,
    TAKE_OF_TAKE,
    DROP_OF_DROP,
    DROP_OF_TAKE,
    TAKE_OF_DROP,
    TAKE_OF_MAP,
    MAP_OF_TAKE,
    DROP_OF_MAP,
    MAP_OF_DROP,
    TAKE_OF_ZIP,
    DROP_OF_ZIP,
    TAKE_OF_SPLIT,
    DROP_OF_SPLIT,
    TAKE_OF_JOIN,
    DROP_OF_JOIN,
    TAKE_OF_SLIDE,
    DROP_OF_SLIDE,
    MAP_TAKE_OF_SLIDE,
    MAP_DROP_OF_SLIDE,
    TAKE_OF_TRANSPOSE,
    TRANSPOSE_OF_TAKE,
    DROP_OF_TRANSPOSE,
    MAP_OF_REPEAT,
    MAP_AS_REPEAT,
    MAP_BY_ONES,
    SPLIT_OF_REPEAT,
    TRANSPOSE_OF_REPEATS,
    MAP_OF_GENERATE,
    GENERATE_AS_MAP,
    SLIDE_AS_STRICT,
    SLIDE_STRICT_AS_SLIDE,
    UNSLIDE_OF_SLIDE,
    UNSLIDE_OF_SLIDE_STRICT,
    UNSLIDE_DISJOINT,
)
