"""Register blocking: a block of results per work-item, each input read once for the whole block.

The shape it looks for is a map, over elements, of a map of reductions:

    map(x -> map(y -> reduce(f(x, y))))

The inner map is cut into groups of kappa, the outer of sigma; a work-item computes the sigma x kappa
block of a group pair by one reduction whose accumulator is the block (docs/design.md, section 6).
A convolution over windows and kernels has it, and so has a matrix product over rows and columns.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Param
from liftpy.ir.nat import NatLike
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Join, Map
from liftpy.rewrite.strategies.lower import (
    clean,
    copy_kernel,
    elementwise,
    nest_reductions,
    sequential,
)
from liftpy.rewrite.strategies.shapes import is_padding, is_reduce, maps_over, rank, working
from liftpy.rewrite.strategy import (
    Failure,
    Predicate,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    innermost,
    normalize,
    outermost,
    repeat,
    rule,
    seq,
    where,
)


def group_maps(inner: Predicate, kappa: NatLike, sigma: NatLike) -> Strategy:
    """`map(x -> map(y -> e))` as groups of sigma by kappa, group pairs outside, where `e` is `inner`.

    The result is `join(map(xs -> map(join)(transpose(map(ys -> block)))))`.
    """
    return seq(
        outermost(
            where(
                maps_over(inner),
                seq(
                    rule("split_join", m=kappa),
                    # groups of tuples become tuples of groups, so that their parts can be used apart
                    attempt(
                        at_path((0,), seq(at_path((0,), rule("split_of_zip")), rule("map_fusion")))
                    ),
                ),
                "inner map",
            )
        ),
        outermost(
            where(
                maps_over(is_joined_groups),
                seq(
                    rule("split_join", m=sigma),
                    # join(map(group -> map(x -> join(groups))(group))): the join goes outside the inner map
                    at_path(
                        (0, 1),
                        seq(
                            rule("map_fission", {"g": (0,)}), at_path((0,), rule("map_interchange"))
                        ),
                    ),
                ),
                "outer map",
            )
        ),
    )


def is_joined_groups(expr: Expr) -> bool:
    """What `split_join` leaves: `join(map(group -> map(...)))`."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Join)
        and maps_over(lambda body: isinstance(body, FunCall) and type(body.fun) is Map)(
            expr.args[0]
        )
    )


def accumulate_blocks() -> Strategy:
    """Maps of reductions as reductions of maps, inside each block, all the way."""
    return outermost(
        where(
            maps_over(maps_over(is_reduce)),
            seq(repeat(innermost(rule("map_reduce_interchange"))), clean()),
            "block",
        )
    )


def vectorize_blocks(width: NatLike) -> Strategy:
    """Inside each block, the innermost maps in vectors; the block is copied out in vectors too."""

    def run(expr: Expr) -> Result:
        depth = rank(expr.type)
        return seq(
            at_path((0,), elementwise(depth)),
            elementwise(depth),
            normalize(rule("vectorize_map", v=width)),
        )(expr)

    return outermost(
        where(lambda e: is_reduce(e) and rank(e.type) > 1, run, "block of accumulators")
    )


def inward(depth: int) -> tuple[Strategy, Path]:
    """The outermost dimension moved `depth` places inward and back, and where the moved array stands."""
    if depth == 1:
        return rule("transpose_introduction"), (0,)
    inner, forward = inward(depth - 1)
    return seq(
        rule("transpose_introduction"),
        at_path(
            (0,), seq(rule("map_copy"), at_path((1,), inner), rule("map_fission", {"g": forward}))
        ),
    ), (0, 0)


def pack(size: NatLike) -> Strategy:
    """An array re-laid with groups of `size` of its outermost dimension innermost, stored that way.

    `[M][a]...[z]` becomes `[M/size][a]...[z][size]`; the layouts that undo it remain as a view.
    """

    def run(expr: Expr) -> Result:
        moved, forward = inward(rank(expr.type) - 1)
        return seq(
            rule("split_introduction", m=size),
            at_path(
                (0,),
                seq(rule("map_copy"), at_path((1,), moved), rule("map_fission", {"g": forward})),
            ),
            at_path((0, 0), copy_kernel()),
        )(expr)

    return run


def pack_constants(constants: frozenset[str], size: NatLike) -> Strategy:
    """Every constant of two dimensions or more, packed where it is used."""

    def run(expr: Expr) -> Result:
        steps: list[Strategy] = [
            at_path(path, pack(size))
            for path, part in top_down(expr)
            if isinstance(part, Param)
            and part.name in constants
            and rank(part.type) > 1
            and not is_bound(expr, path)
        ]
        return seq(*reversed(steps))(expr)

    return run


def is_bound(expr: Expr, path: Path) -> bool:
    """Whether the variable at a path is bound inside the expression."""
    return at(expr, path) not in expr.free


def store_padding(part: str) -> Strategy:
    """What is stored of the padded array before it is used: all of it, its padded columns, or nothing.

    `copy` makes every later access plain; `columns` leaves the rows' bounds to be tested; `fused` all bounds.
    """

    def run(expr: Expr) -> Result:
        if part == "fused":
            return Success(expr)
        for path, candidate in top_down(expr):
            if is_padding(candidate):
                if part == "copy":
                    return at_path(path, copy_kernel())(expr)
                # map(pad)(pad(x)) as pad(map(pad)(x)), so that the columns come first
                return at_path(path, seq(rule("pad_exchange_back"), at_path((0,), copy_kernel())))(
                    expr
                )
        return Failure("store_padding", "nothing is padded")

    return run


def over_groups(level: str) -> Strategy:
    """The three outermost maps over ids: `glb` leaves work-groups to the driver, `wrg` makes each one item."""
    return seq(*(working(f"map_to_{level}_{d}") for d in (2, 1, 0)))


def register_blocks(
    constants: frozenset[str], kappa: NatLike, sigma: NatLike, width: NatLike, *, level: str
) -> Strategy:
    """The register-blocked form (docs/design.md, section 6); see the module."""
    return seq(
        nest_reductions(),
        group_maps(is_reduce, kappa, sigma),
        accumulate_blocks(),
        vectorize_blocks(width),
        over_groups(level),
        sequential(),
        pack_constants(constants, kappa),
    )
