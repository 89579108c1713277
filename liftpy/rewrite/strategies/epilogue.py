"""Computes operations on the results of a stage where the results are computed.

The expected shape is a map that reads a stage element by element, with layouts between them:

    map(map(f))(transpose(map(x -> map(y -> reduce(...)))))

`map(f)` moves inwards through layouts that keep every element (`map(f) . join = join .
map(map(f))`), and through `zip`, whose other arrays get the inverse layout. When it reaches the map
that computes the elements, the two are fused, so that an element is `f(reduce(...))`. In a block of
results they are separated again: the reductions accumulate the block, and `f` is applied to the
finished accumulators.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.walk import Path, at, children
from liftpy.primitives import Join, Layout, Map, Transpose, Zip
from liftpy.primitives.work import computes, writable
from liftpy.rewrite.strategies.inward import LAWS, past
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_reduce,
    is_view,
    maker,
    maps_over,
    outer_reductions,
    rank,
    working_map,
)
from liftpy.rewrite.strategies.share import outside_functions, stages
from liftpy.rewrite.strategy import (
    Failure,
    Predicate,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    choose,
    fail,
    identity,
    normalize,
    rule,
    seq,
)

ZIP_OF_MAP = ("zip_of_map_first", "zip_of_map_second")


def fused_inward(expr: Expr) -> Result:
    """Fuse every map that reads a stage element by element with the map that computes the stage.

    This is also done in the function of the map that makes the result, if everything fuses there.
    """
    if next(stages(expr), None) is None:
        inner = fused_within(expr)
        return inner if isinstance(inner, Success) and inner.steps else Success(expr)
    result = at_path(maker(expr), met)(expr)
    if isinstance(result, Success) and next(stages(result.expr), None) is not None:
        return Failure("fused_inward", "a stage is not read element by element")
    return result


def fused_within(expr: Expr) -> Result:
    """Apply `fused_inward` in the function of the map that makes the result."""
    path = maker(expr)
    if not working_map(at(expr, path)):
        return Failure("fused_inward", "the result is not made by a map")
    return at_path((*path, 1), fused_inward)(expr)


def met(expr: Expr) -> Result:
    """Fuse `map(f)` with the map that computes what it reads, below the layouts between them."""
    if not working_map(expr):
        return Failure("fused_inward", "the result is not made by a map")
    source = children(expr)[0]
    if not computes(source):
        return Success(expr)
    if isinstance(source, FunCall) and isinstance(source.fun, Zip):
        return seq(zip_inward(source), again)(expr)
    if isinstance(source, FunCall) and isinstance(source.fun, Map):
        return seq(rule("map_fusion"), again)(expr)
    if isinstance(source, FunCall) and keeps_each(source):
        return seq(past, at_path((0,), met))(expr)
    return Failure(
        "fused_inward", "no map makes the value read, below layouts that keep each element"
    )


def keeps_each(source: FunCall) -> bool:
    """Whether a layout keeps each element exactly once, and a map can be moved past it."""
    fun = source.fun
    return isinstance(fun, Layout) and writable(fun, source.args) and type(fun) in LAWS


def zip_inward(source: FunCall) -> Strategy:
    """Move `map(f)` of a zip past the part of the zip that is computed."""
    here = computed(source)
    part, other = source.args[here], (0, 1 - here)
    if not isinstance(part, FunCall) or len(source.args) > 2:
        return fail("a zip of more than two arrays, or of an array that is not made by a map")
    if isinstance(part.fun, Map):
        return zip_fused(here)
    if isinstance(part.fun, Zip):
        return at_path((0, here), rule(ZIP_OF_MAP[computed(part)]))
    if isinstance(part.fun, Join):
        length = array_type(part).length.exact_div(array_type(part.args[0]).length)
        return seq(
            at_path(other, rule("split_introduction", m=length)),
            at_path((0,), rule("zip_of_joins")),
            rule("map_of_join"),
            at_path((0,), rule("map_fusion")),
        )
    if isinstance(part.fun, Transpose):
        return seq(
            at_path(other, rule("transpose_introduction")),
            rule("map_fission", {"g": (0,)}),
            at_path((0,), rule("zip_of_transposes")),
            rule("map_map_of_transpose"),
            at_path((0,), rule("map_fusion")),
        )
    return fail("a zip of a layout other than join or transpose")


def computed(source: FunCall) -> int:
    """The index of the first part of a zip that is computed."""
    return next(k for k, part in enumerate(source.args) if computes(part))


def zip_fused(part: int) -> Strategy:
    """Fuse `map(f)` of a zip with the map that makes a part of it."""
    return seq(at_path((0,), rule(ZIP_OF_MAP[part])), tuples_fused())


COMPONENTS = choose(rule("first_of_pair"), rule("second_of_pair"))
"""A component of a pair that has just been made, as what it was made of."""


def tuples_fused() -> Strategy:
    """Fuse `map(f)` with a map that makes tuples, of which f reads components."""
    return seq(rule("map_fusion"), at_path((1,), normalize(COMPONENTS)))


def again(expr: Expr) -> Result:
    """Apply `met` inside the result of a fusion, and to what is still read."""
    if isinstance(expr, FunCall) and is_view(expr.fun):
        return at_path((0,), again)(expr)
    body = body_of(expr)
    if rank(body.type) == 0:
        return met(expr)
    inside = at_path((1, *maker(body)), met)(expr)
    if isinstance(inside, Failure):
        return inside
    # map(x -> layout(map(f)(x))): move the layout outside
    view = maker(body_of(inside.expr))
    outward = seq(rule("map_fission", {"g": view}), at_path((0,), met)) if view else met
    return seq(lambda _: inside, outward)(expr)


def reductions_apart(expr: Expr) -> Result:
    """`map(x -> map(y -> f(reduce(...))))` as `f` of the elements of `map(x -> map(reduce))`.

    Other parts of x and y that `f` reads are passed to it by `zip`.
    """
    return seq(at_path((1,), inner_apart), outer_apart)(expr)


def inner_apart(expr: Expr) -> Result:
    """`map(f . reduce)` as `map(f)` of `map(reduce)`; lanes can read what else `f` needs."""
    path = next(iter(outer_reductions(body_of(expr))), ())
    if not path:
        return Success(expr)
    return taken_apart(path)(expr)


def taken_apart(path: Path) -> Strategy:
    """`map(f . g)` as `map(f)` of `map(g)`, where `path` leads to `g` in the function.

    Other parts of an element that `f` reads are passed to it by `zip`.
    """
    hints = {"g": path}
    rotated = seq(at_path((0,), rule("zip_rotate_right")), tuples_fused())
    return choose(
        rule("map_fission", hints),
        rule("map_fission_first", hints),
        rule("map_fission_second", hints),
        seq(rotated, rule("map_fission_first", hints)),
        rule("map_fission_zip", hints),
    )


def outer_apart(expr: Expr) -> Result:
    """`map(x -> map(f)(map(reduce)))` as a map of `map(x -> map(reduce))`."""
    return apart(maps_over(is_reduce))(expr)


def apart(made: Predicate) -> Strategy:
    """`map(x -> f(e))` as a map of `map(x -> e)`, for the first part `e` that satisfies `made`."""

    def run(expr: Expr) -> Result:
        found = (p for p, part in outside_functions(body_of(expr)) if made(part))
        path: Path = next(found, ())
        hints = {"g": path}
        fission = choose(rule("map_fission", hints), rule("map_fission_zip", hints))
        return (fission if path else identity)(expr)

    return run


def cut_parts(law: str) -> Strategy:
    """`map(f)(cut(zip))` as a map over a zip of cuts, whose parts can be used separately.

    law: the rule that turns a cut of a zip into a zip of cuts, `split_of_zip` or `cover_of_zip`.
    """
    return seq(at_path((0,), parts_cut(law)), rule("map_fusion"))


def parts_cut(law: str) -> Strategy:
    """Turn a cut of nested zips into a map over nested zips of cuts."""

    def apply(expr: Expr) -> Result:
        return seq(
            rule(law),
            at_path((0, 0), attempt(apply)),
            at_path((0, 1), attempt(apply)),
            attempt(zip_fused(0)),
            attempt(zip_fused(1)),
        )(expr)

    return apply
