"""General lowering: reductions as nested loops, maps over global ids, copies into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

from liftpy.ir.expr import Expr, FunCall, Lambda, Primitive, Tuple
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import (
    AnyIterate,
    AnyReduce,
    AnyScan,
    Iterate,
    Map,
    MemoryPrimitive,
    Reduce,
    Scan,
    ToGlobal,
)
from liftpy.primitives.levels import DIMENSIONS
from liftpy.primitives.work import computes, is_layout
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.repeated import store_repeated
from liftpy.rewrite.strategies.shapes import (
    MapNest,
    body_of,
    layers,
    maker,
    nests,
    rank,
    working_map,
)
from liftpy.rewrite.strategies.share import store_shared
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
        store_inner_scans(),
        innermost_first,
        normalize(choose(rule("reduce_to_seq"), rule("scan_to_seq"), rule("iterate_to_seq"))),
        normalize(where(working_map, rule("map_to_seq"))),
    )


def store_inner_scans() -> Strategy:
    """Scans that another stage reads are stored in registers of the work-item."""

    def run(expr: Expr) -> Result:
        for path, part in top_down(expr):
            if not isinstance(part, FunCall) or isinstance(part.fun, MemoryPrimitive):
                continue
            for position, arg in enumerate(part.args):
                if gives(arg, is_scan):
                    return seq(at_path((*path, position), rule("to_private")), run)(expr)
        return Success(expr)

    return run


def store_sequences() -> Strategy:
    """Kernels for the scans and iterations that something else reads, outside of all maps."""

    def run(expr: Expr) -> Result:
        path = first_sequence(expr)
        return Success(expr) if path is None else seq(at_path(path, stored_plain()), run)(expr)

    return run


def gives(expr: Expr, made: Callable[[Expr], bool], *, inside: bool = False) -> bool:
    """Whether reading a value, or an element of it, reads what is `made` so.

    `inside` a map's function what a view reads counts, which elsewhere can be stored by itself.
    """
    if made(expr):
        return True
    if isinstance(expr, Tuple):
        return any(gives(e, made, inside=inside) for e in expr.elements)
    if not isinstance(expr, FunCall):
        return False
    fun, parts = expr.fun, expr.args if inside else ()
    if isinstance(fun, Lambda):
        return any(gives(e, made, inside=inside) for e in (*parts, fun.body))
    if isinstance(fun, Map):
        return any(gives(e, made, inside=True) for e in (*parts, fun.f.body))
    view = isinstance(fun, Primitive) and is_layout(fun)
    return view and any(gives(e, made, inside=inside) for e in parts)


def is_scan(expr: Expr) -> bool:
    """A `scan` that has no loop yet."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Scan)


def unroll_innermost() -> Strategy:
    """Reductions whose step has no other reduction become straight-line code."""

    def innermost_reduce(expr: Expr) -> bool:
        if not (isinstance(expr, FunCall) and isinstance(expr.fun, Reduce)):
            return False
        inner = (e for _, e in top_down(expr.fun.f.body))
        return not any(isinstance(e, FunCall) and isinstance(e.fun, AnyReduce) for e in inner)

    return normalize(where(innermost_reduce, rule("reduce_to_seq_unroll"), "innermost reduction"))


def chain(trees: tuple[MapNest, ...]) -> Iterator[Path]:
    """The paths of maps inside one another, outermost first."""
    while trees:
        yield trees[0].path
        trees = trees[0].inner


def over_ids(level: str) -> Strategy:
    """The maps that make the result over ids of a level.

    `glb` leaves the work-groups to the driver; the innermost map is along dimension 0, so that
    neighbours read and write neighbours. `wrg` makes each work-item a group of its own, for devices
    that run a group after the other; the outermost map is along dimension 0, so that groups in
    succession read the same elements of what the innermost is over, which stay in the cache. Maps
    side by side are over the same ids; the components of a tuple are kernels, each over its own.
    Inside a group, `lcl` has the outermost map over its work-items, and `seq` none.
    """
    if level in INNER:
        return INNER[level]

    def run(expr: Expr) -> Result:
        if isinstance(expr, Tuple):
            return seq(*(at_path((k,), run) for k in range(len(expr.elements))))(expr)
        outer = tuple(layers(nests(expr)))[: len(DIMENSIONS)]
        dims = range(len(outer))
        return seq(
            *(
                at_path(path, rule(f"map_to_{level}_{dim}"))
                for dim, paths in zip(
                    dims if level == "wrg" else reversed(dims), outer, strict=True
                )
                for path in paths
            )
        )(expr)

    return run


