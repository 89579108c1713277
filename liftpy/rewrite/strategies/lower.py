"""General lowering: reductions as nested loops, maps over global ids, copies into memory."""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Lambda, Primitive
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Map, Reduce
from liftpy.primitives.work import is_layout
from liftpy.rewrite.rules.lowering import DIMENSIONS
from liftpy.rewrite.strategies.shapes import is_reduce, rank, working_map
from liftpy.rewrite.strategies.share import folds_arrays, store_shared
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


def result_maps(expr: Expr) -> tuple[tuple[Path, ...], Path]:
    """Paths of the maps that make the result, outermost first, three at most, and of what is left.

    Each is the result of the one around it, or what a layout at the end is written through. A map
    that is only read, by a zip say, is none of them: it is worked out where it is read. Inside
    another, a map that reads what is folded to an array is none: one work-item has that array.
    """
    path: Path = ()
    found: list[Path] = []
    while len(found) < len(DIMENSIONS):
        match at(expr, path):
            case FunCall(Lambda() | Map(), args) if found and any(map(folds_arrays, args)):
                break
            case FunCall(Lambda(), args):
                path = (*path, len(args))
            case FunCall(fun, _) as part if working_map(part):
                found.append(path)
                path = (*path, 1)
            case FunCall(Primitive() as fun, (arg,)) if can_write_through(fun, arg):
                path = (*path, 0)
            case _:
                break
    return tuple(found), path


def can_write_through(fun: Primitive, arg: Expr) -> bool:
    """Whether a layout at the end has an inverse through which its argument can be written."""
    if type(fun) is not Map:
        return is_layout(fun) and fun.inverse(arg.type) is not None
    body = fun.f.body
    while isinstance(body, FunCall) and isinstance(body.fun, Primitive) and len(body.args) == 1:
        if not can_write_through(body.fun, body.args[0]):
            return False
        (body,) = body.args
    return not fun.f.free and body == fun.f.params[0]


def over_ids(level: str) -> Strategy:
    """The maps that make the result over ids of a level; the innermost is along dimension 0.

    `glb` leaves the work-groups to the driver, `wrg` makes each work-item a group of its own.
    """

    def run(expr: Expr) -> Result:
        paths, _ = result_maps(expr)
        dims = reversed(range(len(paths)))
        return seq(
            *(at_path(p, rule(f"map_to_{level}_{d}")) for p, d in zip(paths, dims, strict=True))
        )(expr)

    return run


def plain() -> Strategy:
    """A work-item for each result of the outer maps, loops inside; views are copied.

    That is one kernel, but for what work-items share.
    """
    return seq(nest_reductions(), over_results, sequential())


def over_results(expr: Expr) -> Result:
    """What makes the result over global ids, after kernels for what its work-items share."""
    maps, end = result_maps(expr)
    if not isinstance(expr.type, ArrayType) or (not maps and is_reduce(at(expr, end))):
        return Success(expr)
    shared = store_shared(maps[0] if maps else end, over_results)
    return seq(shared, over_ids("glb") if maps else copied())(expr)


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
