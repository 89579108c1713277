"""Register blocking: a block of results per work-item; each input is read once per block.

The expected shape is a map, over elements, of a map of reductions:

    map(x -> map(y -> reduce(f(x, y))))

The inner map is cut into groups of kappa, the outer into groups of sigma. A work-item computes the
sigma x kappa block of a pair of groups by one reduction whose accumulator is the block
(docs/design.md, Rewriting). A convolution over windows and kernels has this shape, and so has a
matrix product over rows and columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import NatLike, var
from liftpy.ir.primitive import Get
from liftpy.ir.types import ScalarType
from liftpy.ir.walk import Path, at, children, top_down
from liftpy.primitives import Join, Layout, Map, Uncover, Zip
from liftpy.primitives.vector import MAX_LANES
from liftpy.rewrite.strategies.epilogue import cut_parts, reductions_apart
from liftpy.rewrite.strategies.inward import past
from liftpy.rewrite.strategies.lanes import vectorized
from liftpy.rewrite.strategies.lower import (
    clean,
    copy_kernel,
    elementwise,
    nest_reductions,
    over_ids,
    sequential,
)
from liftpy.rewrite.strategies.panels import Panels, of_constants, of_inputs
from liftpy.rewrite.strategies.remember import remembered
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_folded,
    is_padding,
    is_reduce,
    is_windows,
    maps_over,
    nests,
    outer_reductions,
    parameter,
    paths_of,
    rank,
    working_map,
)
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
    innermost,
    normalize,
    outermost,
    repeat,
    rule,
    seq,
    where,
)

INNER, OUTER, BOTH = "inner", "outer", "both"  # the maps of a block
BLOCK = (var("kappa", 1), var("sigma", 1))  # block sizes for a test of applicability


#: The rules that cut a map into groups, and what it reads. With `split`, the size divides the
#: length; with `cover`, it need not, and the last group begins early.
CUTS = {
    "split": ("split_join", "split_of_zip"),
    "cover": ("cover_join", "cover_of_zip"),
}
SPLITS = ("split", "split")
BLOCKS = range(4, 17)  # usual numbers of results of a map that a work-item has in registers


def is_indivisible(length: int, *, lanes: bool = False) -> bool:
    """Whether a length has no divisor that suits a block: none of `BLOCKS`.

    A block of adjacent results, the `lanes` of vectors, has a multiple of the longest vectors that
    the length has room for.
    """
    if lanes:
        return length % min(MAX_LANES, 2 ** (length.bit_length() - 1)) != 0
    return length > BLOCKS[-1] and not any(length % size == 0 for size in BLOCKS)


def cut_of(length: int, tail: str, *, lanes: bool = False) -> str:
    """How a map over a length is cut (`CUTS`), for a value of the choice `tail`."""
    return "cover" if tail == "overlap" and is_indivisible(length, lanes=lanes) else "split"


def group_maps(
    inner: Predicate, kappa: NatLike, sigma: NatLike, cuts: tuple[str, str] = SPLITS
) -> Strategy:
    """Cut `map(x -> map(y -> e))` into groups of sigma by kappa, with pairs of groups outermost.

    `inner` recognises `e`. The result is `join(map(xs -> map(join)(transpose(map(ys -> block)))))`,
    with `uncover` for `join` if groups cover. `cuts` says how the inner and the outer map are cut.
    """
    (cut_inner, inner_zip), (cut_outer, _) = (CUTS[cut] for cut in cuts)
    return seq(
        outermost(
            where(
                maps_over(inner),
                seq(
                    rule(cut_inner, m=kappa),
                    # groups of tuples become tuples of groups, whose parts can be used separately
                    attempt(at_path((0,), cut_parts(inner_zip))),
                ),
                "inner map",
            )
        ),
        outermost(
            where(
                maps_over(is_joined_groups),
                seq(
                    rule(cut_outer, m=sigma),
                    # join(map(group -> map(x -> join(groups))(group))):
                    # move the join outside the inner map
                    at_path(
                        (0, 1),
                        seq(
                            rule("map_fission", {"g": (0,)}),
                            at_path((0,), interchanged()),
                        ),
                    ),
                ),
                "outer map",
            )
        ),
    )


def interchanged() -> Strategy:
    """Exchange a map and the map that its function is, whether or not that reads the element."""
    return choose(rule("map_interchange"), rule("map_map_interchange"))


def is_joined_groups(expr: Expr) -> bool:
    """Whether an expression is a cut map: `join(map(group -> map(...)))`, or `uncover` of it."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Join | Uncover)
        and maps_over(lambda body: isinstance(body, FunCall) and isinstance(body.fun, Map))(
            expr.args[0]
        )
    )