def over_items(expr: Expr) -> Result:
    """The outermost maps that make the result over the work-items of a group."""
    outer = next(layers(nests(expr)), ())
    return seq(*(at_path(path, rule("map_to_lcl_0")) for path in outer))(expr)


INNER: dict[str, Strategy] = {"seq": identity, "lcl": over_items}


@cache
def exposed() -> Strategy:
    """Reductions nested, and maps that make the result, which `mapping` gives levels.

    A view is copied element by element; so is a result that is only read, of a concat say. The
    components of a tuple have a kernel each, and outside of all maps what a `let` names, scans,
    iterations of maps, what these read, what work-items share (`store_shared`), and what takes too
    many readings (`store_repeated`).
    """

    def run(expr: Expr) -> Result:
        if isinstance(expr, Tuple):
            parts = range(len(expr.elements))
            return seq(*(at_path((k,), run) for k in parts))(expr)
        if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
            paths = (path for k, arg in enumerate(expr.args) for path in kernels_of(arg, (k,)))
            stored = (at_path(path, stored_plain()) for path in paths)
            return seq(*stored, at_path((len(expr.args),), run))(expr)
        if (path := first_sequence(expr)) is not None:
            return seq(at_path(path, stored_plain()), run)(expr)
        if is_kernel_iteration(expr):
            return seq(rule("iterate_to_seq"), at_path((1,), plain()))(expr)
        prepared = seq(nest_reductions(), store_shared(plain())) if computes(expr) else identity
        return seq(prepared, attempt(where(is_unmapped, copied_out)))(expr)

    def whole(expr: Expr) -> Result:
        return seq(store_repeated(plain()), run)(expr)

    return remembered(whole)


def kernels_of(expr: Expr, path: Path) -> Iterator[Path]:
    """What of a value that a `let` names has a kernel.

    That is all of it; of a tuple each component that computes, where not all are over as many ids.
    """
    if isinstance(expr, Tuple):
        depths = {len(tuple(layers(nests(e)))) for e in expr.elements}
        if len(depths) > 1:
            for k, element in enumerate(expr.elements):
                yield from kernels_of(element, (*path, k))
            return
    if computes(expr):
        yield path


def plain() -> Strategy:
    """A work-item for each result of the outer maps, loops inside; see `exposed`."""
    return seq(exposed(), over_ids("glb"), sequential())


def is_unmapped(expr: Expr) -> bool:
    """An array that no map makes, nor a fold or a scan."""
    last = at(expr, maker(expr))
    made = isinstance(last, FunCall) and isinstance(last.fun, AnyReduce | AnyScan | AnyIterate)
    return isinstance(expr.type, ArrayType) and not made and not nests(expr)


def copied_out(expr: Expr) -> Result:
    """An array as maps that copy it, down to its scalars."""
    return elementwise(rank(expr.type))(expr)


def stored_plain() -> Strategy:
    """A kernel of its own, and its result in global memory."""
    return seq(rule("to_global"), at_path((0,), plain()))


def is_kernel_iteration(expr: Expr) -> bool:
    """Whether an expression iterates a function that has maps."""
    return (
        isinstance(expr, FunCall) and isinstance(expr.fun, Iterate) and bool(nests(body_of(expr)))
    )


def is_sequence(expr: Expr) -> bool:
    """A scan, or an iteration of a function of arrays: work-items have to share its result."""
    iterates = isinstance(expr, FunCall) and isinstance(expr.fun, Iterate)
    return is_scan(expr) or (iterates and any(True for _ in expr.type.lengths()))


def first_sequence(expr: Expr, path: Path = ()) -> Path | None:
    """What has to be in memory before a scan or an iteration, or before what reads one."""
    if not isinstance(expr, FunCall) or isinstance(expr.fun, ToGlobal):
        return None
    sequence = isinstance(expr.fun, Scan) or is_kernel_iteration(expr)
    for position, arg in enumerate(expr.args):
        here = (*path, position)
        reads = gives(arg, is_sequence)
        stored = isinstance(arg, FunCall) and isinstance(arg.fun, ToGlobal)
        if not stored and (
            reads or (sequence and isinstance(arg.type, ArrayType) and computes(arg))
        ):
            return here
        if (found := first_sequence(arg, here)) is not None:
            return found
    if isinstance(expr.fun, Lambda):
        return first_sequence(expr.fun.body, (*path, len(expr.args)))
    return None


def elementwise(depth: int) -> Strategy:
    """An array of `depth` dimensions as nested maps down to its scalars; where none is, a copy."""

    def run(expr: Expr) -> Result:
        if depth == 0:
            return Success(expr)
        here = (
            identity
            if isinstance(expr, FunCall) and isinstance(expr.fun, Map)
            else rule("map_copy")
        )
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
