"""General lowering: reductions as nested loops, maps over global ids, copies into memory."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.expr import Expr, FunCall, Primitive
from liftpy.ir.walk import Path, top_down
from liftpy.primitives import Map, Reduce, ToGlobal
from liftpy.primitives.work import computes, is_layout, writable
from liftpy.rewrite.strategies.shapes import body_of, rank, working, working_map
from liftpy.rewrite.strategy import (
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
    where,
)


def nest_reductions() -> Strategy:
    """Reductions over joined arrays as nested reductions, with the maps before them fused in."""
    return normalize(
        choose(rule("reduce_map_fusion"), rule("reduce_of_join"), rule("zip_of_joins"))
    )


def sequential(*, unroll: bool = False) -> Strategy:
    """What has no level yet becomes loops; innermost reductions straight-line code if asked for."""
    innermost_first = attempt(unroll_innermost()) if unroll else identity
    return seq(
        innermost_first,
        normalize(rule("reduce_to_seq")),
        normalize(where(working_map, rule("map_to_seq"))),
    )


def unroll_innermost() -> Strategy:
    """Reductions whose step has no other reduction become straight-line code."""

    def innermost_reduce(expr: Expr) -> bool:
        if not (isinstance(expr, FunCall) and type(expr.fun) is Reduce):
            return False
        inner = (e for _, e in top_down(expr.fun.f.body))
        return not any(isinstance(e, FunCall) and isinstance(e.fun, Reduce) for e in inner)

    return normalize(where(innermost_reduce, rule("reduce_to_seq_unroll"), "innermost reduction"))


def working_depth(expr: Expr) -> int:
    """How many maps that compute stand inside one another, from the outermost inwards."""
    for _, part in top_down(expr):
        if working_map(part):
            return 1 + working_depth(body_of(part))
        if isinstance(part, FunCall) and isinstance(part.fun, Reduce):
            return 0
    return 0


def over_ids(level: str) -> Strategy:
    """The outermost maps, three at most, over ids of a level; the innermost is along dimension 0.

    `glb` leaves the work-groups to the driver, `wrg` makes each work-item a group of its own.
    """

    def run(expr: Expr) -> Result:
        depth = min(3, working_depth(expr))
        return seq(*(working(f"map_to_{level}_{d}") for d in reversed(range(depth))))(expr)

    return run


def plain() -> Strategy:
    """One kernel: a work-item for each result of the outer maps, loops inside; views are copied.

    A result that a layout reads which cannot be written through has a kernel of its own before.
    """

    def run(expr: Expr) -> Result:
        if not computes(expr):
            return copied()(expr)
        place = read_again(expr)
        if place is not None:
            stored = seq(rule("to_global"), at_path((0,), plain()))
            return seq(at_path(place, stored), rest())(expr)
        return seq(nest_reductions(), over_ids("glb"), sequential())(expr)

    return run


def rest() -> Strategy:
    """`plain`, once some of an expression is stored; a copy where nothing else computes."""

    def run(expr: Expr) -> Result:
        done = not any(map(unfinished, top_level(expr)))
        return copied()(expr) if done else plain()(expr)

    return run


def unfinished(expr: Expr) -> bool:
    """A call that computes and is not stored."""
    stored = isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)
    return computes(expr) and not stored


def top_level(expr: Expr) -> Iterator[Expr]:
    """What the layouts at the end of an expression read."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Primitive) and is_layout(expr.fun):
        for arg in expr.args:
            yield from top_level(arg)
    else:
        yield expr


def read_again(expr: Expr, path: Path = (), *, read: bool = False) -> Path | None:
    """Where something computed is read by a layout at the end, and not written through it."""
    if not isinstance(expr, FunCall) or not unfinished(expr):
        return None
    if not isinstance(expr.fun, Primitive) or not is_layout(expr.fun):
        return path if read else None
    read = read or not writable(expr.fun, expr.args)
    places = (read_again(a, (*path, k), read=read) for k, a in enumerate(expr.args))
    return next((place for place in places if place is not None), None)


def elementwise(depth: int) -> Strategy:
    """An array of `depth` dimensions as nested maps down to its scalars; where none is, a copy."""

    def run(expr: Expr) -> Result:
        if depth == 0:
            return Success(expr)
        here = identity if isinstance(expr, FunCall) and type(expr.fun) is Map else rule("map_copy")
        return seq(here, at_path((1,), elementwise(depth - 1)))(expr)

    return run


def copied() -> Strategy:
    """A view copied by elements: three outer dimensions over global ids, the others in loops."""

    def run(expr: Expr) -> Result:
        depth = rank(expr.type)
        parallel = min(3, depth)
        levels = [
            f"map_to_glb_{parallel - 1 - k}" if k < parallel else "map_to_seq" for k in range(depth)
        ]
        lowered = [at_path((1,) * k, rule(name)) for k, name in enumerate(levels)]
        return seq(elementwise(depth), *lowered)(expr)

    return run


def copy_kernel() -> Strategy:
    """A view copied into global memory by a kernel of its own."""
    return seq(rule("to_global"), at_path((0,), copied()))


def clean() -> Strategy:
    """Drop maps that do nothing, and zips of which one part is used."""
    return normalize(choose(rule("map_identity"), rule("map_zip_first"), rule("map_zip_second")))
