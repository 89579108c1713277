"""Laws of cover and uncover: chunks of a size that need not divide the length."""

from __future__ import annotations

from liftpy.ir.call import call
from liftpy.ir.constraint import at_least, at_most, divides
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, nat
from liftpy.primitives import Cover, Uncover
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules.notation import (
    T,
    U,
    array,
    fmap,
    m,
    n,
    split,
    unknown,
    zip_parts,
    zipped,
)

xs, ys = array("xs", T, n), array("ys", U, n)
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

RULES = (COVER_JOIN, UNCOVER_OF_COVER, COVER_OF_ZIP, COVER_OF_MAP, COVER_DISJOINT)
