"""Blocks of results in sequence, and reductions in sets, of a map of a map of reductions.

A work-item of `block.py` makes one block. Here it makes `turns` of them: it keeps a group of one of
the two maps and goes through groups of the other (`visited`). A reduction over several dimensions
is cut into sets of elements of its innermost one; all other dimensions are reduced for one set
before the next (`in_sets`). The accumulators of a block are kept from set to set. If those of all
blocks of a work-item are, each set of the stationary operand is read once for all blocks
(`shared_sets`).

For a convolution, sets are sets of channels. To keep a group of windows is input stationary, to
keep a group of kernels weight stationary.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, top_down
from liftpy.rewrite.strategies.block import (
    OUTER,
    SPLITS,
    accumulate_blocks,
    accumulators,
    block_of,
    group_maps,
    interchanged,
    vectorize_blocks,
)
from liftpy.rewrite.strategies.lower import elementwise, nest_reductions, over_ids, sequential
from liftpy.rewrite.strategies.order import exchanged, joined
from liftpy.rewrite.strategies.panels import of_constants
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


def in_sets(chunk: NatLike) -> Strategy:
    """Cut the reductions of an expression into sets of `chunk` elements of the innermost dimension.

    A reduction over a join of rows reduces all rows of a set before the next set, so its operator
    must be associative and commutative. A reduction of one dimension is cut and keeps its order.
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
    """The length of the innermost dimension over which an expression reduces."""
    result = at_path((1,), joined)(reduction)
    if isinstance(result, Failure):
        return longest(array_type(at(reduction, (1,))))
    rows = array_type(at(result.expr, (1, 0)))
    return longest(rows.element) if isinstance(rows.element, ArrayType) else longest(rows)


def visited(stationary: str, turns: NatLike) -> Strategy:
    """Let a work-item make `turns` blocks in sequence, by cutting one of the grouped maps again.

    If the groups of the `inner` map are stationary, the groups of the outer map are cut, and
    exchanged with the inner map; otherwise the groups of the inner map are cut.
    """
    if stationary == OUTER:
        return at_path((0, 1, 0, 0), rule("split_join", m=turns))
    inside = seq(rule("map_fission", {"g": (0, 0)}), at_path((0,), interchanged()))
    return at_path((0,), seq(rule("split_join", m=turns), at_path((0, 1), inside)))


def sequence_of(stationary: str, *, named: bool = False) -> Path:
    """The path of the map over the blocks of a work-item, from the expression that `visited` makes.

    If a `let` names the stationary group of the outer map (`named`, see `stored_tiles`), the map is
    inside it.
    """
    if stationary == OUTER:
        return (0, 1, 0, 0, 0, 1, *((1,) if named else ()))
    return (0, 0, 1, 0, 0, 1)


def stored_tiles(stationary: str) -> Strategy:
    """Let a work-item store a group of elements of the outer map before it makes their blocks.

    The copy is in local memory and has the size of the group: for a convolution, all elements of
    each of its windows, with zeros where they reach over the border. If the group is stationary, it
    is copied once for all blocks of a work-item, otherwise for each block. Applies to the
    expression that `visited` makes.
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

    An operation on the results is applied at the end, to the accumulators of all blocks.
    """
    interchange = rule("map_reduce_interchange")
    path = accumulators(body_of(blocks))
    if not path:
        return interchange(blocks)
    return seq(rule("map_fission", {"g": path}), at_path((0,), interchange))(blocks)


def around(body: Expr, path: Path) -> int:
    """The number of the maps that make the result and contain a path."""
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

    If `shared`, the outermost loop of the reductions, which is over sets, is around the sequence of
    blocks. With `tiles`, `stored_tiles` is applied; sets can then be shared only if the groups of
    the outer map are stationary.
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
            of_constants(constants).zipped(kappa),
            at_path(path, visited(stationary, turns)),
            at_path(path, stored_tiles(stationary)) if tiles else identity,
            accumulate_blocks(),
            shares,
            over_ids(level, most=around(body, path) + 2),
            vectorize_blocks(width),
            sequential(),
            of_constants(constants).whole(kappa),
        )(body)

    return run
