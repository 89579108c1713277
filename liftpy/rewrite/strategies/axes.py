"""Folds over windows of two dimensions, one axis after the other.

The expected shape is a map over the windows of rows of a map over the windows in them:

    slide(k, s) |> map(rows -> rows |> map(slide(l, t)) |> transpose |> map(fold))

If the operator is associative and has a neutral element, the fold of a window is a fold of the
folds of its rows. The latter do not depend on the window of rows, so each is computed once, for all
windows that contain the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import Nat
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Join, Map, Slide, Transpose
from liftpy.rewrite.strategies.shapes import (
    array_type,
    body_of,
    is_reduce,
    is_view,
    parameter,
    working_map,
    zipped,
)
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    attempt,
    outermost,
    rule,
    seq,
    where,
)


def axes_apart(expr: Expr) -> Result:
    """Fold the rows of windows first, in an array of their own, then the folds of each window.

    The array is outside of all functions, so that it may be stored.
    """
    for path, part in top_down(expr):
        around = maps_around(expr, path)
        if not are_overlapping_windows(part) or around is None:
            continue
        made, value = rows_first, (*path, 0, 0)
        steps: list[Strategy] = [at_path(path, made)]
        for place in reversed(around):
            steps.append(at_path(place, rule("map_fission", {"g": value[len(place) + 1 :]})))
            value = (*place, 0)
        result = seq(*steps)(expr)
        if not isinstance(result, Failure):
            return result
    return Failure("axes_apart", "no fold of overlapping windows of two dimensions")


def are_overlapping_windows(expr: Expr) -> bool:
    """Whether an expression is a map over windows of rows, with rows in several windows."""
    if not isinstance(expr, FunCall) or not working_map(expr):
        return False
    (windows,) = expr.args
    if isinstance(windows, FunCall) and isinstance(windows.fun, Map) and is_view(windows.fun):
        (windows,) = windows.args
    if not isinstance(windows, FunCall) or not isinstance(windows.fun, Slide):
        return False
    size, step = windows.fun.size.constant, windows.fun.step.constant
    return size is not None and step is not None and step < size


def maps_around(expr: Expr, path: Path) -> list[Path] | None:
    """The paths of the maps whose functions contain a place; None if it is in another function."""
    found: list[Path] = []
    for depth, step in enumerate(path):
        place = at(expr, path[:depth])
        if isinstance(place, FunCall) and step == len(place.args):
            if not isinstance(place.fun, Map):
                return None
            found.append(path[:depth])
    return found


def rows_first(expr: Expr) -> Result:
    """`map(rows -> map(fold)(windows of rows))`, with the folds of rows in an array."""
    fused = seq(attempt(rule("map_fusion")), at_path((1,), attempt(rule("map_fusion"))))
    of_rows = seq(
        at_path((1,), windows_first),
        rule("map_fission", {"g": (0, 0)}),
        at_path((0,), rule("map_map_of_slide")),
    )
    return seq(fused, where(lambda e: is_columns(body_of(e)), of_rows, "windows in rows"))(expr)


def is_columns(expr: Expr) -> bool:
    """Whether an expression is a map over a transposed map."""
    match expr:
        case FunCall(Map(), (FunCall(Transpose(), (FunCall(Map(), _),)),)):
            return True
        case _:
            return False


def windows_first(expr: Expr) -> Result:
    """`map(fold)(transpose(map(slide)(rows)))`, with the folds of each row inside the transpose."""
    window, element = body_of(expr), parameter(expr)
    path = fold_of(window, lambda e: is_join_of(e, element))
    if path is not None:
        parts, value = at_path((1, *path), rule("reduce_by_rows")), (*path, 1)
    else:
        parts, value = at_path((1,), channels_first), (0, 0)
    return seq(parts, rule("map_fission", {"g": value}), at_path((0,), inside_transpose))(expr)


def inside_transpose(expr: Expr) -> Result:
    """`map(map(f))(transpose(map(g)(xss)))` as `transpose(map(map(f) . g)(xss))`."""
    return seq(rule("map_map_of_transpose"), at_path((0,), rule("map_fusion")))(expr)


@cache
def joined_last() -> Strategy:
    """`map(f)(transpose(join(rows)))` as `map(f . join)`, so that folds of `f` become nested."""
    return seq(at_path((0,), rule("transpose_of_join")), rule("map_fusion"))


@cache
def folds_nested() -> Strategy:
    """Apply `joined_last` to the outermost map for which it is a law, if there is one.

    Folds of windows that are zipped with other arrays, such as the weights of a depthwise
    convolution, are cut into rows instead (`folds_of_rows`).
    """
    return seq(attempt(outermost(joined_last())), attempt(outermost(folds_of_rows)))


def folds_of_rows(expr: Expr) -> Result:
    """`map(fold)(zip(transpose(join(window)), ...))`, with a fold for each row of the window."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return Failure("folds_of_rows", "no map here")
    widths = joined_widths(zipped(*expr.args))
    path = fold_of(body_of(expr), lambda _: True)
    if not widths or path is None:
        return Failure("folds_of_rows", "no fold of joined windows that are zipped with others")
    rows = seq(attempt(rule("reduce_map_fusion")), rule("reduce_strip", m=widths[0]))
    return at_path((1, *path), rows)(expr)


def joined_widths(arrays: Iterable[Expr]) -> list[Nat]:
    """The lengths of the rows of which transposed arrays are joined."""
    found: list[Nat] = []
    for array in arrays:
        match array:
            case FunCall(Transpose(), (FunCall(Join(), (rows,)),)):
                row = array_type(rows).element
                found += [row.length] if isinstance(row, ArrayType) else []
            case _:
                pass
    return found


def channels_first(expr: Expr) -> Result:
    """`map(fold)(transpose(join(window)))`, with the folds of each row inside the transpose."""
    joined = joined_last()(expr)
    if isinstance(joined, Failure):
        return joined
    element = parameter(joined.expr)
    path = fold_of(body_of(joined.expr), lambda e: is_join_of(e, element))
    if path is None:
        return Failure("channels_first", "no fold of a window's channel")
    rows = seq(
        at_path((1, *path), rule("reduce_by_rows")),
        rule("map_fission", {"g": (*path, 1)}),
        at_path((0,), inside_transpose),
    )
    return seq(joined_last(), rows)(expr)


def fold_of(expr: Expr, source: Callable[[Expr], bool]) -> Path | None:
    """The path of the first fold of an array that satisfies a predicate."""
    for path, part in top_down(expr):
        if isinstance(part, FunCall) and is_reduce(part) and source(part.args[1]):
            return path
    return None


def is_join_of(expr: Expr, param: Param) -> bool:
    """Whether an expression joins the rows of a variable."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Join) and expr.args[0] == param
