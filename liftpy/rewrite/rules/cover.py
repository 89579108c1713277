"""Laws of cover and uncover: chunks of a size that need not divide the length."""

from __future__ import annotations

from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.expr import Expr, call
from liftpy.ir.nat import NatLike, nat
from liftpy.primitives import Cover, Uncover
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    k,
    m,
    n,
    split,
    unknown,
    zip_parts,
    zipped,
)

xs, ys = array("xs", T, n), array("ys", U, n)
chunks, others = array("xss", T, k, m), array("yss", U, k, m)
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

COVER_INTRODUCTION = Rule(
    "cover_introduction",
    "cover",
    xs,
    uncover(n, cover(m, xs)),
    where=(at_least(1, m), at_most(m, n)),
    tunes=("m",),
)

MAP_OF_UNCOVER = Rule(
    "map_of_uncover",
    "cover",
    fmap(f, uncover(n, chunks)),
    uncover(n, fmap(lambda chunk: fmap(f, chunk), chunks, "chunk")),
)

ZIP_OF_UNCOVERS = Rule(
    "zip_of_uncovers",
    "cover",
    zipped(uncover(n, chunks), uncover(n, others)),
    uncover(n, fmap(zip_parts, zipped(chunks, others), "p")),
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
    COVER_INTRODUCTION,
    MAP_OF_UNCOVER,
    ZIP_OF_UNCOVERS,
    COVER_OF_ZIP,
    COVER_OF_MAP,
    COVER_DISJOINT,
)
