"""Arrays of zips that the maps over them do not read."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import Get
from liftpy.ir.walk import children
from liftpy.primitives import Map, Zip
from liftpy.rewrite.strategies.epilogue import ZIP_OF_MAP, tuples_fused
from liftpy.rewrite.strategies.shapes import body_of, is_let, parameter
from liftpy.rewrite.strategy import (
    Strategy,
    at_path,
    choose,
    outermost,
    repeat,
    rule,
    seq,
    where,
)


def zipped(expr: Expr) -> FunCall | None:
    """The zip that a map reads."""
    source = children(expr)[0] if isinstance(expr, FunCall) and isinstance(expr.fun, Map) else None
    return source if isinstance(source, FunCall) and isinstance(source.fun, Zip) else None


def is_pairs(expr: Expr) -> bool:
    """Whether an expression is a zip of two arrays."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Zip) and len(expr.args) == 2


def leaves(expr: Expr, path: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """The components of nested zips of two arrays."""
    if not is_pairs(expr):
        yield path
        return
    for k, part in enumerate(children(expr)[:2]):
        yield from leaves(part, (*path, k))


def accesses(expr: Expr, pair: Param) -> Iterator[tuple[int, ...]]:
    """The components of a variable that an expression reads."""
    if pair not in expr.free:
        return
    path = component(expr, pair)
    if path is not None:
        yield path
        return
    for part in children(expr):
        yield from accesses(part, pair)


def component(expr: Expr, pair: Param) -> tuple[int, ...] | None:
    """The component of a variable that an expression is, outermost index first; None if none."""
    if expr == pair:
        return ()
    if isinstance(expr, FunCall) and isinstance(expr.fun, Get):
        whole = component(expr.args[0], pair)
        return None if whole is None else (*whole, expr.fun.index)
    return None


def overlap(path: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether one of two components contains the other, or they are the same."""
    return all(a == b for a, b in zip(path, other, strict=False))


def unread_dropped() -> Strategy:
    """Map over the parts of a zip that the function reads; fails if it reads all of them.

    It drops one part at a time; zips of more arrays are nested zips of two.
    """
    alone = choose(rule("map_zip_first"), rule("map_zip_second"))
    right = seq(at_path((0,), rule("zip_rotate_right")), tuples_fused())
    left = seq(at_path((0,), rule("zip_rotate_left")), tuples_fused())
    forms = [alone, seq(right, alone), seq(left, alone)]
    for side, turned in enumerate((right, left)):
        swapped = at_path((0, side), rule("zip_swap")), at_path((0,), rule(ZIP_OF_MAP[side]))
        forms.append(seq(*swapped, tuples_fused(), turned, alone))
    return choose(*forms)


def every_unread_dropped() -> Strategy:
    """Drop the unread arrays of every zip in an expression, if there are any.

    Otherwise such an array is an argument of a kernel, and takes memory during the run. Forms by
    F(m, r) have them: the zip of a map over kernels contains the weights, but once the transformed
    weights are a value of their own, only this value reads them.
    """
    named = where(names_component, at_path((1,), rule("let_inline")), "let of a component")
    return repeat(outermost(where(leaves_unread, choose(named, unread_dropped()), "unread array")))


def leaves_unread(expr: Expr) -> bool:
    """Whether an expression is a map over a zip and reads only some of its arrays.

    If a `let` at the beginning of the map's function names a component, the component is read where
    the variable of the `let` is read.
    """
    source = zipped(expr)
    if source is None:
        return False
    pair, body = parameter(expr), body_of(expr)
    read = [*accesses(body, pair)]
    if names_component(expr):
        value, rest = children(body)
        whole = component(value, pair) or ()
        inside = accesses(rest, parameter(body))
        read = [*accesses(rest, pair), *((*whole, *path) for path in inside)]
    return not all(any(overlap(path, p) for p in read) for path in leaves(source))


def names_component(expr: Expr) -> bool:
    """Whether the function of a map begins with a `let` that names a component of its variable."""
    body = body_of(expr)
    return is_let(body) and component(children(body)[0], parameter(expr)) is not None
