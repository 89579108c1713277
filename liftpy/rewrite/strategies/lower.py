"""General lowering: reductions as nested loops, maps over global ids, copies into memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, every_part, has_call, top_down
from liftpy.primitives import (
    AnyIterate,
    AnyMap,
    AnyReduce,
    AnyReduceByIndex,
    AnyScan,
    AsVector,
    At,
    ExclusiveScan,
    Iterate,
    Map,
    MemoryPrimitive,
    Reduce,
    ReduceByIndex,
    ReduceByIndexAtomic,
    Scan,
    SplitAt,
    ToGlobal,
)
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.by_index import scalar_bins
from liftpy.rewrite.strategies.inner_values import (
    has_statements,
    named_at,
    reads_registers,
    reads_stored_again,
)
from liftpy.rewrite.strategies.remember import each_part, remembered
from liftpy.rewrite.strategies.repeated import store_repeated
from liftpy.rewrite.strategies.results import results_exposed
from liftpy.rewrite.strategies.sequences import (
    below_layouts,
    first_sequence,
    gives,
    is_bins,
    is_kernel_iteration,
    is_scan_or_bins,
    is_sequence,
    kernels_of,
    let_below,
    read_first,
)
from liftpy.rewrite.strategies.shapes import (
    MapNest,
    is_in_registers,
    is_let,
    lanes_by_statements,
    layers,
    maker,
    nests,
    rank,
    result_maps,
    working_map,
)
from liftpy.rewrite.strategies.share import outside_functions, store_shared
from liftpy.rewrite.strategy import (
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    identity,
    normalize,
    outermost,
    repeat,
    rule,
    seq,
    where,
)


def nest_reductions() -> Strategy:
    """Turn reductions over joined arrays into nested reductions, with preceding maps fused in."""
    return normalize(
        choose(rule("reduce_map_fusion"), rule("reduce_of_join"), rule("zip_of_joins"))
    )


def sequential(*, unroll: bool = False) -> Strategy:
    """Turn everything without a level into loops; `unroll` unrolls the innermost reductions."""
    innermost_first = attempt(unroll_innermost()) if unroll else identity
    return seq(
        store_inner_scans(),
        store_lanes(),
        innermost_first,
        folds_to_loops(),
        maps_to_loops(),
    )


@cache
def folds_to_loops() -> Strategy:
    """Turn all folds and iterations into loops."""
    laws = (
        "reduce_to_seq",
        "scan_to_seq",
        "exclusive_scan_to_seq",
        "iterate_to_seq",
        "reduce_by_index_to_seq",
    )
    return each_part(choose(*map(rule, laws)))


@cache
def maps_to_loops() -> Strategy:
    """Turn all maps that compute into loops."""
    return each_part(where(working_map, rule("map_to_seq")))


def store_inner_scans() -> Strategy:
    """Store scans that another stage reads in registers of the work-item, and bins in a buffer.

    A sequence whose rows are read at a data-dependent index, also through a layout, is stored in a
    buffer too: registers have no addresses, and only scalars among them are selected by
    comparisons. Elements that folds or other statements compute from registers are stored before
    one is read at such an index. Elements that take a place in a buffer, which has room for one
    value of each work-item, are stored before `splitAt` makes two arrays of them, or before a map's
    function reads one more than once: outside all maps in a buffer of their own, which work-items
    share.
    """

    def run(expr: Expr) -> Result:
        if not has_call(expr, Scan, ExclusiveScan, ReduceByIndex, Iterate, At):
            return Success(expr)
        for path, part in top_down(expr):
            if not isinstance(part, FunCall) or isinstance(part.fun, MemoryPrimitive):
                continue
            for position, arg in enumerate(part.args):
                row = position == 1 and isinstance(part.fun, At) and any(part.type.lengths())
                indexed = row and gives(arg, is_sequence, inside=True)
                if indexed or gives(arg, is_scan_or_bins):
                    memory = "to_global" if indexed or gives(arg, is_bins) else "to_private"
                    return seq(at_path((*path, position), rule(memory)), run)(expr)
        for path, part in top_down(expr):  # after sequences that need a buffer are in one
            if isinstance(part, FunCall) and isinstance(part.fun, At):
                for position in range(len(part.args)):
                    here = named_at(expr, (*path, position))
                    if has_statements(at(expr, here)) and reads_registers(expr, here):
                        return seq(at_path(here, rule("to_private")), run)(expr)
            if isinstance(part, FunCall) and isinstance(part.fun, SplitAt):
                (arg,) = part.args
                if has_statements(arg) and has_call(arg, ToGlobal):
                    shared = any(path == outside for outside, _ in outside_functions(expr))
                    memory = "to_global" if shared else "to_private"
                    return seq(at_path((*path, 0), rule(memory)), run)(expr)
            if reads_stored_again(part):
                shared = any(path == outside for outside, _ in outside_functions(expr))
                stored = stored_plain() if shared else rule("to_private")
                return seq(at_path((*path, 0), stored), run)(expr)
        return Success(expr)

    return run


def store_lanes() -> Strategy:
    """Store arrays whose elements are made by statements of their own before vectors read them.

    The lanes of a vector are computed by one expression. An array that work-items share is stored
    by a kernel, others are stored in registers.
    """

    def run(expr: Expr) -> Result:
        if not has_call(expr, AsVector):
            return Success(expr)
        for path, part in top_down(expr):
            if lanes_by_statements(part):
                shared = any(path == outside for outside, _ in outside_functions(expr))
                stored = stored_plain() if shared else rule("to_private")
                return seq(at_path((*path, 0), stored), run)(expr)
        return Success(expr)

    return run


def store_sequences() -> Strategy:
    """Make kernels for scans and iterations that something else reads, outside all maps."""

    def run(expr: Expr) -> Result:
        path = first_sequence(expr)
        if path is None:
            return Success(expr)
        return seq(at_path(read_first(expr, path), stored_plain()), run)(expr)

    return run


def unroll_innermost() -> Strategy:
    """Unroll the reductions whose step contains no other reduction."""

    def innermost_reduce(expr: Expr) -> bool:
        if not (isinstance(expr, FunCall) and isinstance(expr.fun, Reduce)):
            return False
        inner = (e for e in every_part(expr.fun.f.body))
        return not any(isinstance(e, FunCall) and isinstance(e.fun, AnyReduce) for e in inner)

    return normalize(where(innermost_reduce, rule("reduce_to_seq_unroll"), "innermost reduction"))


def chain(trees: tuple[MapNest, ...]) -> Iterator[Path]:
    """The paths of nested maps, outermost first."""
    while trees:
        yield trees[0].path
        trees = trees[0].inner


def over_ids(level: str, most: int = len(DIMENSIONS)) -> Strategy:
    """Assign ids of a level to the outermost `most` of the maps that make the result.

    `glb` leaves the choice of work-groups to the driver. The innermost map is along dimension 0, so
    that adjacent work-items access adjacent elements. `wrg` makes each work-item a group, for
    devices that run groups one after another. The outermost map is along dimension 0, so that
    successive groups read the same elements of the innermost map's array, which stay in the
    cache. Maps at the same depth use the same ids; the components of a tuple are separate kernels,
    each with its own ids. Inside a group, `lcl` assigns work-items to the outermost map; `seq`
    leaves all maps sequential.
    """
    if level in INNER:
        return INNER[level]

    def run(expr: Expr) -> Result:
        if isinstance(expr, Tuple):
            return seq(*(at_path((k,), run) for k in range(len(expr.elements))))(expr)
        outer = tuple(layers(result_maps(expr)))[: min(most, len(DIMENSIONS))]
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


def over_items(expr: Expr, level: str = "lcl_0") -> Result:
    """Divide the outermost maps that make the result among the work-items of a group.

    `level` names another level in place of `mapLcl(0)`.
    """
    outer = next(layers(nests(expr)), ())
    return seq(*(at_path(path, rule(f"map_to_{level}")) for path in outer))(expr)


INNER: dict[str, Strategy] = {"seq": identity, "lcl": over_items}


@cache
def exposed() -> Strategy:
    """Nest reductions, and expose the maps that make the result, to which `mapping` assigns levels.

    A view is copied element by element; so is a result that no map makes, such as a concat. Each
    component of a tuple gets a kernel. Outside all maps, so do values of a `let`, scans, iterations
    of maps and what these read, values that work-items share (`store_shared`), and values that take
    too many readings (`store_repeated`).
    """

    def exposing(copies: Strategy) -> Strategy:
        def run(expr: Expr) -> Result:
            if isinstance(expr, Tuple):
                parts = range(len(expr.elements))
                return seq(*(at_path((k,), exposing(copied_by_ids)) for k in parts))(expr)
            if isinstance(expr, FunCall) and isinstance(expr.fun, ReduceByIndexAtomic):
                return Success(expr)  # its kernels are complete
            if isinstance(expr, FunCall) and isinstance(expr.fun, Lambda):
                paths = (path for k, arg in enumerate(expr.args) for path in kernels_of(arg, (k,)))
                stored = (at_path(path, stored_plain()) for path in paths)
                return seq(*stored, at_path((len(expr.args),), run))(expr)
            if (let := let_below(expr)) is not None:
                if maker(expr)[: len(let)] == let:  # its value is written through the layouts
                    return at_path(let, run)(expr)
                return seq(at_path(let, stored_plain()), run)(expr)
            if (path := first_sequence(at(expr, end := below_layouts(expr)), end)) is not None:
                return seq(at_path(read_first(expr, path), stored_plain()), run)(expr)
            if is_kernel_iteration(expr):
                return seq(rule("iterate_to_seq"), at_path((1,), plain()))(expr)
            prepared = seq(nest_reductions(), store_shared(plain())) if computes(expr) else identity
            return seq(prepared, attempt(where(is_unmapped, copies)))(expr)

        return run

    def whole(expr: Expr) -> Result:
        return seq(results_exposed(), store_repeated(plain()), exposing(copied_out))(expr)

    return remembered(whole)


def plain() -> Strategy:
    """A work-item for each result of the outer maps, with loops inside; see `exposed`."""
    return seq(scalar_bins(), exposed(), over_ids("glb"), sequential())


def is_unmapped(expr: Expr) -> bool:
    """Whether an expression is an array that no map, fold or scan makes."""
    last = at(expr, maker(expr))
    made = isinstance(last, FunCall) and (
        isinstance(last.fun, AnyReduce | AnyReduceByIndex | AnyScan | AnyIterate)
        or (isinstance(last.fun, AnyMap) and not isinstance(last.fun, Map))
    )
    return isinstance(expr.type, ArrayType) and not made and not nests(expr)


def copied_out(expr: Expr) -> Result:
    """Copy an array by maps, down to its scalars."""
    return elementwise(rank(expr.type))(expr)


def copied_by_ids(expr: Expr) -> Result:
    """Copy a component of a tuple; ids run over it whatever the mapping of the other components."""
    return (copied_out if is_in_registers(expr) else copied())(expr)


def stored_plain() -> Strategy:
    """Make a kernel for a value, with its result in global memory."""
    return seq(rule("to_global"), at_path((0,), plain()))


def elementwise(depth: int) -> Strategy:
    """Turn an array into `depth` nested maps down to its scalars, adding copies where needed."""

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


def copied(loops: int = 0) -> Strategy:
    """Copy a view by elements: up to three outer dimensions over global ids, the others in loops.

    At least the `loops` innermost ones are in loops.
    """

    def run(expr: Expr) -> Result:
        depth = rank(expr.type)
        parallel = min(3, depth - loops)
        levels = [
            f"map_to_glb_{parallel - 1 - k}" if k < parallel else "map_to_seq" for k in range(depth)
        ]
        lowered = [at_path((1,) * k, rule(name)) for k, name in enumerate(levels)]
        return seq(elementwise(depth), *lowered)(expr)

    return run


def copy_kernel(loops: int = 0) -> Strategy:
    """Copy a view into global memory by a separate kernel, as `copied` does."""
    return seq(rule("to_global"), at_path((0,), copied(loops)))


def layouts_inlined() -> Strategy:
    """Inline the lets of arrays whose elements are those of one array, moved.

    A layout costs nothing where it is read, and a family sees which array its elements come from.
    Lets of several arrays remain: a chain of them would double its length at each step.
    """
    return repeat(outermost(where(names_layout, rule("let_inline"), "let of a layout")))


def names_layout(expr: Expr) -> bool:
    """Whether an expression is a `let` of a layout that reads one array once."""
    if not isinstance(expr, FunCall) or not is_let(expr):
        return False
    value = expr.args[0]
    if not isinstance(value.type, ArrayType) or computes(value):
        return False
    return sum(part in value.free for part in every_part(value)) == 1


def clean() -> Strategy:
    """Remove identity maps, and zips of which only one part is used."""
    return normalize(choose(rule("map_identity"), rule("map_zip_first"), rule("map_zip_second")))
