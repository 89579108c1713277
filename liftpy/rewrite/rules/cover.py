"""Laws of cover and uncover: chunks of a size that need not divide the length."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, nat, nats
from liftpy.primitives import Cover, Uncover, Unslide
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    m,
    n,
    slide,
    split,
    transpose,
    unknown,
    zip_parts,
    zipped,
)

size, step, q, rows = nats("size step q rows")
xs, ys = array("xs", T, n), array("ys", U, n)
xss, yss = array("xss", T, q, m), array("yss", U, q, m)
xsss = array("xsss", T, rows, q, m)
f = unknown("f", U)


def cover(size: NatLike, of: Expr) -> Expr:
    """`cover(size)` of an array."""
    return call(Cover(nat(size)), of)


def uncover(length: NatLike, chunks: Expr) -> Expr:
    """`uncover(length)` of chunks."""
    return call(Uncover(nat(length)), chunks)


COVER_JOIN = Rule(
    "cover_join",
    "cover",
    fmap(f, xs),
    uncover(n, fmap(lambda chunk: fmap(f, chunk), cover(m, xs), "chunk")),
    where=(at_least(1, m), at_most(m, n)),
    tunes=("m",),
)

UNCOVER_OF_COVER = Rule("uncover_of_cover", "cover", uncover(n, cover(m, xs)), xs)

UNCOVER_INTRODUCTION = Rule(
    "uncover_introduction",
    "cover",
    xs,
    uncover(n, cover(m, xs)),
    where=(at_least(1, m), at_most(m, n)),
    tunes=("m",),
)

windows = slide(size, step, xs)
COVER_OF_SLIDE = Rule(
    "cover_of_slide",
    "cover",
    cover(m, windows),
    fmap(
        lambda t: slide(size, step, t),
        fmap(lambda chunk: call(Unslide(size, step), chunk), cover(m, windows), "chunk"),
        "t",
    ),
    where=(at_most(step, size),),
)

MAP_OF_UNCOVER = Rule(
    "map_of_uncover",
    "cover",
    fmap(f, uncover(n, xss)),
    uncover(n, fmap(lambda chunk: fmap(f, chunk), xss, "chunk")),
)

TRANSPOSE_OF_MAP_UNCOVER = Rule(
    "transpose_of_map_uncover",
    "cover",
    transpose(fmap(lambda row: uncover(n, row), xsss, "row")),
    uncover(n, fmap(transpose, transpose(xsss), "column")),
)

ZIP_OF_UNCOVERS = Rule(
    "zip_of_uncovers",
    "cover",
    zipped(uncover(n, xss), uncover(n, yss)),
    uncover(n, fmap(zip_parts, zipped(xss, yss), "p")),
)

COVER_OF_ZIP = Rule(
    "cover_of_zip",
    "cover",
    cover(m, zipped(xs, ys)),
    fmap(zip_parts, zipped(cover(m, xs), cover(m, ys)), "p"),
)

COVER_OF_MAP = Rule(
    "cover_of_map",
    "cover",
    cover(m, fmap(f, xs)),
    fmap(lambda chunk: fmap(f, chunk), cover(m, xs), "chunk"),
)

COVER_DISJOINT = Rule(
    "cover_disjoint",
    "cover",
    cover(m, xs),
    split(m, xs),
    where=(divides(m, n),),
)

RULES = (
    COVER_JOIN,
    UNCOVER_OF_COVER,
    UNCOVER_INTRODUCTION,
    COVER_OF_SLIDE,
    MAP_OF_UNCOVER,
    TRANSPOSE_OF_MAP_UNCOVER,
    ZIP_OF_UNCOVERS,
    COVER_OF_ZIP,
    COVER_OF_MAP,
    COVER_DISJOINT,
)
