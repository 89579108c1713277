"""Brings maps of sums of products, however they are written, to the form that rules expect.

In this form each sum is one nest of folds over zips, whose first array does not depend on the
element of the innermost map, and nothing is done to its result. Sums of sums become one sum, zips
are swapped, and operations on the results are moved into maps around the maps of the sums.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get
from liftpy.ir.walk import Path, lambda_of, top_down
from liftpy.primitives import Map, Reduce, Zip
from liftpy.rewrite.strategies.epilogue import COMPONENTS, inner_apart
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.shapes import body_of, is_folded, is_reduce, parameter, working_map
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    choose,
    innermost,
    normalize,
    repeat,
    rule,
    seq,
)


def sums_of_products() -> Strategy:
    """Apply the steps of this module to a map of maps of sums."""
    return seq(one_sum(), nest_reductions(), operands_in_order, sums_apart)


def one_sum() -> Strategy:
    """Turn sums of sums into sums over joined arrays."""
    whole = rule("reduce_of_map_reduce")
    apart = seq(at_path((1,), rule("map_fission", {"g": (1,)})), whole)
    return repeat(innermost(choose(whole, apart), is_sum_of_sums))


def is_sum_of_sums(expr: Expr) -> bool:
    """Whether an expression reduces the results of reductions."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Reduce):
        return False
    source = expr.args[1]
    mapped = isinstance(source, FunCall) and isinstance(source.fun, Map)
    return mapped and is_reduce(body_of(source))


# --- the order of the operands --------------------------------------------------------------------


def operands_in_order(expr: Expr) -> Result:
    """Swap the zips of nested folds that have the element of the innermost map first."""
    for path, part in top_down(expr):
        if is_map_of_folds(part) and not any(
            is_map_of_folds(e) for _, e in top_down(body_of(part))
        ):
            found = next(out_of_order(body_of(part), parameter(part), (*path, 1)), None)
            if found is not None:
                return seq(at_path(found, swapped()), operands_in_order)(expr)
    return Success(expr)


def is_map_of_folds(expr: Expr) -> bool:
    """Whether an expression is a map that computes one reduction for each element."""
    return working_map(expr) and is_folded(body_of(expr))


def swapped() -> Strategy:
    """Swap the zip that a fold reads."""
    fused = seq(rule("reduce_map_fusion"), at_path((2,), normalize(COMPONENTS)))
    return seq(at_path((1,), rule("zip_swap")), fused)


def out_of_order(expr: Expr, element: Param, path: Path) -> Iterator[Path]:
    """The paths of folds whose zip has first what depends on an element, second what does not.

    In the function of a fold over a zip, the second component of its element depends on it.
    """
    for inner, part in top_down(expr):
        if not isinstance(part, FunCall) or not is_reduce(part):
            continue
        source = part.args[1]
        if not isinstance(source, FunCall) or not isinstance(source.fun, Zip):
            continue
        if len(source.args) != 2:
            continue
        one, two = (element in arg.free for arg in source.args)
        if one and not two:
            yield (*path, *inner)
        if not one and two:
            yield from reversed_inside(lambda_of(part.fun), (*path, *inner, 2))


def reversed_inside(step: Lambda, path: Path) -> Iterator[Path]:
    """The paths of folds inside the step of another over a zip of its components, swapped."""
    _, pair = step.params
    for inner, part in top_down(step.body):
        if not isinstance(part, FunCall) or not is_reduce(part):
            continue
        match part.args[1]:
            case FunCall(Zip(), (FunCall(Get(1), (a,)), FunCall(Get(0), (b,)))) if a == b == pair:
                yield (*path, *inner)
            case FunCall(Zip(), (FunCall(Get(0), (a,)), FunCall(Get(1), (b,)))) if a == b == pair:
                yield from reversed_inside(lambda_of(part.fun), (*path, *inner, 2))
            case _:
                pass


# --- what is done to the results ------------------------------------------------------------------


def sums_apart(expr: Expr) -> Result:
    """Move what is done to each sum, in maps of maps of sums, into a map around them."""
    if not working_map(expr):
        return Failure("sums_apart", "no map is here")
    made = body_of(expr)
    if is_sums(made):
        return Success(expr)
    if is_folded(made):
        return inner_apart(expr)
    return seq(at_path((1,), sums_apart), outer_apart)(expr)


def outer_apart(expr: Expr) -> Result:
    """`map(x -> f(sums(x)))` as a map of `f` around `map(sums)`, for maps of sums."""
    path = sums_in(body_of(expr))
    if path is None:
        return Failure("sums_apart", "no map of sums is here")
    if not path:
        return Success(expr)
    laws = "map_fission", "map_fission_first", "map_fission_second", "map_fission_zip"
    return choose(*(rule(law, {"g": path}) for law in laws))(expr)


def sums_in(expr: Expr) -> Path | None:
    """The path of the first map of sums that no function contains; None if there is none."""
    return next((path for path, part in outside_functions(expr) if is_sums(part)), None)


def is_sums(expr: Expr) -> bool:
    """Whether an expression is a sum, or maps of maps of sums, of which nothing else is made."""
    return is_reduce(expr) or (working_map(expr) and is_sums(body_of(expr)))