def accumulate_blocks() -> Strategy:
    """Turn maps of reductions into reductions of maps, inside each block and at every depth.

    What is applied to the results is applied to the finished accumulators. A step that reads
    another reduction, as that of a sum of partial sums does, has a block of accumulators for it.
    """
    maps, made = maps_over(maps_over(is_folded)), seq(reductions_apart, reduce_of_maps())

    def some(expr: Expr) -> Result:
        result = made(expr)
        done = isinstance(result, Failure) or result.steps
        return result if done else Failure("block", "nothing is left to interchange")

    inside = repeat(innermost(where(maps, some, "block")))
    return outermost(where(maps, seq(made, inside), "block"))


def reduce_of_maps() -> Strategy:
    """Turn a map of reductions into a reduction of maps, at every depth."""
    return seq(repeat(innermost(rule("map_reduce_interchange"))), clean())


def vectorize_blocks(width: NatLike) -> Strategy:
    """Apply `in_vector_accumulators` inside each block of accumulators."""
    return outermost(
        where(
            lambda e: accumulators(e) is not None,
            in_vector_accumulators(width),
            "block of accumulators",
        )
    )


def accumulators(expr: Expr) -> Path | None:
    """The path of the reduction to a block: the expression, or what its maps and zips read."""
    if is_reduce(expr):
        return () if rank(expr.type) > 1 else None
    if isinstance(expr, FunCall) and (working_map(expr) or isinstance(expr.fun, Zip)):
        for k, arg in enumerate(expr.args):
            if (path := accumulators(arg)) is not None:
                return (k, *path)
    return None


def in_vector_accumulators(width: NatLike) -> Strategy:
    """Vectorize the innermost maps of a reduction to arrays, and of the maps that read it.

    A result that no map reads is copied out in vectors.
    """

    def run(expr: Expr) -> Result:
        path = accumulators(expr) or ()
        depth = rank(expr.type)
        innermost = at_path((1,) * (depth - 1), components_copied)
        return seq(
            at_path((*path, 0), seq(elementwise(depth), innermost)),
            identity if path else elementwise(depth),
            normalize(vectorized(width)),
        )(expr)

    return run


def components_copied(expr: Expr) -> Result:
    """Copy the scalars that `map(t -> t.k)` selects: a vector can hold them, but not the tuples."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, Map):
        (element,) = expr.fun.f.params
        if element in expr.fun.f.body.free and not isinstance(element.type, ScalarType):
            return rule("map_copy")(expr)
    return Success(expr)


def columns_first() -> Strategy:
    """`map(pad)(pad(x))` as `pad(map(pad)(x))`, for any kind of border."""
    return choose(rule("pad_exchange_back"), past)


def is_border(expr: Expr) -> bool:
    """Whether a call adds elements at the ends of an array that are read behind a guard."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Layout):
        return False
    return any((n.bounds[0] or 0) > 0 for n in expr.fun.border())


def store_padding(part: str) -> Strategy:
    """Store the padded array before it is used: all of it, its padded columns, or nothing.

    `copy` makes every later access plain; `columns` leaves the tests of row bounds; `fused` leaves
    all tests of bounds, and so does `classes`, which gives the kernel a version for each class of
    border. `windows` stores the windows of the padded array that depend on no variable of a
    function, with an element repeated in each window that contains it: for a convolution this is
    im2col, and what remains is a matrix product.
    """

    def run(expr: Expr) -> Result:
        if part == "fused":
            return Success(expr)
        if part == "classes":
            return outermost(where(is_border, rule("by_classes"), "padding"))(expr)
        if part == "windows":
            whole = where(lambda e: is_windows(e) and e.free <= expr.free, copy_kernel(), "windows")
            return outermost(whole)(expr)
        for path, candidate in top_down(expr):
            if is_padding(candidate) and candidate.free <= expr.free:
                if part == "copy":
                    return at_path(path, copy_kernel())(expr)
                return at_path(path, seq(columns_first(), at_path((0,), copy_kernel())))(expr)
        return Failure("store_padding", "nothing is padded")

    return run


