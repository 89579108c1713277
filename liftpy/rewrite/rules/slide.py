"""Laws of slide and pad."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.nat import nats, var
from liftpy.primitives import Slide
from liftpy.rewrite.rule import Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    join,
    m,
    n,
    pad,
    slide,
    transpose,
    unknown,
)

size, step, tile = nats("size step tile")
extra = var("extra", None)
a, b = var("a", None), var("b", None)
left, right = var("left", None), var("right", None)
c = ValueVar("c")
xs, xss = array("xs", T, n), array("xss", T, n, m)
f = unknown("f", U)

SLIDE_TILING = Rule(
    "slide_tiling",
    "slide",
    slide(size, step, xs),
    join(fmap(lambda t: slide(size, step, t), slide(tile, tile - (size - step), xs), "t")),
    where=(
        divides(step, tile - size),  # the windows of a tile end where the next tile's begin
        divides(tile - (size - step), n - tile),  # tiles end where the array ends
    ),
    tunes=("tile",),
)

SLIDE_OF_MAP = Rule(
    "slide_of_map",
    "slide",
    slide(size, step, fmap(f, xs)),
    fmap(lambda w: fmap(f, w), slide(size, step, xs), "w"),
)

MAP_MAP_OF_SLIDE = Rule(
    "map_map_of_slide",
    "slide",
    fmap(lambda w: fmap(f, w), slide(size, step, xs), "w"),
    slide(size, step, fmap(f, xs)),
)

MAP_TRANSPOSE_OF_SLIDE = Rule(
    "map_transpose_of_slide",
    "slide",
    fmap(transpose, slide(size, step, xss), "w"),
    transpose(fmap(lambda column: slide(size, step, column), transpose(xss), "column")),
    where=(at_least(1, m),),
)

windows = Slide(size, step).windows
SLIDE_EXTENSION = Rule(
    "slide_extension",
    "slide",
    slide(size, step, xs),
    pad(0, windows(n) - windows(n + extra), 0.0, slide(size, step, pad(0, extra, 0.0, xs))),
    where=(at_least(0, extra),),
    tunes=("extra",),
)

PAD_OF_PAD = Rule(
    "pad_of_pad",
    "pad",
    pad(left, right, c, pad(a, b, c, xs)),
    pad(left + a, right + b, c, xs),
    where=(at_least(0, a), at_least(0, b)),
)

PAD_EXCHANGE = Rule(
    "pad_exchange",
    "pad",
    pad(left, right, c, fmap(lambda row: pad(a, b, c, row), xss, "row")),
    fmap(lambda row: pad(a, b, c, row), pad(left, right, c, xss), "row"),
)

PAD_EXCHANGE_BACK = Rule("pad_exchange_back", "pad", PAD_EXCHANGE.right, PAD_EXCHANGE.left)

TRANSPOSE_OF_MAP_PAD = Rule(
    "transpose_of_map_pad",
    "pad",
    transpose(fmap(lambda row: pad(left, right, c, row), xss, "row")),
    pad(left, right, c, transpose(xss)),
)

MAP_OF_CROP = Rule(
    "map_of_crop",
    "pad",
    fmap(f, pad(left, right, c, xs)),
    pad(left, right, c, fmap(f, xs)),
    where=(at_most(left, 0), at_most(right, 0)),
)

RULES = (
    SLIDE_TILING,
    SLIDE_OF_MAP,
    MAP_MAP_OF_SLIDE,
    MAP_TRANSPOSE_OF_SLIDE,
    SLIDE_EXTENSION,
    PAD_OF_PAD,
    PAD_EXCHANGE,
    PAD_EXCHANGE_BACK,
    TRANSPOSE_OF_MAP_PAD,
    MAP_OF_CROP,
)
