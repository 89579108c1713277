"""Reductions in parts: all parts are reduced at the same time, and then their results.

`map(x -> map(y -> f(reduce(g, z, zip(left(x), right(y))))))` becomes maps of
`f(reduce(g, z, ys))`, where `ys` are the results of the parts, which are stored. A map over parts
encloses the maps over x and y and all maps around them. Its function is a map of a map of
reductions, of the same range of elements for all x and y.

More work-items then share a few long reductions, and what they read of a part stays in the caches.
The operator must be associative and have a neutral element.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import Path, top_down
from liftpy.rewrite.strategies.block import interchanged
from liftpy.rewrite.strategies.epilogue import COMPONENTS, taken_apart
from liftpy.rewrite.strategies.lower import clean, nest_reductions, over_ids, sequential
from liftpy.rewrite.strategies.shapes import (
    body_of,
    function_around,
    is_folded,
    is_reduce,
    maps_over,
    outer_reductions,
)
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategies.sums import operands_in_order
from liftpy.rewrite.strategy import (
    Failure,
    Predicate,
    Result,
    Strategy,
    at_path,
    choose,
    identity,
    normalize,
    rule,
    seq,
)

OF_PARTS = maps_over(is_reduce)
"""Whether an expression is a map of reductions, one for each part."""
PARTS = maps_over(maps_over(OF_PARTS))
"""Whether an expression is a map of a map of `OF_PARTS`."""


def in_parts(blocks: Predicate, cut: Strategy, kernel: Strategy) -> Strategy:
    """Reduce parts in one kernel, and then their results in another.

    `blocks` recognises the map of a map of reductions. `cut` turns a reduction into one of the
    results of its parts (`parts_of`, `parts_of_rows`). `kernel` lowers the map over the parts.
    """
    stored = seq(kernel, rule("to_global"))
    fused = seq(normalize(rule("reduce_map_fusion")), operands_in_order)
    moved = at_first(PARTS, parts_outside)
    cut_all = at_first(blocks, seq(fused, parts_apart(cut), moved))
    return seq(cut_all, at_parts(stored), over_ids("glb"), sequential())


def at_first(wanted: Predicate, strategy: Strategy) -> Strategy:
    """Apply a strategy at the outermost part that satisfies a predicate."""

    def run(expr: Expr) -> Result:
        path = next((path for path, part in top_down(expr) if wanted(part)), None)
        if path is None:
            return Failure("at_first", "no map of a map of reductions makes the result")
        return at_path(path, strategy)(expr)

    return run


def parts_apart(cut: Strategy) -> Strategy:
    """Separate the maps that reduce the results of parts from those that reduce the parts."""

    def run(block: Expr) -> Result:
        found = outer_reductions(body_of(body_of(block)))
        if len(found) != 1:
            return Failure("in_parts", "each result must be made from one reduction")
        (path,) = found
        return seq(
            at_path((1, 1, *path), cut),
            at_path((1,), taken_apart((*path, 1))),
            outer_apart,
        )(block)

    return run


def parts_of(size: NatLike) -> Strategy:
    """Turn a reduction of a zip into one of the results that a map over a zip of parts makes."""
    return seq(
        choose(*(rule("reduce_map_fission", {"g": (k,)}) for k in (1, 0))),
        rule("reduce_split", m=size),
        at_path((1,), seq(of_cut_arrays(), at_path((1,), normalize(rule("reduce_map_fusion"))))),
        clean(),
    )


def parts_of_rows(size: NatLike) -> Strategy:
    """`parts_of` for a reduction of joined rows: a part has `size` rows."""
    of_rows = seq(
        at_path((1,), rule("map_fission", {"g": (1,)})),
        rule("reduce_of_map_reduce"),
        nest_reductions(),
    )
    return seq(
        normalize(choose(rule("zip_of_joins"), rule("reduce_map_fusion"))),
        choose(*(rule("reduce_map_fission", {"g": (k,)}) for k in (1, 0))),
        at_path((1,), rule("map_of_join")),
        rule("reduce_by_rows"),
        rule("reduce_split", m=size),
        at_path((1, 0, 0), normalize(rule("map_fusion"))),
        at_path((1,), seq(of_cut_arrays(), clean(), normalize(COMPONENTS))),
        at_path((1, 1), of_rows),
    )


def of_cut_arrays() -> Strategy:
    """Turn a map over parts of `zip |> map(f)` into one over a zip of parts, with `f` inside."""
    return seq(
        at_path((0,), rule("split_of_map")),
        rule("map_fusion"),
        at_path((0,), rule("split_of_zip")),
        rule("map_fusion"),
    )


def outer_apart(expr: Expr) -> Result:
    """`taken_apart` for the map of maps over parts in the function of the outer map."""
    found = (p for p, e in outside_functions(body_of(expr)) if maps_over(OF_PARTS)(e))
    path = next(found, None)
    if path is None:
        return Failure("in_parts", "no map of maps over parts")
    return (taken_apart(path) if path else identity)(expr)


def parts_outside(expr: Expr) -> Result:
    """Move the map over parts around the maps over both operands."""
    return seq(
        rule("map_fission", {"g": (1, 0, 0)}),
        at_path((1,), rule("map_fission", {"g": (0, 1)})),
        rule("maps_of_zips_interchange"),
    )(expr)


def at_parts(strategy: Strategy, levels: int = 3) -> Strategy:
    """Move the map over parts out of all functions, and apply a strategy to it.

    It is the outermost of this many nested maps, the innermost of which computes reductions.
    """

    def run(expr: Expr) -> Result:
        path = last_nest(levels, expr)
        around = function_around(expr, path)
        if around is None:
            return at_path(path, strategy)(expr)
        inside = path[len(around) + 1 :]
        return seq(
            at_path(around, taken_apart(inside)) if inside else identity,
            lambda e: at_path(last_nest(levels, e)[:-1], interchanged())(e),
            clean(),
            at_parts(strategy, levels + 1),
        )(expr)

    return run


def last_nest(levels: int, expr: Expr) -> Path:
    """The path of the last nest of `levels` maps of reductions; earlier ones read its results."""
    nest: Predicate = is_folded
    for _ in range(levels):
        nest = maps_over(nest)
    return [path for path, part in top_down(expr) if nest(part)][-1]
