"""Tiles of a reduction: a work-group copies a tile of each operand to local memory in every step.

The expected shape is a map, over elements, of a map of reductions of two arrays:

    map(x -> map(y -> f(reduce(g, zip(left(x), right(y))))))

Both maps are cut into tiles, a pair of which belongs to a work-group, and the tiles into blocks, a
pair of which belongs to a work-item. Maps and reductions are interchanged twice: for a block, whose
reduction then reads an element of each row of both operands in a step, and, after this reduction
has been cut into chunks, for the tile. So the group makes one reduction over chunks, in whose step
it stores a chunk of all rows of both tiles, and each work-item continues the reduction of its block
over the elements of the chunk (docs/design.md, Rewriting).

An operation f on each result is kept apart from the reductions, because only these are interchanged
with maps, and is applied to the finished block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, nat
from liftpy.ir.walk import Path, at, children, top_down
from liftpy.primitives import Zip
from liftpy.rewrite.strategies.block import SPLITS, group_maps
from liftpy.rewrite.strategies.elementwise import moved
from liftpy.rewrite.strategies.epilogue import (
    COMPONENTS,
    apart,
    reductions_apart,
    tuples_fused,
)
from liftpy.rewrite.strategies.lanes import vectorized
from liftpy.rewrite.strategies.lower import clean, elementwise, sequential
from liftpy.rewrite.strategies.packed import operands_packed
from liftpy.rewrite.strategies.parts import at_first, in_parts, parts_of
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_folded,
    is_reduce,
    layers,
    maps_over,
    nests,
    outer_reductions,
    parameter,
)
from liftpy.rewrite.strategies.share import has_fold_in
from liftpy.rewrite.strategies.strides import stride
from liftpy.rewrite.strategies.sums import operands_in_order
from liftpy.rewrite.strategy import (
    Failure,
    Predicate,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    identity,
    normalize,
    rule,
    seq,
)

BLOCKS = maps_over(maps_over(is_reduce))
"""Whether an expression is a map of a map of reductions."""

TILES = maps_over(maps_over(is_folded))
"""Whether an expression is a map of a map of reductions, or of functions of one reduction each."""

GROUPS = ("wrg_1", "wrg_0")
"""The levels of the maps over tiles, of rows and of columns."""

Order: TypeAlias = tuple[str, str]
"""The levels of a map over the elements of a chunk and of the map over its rows or columns."""
Orders: TypeAlias = tuple[Order, Order]
ROW_BY_ROW: Order = ("lcl_1", "lcl_0")
CHUNK_BY_CHUNK: Order = ("lcl_0", "lcl_1")

MOST_AROUND = 1  # maps around the tiles: a launch has three dimensions
OPERANDS = seq(normalize(rule("reduce_map_fusion")), operands_in_order)
"""Fuses maps into the reductions after them, which then read arrays, that of the row first."""
STEP: Path = (2,)  # the step of a reduction
TURNS: tuple[Path, ...] = ((2, 0, 2), (2, 2))  # the steps of the reductions of `in_turns`
READS: Path = (1, 1)  # the part of a step that reads both tiles, in the lets that name them


@dataclass(frozen=True)
class TileSizes:
    """The sizes of tiles, of blocks, each of rows and of columns, and of chunks of a reduction.

    `width` is that of vectors over the columns of a block, `gap` the number of unused elements of
    local memory after each row of a copied chunk. With `padded`, zeros fill the last chunks.
    `buffers` is the number of chunks of each operand that are in local memory. `cuts` say how the
    maps over columns and over rows are cut into tiles (`block.CUTS`). If there is a `part`,
    reductions are cut into parts of that many elements, and groups of its own reduce each part
    (`strategies/parts.py`). Operands that are made from the `constants` alone are packed
    (`strategies/packed.py`). With `broadcast`, a tile has the rows of one block; the subgroups of
    the group hold a chunk of these in registers, and nothing is copied to local memory.
    """

    tile: tuple[NatLike, NatLike]
    block: tuple[NatLike, NatLike]
    chunk: NatLike
    width: NatLike = 1
    gap: NatLike = 0
    padded: bool = False
    buffers: int = 1
    cuts: tuple[str, str] = SPLITS
    part: NatLike | None = None
    constants: frozenset[str] = frozenset()
    broadcast: bool = False


def cooperative(tiling: TileSizes) -> Strategy:
    """The tiled form, described at the top of the module."""
    part = tiling.part
    whole = in_whole_chunks(nat(tiling.chunk) * tiling.buffers) if tiling.padded else identity

    def in_kernels(expr: Expr) -> Result:
        tiles = at_first(TILES, tiled(tiling, orders_of_copies(expr)))
        by_groups = seq(whole, tiles, over_groups, sequential())
        if part is None:
            return by_groups(expr)
        return in_parts(TILES, parts_of(part), seq(parts_joined, by_groups))(expr)

    return seq(OPERANDS, packed(tiling.constants), in_kernels)


def parts_joined(expr: Expr) -> Result:
    """Join the map over parts and a map in its function that is around the tiles."""
    nest = maps_over(maps_over(TILES))
    return rule("map_map_join")(expr) if nest(expr) else Success(expr)


def packed(constants: frozenset[str]) -> Strategy:
    """`operands_packed` for the first map of a map of reductions."""

    def run(expr: Expr) -> Result:
        path = tiles_path(expr)
        return Success(expr) if path is None else operands_packed(path, constants)(expr)

    return run


def tiles_path(expr: Expr) -> Path | None:
    """The path of the first map of a map of reductions; None if there is none."""
    return next((path for path, part in top_down(expr) if TILES(part)), None)


def orders_of_copies(expr: Expr) -> Orders:
    """The levels that copy each operand, so that adjacent work-items copy adjacent elements.

    Adjacent work-items copy elements of a chunk if these are adjacent in memory and elements of
    adjacent rows (or columns) are not; otherwise, they copy elements of adjacent rows.
    """
    path = tiles_path(expr)
    if path is None:
        return ROW_BY_ROW, ROW_BY_ROW
    inner = (*path, 1)
    pairs = (*inner, 1, *outer_reductions(body_of(at(expr, inner)))[0], 1)
    return order_of_copy(expr, (*pairs, 0), path), order_of_copy(expr, (*pairs, 1), inner)


def order_of_copy(expr: Expr, operand: Path, rows: Path) -> Order:
    """The levels that copy an operand, which is made for each element of the map at `rows`."""
    along = stride(expr, operand, operand) == 1 and stride(expr, operand, rows) != 1
    return CHUNK_BY_CHUNK if along else ROW_BY_ROW


def tiled(tiling: TileSizes, orders: Orders) -> Strategy:
    """Make tiles of results of a map of a map by groups.

    An operation on the results is applied to the finished block. It is cut together with the
    reductions, unless it reads an array with as many dimensions as the results.
    """
    grid = at_first(maps_over(maps_over(TILES)), of_group(tiling, orders))
    apart = seq(
        reductions_apart,
        clean(),
        attempt(choose(*map(without, (0, 1)))),
        at_first(BLOCKS, in_blocks(tiling, is_reduce)),
        moved(has_fold_in),
    )
    return choose(seq(in_blocks(tiling, is_folded), grid), seq(apart, grid))


def in_blocks(tiling: TileSizes, element: Predicate) -> Strategy:
    """Cut a map of a map into tiles, and these into blocks."""
    (down, right), (tall, wide) = tiling.tile, tiling.block
    blocks = group_maps(element, wide, tall)
    return seq(
        group_maps(element, right, down, tiling.cuts),
        at_first(
            maps_over(maps_over(element)),
            seq(blocks, at_path((0,), rule("map_fission", {"g": (0, 0)}))),
        ),
    )


def without(part: int) -> Strategy:
    """`map(f)(zip(zip(xs, ys), zs))` without one of xs and ys, whose elements `f` does not read."""
    swapped = identity if part == 0 else at_path((0, 0), rule("zip_swap"))
    rotated = at_path((0,), rule("zip_rotate_right"))
    return seq(swapped, rotated, tuples_fused(), rule("map_zip_second"))


def of_group(tiling: TileSizes, orders: Orders) -> Strategy:
    """Make the blocks of a tile, one for each work-item of a group, by one reduction over chunks.

    Operations on the results are applied to the finished sums of each block.
    """
    if tiling.broadcast:
        shared, reads = spread(), READS[:1]
    else:
        shared, reads = staged(tiling.gap, orders), READS
    turns = in_turns() if tiling.buffers > 1 else identity
    steps = TURNS if tiling.buffers > 1 else (STEP,)
    return seq(
        reductions_of_blocks,
        at_first(BLOCKS, seq(rule("maps_reduce_interchange"), tidy(), in_chunks(tiling.chunk))),
        at_first(
            BLOCKS,
            seq(
                rule("maps_reduce_interchange"),
                tidy(),
                turns,
                at_path((0,), over_items()),
                *(at_path(step, seq(shared, at_path(reads, over_items()))) for step in steps),
            ),
        ),
        elementwise(4),
        over_items(),
        normalize(vectorized(tiling.width)),
    )


def in_turns() -> Strategy:
    """A reduction as one over pairs of chunks, whose step takes one and then the other.

    Each has a buffer of its own, so that work-items may store the next chunk while others still
    read this one. Each work-item continues from its own elements of the accumulator.
    """
    halves = seq(at_path((1,), rule("split_in_two", k=1)), rule("reduce_of_concat"))
    own = at_path((0, 0), seq(elementwise(2), over_items()))
    return seq(rule("reduce_strip", m=2), at_path((2,), seq(halves, own)))


def reductions_of_blocks(blocks: Expr) -> Result:
    """Blocks of results `f(reduce(...))` as `f` of the elements of blocks of reductions."""
    return seq(
        at_path((1, 1), reductions_apart),
        at_path((1,), apart(BLOCKS)),
        apart(maps_over(BLOCKS)),
        clean(),
    )(blocks)


def in_whole_chunks(size: NatLike) -> Strategy:
    """Pad both arrays of each reduction of pairs with zeros to whole chunks of `size` elements."""

    def padded(expr: Expr) -> Result:
        length = array_type(children(expr)[1]).length
        extra = (length + size - 1) // size * size - length
        return seq(
            choose(*(rule("reduce_map_fission", {"g": (k,)}) for k in (1, 0))),
            rule("reduce_extension", extra=extra),
            at_path((1,), seq(rule("pad_of_map"), at_path((0,), rule("pad_of_zip")))),
            normalize(choose(rule("map_fusion"), rule("reduce_map_fusion"))),
            tidy(),
        )(expr)

    return at_first(is_reduce, padded)


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


def staged(gap: NatLike, orders: Orders) -> Strategy:
    """Store both tiles that the step of a reduction reads in local memory, under names.

    The step reads the second tile in the function of its map over the rows of blocks.
    """
    return seq(
        rule("let_introduction", {"v": (0, 1)}),
        at_path((0,), in_local(gap, orders[0])),
        at_path(
            (1,),
            seq(
                rule("let_introduction", {"v": (1, 0, 1)}),
                at_path((0,), in_local(gap, orders[1])),
            ),
        ),
    )


def in_local(gap: NatLike, order: Order) -> Strategy:
    """Store chunks `[blocks][chunk][size]` in local memory as rows `[chunk][blocks * size]`.

    `gap` elements after each row are unused, so that work-items that copy or read a column use
    different banks.
    """
    copied = seq(
        rule("to_local_padded", gap=gap),
        at_path((0,), seq(elementwise(2), over_items(order))),
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


def spread() -> Strategy:
    """Hold in subgroups, under a name, the first tile that the step of a reduction reads.

    Each row `[chunk]` of the chunks `[blocks][chunk][size]` is divided among work-items.
    """
    rows = seq(
        rule("map_copy"),
        at_path((1,), rule("transpose_introduction")),
        rule("map_fission", {"g": (0,)}),
        at_path((0,), rule("to_subgroup")),
    )
    return seq(rule("let_introduction", {"v": (0, 1)}), at_path((0,), rows))


def over_items(order: Order = ROW_BY_ROW) -> Strategy:
    """Assign the work-items of a group to a map and the map in its function."""
    outer, inner = order
    return seq(rule(f"map_to_{outer}"), at_path((1,), rule(f"map_to_{inner}")))


def over_groups(expr: Expr) -> Result:
    """Assign groups to the maps over tiles, and to a map around these."""
    each = [*layers(nests(expr))]
    if any(len(paths) != 1 for paths in each):
        return Failure("cooperative", "several maps next to each other make the result")
    found = [path for (path,) in each]
    names = ("wrg_2", *GROUPS)[-len(found) :]
    if not len(GROUPS) <= len(found) <= len(names):
        return Failure("cooperative", f"{len(found)} maps are around a tile; a launch has 2 or 3")
    steps = (at_path(path, rule(f"map_to_{name}")) for path, name in zip(found, names, strict=True))
    return seq(*steps)(expr)


def reduced_pair(block: Expr) -> Expr | None:
    """The zip that the reductions of `map(x -> map(y -> f(reduce(zip(left(x), right(y))))))` read.

    None if they read something else, or if an element is made from several reductions.
    """
    inner = body_of(block)
    element = body_of(inner)
    found = outer_reductions(element)
    if len(found) != 1:
        return None
    pairs = at(element, (*found[0], 1))
    if not (isinstance(pairs, FunCall) and isinstance(pairs.fun, Zip) and len(pairs.args) == 2):
        return None
    x, y = parameter(block), parameter(inner)
    left, right = pairs.args
    return None if y in left.free or x in right.free else pairs