@lru_cache(maxsize=8)
def register_blocks(
    constants: frozenset[str],
    kappa: NatLike,
    sigma: NatLike,
    width: NatLike,
    *,
    level: str,
    cuts: tuple[str, str] = SPLITS,
    packs: str = "",
    unit: NatLike = 1,
) -> Strategy:
    """The register-blocked form (docs/design.md, Rewriting), described at the top of the module.

    Constants that the inner map reads are packed into panels, in which `unit` elements of a row
    stay adjacent. The inputs that `packs` names are packed, too (`input_panels`).
    """
    inputs = input_panels(constants, kappa, sigma, packs)
    panels = ((of_constants(constants, unit), kappa), *inputs)
    return remembered(
        seq(
            nest_reductions(),
            group_maps(is_folded, kappa, sigma, cuts),
            *(of.zipped(size) for of, size in panels),
            accumulate_blocks(),
            over_ids(level),
            vectorize_blocks(width),
            sequential(),
            *(of.whole(size) for of, size in panels),
        )
    )


def input_panels(
    constants: frozenset[str], kappa: NatLike, sigma: NatLike, packs: str
) -> Iterator[tuple[Panels, NatLike]]:
    """The panels, and their sizes, of inputs of the `inner` map, of the `outer` one, or `both`."""
    inputs = of_inputs(constants)
    for side, size in ((INNER, kappa), (OUTER, sigma)):
        if packs in {side, BOTH}:
            yield inputs, size


def packable(expr: Expr, block: Path, constants: frozenset[str]) -> tuple[str, ...]:
    """The inputs of a block that can be packed: the words of the choice `pack`.

    Blocks read the outer map's inputs a few elements at a time, so these are packed alone only if
    the inner map has no such inputs.
    """
    inner, outer = (packs_some(expr, block, of_inputs(constants), size) for size in BLOCK)
    return (*((INNER,) if inner else ()), *((BOTH if inner else OUTER,) if outer else ()))


def packs_some(expr: Expr, block: Path, panels: Panels, size: NatLike) -> bool:
    """Whether an array that blocks of `BLOCK` cut into groups of `size` can be packed."""
    grouped = at_path(block, group_maps(is_folded, *BLOCK))(expr)
    if isinstance(grouped, Failure):
        return False
    made = seq(panels.zipped(size), panels.whole(size))(grouped.expr)
    return isinstance(made, Success) and bool(made.steps)


def block_of(expr: Expr) -> Path | None:
    """The path of the map of a map of reductions that makes the result, or its elements, in blocks.

    None if there is none, or if it is only read and would be recomputed at each reading.
    """
    path = next(blockable(expr), None)
    if path is None or path not in paths_of(nests(expr)) or not shares(at(expr, path)):
        return None
    cut = group_maps(is_folded, *BLOCK)(at(expr, path))
    return None if isinstance(cut, Failure) else path


def in_block(strategy: Strategy) -> Strategy:
    """Apply a strategy to an element of the block that makes the result, with its reductions."""

    def run(body: Expr) -> Result:
        path = block_of(body)
        if path is None:
            return Failure("in_block", "no block makes the result")
        return at_path((*path, 1, 1), strategy)(body)

    return run


def blockable(expr: Expr) -> Iterator[Path]:
    """The paths of maps of maps of reductions."""
    is_block = maps_over(maps_over(is_folded))
    return (path for path, part in top_down(expr) if is_block(part))


def shares(expr: Expr) -> bool:
    """Whether reductions of `map(x -> map(y -> f(reduce(...)))(ys))` read the same ys for each x.

    If ys zips arrays that depend on x with others, reductions may read only the others.
    """
    inner = body_of(expr)
    x, y = parameter(expr), parameter(inner)
    ys, element = children(inner)
    reductions = [at(element, path) for path in outer_reductions(element)]
    return not any(x in part.free for r in reductions for part in parts_read(r, y, ys))


def parts_read(expr: Expr, y: Param, ys: Expr) -> Iterator[Expr]:
    """The arrays that an expression reads elements of through y, an element of (nested zips) ys."""
    part = array_read(expr, y, ys)
    if part is not None:
        yield part
        return
    for child in children(expr):
        yield from parts_read(child, y, ys)


def array_read(expr: Expr, y: Param, ys: Expr) -> Expr | None:
    """The array of which an expression is an element (or component of one) through y, or None."""
    if expr == y:
        return ys
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Get):
        return None
    whole = array_read(expr.args[0], y, ys)
    if isinstance(whole, FunCall) and isinstance(whole.fun, Zip):
        return whole.args[expr.fun.index]
    return whole
