"""The published four-stage form (Mogers et al. 2020, section 5): pad, partial results, sum, crop.

The expected shape is a two-dimensional map over the windows of a padded array, in which each window
is reduced, with `f(window) = map(y -> reduce(...))`:

    map(rows -> map(f)(transpose(map(slide)(rows))))(slide(padded))

Windows are taken tile by tile (theta). The array is padded further (rho) so that tiles fit. Each
reduction is cut into chunks (omega), whose partial results are stored by a first kernel and summed
by a second one. Results beyond the original ones are cropped. A work-group computes a tile for a
group of kappa reductions, a work-item one chunk of sigma windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.primitives import Split
from liftpy.rewrite.strategies.block import accumulate_blocks, group_maps, store_padding
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.lower import copied, over_ids, sequential
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_reduce,
    maps_over,
    outer_reductions,
    working,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    outermost,
    rule,
    seq,
    where,
)


@dataclass(frozen=True)
class Sizes:
    """The tuning sizes of the form (specs: lift-convolution, section 6)."""

    tile: Nat
    extra: Nat
    inner: Nat  # kappa: reductions per work-group
    outer: Nat  # sigma: windows per work-item
    chunk: Nat  # omega: elements that one work-item reduces
    width: Nat  # v: vector lanes


def split_off(*path: int) -> Strategy:
    """`map(x -> f(g(x)))` as two maps, where `g` is the part at a path of the body."""
    return rule("map_fission", {"g": path})


def body(strategy: Strategy) -> Strategy:
    """Apply the strategy to a map's body."""
    return at_path((1,), strategy)


def source(strategy: Strategy) -> Strategy:
    """Apply the strategy to the argument of a map or layout."""
    return at_path((0,), strategy)


def extend(down: Nat, right: Nat, *, padded: bool) -> Strategy:
    """Pad further after the last row and column, and crop the additional windows.

    `down` and `right` are the numbers of rows and columns to add. If `padded`, this fails for an
    array that is not padded yet.

    From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(p))`
    to `map(crop)(crop(map(rows -> map(f)(transpose(map(slide)(rows))))(slide(p'))))`.
    """
    columns = seq(
        # map(slide)(rows): extend each row; move the crop out of the map, the transpose and map(f)
        at_path((0, 0), seq(body(rule("slide_extension", extra=right)), split_off(0))),
        source(rule("transpose_of_map_pad")),
        rule("map_of_crop"),
    )
    rows = seq(source(rule("slide_extension", extra=down)), rule("map_of_crop"))
    merged: Callable[[Strategy], Strategy] = (lambda merge: merge) if padded else attempt
    pull = seq(
        # map(r -> slide(pad(r)))(rows): move the padding out to the array under the windows
        body(at_path((0, 0), split_off(0))),
        split_off(0, 0, 0),
        source(rule("map_map_of_slide")),
        # map(pad)(pad(map(pad)(pad(x)))): one padding per dimension, if x was padded before
        at_path((0, 0), seq(source(merged(merge_rows())), merged(merge_columns()))),
    )
    return seq(body(columns), split_off(0), source(seq(rows, source(pull))))


def merge_rows() -> Strategy:
    """`pad(map(pad)(pad(x)))` as `map(pad)(pad(x))`."""
    return seq(rule("pad_exchange"), source(rule("pad_of_pad")))


def merge_columns() -> Strategy:
    """`map(pad)(map(pad)(x))` as `map(pad)(x)`."""
    return seq(rule("map_fusion"), body(rule("pad_of_pad")))


@dataclass(frozen=True)
class Tiles:
    """A way to take windows tile by tile: `slide(xs)` as `whole(map(slide)(tiles(xs)))`.

    `cut` is this step. The layout `whole` makes the windows from those of the tiles: it is `join`,
    or another one with laws like those of `join`, whose names are `mapped` and `transposed`.
    """

    cut: Strategy
    mapped: str = "map_of_join"
    transposed: str = "transpose_of_map_join"


def disjoint(points: Nat) -> Tiles:
    """Tiles of a number of points, which together have each window once."""
    return Tiles(rule("slide_tiling", tile=points))


