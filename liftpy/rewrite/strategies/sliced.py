"""Blocks of results in sequence, and reductions in sets: slices of a map of a map of reductions.

A work-item of `block.py` makes one block. Here it makes `turns` of them: it keeps a group of one of
the two maps and goes through groups of the other (`visited`). A reduction over several dimensions
is cut into sets of its innermost one, and goes through all dimensions of a set before the next
(`in_sets`). The accumulators of one block are kept from set to set; those of all blocks of a
work-item may be too, so that each set of an operand is read for all blocks (`shared_sets`).

For a convolution, sets are sets of channels; a group of windows that is kept is input stationary, a
group of kernels weight stationary.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, top_down
from liftpy.rewrite.strategies.block import (
    SPLITS,
    accumulate_blocks,
    accumulators,
    block_of,
    group_maps,
    interchanged,
    pack_constants,
    pack_zipped,
    vectorize_blocks,
)
from liftpy.rewrite.strategies.lower import elementwise, nest_reductions, over_ids, sequential
from liftpy.rewrite.strategies.order import exchanged, joined
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_folded,
    is_reduce,
    longest,
    nests,
    outer_reductions,
    parameter,
    paths_of,
    rank,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    identity,
    rule,
    seq,
    where,
)

INNER, OUTER = "inner", "outer"
"""The maps of a block: that of the results in a row, and that of the rows."""


def in_sets(chunk: NatLike) -> Strategy:
    """Cut the reductions of an expression into sets of `chunk` elements of the innermost dimension.

    Over a join of rows, all rows of a set are reduced before the next set: the operator must be
    associative and commutative. A reduction of one dimension is cut without a change of order.
    """
    inside = seq(rule("reduce_of_reduce"), exchanged())
    joins = seq(
        at_path((1,), joined),
        exchanged(),
        rule("reduce_of_join"),
        rule("reduce_strip", m=chunk),
        attempt(seq(at_path((1,), rule("split_of_map")), rule("reduce_map_fusion"))),
        at_path((2,), inside),
    )

    def one(expr: Expr) -> Result:
        result = joins(expr)
        return rule("reduce_strip", m=chunk)(expr) if isinstance(result, Failure) else result

    def run(expr: Expr) -> Result:
        paths = outer_reductions(expr)
        if not paths:
            return Failure("in_sets", "nothing is reduced")
        return seq(*(at_path(path, where(is_reduce, one, "reduction")) for path in paths))(expr)

    return run


def innermost_length(reduction: Expr) -> int:
    """The length of the innermost dimension that a reduction is over."""
    result = at_path((1,), joined)(reduction)
    if isinstance(result, Failure):
        return longest(array_type(at(reduction, (1,))))
    rows = array_type(at(result.expr, (1, 0)))
    return longest(rows.element) if isinstance(rows.element, ArrayType) else longest(rows)


def visited(stationary: str, turns: NatLike) -> Strategy:
    """Let a work-item make `turns` blocks: of the grouped maps at an expression, one is cut again.

    If the groups of the `inner` map are stationary, groups of the outer map are cut, and exchanged
    with them; otherwise groups of the inner map are cut. The blocks are then made in sequence.
    """
    if stationary == OUTER:
        return at_path((0, 1, 0, 0), rule("split_join", m=turns))
    inside = seq(rule("map_fission", {"g": (0, 0)}), at_path((0,), interchanged()))
    return at_path((0,), seq(rule("split_join", m=turns), at_path((0, 1), inside)))


def sequence_of(stationary: str, *, named: bool = False) -> Path:
    """The path of the map over the blocks of a work-item, from the expression of `visited`.

    It is in a `let` if the stationary group of the outer map is `named` (`stored_tiles`).
    """
    if stationary == OUTER:
        return (0, 1, 0, 0, 0, 1, *((1,) if named else ()))
    return (0, 0, 1, 0, 0, 1)


def stored_tiles(stationary: str) -> Strategy:
    """Let a work-item store a group of elements of the outer map before it makes their blocks.

    The copy is in local memory, as large as the group: for a convolution its windows, each whole,
    with zeros where they reach over the border. If it is stationary, it is made once for all blocks
    of a work-item, otherwise for each block. The expression is that of `visited`.
    """
    sequence = sequence_of(stationary)
    place = sequence if stationary == OUTER else (*sequence, 1)

    def stored(groups: Expr) -> Result:
        group = parameter(at(groups, (0,) if stationary == OUTER else sequence))
        used = [path for path, part in top_down(at(groups, place)) if part == group]
        if not used:
            return Failure("stored_tiles", "the blocks do not read the elements of the outer map")
        named = rule("let_introduction", {"v": used[0]})
        copied = seq(elementwise(rank(group.type)), rule("to_local"))
        return at_path(place, seq(named, at_path((0,), copied)))(groups)

    return stored


def shared_sets(blocks: Expr) -> Result:
    """Exchange a map over blocks and the outermost loop of their reductions.

    What is applied to the results is applied to the accumulators of all blocks at the end.
    """
    interchange = rule("map_reduce_interchange")
    path = accumulators(body_of(blocks))
    if not path:
        return interchange(blocks)
    return seq(rule("map_fission", {"g": path}), at_path((0,), interchange))(blocks)


def around(body: Expr, path: Path) -> int:
    """The number of maps that make the result and are around a path."""
    return sum(path[: len(p)] == p != path for p in paths_of(nests(body)))


def sliced_blocks(
    constants: frozenset[str],
    sizes: tuple[NatLike, NatLike, NatLike],
    *,
    level: str,
    stationary: str,
    turns: NatLike,
    shared: bool,
    tiles: bool = False,
    cuts: tuple[str, str] = SPLITS,
) -> Strategy:
    """Register blocks of which a work-item makes `turns` in sequence; sizes are kappa, sigma and v.

    If `shared`, the outermost loop of the reductions, over sets, is around the sequence of blocks.
    With `tiles`, `stored_tiles` is applied; then sets can be shared only if it is the outer map's
    groups that are stationary.
    """
    kappa, sigma, width = sizes

    def run(body: Expr) -> Result:
        path = block_of(body)
        if path is None:
            return Failure("sliced_blocks", "no block makes the result")
        sequence = (*path, *sequence_of(stationary, named=tiles))
        shares = at_path(sequence, shared_sets) if shared else identity
        return seq(
            nest_reductions(),
            group_maps(is_folded, kappa, sigma, cuts),
            pack_zipped(constants, kappa),
            at_path(path, visited(stationary, turns)),
            at_path(path, stored_tiles(stationary)) if tiles else identity,
            accumulate_blocks(),
            shares,
            over_ids(level, most=around(body, path) + 2),
            vectorize_blocks(width),
            sequential(),
            pack_constants(constants, kappa),
        )(body)

    return run
