"""Laws of pad; padding by a negative amount crops."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.nat import var
from liftpy.primitives import ByClasses
from liftpy.rewrite.rule import Assumption, Rule, ValueVar
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    join,
    m,
    n,
    pad,
    split,
    transpose,
    unknown,
    zipped,
)

a, b = var("a", None), var("b", None)
left, right = var("left", None), var("right", None)
c, d = ValueVar("c"), ValueVar("d")
xs, ys, xss = array("xs", T, n), array("ys", U, n), array("xss", T, n, m)
f = unknown("f", U)

PAD_NOTHING = Rule("pad_nothing", "pad", pad(0, 0, c, xs), xs)

PAD_OF_PAD = Rule(
    "pad_of_pad",
    "pad",
    pad(left, right, c, pad(a, b, c, xs)),
    pad(left + a, right + b, c, xs),
    where=(at_least(0, a), at_least(0, b)),
)

PAD_APART = Rule(
    "pad_apart",
    "pad",
    pad(left, right, c, xs),
    pad(left - a, right - b, c, pad(a, b, c, xs)),
    where=(at_least(0, a), at_least(0, b)),
    tunes=("a", "b"),
)

PAD_INTRODUCTION = Rule(
    "pad_introduction",
    "pad",
    xs,
    pad(-a, -b, 0, pad(a, b, 0, xs)),
    where=(at_least(1, n), at_least(0, a), at_least(0, b)),
    tunes=("a", "b"),
)

PAD_OF_MAP = Rule(
    "pad_of_map",
    "pad",
    pad(left, right, c, fmap(f, xs)),
    fmap(f, pad(left, right, c, xs)),
    assuming=(Assumption("annihilates", "f", "c"),),
)

CROP_OF_CROP = Rule(
    "crop_of_crop",
    "pad",
    pad(left, right, c, pad(a, b, d, xs)),
    pad(left + a, right + b, c, xs),
    where=(at_most(left, 0), at_most(right, 0), at_most(a, 0), at_most(b, 0)),
)

# A crop never reads its value. 0 fits elements of every type; `c` fits those of one side only.
MAP_OF_CROP = Rule(
    "map_of_crop",
    "pad",
    fmap(f, pad(left, right, c, xs)),
    pad(left, right, 0, fmap(f, xs)),
    where=(at_most(left, 0), at_most(right, 0)),
)

CROP_OF_MAP = Rule(
    "crop_of_map",
    "pad",
    pad(left, right, c, fmap(f, xs)),
    fmap(f, pad(left, right, 0, xs)),
    where=MAP_OF_CROP.where,
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

PAD_OF_TRANSPOSE = Rule(
    "pad_of_transpose", "pad", TRANSPOSE_OF_MAP_PAD.right, TRANSPOSE_OF_MAP_PAD.left
)

TRANSPOSE_OF_PAD = Rule(
    "transpose_of_pad",
    "pad",
    transpose(pad(left, right, c, xss)),
    fmap(lambda column: pad(left, right, c, column), transpose(xss), "column"),
)

MAP_PAD_OF_TRANSPOSE = Rule(
    "map_pad_of_transpose", "pad", TRANSPOSE_OF_PAD.right, TRANSPOSE_OF_PAD.left
)

JOIN_OF_PAD = Rule(
    "join_of_pad",
    "pad",
    join(pad(left, right, c, xss)),
    pad(left * m, right * m, c, join(xss)),
)

PAD_OF_JOIN = Rule(
    "pad_of_join",
    "pad",
    pad(left, right, c, join(xss)),
    join(pad(left.exact_div(m), right.exact_div(m), c, xss)),
    where=(divides(m, left), divides(m, right)),
)

PAD_OF_SPLIT = Rule(
    "pad_of_split",
    "pad",
    pad(left, right, c, split(m, xs)),
    split(m, pad(left * m, right * m, c, xs)),
)

SPLIT_OF_PAD = Rule(
    "split_of_pad",
    "pad",
    split(m, pad(left, right, c, xs)),
    pad(left.exact_div(m), right.exact_div(m), c, split(m, xs)),
    where=(divides(m, n), divides(m, left)),
)

PAD_OF_ZIP = Rule(
    "pad_of_zip",
    "pad",
    pad(left, right, c, zipped(xs, ys)),
    zipped(pad(left, right, c, xs), pad(left, right, c, ys)),
)

BY_CLASSES = Rule("by_classes", "pad", xs, call(ByClasses(), xs))

ZIP_OF_PADS = Rule("zip_of_pads", "pad", PAD_OF_ZIP.right, PAD_OF_ZIP.left)

RULES = (
    PAD_NOTHING,
    PAD_OF_PAD,
    PAD_APART,
    PAD_INTRODUCTION,
    PAD_OF_MAP,
    CROP_OF_CROP,
    MAP_OF_CROP,
    CROP_OF_MAP,
    PAD_EXCHANGE,
    PAD_EXCHANGE_BACK,
    TRANSPOSE_OF_MAP_PAD,
    PAD_OF_TRANSPOSE,
    TRANSPOSE_OF_PAD,
    MAP_PAD_OF_TRANSPOSE,
    JOIN_OF_PAD,
    PAD_OF_JOIN,
    PAD_OF_SPLIT,
    SPLIT_OF_PAD,
    PAD_OF_ZIP,
    ZIP_OF_PADS,
    BY_CLASSES,
)