def overlapping(windows: Nat) -> Tiles:
    """Tiles of a number of windows; the last tile ends with the array, and may begin early."""
    cut = seq(rule("uncover_introduction", m=windows), source(rule("cover_of_slide")))
    return Tiles(cut, "map_of_uncover", "transpose_of_map_uncover")


def columns_in_tiles(tiles: Tiles) -> Strategy:
    """Take the windows of rows tile by tile.

    From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(p))` to
    `map(w -> whole(map(c -> map(f)(transpose(c)))(transpose(w))))(slide(map(windows)(p)))`, where
    `windows` is `row -> map(slide)(tiles(row))`.
    """
    return seq(
        split_off(0, 0),
        source(rule("map_map_of_slide")),
        # map(y -> map(f)(transpose(y)))(slide(map(slide)(p))): tile the columns
        at_path((0, 0), seq(body(tiles.cut), split_off(0))),
        source(rule("slide_of_map")),
        rule("map_fusion"),
        body(
            seq(
                source(rule(tiles.transposed)),
                rule(tiles.mapped),
                source(rule("map_fusion")),
            )
        ),
    )


def tile_columns(tiles: Tiles) -> Strategy:
    """Cut the columns of `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(tr))` in tiles."""
    return seq(
        columns_in_tiles(tiles),
        # map(w -> whole(map(h)(transpose(w))))(slide(z)): tiles outside rows
        split_off(0),
        source(
            seq(
                split_off(0),
                source(rule("map_transpose_of_slide")),
                rule("map_map_of_transpose"),
                source(rule("map_fusion")),
                # map(c -> map(h)(slide(c)))(transpose(map(r -> map(slide)(tiles(r)))(tr)))
                source(source(seq(source(split_off(0)), rule("transpose_of_map_map")))),
                source(rule("map_fusion")),
            )
        ),
    )


def tile_rows(tiles: Tiles) -> Strategy:
    """Cut the columns in tiles that have all rows of a window.

    From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(p))` to
    `map(whole)(map(rows -> map(tile -> map(f)(transpose(map(slide)(tile))))(transpose(rows)))(
    slide(map(tiles)(p))))`.
    """
    return seq(
        columns_in_tiles(tiles),
        # map(w -> whole(map(h)(transpose(w))))(slide(map(row -> map(slide)(tiles(row)))(p)))
        source(seq(source(split_off(0)), rule("slide_of_map"))),
        rule("map_fusion"),
        body(source(seq(source(rule("transpose_of_map_map")), rule("map_fusion")))),
        split_off(0),
    )


def tile_line(tiles: Tiles) -> Strategy:
    """`map(f)(slide(xs))` as `whole(map(tile -> map(f)(slide(tile)))(tiles(xs)))`."""
    return seq(source(tiles.cut), rule(tiles.mapped), source(rule("map_fusion")))


def tile_windows(rows: Tiles, columns: Tiles) -> Strategy:
    """Take windows tile by tile in both dimensions.

    From `map(rows -> map(f)(transpose(map(slide)(rows))))(slide(p))` to
    `whole(map(ys -> map(whole)(transpose(ys)))(split(map(tile -> split(map(f)(windows)))(xs))))`,
    where `xs` are the tiles.
    """
    merge = seq(
        # map(tr -> map(whole)(transpose(map(t)(transpose(map(slide)(tr))))))(tiles(p)):
        # one axis of tiles
        split_off(0, 0),
        source(seq(split_off(0), rule("map_map_join"))),
    )
    windows = seq(
        # tile -> map(c -> map(f)(transpose(c)))(slide(map(slide)(tile))): one axis of windows
        split_off(0),
        rule("map_map_join"),
    )
    inside = seq(body(tile_columns(columns)), merge, at_path((0, 0), body(windows)))
    return seq(tile_line(rows), source(inside))


