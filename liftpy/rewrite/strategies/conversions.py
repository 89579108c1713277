"""Conversions of numbers, moved out of the functions that compute with them.

A conversion in a function is applied wherever its result is used: once for each window that
contains the number, for instance. Here

    slide(xs) |> map(window -> window |> map(x -> f(f32(x))))

becomes

    map(f32)(xs) |> slide |> map(window -> window |> map(x -> f(x)))

A conversion is moved out of maps and folds and past the layouts that they read, up to padding. A
stage may then store the converted array, and a copy of a tile converts each number once (Anderson
and Gregg's flyte blocking, 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import SCALARS, STORAGE, ScalarType
from liftpy.ir.walk import Path, at, children, lambda_of
from liftpy.primitives import Layout, Map
from liftpy.rewrite.strategies.elementwise import is_variable
from liftpy.rewrite.strategies.epilogue import tuples_fused
from liftpy.rewrite.strategies.inward import past
from liftpy.rewrite.strategies.outward import component, rotated_right
from liftpy.rewrite.strategies.shapes import is_padding, is_view, zipped
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    fail,
    rule,
    seq,
)

SIDES = ("first", "second")
"""The components of a pair in the names of laws."""

Test: TypeAlias = Callable[[Expr], bool]
"""A property of an expression."""


def widens(expr: Expr) -> bool:
    """Whether an expression converts a number of a storage type to the base of this type."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, ScalarOp) or len(expr.args) != 1:
        return False
    t = expr.args[0].type
    return isinstance(t, ScalarType) and t in STORAGE and STORAGE[t] == SCALARS.get(expr.fun.op)


def is_number_or_array(conversion: Test) -> Test:
    """A test that also accepts an array of which all numbers are converted."""
    return lambda expr: conversion(expr) or converts_array(expr, conversion)


def stored_numbers_widened(expr: Expr) -> Result:
    """Move conversions of stored numbers out of functions; fails if no function converts one."""
    result = conversions_outside(is_number_or_array(widens))(expr)
    if isinstance(result, Success) and not result.steps:
        return Failure("stored_numbers_widened", "no function converts a stored number")
    return result


def parameters(call: Expr) -> tuple[Param, ...]:
    """The parameters of the function of a map or fold."""
    return lambda_of(call.fun).params if isinstance(call, FunCall) else ()


def converts_array(expr: Expr, conversion: Test) -> bool:
    """Whether an expression is an array with its numbers converted: nested maps of a conversion."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return False
    (element,), body = expr.fun.f.params, expr.fun.f.body
    inner = conversion(body) or converts_array(body, conversion)
    return inner and children(body)[0] == element


def outermost(expr: Expr, test: Test, path: Path = ()) -> Iterator[Path]:
    """The paths of the outermost parts for which a test holds."""
    if test(expr):
        yield path
        return
    for k, part in enumerate(children(expr)):
        yield from outermost(part, test, (*path, k))


def conversions_outside(is_moved: Test) -> Strategy:
    """Move conversions out of all functions, and past the layouts that they read."""

    def run(expr: Expr) -> Result:
        result = Success(expr)
        while True:
            places = outermost(result.expr, is_moved)
            moved = next(filter(None, (further(result.expr, path) for path in places)), None)
            if moved is None:
                return result
            result = Success(moved.expr, (*result.steps, *moved.steps))

    return run


def further(expr: Expr, path: Path) -> Success | None:
    """Move the conversion at a path one step; None if no law permits it.

    Padding stops it, since a stage stores the padded array.
    """
    (source,) = children(at(expr, path))[:1]
    if is_variable(source):
        step = out_of_function(expr, path)
    elif is_padding(source) or not isinstance(source, FunCall):
        return None
    elif isinstance(source.fun, Layout):
        step = at_path(path, past)
    elif isinstance(source.fun, Map) and is_view(source.fun):
        step = at_path(path, rule("map_fusion"))
    else:
        return None
    result = step(expr) if step else None
    return result if isinstance(result, Success) and result.steps else None


def out_of_function(expr: Expr, path: Path) -> Strategy | None:
    """The strategy that moves an array out of the function whose parameter it reads, if any."""
    source = children(at(expr, path))[0]
    for depth in reversed(range(len(path))):
        place, call = path[:depth], at(expr, path[:depth])
        if not isinstance(call, FunCall) or path[depth] != len(call.args):
            continue
        element = next(iter(parameters(call)[-1:]), None)
        parts = None if element is None else component(source, element)
        if parts is not None:
            return at_path(place, before(call, parts, path[depth + 1 :]))
    return None


def before(call: FunCall, parts: Path, place: Path) -> Strategy:
    """The strategy that computes a component of the elements of a map or fold before it."""
    kind = "map" if isinstance(call.fun, Map) else "reduce"
    if kind == "map" and len(zipped(call.args[0])) > len(SIDES):
        return rule("map_of_zip_of_three")
    if not parts:
        return rule("map_fission" if kind == "map" else "reduce_map_fission", {"g": place})
    if parts[0] >= len(SIDES):
        return fail("no law is about a fold of a zip of three arrays")
    if len(parts) == 1:
        return rule(f"{kind}_fission_{SIDES[parts[0]]}", {"g": place})
    swapped = seq(at_path((0,), rule("zip_swap")), tuples_fused())
    return rotated_right if parts[0] == 0 else swapped
