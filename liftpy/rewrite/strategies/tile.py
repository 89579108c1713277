"""Tiles: the maps that make a result are cut into tiles, and windows staged in local memory."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Get
from liftpy.ir.types import ArrayType, ScalarType, TupleType
from liftpy.ir.walk import Path, at, children, every_part, top_down
from liftpy.primitives import Zip
from liftpy.primitives.parallel import DIMENSIONS
from liftpy.rewrite.strategies.block import (
    CUTS,
    components_copied,
    cut_of,
    in_vector_accumulators,
    reduce_of_maps,
)
from liftpy.rewrite.strategies.elementwise import folds_inward
from liftpy.rewrite.strategies.epilogue import taken_apart
from liftpy.rewrite.strategies.lanes import vectorized
from liftpy.rewrite.strategies.lower import chain, elementwise, nest_reductions, sequential
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_reduce,
    is_window_map,
    longest,
    maker,
    nests,
    outer_reductions,
    parameter,
    rank,
    working_map,
)
from liftpy.rewrite.strategies.stage import disjoint, tile_line, tile_windows
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    normalize,
    outermost,
    repeat,
    rule,
    seq,
    where,
)

MOST_TILED = 2  # maps that are cut: with more, too many mappings would have to be tried


def tiled_maps(expr: Expr) -> tuple[Path, ...]:
    """The paths of the maps that `tile` cuts, innermost first: the last two of the first three."""
    return tuple(reversed(tuple(chain(nests(expr)))[: len(DIMENSIONS)]))[:MOST_TILED]


def tiled_lengths(expr: Expr) -> Iterator[int]:
    """The (greatest) lengths of the arrays of `tiled_maps`, innermost first."""
    for path in tiled_maps(expr):
        yield longest(array_type(children(at(expr, path))[0]))


def tile(sizes: tuple[Nat, ...], tail: str = "none", *, lanes: bool = False) -> Strategy:
    """Cut the maps that make the result into tiles, with one size per map, innermost first.

    `map(f)` becomes `join(map(map(f))(split))`, in which both maps can have levels. `tail` chooses
    the form of the last tile (`block.cut_of`); with `lanes`, the innermost map makes the adjacent
    results that vectors store.
    """

    def run(expr: Expr) -> Result:
        kinds = [
            cut_of(length, tail, lanes=lanes and k == 0)
            for k, length in enumerate(tiled_lengths(expr))
        ]
        words = [CUTS[kind][0] for kind in kinds]
        cuts = zip(tiled_maps(expr), words, sizes, strict=True)
        return seq(*(at_path(path, rule(word, m=size)) for path, word, size in cuts))(expr)

    return run


def fused() -> Strategy:
    """Fuse the maps that make the result with the maps that they read."""

    def reads_map(expr: Expr) -> bool:
        return working_map(expr) and working_map(children(expr)[0])

    def run(expr: Expr) -> Result:
        fuse = repeat(where(reads_map, rule("map_fusion"), "map of a map"))
        return seq(*(at_path(path, fuse) for path in reversed([*chain(nests(expr))])))(expr)

    return run


def flat() -> Strategy:
    """Flatten the two innermost maps that make the result into one over all their elements.

    A map of few elements, such as the channels of an image, then becomes part of a long map, which
    can be cut and vectorized.
    """

    def run(expr: Expr) -> Result:
        paths = [*chain(nests(expr))]
        if len(paths) < 2 or paths[-1] != (*paths[-2], 1):
            return Failure("flat", "no map of maps makes the result")
        views = attempt(rule("map_fission", {"g": (0,)}))
        return at_path(paths[-2], seq(views, rule("map_map_join")))(expr)

    return run


def element_by_element(expr: Expr, row: Param | None = None) -> bool:
    """Whether each element of a result depends only on elements at the same place in variables.

    The result is made by maps over variables and their rows, and by scalar operators. Then no two
    results read the same element of an array. `row` is the variable of the enclosing map.
    """
    if not working_map(expr):
        arrays = any(isinstance(part.type, ArrayType) for part in every_part(expr))
        return row is not None and not arrays
    whole, param = children(expr)[0], parameter(expr)
    zipped = isinstance(whole, FunCall) and isinstance(whole.fun, Zip)
    return all(
        is_part(array) and (row is None or row in array.free)
        for array in (children(whole) if zipped else (whole,))
    ) and element_by_element(body_of(expr), param)


def is_part(expr: Expr) -> bool:
    """Whether an expression is a variable, or a component of one."""
    while isinstance(expr, FunCall) and isinstance(expr.fun, Get):
        (expr,) = expr.args
    return isinstance(expr, Param)


def in_vectors(width: Nat) -> Strategy:
    """Vectorize the innermost map that makes the result.

    A map to scalars is applied to vectors. A map of reductions becomes a reduction to vectors; what
    is applied to its results is applied to these.
    """

    def run(expr: Expr) -> Result:
        *_, path = (*chain(nests(expr)),)
        body = body_of(at(expr, path))
        reductions = outer_reductions(body)
        if folds(expr) > sum(folds(at(body, place)) for place in reductions[:1]):
            return Failure(
                "in_vectors", "lanes read the result of a fold, which has no vector form"
            )
        if is_reduce(body):
            arrays = where(is_reduce, in_vector_accumulators(width), "reduction to an array")
            vectors = seq(reduce_of_maps(), arrays)
            return at_path(path, vectors)(expr)
        if isinstance(body.type, ArrayType | TupleType):
            return Failure("in_vectors", f"the innermost map returns {body.type}, not scalars")
        if reductions:
            start = at_path((0,), seq(elementwise(1), components_copied))
            arrays = where(is_reduce, start, "reduction to an array")
            sums = seq(reduce_of_maps(), arrays)
            accumulators = choose(*(at_path(place, sums) for place in ((0,), (0, 0), (0, 1))))
            apart = taken_apart(reductions[0])
            vectors = seq(apart, accumulators, scalars_apart, normalize(vectorized(width)))
            return at_path(path, vectors)(expr)
        return at_path(path, vectorized(width))(expr)

    return run


def scalars_apart(expr: Expr) -> Result:
    """`map(t -> f(g(t.0), t.1))` of a zip as a map of a zip with `map(g)`, which makes scalars.

    Lanes can read these, but not an element with arrays of which `g` is a component.
    """
    element, body = parameter(expr), body_of(expr)
    first = FunCall(Get(0), (element,)) if isinstance(element.type, TupleType) else None
    for path, part in top_down(body):
        component = part
        while isinstance(component, FunCall) and isinstance(component.fun, Get):
            component = component.args[0]
            if component == first and isinstance(part.type, ScalarType):
                return rule("map_fission_first", {"g": path})(expr)
    return Success(expr)


def folds(expr: Expr) -> int:
    """The number of reductions in an expression."""
    return sum(is_reduce(part) for part in every_part(expr))


def windows_in_local(size: Nat) -> Strategy:
    """Take windows tile by tile; a work-group copies its tile to local memory and reads it there.

    Windows have one or two dimensions; `size` is the side of a tile.
    """
    own = disjoint(size)
    tiled = choose(tile_windows(own, own), tile_line(own))
    windows = where(is_window_map, tiled, "map over windows")

    def tiles(expr: Expr) -> Result:
        return at_path(maker(expr), windows)(expr)

    return seq(
        attempt(folds_inward),
        nest_reductions(),
        attempt(rule("map_fusion")),
        tiles,
        outermost(where(is_map_of_tiles, stage_tile, "map over tiles")),
        sequential(),
    )


def is_map_of_tiles(expr: Expr) -> bool:
    """Whether a map's function makes its result by a map over parts of its argument."""
    return working_map(expr) and working_map(at(body_of(expr), maker(body_of(expr))))


def stage_tile(expr: Expr) -> Result:
    """`map(tile -> map(f)(view(tile)))` over work-groups, with the tile in local memory."""
    if not isinstance(expr, FunCall):
        return Failure("stage_tile", "no map here")
    body = body_of(expr)
    inner = maker(body)
    (param,) = expr.fun.f.params  # pyright: ignore[reportAttributeAccessIssue]
    view = children(at(body, inner))[0]
    used = [path for path, part in top_down(view) if part == param]
    if len(used) != 1:
        return Failure("stage_tile", f"the tile is read in {len(used)} places, not in one")
    depth = rank(param.type)
    copies = [at_path((1,) * k, rule("map_to_seq" if k else "map_to_lcl_0")) for k in range(depth)]
    copied = seq(rule("to_local"), at_path((0,), seq(elementwise(depth), *copies)))
    return seq(
        at_path((1, *inner, 0, *used[0]), copied),
        at_path((1, *inner), rule("map_to_lcl_0")),
        rule("map_to_wrg_0"),
    )(expr)