def chunk_reduction(sizes: Sizes, *, coalesced: bool) -> Strategy:
    """`reduce(f, z)(map(g)(xs))` as a fold over chunks, each reduced in vectors.

    A chunk is omega adjacent elements or, if `coalesced`, every n/omega-th vector, so that adjacent
    chunks read adjacent vectors (specs: lift-convolution, section 5.2).
    """
    vectors = seq(
        rule("vectorize_reduce", v=sizes.width),
        at_path((1,), seq(source(rule("as_vector_of_map")), rule("map_fusion"))),
    )

    def run(expr: Expr) -> Result:
        if not coalesced:
            inner = seq(vectors, rule("reduce_map_fusion"))
            chunks = seq(source(rule("split_of_map")), rule("map_fusion"), body(inner))
            return seq(rule("reduce_split", m=sizes.chunk), at_path((1,), chunks))(expr)
        if not (isinstance(expr, FunCall) and is_reduce(expr)):
            return Failure("chunk_reduction", "no reduction here")
        elements = array_type(expr.args[1])
        strided = seq(
            source(seq(source(rule("split_of_map")), rule("transpose_of_map_map"))),
            rule("map_fusion"),
            body(rule("reduce_map_fusion")),
        )
        return seq(
            vectors,
            rule("reduce_split", m=elements.length.exact_div(sizes.chunk)),
            rule("reduce_exchange"),
            at_path((1,), strided),
        )(expr)

    return run


def store_partials(sizes: Sizes, *, coalesced: bool, unroll: bool) -> Strategy:
    """Store the partial results of every window in one kernel, and sum them in the next.

    Applies to `map(tile -> split(map(window -> map(y -> reduce(...)))(windows)))(tiles)`.
    """

    def chunked(expr: Expr) -> Result:
        # map(y -> f(reduce(...))): separate the partial results from f of their sum
        paths = outer_reductions(body_of(expr))
        chunks = (at_path(path, chunk_reduction(sizes, coalesced=coalesced)) for path in paths)
        return seq(body(seq(*chunks)), rule("map_fission_zip", {"g": (*paths[0], 1)}))(expr)

    separate = seq(body(chunked), split_off(0, 1))
    return seq(
        body(source(separate)),
        split_off(0, 0),
        source(seq(partial_kernel(sizes, unroll=unroll), rule("to_global"))),
    )


def partial_kernel(sizes: Sizes, *, unroll: bool) -> Strategy:
    """`map(tile -> map(window -> map(y -> map(reduce)(chunks))))` over groups and work-items."""
    chunks_outside = seq(
        body(
            seq(split_off(0), source(rule("transpose_introduction")), rule("map_map_of_transpose"))
        ),
        split_off(0),
        source(
            seq(split_off(0), source(rule("transpose_introduction")), rule("map_map_of_transpose"))
        ),
    )
    chunked = maps_over(is_reduce)
    return seq(
        body(
            seq(
                group_maps(chunked, sizes.inner, sizes.outer),
                source(seq(split_off(0, 0), source(rule("map_interchange")))),
            )
        ),
        outermost(
            where(maps_over(maps_over(chunked)), chunks_outside, "block of chunked reductions")
        ),
        accumulate_blocks(),
        *(
            working(name)
            for name in ("map_to_wrg_1", "map_to_wrg_0", "map_to_lcl_1", "map_to_lcl_0")
        ),
        sequential(unroll=unroll),
    )


CROPPED = (0, 0)  # the path of the part under map(crop)(crop(...))


@lru_cache(maxsize=8)
def tiles(sizes: Sizes) -> Strategy:
    """Pad the array further, and take its windows tile by tile under the crop."""
    return remembered(
        seq(
            attempt(folds_inward),
            attempt(rule("map_fusion")),
            extend(sizes.extra, sizes.extra, padded=True),
            at_path(CROPPED, tile_windows(disjoint(sizes.tile), disjoint(sizes.tile))),
        )
    )


def four_stages(sizes: Sizes, *, coalesced: bool, unroll: bool) -> Strategy:
    """The form with four kernels: pad, partial results, sum, crop."""
    return seq(
        tiles(sizes),
        outermost(
            where(
                is_tile_map,
                store_partials(sizes, coalesced=coalesced, unroll=unroll),
                "map over tiles",
            )
        ),
        at_path(CROPPED, over_ids("glb")),
        sequential(),
        at_path(CROPPED, rule("to_global")),
        copied(),
        store_padding("copy"),
    )


def is_tile_map(expr: Expr) -> bool:
    """Whether an expression is `map(tile -> split(map(window -> ...)))`."""
    return maps_over(lambda e: isinstance(e, FunCall) and isinstance(e.fun, Split))(expr)
