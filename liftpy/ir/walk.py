"""Traversal and rebuilding of expressions: children, paths, replacement, substitution of sizes.

A path is a tuple of positions. The children of a call are its arguments, then the body of its
function if it has one. The children of a tuple are its elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from operator import is_
from typing import Any, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Function, Lambda, UserFun
from liftpy.ir.nat import INDEX, Nat, NatLike
from liftpy.ir.primitive import Primitive, function_of, index_fields, nat_fields
from liftpy.ir.types import ScalarType, scalars

Path: TypeAlias = tuple[int, ...]

#: The most levels of a text or an expression. A traversal makes a few nested Python calls for each
#: level, and Python allows a thousand in all.
DEPTH = 120


def lambda_of(fun: Function) -> Lambda:
    """`function_of` for a call that must have one; InternalError if it has none."""
    function = function_of(fun)
    if function is None:
        message = f"{fun} does not call a function with a body"
        raise InternalError(message)
    return function


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct parts of an expression."""
    if isinstance(expr, FunCall):
        return expr.parts
    return expr.elements if isinstance(expr, Tuple) else ()


def with_function(fun: Function, new: Lambda) -> Function:
    """The same callee with another function."""
    if isinstance(fun, Lambda):
        return new
    if not isinstance(fun, Primitive):
        message = f"{fun} does not call a function that can be replaced"
        raise InternalError(message)
    return replace(fun, f=new)


def with_child(expr: Expr, position: int, new: Expr) -> Expr:
    """The expression with one part replaced; its type is computed again."""
    if isinstance(expr, Tuple):
        return Tuple((*expr.elements[:position], new, *expr.elements[position + 1 :]))
    if not isinstance(expr, FunCall):
        message = f"{type(expr).__name__} has no parts"
        raise InternalError(message)
    if position < len(expr.args):
        args = (*expr.args[:position], new, *expr.args[position + 1 :])
        return expr.with_parts(expr.fun, args)
    params = lambda_of(expr.fun).params
    return expr.with_parts(with_function(expr.fun, Lambda(params, new)), expr.args)


def at(expr: Expr, path: Path) -> Expr:
    """The part at a path."""
    for position in path:
        expr = children(expr)[position]
    return expr


def exists(expr: Expr, path: Path) -> bool:
    """Whether there is a part at a path."""
    for position in path:
        parts = children(expr)
        if position >= len(parts):
            return False
        expr = parts[position]
    return True


def bound_names(expr: Expr) -> set[str]:
    """The names of all variables bound inside an expression."""
    return {*_bound_names(expr)}


@by_identity(1 << 15)
def _bound_names(expr: Expr) -> frozenset[str]:
    inside = frozenset[str]().union(*map(_bound_names, children(expr)))
    function = function_of(expr.fun) if isinstance(expr, FunCall) else None
    return inside if function is None else inside.union(p.name for p in function.params)


def replace_at(expr: Expr, path: Path, new: Expr) -> Expr:
    """The expression with the part at a path replaced."""
    if not path:
        return new
    inner = replace_at(children(expr)[path[0]], path[1:], new)
    return with_child(expr, path[0], inner)


