"""Reductions in parts: all parts are reduced at the same time, and then their results.

`map(x -> map(y -> f(reduce(g, z, zip(left(x), right(y))))))` becomes maps of
`f(reduce(g, z, ys))`, where `ys` are the results of the parts, which are stored. A map over parts
is around the maps over x and y: a part is a map of a map of reductions of the same elements of all
rows.

More work-items then share a few long reductions. The operator must be associative and have a
neutral element.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import top_down
from liftpy.rewrite.strategies.epilogue import taken_apart
from liftpy.rewrite.strategies.lower import clean, over_ids, sequential
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_reduce,
    maps_over,
    outer_reductions,
)
from liftpy.rewrite.strategies.share import outside_functions
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


def in_parts(blocks: Predicate, size: NatLike, kernel: Strategy) -> Strategy:
    """Reduce parts of `size` elements in one kernel, and then their results in another.

    `blocks` recognises the map of a map of reductions; `kernel` lowers the map over the parts.
    """
    stored = seq(parts_outside, at_path((0, 0), seq(kernel, rule("to_global"))))
    cut_all = seq(at_first(blocks, parts_apart(size)), at_first(PARTS, stored))
    return seq(cut_all, over_ids("glb"), sequential())


def at_first(wanted: Predicate, strategy: Strategy) -> Strategy:
    """Apply a strategy at the outermost part that satisfies a predicate."""

    def run(expr: Expr) -> Result:
        path = next((path for path, part in top_down(expr) if wanted(part)), None)
        if path is None:
            return Failure("at_first", "no map of a map of reductions makes the result")
        return at_path(path, strategy)(expr)

    return run


def parts_apart(size: NatLike) -> Strategy:
    """Separate the maps that reduce the results of parts from those that reduce the parts."""

    def run(block: Expr) -> Result:
        found = outer_reductions(body_of(body_of(block)))
        if len(found) != 1:
            return Failure("in_parts", "each result must be made from one reduction")
        (path,) = found
        return seq(
            at_path((1, 1, *path), cut(size)),
            at_path((1,), taken_apart((*path, 1))),
            outer_apart,
        )(block)

    return run


def cut(size: NatLike) -> Strategy:
    """Turn a reduction of a zip into one of the results that a map over a zip of parts makes."""
    return seq(
        choose(*(rule("reduce_map_fission", {"g": (k,)}) for k in (1, 0))),
        rule("reduce_split", m=size),
        at_path(
            (1,),
            seq(
                at_path((0,), rule("split_of_map")),
                rule("map_fusion"),
                at_path((0,), rule("split_of_zip")),
                rule("map_fusion"),
                at_path((1,), normalize(rule("reduce_map_fusion"))),
                clean(),
            ),
        ),
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
