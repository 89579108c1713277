"""Tiles of a reduction: a work-group copies a tile of each operand to local memory in every step.

The expected shape is a map, over elements, of a map of reductions of two arrays:

    map(x -> map(y -> reduce(f, zip(left(x), right(y)))))

Both maps are cut into tiles, a pair of which belongs to a work-group, and the tiles into blocks, a
pair of which belongs to a work-item. Maps and reductions are interchanged twice: for a block, whose
reduction then reads an element of each row of both operands in a step, and, after this reduction
has been cut into chunks, for the tile. So the group makes one reduction over chunks, in whose step
it stores a chunk of all rows of both tiles, and each work-item continues the reduction of its block
over the elements of the chunk (docs/design.md, Rewriting).
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import Path, top_down
from liftpy.primitives import Zip
from liftpy.rewrite.strategies.block import SPLITS, group_maps
from liftpy.rewrite.strategies.epilogue import COMPONENTS
from liftpy.rewrite.strategies.lower import clean, elementwise, sequential
from liftpy.rewrite.strategies.shapes import body_of, is_reduce, layers, maps_over, nests, parameter
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    normalize,
    rule,
    seq,
)

BLOCKS = maps_over(maps_over(is_reduce))
"""Whether an expression is a map of a map of reductions."""

GROUPS = ("wrg_1", "wrg_0")
"""The levels of the maps over tiles, of rows and of columns."""
MOST_AROUND = 1  # maps around the tiles: a launch has three dimensions
OPERANDS = normalize(rule("reduce_map_fusion"))
"""Fuses the maps before reductions in, so that reductions read arrays."""
STEP: Path = (2, 1, 1)  # the part of a step that reads both tiles, in the lets that name them


@dataclass(frozen=True)
class Tiling:
    """The sizes of tiles, of blocks, each of rows and of columns, and of chunks of a reduction.

    `cuts` say how the maps over columns and over rows are cut into tiles (`block.CUTS`).
    """

    tile: tuple[NatLike, NatLike]
    block: tuple[NatLike, NatLike]
    chunk: NatLike
    cuts: tuple[str, str] = SPLITS


def cooperative(tiling: Tiling) -> Strategy:
    """The tiled form, described at the top of the module."""
    (down, right), (tall, wide) = tiling.tile, tiling.block
    return seq(
        OPERANDS,
        group_maps(is_reduce, right, down, tiling.cuts),
        at_first_block(
            seq(
                group_maps(is_reduce, wide, tall), at_path((0,), rule("map_fission", {"g": (0, 0)}))
            )
        ),
        at_first_block(seq(rule("maps_reduce_interchange"), tidy(), in_chunks(tiling.chunk))),
        at_first_block(
            seq(
                rule("maps_reduce_interchange"),
                tidy(),
                staged(),
                of_group,
                elementwise(4),
                over_items(),
            )
        ),
        over_groups,
        sequential(),
    )


def at_first_block(strategy: Strategy) -> Strategy:
    """Apply a strategy at the outermost map of a map of reductions."""

    def run(expr: Expr) -> Result:
        path = first_block(expr)
        if path is None:
            return Failure("cooperative", "no map of a map of reductions makes the result")
        return at_path(path, strategy)(expr)

    return run


def first_block(expr: Expr) -> Path | None:
    """The path of the outermost map of a map of reductions of two arrays."""
    return next((path for path, part in top_down(expr) if BLOCKS(part)), None)


def tidy() -> Strategy:
    """Remove identity maps and tuples that are made only to be read."""
    return seq(clean(), normalize(COMPONENTS))


def in_chunks(size: NatLike) -> Strategy:
    """A reduction of a zip as one over pairs of chunks, whose step reduces the zip of a pair."""
    return seq(
        rule("reduce_strip", m=size),
        at_path((1,), rule("split_of_zip")),
        rule("reduce_map_fusion"),
    )


def staged() -> Strategy:
    """Store both tiles of a step in local memory, under names.

    The step reads the second tile in the function of its map over the rows of blocks.
    """
    return at_path(
        (2,),
        seq(
            rule("let_introduction", {"v": (0, 1)}),
            at_path((0,), in_local()),
            at_path(
                (1,),
                seq(
                    rule("let_introduction", {"v": (1, 0, 1)}),
                    at_path((0,), in_local()),
                ),
            ),
        ),
    )


def in_local() -> Strategy:
    """Store chunks `[blocks][chunk][size]` in local memory as rows `[chunk][blocks * size]`.

    Adjacent work-items store adjacent elements of a row.
    """
    copied = seq(
        rule("to_local"),
        at_path(
            (0,),
            seq(elementwise(2), over_items()),
        ),
    )
    return seq(
        rule("transpose_introduction"),
        at_path(
            (0,),
            seq(
                rule("map_copy"),
                at_path((1,), rule("join_introduction")),
                rule("map_fission", {"g": (0,)}),
                at_path((0,), copied),
            ),
        ),
    )


def of_group(expr: Expr) -> Result:
    """Divide the accumulator of a reduction among the work-items, a block for each."""
    return seq(at_path((0,), over_items()), at_path(STEP, over_items()))(expr)


def over_items() -> Strategy:
    """Assign the work-items of a group to a map and the map in its function."""
    return seq(rule("map_to_lcl_1"), at_path((1,), rule("map_to_lcl_0")))


def over_groups(expr: Expr) -> Result:
    """Assign groups to the maps over tiles, and to a map around these."""
    found = [path for (path,) in layers(nests(expr))]
    names = ("wrg_2", *GROUPS)[-len(found) :]
    if not len(GROUPS) <= len(found) <= len(names):
        return Failure("cooperative", f"{len(found)} maps are around a tile; a launch has 2 or 3")
    steps = (at_path(path, rule(f"map_to_{name}")) for path, name in zip(found, names, strict=True))
    return seq(*steps)(expr)


def reduced_pair(block: Expr) -> Expr | None:
    """The zip that the reductions of `map(x -> map(y -> reduce(f, zip(left(x), right(y)))))` read.

    None if they read something else, or if anything else is done with their results.
    """
    inner = body_of(block)
    fold = body_of(inner)
    if not BLOCKS(block) or not isinstance(fold, FunCall):
        return None
    _, pairs = fold.args
    if not (isinstance(pairs, FunCall) and isinstance(pairs.fun, Zip) and len(pairs.args) == 2):
        return None
    x, y = parameter(block), parameter(inner)
    left, right = pairs.args
    return None if y in left.free or x in right.free else pairs
