"""The input that the inner map of a block reads, stored with that map's elements innermost.

The lanes of a block run over the inner map. If its elements are rows of an input, adjacent lanes
read distant elements: in `ks |> map(k => ...)` with `ks: [n][d]` they are d elements apart. A copy
of the input with these two dimensions exchanged makes the reads adjacent; for a block of many
results, the copy takes little time.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import Get
from liftpy.ir.walk import Path, at
from liftpy.primitives import Map, Zip
from liftpy.rewrite.strategies.lower import copy_kernel
from liftpy.rewrite.strategies.shapes import rank
from liftpy.rewrite.strategy import Strategy, at_path, rule, seq

Place = tuple[Path, int]  # the path of an array, and how many maps around it select the element


def input_of(expr: Expr, block: Path) -> Place | None:
    """The place of the input whose rows the inner map of a block reads; None if it reads others."""
    scope: dict[Param, Place] = {}
    inner = (*block, 1)
    for depth in range(len(inner) + 1):
        call = at(expr, inner[:depth])
        if isinstance(call, FunCall) and isinstance(call.fun, Map):
            place = source(expr, call.args[0], (*inner[:depth], 0), scope)
            if depth == len(inner):
                return place if place is not None and is_rows(expr, place) else None
            if place is not None:
                scope[call.fun.f.params[0]] = place[0], place[1] + 1
    return None


def source(expr: Expr, part: Expr, path: Path, scope: dict[Param, Place]) -> Place | None:
    """The place of the array outside all functions that a part is, or is an element of."""
    if isinstance(part, Param):
        return scope.get(part, (path, 0) if part in expr.free else None)
    if isinstance(part, FunCall) and isinstance(part.fun, Zip):
        return path, 0
    if isinstance(part, FunCall) and isinstance(part.fun, Get):
        whole = source(expr, part.args[0], (*path, 0), scope)
        if whole is None or not whole[1]:
            return None
        there = at(expr, whole[0])
        if isinstance(there, FunCall) and isinstance(there.fun, Zip):
            one = (*whole[0], part.fun.index)
            inner = source(expr, at(expr, one), one, scope)
            return None if inner is None else (inner[0], inner[1] + whole[1])
    return None


def is_rows(expr: Expr, place: Place) -> bool:
    """Whether the array at a place is an input with two dimensions left inside its maps."""
    array = at(expr, place[0])
    return isinstance(array, Param) and rank(array.type) == place[1] + 2


def stored_in_columns(place: Place) -> Strategy:
    """Store the input at a place with its two innermost dimensions exchanged."""
    path, depth = place
    return at_path(path, columns_stored(depth))


def columns_stored(depth: int) -> Strategy:
    """An array inside `depth` maps as the transpose of its stored transpose."""
    moved, inner = apart(depth)
    return seq(moved, at_path(inner, copy_kernel()))


def apart(depth: int) -> tuple[Strategy, Path]:
    """`x` as the transpose of its transpose, inside `depth` maps; and the path of the latter."""
    if depth == 0:
        return rule("transpose_introduction"), (0,)
    inner, place = apart(depth - 1)
    return seq(rule("map_copy"), at_path((1,), inner), rule("map_fission", {"g": place})), (0,)