def top_down(expr: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    """Every part with its path, outermost first."""
    waiting = [(path, expr)]
    while waiting:
        path, part = waiting.pop()
        yield path, part
        parts = children(part)
        for k in range(len(parts) - 1, -1, -1):
            waiting.append(((*path, k), parts[k]))  # noqa: PERF401  most have one or none


def every_part(expr: Expr) -> Iterator[Expr]:
    """Every part in the order of `top_down`, without its path."""
    waiting = [expr]
    while waiting:
        part = waiting.pop()
        yield part
        if isinstance(part, FunCall):
            waiting += part.parts[::-1]
        elif isinstance(part, Tuple):
            waiting += part.elements[::-1]


def top_down_from(expr: Expr, path: Path) -> Iterator[tuple[Path, Expr]]:
    """The parts around the part at a path, then that part and all that follow it, outermost first.

    As `top_down`, without the parts that come before the part at `path` and do not contain it.
    """
    around = [expr]
    for position in path:
        around.append(children(around[-1])[position])
    for depth in range(len(path)):
        yield path[:depth], around[depth]
    yield from top_down(around[-1], path)
    for depth in range(len(path) - 1, -1, -1):
        for k, part in enumerate(children(around[depth])):
            if k > path[depth]:
                yield from top_down(part, (*path[:depth], k))


def bottom_up(expr: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    """Every part with its path, innermost first."""
    for position, child in enumerate(children(expr)):
        yield from bottom_up(child, (*path, position))
    yield path, expr


def has_call(expr: Expr, *kinds: type) -> bool:
    """Whether a function of one of these classes is called in an expression.

    Traversals that look for such calls skip the parts that have none. Expressions share most of
    their parts, so the classes that are called in a part are cached.
    """
    return has_kind(called(expr), kinds)


@by_identity(1 << 15)
def called(expr: Expr) -> frozenset[type]:
    """The classes of all functions that are called in an expression."""
    inside = {called(part) for part in children(expr)}
    known = inside.pop() if len(inside) == 1 else frozenset[type]().union(*inside)
    if not isinstance(expr, FunCall) or expr.fun.__class__ in known:
        return known
    return known | {expr.fun.__class__}


@lru_cache(maxsize=1 << 13)
def has_kind(known: frozenset[type], kinds: tuple[type, ...]) -> bool:
    """Whether one of some classes is one of `kinds`, or derived from one."""
    return any(issubclass(kind, kinds) for kind in known)


def height(expr: Expr) -> int:
    """The number of nested levels of an expression; visits a shared part only once."""
    found: dict[int, int] = {}
    waiting = [(expr, False)]
    while waiting:
        part, seen = waiting.pop()
        if id(part) in found:
            continue
        inner = children(part)
        if seen:
            found[id(part)] = 1 + max((found[id(child)] for child in inner), default=0)
        else:
            waiting.append((part, True))
            waiting += [(child, False) for child in inner]
    return found[id(expr)]


def map_sizes(expr: Expr, change: Callable[[Nat], Nat]) -> Expr:
    """The expression with the sizes in its primitives changed; those in types are recomputed."""
    match expr:
        case Tuple(elements):
            return Tuple(tuple(map_sizes(e, change) for e in elements))
        case FunCall(fun, args):
            new = tuple(map_sizes(a, change) for a in args)
            function = function_of(fun)
            if function is not None:
                body = map_sizes(function.body, change)
                fun = with_function(fun, Lambda(function.params, body))
            if isinstance(fun, Primitive):
                sizes = {name: change(size) for name, size in fun.numbers().items()}
                fun = replace(fun, **sizes)
            return call(fun, *new)
        case _:
            return expr


def scalars_in(function: Lambda) -> frozenset[ScalarType]:
    """The scalar types of everything that a function computes, user functions included."""
    given = (s for p in function.params for s in scalars(p.type))
    return _scalars_in(function.body).union(given)


@by_identity(1 << 15)
def _scalars_in(expr: Expr) -> frozenset[ScalarType]:
    inside = frozenset[ScalarType]().union(*map(_scalars_in, children(expr)))
    if isinstance(expr, FunCall) and isinstance(expr.fun, UserFun):
        inside |= scalars_in(Lambda(expr.fun.params, expr.fun.body))
    return inside.union(scalars(expr.type))


def substitute_sizes(
    expr: Expr, by: Mapping[str, NatLike], done: dict[int, Expr] | None = None
) -> Expr:
    """The expression with size variables replaced, in types and in primitives.

    Parts that mention none of them are kept, with their types. Shared parts stay shared: `done` has
    the results for the parts visited so far, all of which have to exist as long as it does.
    """
    done = {} if done is None else done
    match expr:
        case Param():
            return substitute_param(expr, by)
        case Tuple(elements):
            parts = tuple(substitute_sizes(e, by, done) for e in elements)
            return expr if all(map(is_, parts, elements)) else Tuple(parts)
        case FunCall(fun, args):
            if (known := done.get(id(expr))) is not None:
                return known
            parts = tuple(substitute_sizes(a, by, done) for a in args)
            callee = substitute_callee(fun, by, done)
            new: Expr = expr
            if callee is not fun or not all(map(is_, parts, args)):
                sized = isinstance(fun, Primitive) and bool(nat_fields(type(fun)))
                kept = None if sized else expr.keeping_type(callee, parts)
                new = FunCall(callee, parts) if kept is None else kept
            done[id(expr)] = new
            return new
        case _:
            return expr


def substitute_callee(
    fun: Function, by: Mapping[str, NatLike], done: dict[int, Expr] | None = None
) -> Function:
    """`substitute_sizes` for a callee."""
    if isinstance(fun, Lambda):
        return substitute_function(fun, by, done)
    if isinstance(fun, UserFun) and any(True for p in fun.params for _ in p.type.lengths()):
        own = substitute_function(Lambda(fun.params, fun.body), by, done)
        return replace(fun, params=own.params, body=own.body)
    if not isinstance(fun, Primitive):
        return fun
    changes: dict[str, Any] = {}
    inner = {name: size for name, size in by.items() if name != INDEX}
    for name in nat_fields(type(fun)):
        size = getattr(fun, name)
        known = inner if name in index_fields(type(fun)) else by  # a size may share its name
        if (new := size.substitute(known)) is not size:
            changes[name] = new
    function = fun.function
    if function is not None and (f := substitute_function(function, by, done)) is not function:
        changes["f"] = f
    return replace(fun, **changes) if changes else fun


def substitute_function(
    function: Lambda, by: Mapping[str, NatLike], done: dict[int, Expr] | None = None
) -> Lambda:
    """`substitute_sizes` for a function."""
    params = tuple(substitute_param(p, by) for p in function.params)
    body = substitute_sizes(function.body, by, done)
    same = body is function.body and all(map(is_, params, function.params))
    return function if same else Lambda(params, body)


def substitute_param(param: Param, by: Mapping[str, NatLike]) -> Param:
    """`substitute_sizes` for a variable."""
    t = param.type.substitute(by)
    return param if t is param.type else replace(param, type=t)


def constant_fields(primitive: Primitive) -> tuple[Any, ...]:
    """The parameters of a primitive that are neither sizes nor functions."""
    sizes = nat_fields(type(primitive))
    return tuple(
        getattr(primitive, f.name)
        for f in fields(primitive)
        if f.name not in sizes and f.name != "f"
    )
