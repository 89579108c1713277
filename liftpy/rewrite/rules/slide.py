"""Laws of slide."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.nat import nats, var
from liftpy.primitives import Slide
from liftpy.primitives.border import backwards
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    T,
    U,
    V,
    array,
    fmap,
    get,
    join,
    k,
    m,
    n,
    overlaps,
    pad,
    repeat,
    slide,
    split,
    take,
    transpose,
    unknown,
    zip_parts,
    zipped,
)

size, step, tile, jump, longer = nats("size step tile jump longer")
extra = var("extra", None)
left, right = var("left", None), var("right", None)
c = ValueVar("c")
xs, ys, xss = array("xs", T, n), array("ys", U, n), array("xss", T, n, m)
f, g, h = unknown("f", U), unknown("g", V), unknown("h", U)
ds, js = array("ds", T, m), array("js", U, size)
apart = var("step", 1)
windows_apart = array("xss", T, Slide(size, apart).windows(n), size)

SLIDE_TILING = Rule(
    "slide_tiling",
    "slide",
    slide(size, step, xs),
    join(fmap(lambda t: slide(size, step, t), slide(tile, tile - (size - step), xs), "t")),
    where=(
        divides(step, tile - size),  # the last window of a tile ends where the tile ends
        divides(tile - (size - step), n - tile),  # the last tile ends where the array ends
    ),
    tunes=("tile",),
)

OVERLAPS_OF_MAPS = Rule(
    "overlaps_of_maps",
    "slide",
    overlaps(n, 1, c, fmap(lambda d: fmap(lambda j: g(d, j), js, "j"), ds, "d")),
    fmap(
        lambda w: backwards(fmap(lambda t: g(get(0, t), get(1, t)), zipped(w, backwards(js)), "t")),
        slide(size, 1, pad(size - 1, size - 1, c, ds)),
        "w",
    ),
    assuming=(Assumption("annihilates", "g", "c"),),
)

OVERLAPS_OF_REPEATS = Rule(
    "overlaps_of_repeats",
    "slide",
    overlaps(n, 1, c, fmap(lambda d: repeat(size, h(d)), ds, "d")),
    fmap(
        lambda w: backwards(fmap(h, w)),
        slide(size, 1, pad(size - 1, size - 1, c, ds)),
        "w",
    ),
    assuming=(Assumption("annihilates", "h", "c"),),
)

OVERLAPS_APART = Rule(
    "overlaps_apart",
    "slide",
    overlaps(n, apart, c, windows_apart),
    split(
        1,
        pad(
            0,
            n - Slide(size, apart).windows(n) * apart,
            c,
            join(fmap(lambda w: pad(0, apart - size, c, w), windows_apart, "w")),
        ),
    ),
    where=(at_most(size, apart),),
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

SLIDE_OF_TRANSPOSE = Rule(
    "slide_of_transpose",
    "slide",
    slide(size, step, transpose(xss)),
    fmap(transpose, transpose(fmap(lambda row: slide(size, step, row), xss, "row")), "w"),
)

MAP_SLIDE_OF_TRANSPOSE = Rule(
    "map_slide_of_transpose",
    "slide",
    fmap(lambda column: slide(size, step, column), transpose(xss), "column"),
    transpose(fmap(transpose, slide(size, step, xss), "w")),
)

SPLIT_OF_SLIDE = Rule(
    "split_of_slide",
    "slide",
    split(k, slide(size, step, xs)),
    fmap(
        lambda t: slide(size, step, t),
        slide((k - 1) * step + size, k * step, xs),
        "t",
    ),
)

SLIDE_OF_SLIDE = Rule(
    "slide_of_slide",
    "slide",
    slide(k, jump, slide(size, step, xs)),
    fmap(
        lambda t: slide(size, step, t),
        slide((k - 1) * step + size, jump * step, xs),
        "t",
    ),
)

MAP_SLIDE_OF_SLIDE = Rule(
    "map_slide_of_slide",
    "slide",
    fmap(lambda t: slide(size, step, t), slide(tile, jump, xs), "t"),
    slide(
        Slide(size, step).windows(tile),
        jump.exact_div(step),
        slide(size, step, xs),
    ),
    where=(divides(step, jump), divides(step, tile - size)),
)

SLIDE_STEP = Rule(
    "slide_step",
    "slide",
    slide(size, jump, xs),
    fmap(join, slide(1, jump.exact_div(step), slide(size, step, xs)), "w"),
    where=(divides(step, jump),),
    tunes=("step",),
)

SLIDE_IN_BLOCKS = Rule(
    "slide_in_blocks",
    "slide",
    slide(size, step, xs),
    fmap(join, slide(size.exact_div(step), 1, split(step, xs)), "w"),
    where=(divides(step, size), divides(step, n)),
)

SLIDE_DISJOINT = Rule(
    "slide_disjoint",
    "slide",
    slide(size, size, xs),
    split(size, xs),
    where=(divides(size, n),),
)

SPLIT_AS_SLIDE = Rule(
    "split_as_slide",
    "slide",
    split(size, xs),
    slide(size, size, xs),
    where=(at_least(1, n),),
)

SLIDE_OF_ZIP = Rule(
    "slide_of_zip",
    "slide",
    slide(size, step, zipped(xs, ys)),
    fmap(zip_parts, zipped(slide(size, step, xs), slide(size, step, ys)), "p"),
)

ZIP_OF_SLIDES = Rule("zip_of_slides", "slide", SLIDE_OF_ZIP.right, SLIDE_OF_ZIP.left)

windows = Slide(size, step).windows
SLIDE_EXTENSION = Rule(
    "slide_extension",
    "slide",
    slide(size, step, xs),
    pad(0, windows(n) - windows(n + extra), 0.0, slide(size, step, pad(0, extra, 0.0, xs))),
    where=(at_least(0, extra),),
    tunes=("extra",),
)

SLIDE_LONGER = Rule(
    "slide_longer",
    "slide",
    slide(size, step, xs),
    fmap(
        lambda w: take(size, w),
        slide(longer, step, pad(0, (windows(n) - 1) * step + longer - n, 0.0, xs)),
        "w",
    ),
    where=(at_least(size, longer),),
    tunes=("longer",),
)

CROP_OF_SLIDE = Rule(
    "crop_of_slide",
    "slide",
    pad(left, right, c, slide(size, step, xs)),
    slide(size, step, pad(left * step, right * step, c, xs)),
    where=(at_most(left, 0), at_most(right, 0)),
)

RULES = (
    SLIDE_TILING,
    OVERLAPS_OF_MAPS,
    OVERLAPS_OF_REPEATS,
    OVERLAPS_APART,
    SLIDE_OF_MAP,
    MAP_MAP_OF_SLIDE,
    MAP_TRANSPOSE_OF_SLIDE,
    SLIDE_OF_TRANSPOSE,
    MAP_SLIDE_OF_TRANSPOSE,
    SPLIT_OF_SLIDE,
    SLIDE_OF_SLIDE,
    MAP_SLIDE_OF_SLIDE,
    SLIDE_STEP,
    SLIDE_IN_BLOCKS,
    SLIDE_DISJOINT,
    SPLIT_AS_SLIDE,
    SLIDE_OF_ZIP,
    ZIP_OF_SLIDES,
    SLIDE_EXTENSION,
    SLIDE_LONGER,
    CROP_OF_SLIDE,
)
