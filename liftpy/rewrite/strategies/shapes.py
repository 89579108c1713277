"""Predicates on expressions that strategies use, and the paths at which strategies apply."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall, fresh, substitute
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Function, Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import ArrayType, Type
from liftpy.ir.walk import Path, at, children, every_part, lambda_of, replace_at
from liftpy.primitives import (
    AnyIterate,
    AnyReduceByIndex,
    AnyScan,
    AsVector,
    Concat,
    Generate,
    Layout,
    Map,
    MemoryPrimitive,
    Reduce,
    Repeat,
    Slide,
    ToGlobal,
    ToPrivate,
    Zip,
)
from liftpy.primitives.in_place import is_pure
from liftpy.primitives.places import is_indirect
from liftpy.primitives.work import computes, is_layout, writable
from liftpy.rewrite.strategy import Predicate, Strategy, Success, outermost, rule, seq, where


def working_map(expr: Expr) -> bool:
    """Whether an expression is a `map` that computes something and has no loop or level yet."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Map) and not is_layout(expr.fun)


def body_of(expr: Expr) -> Expr:
    """The body of the function that a call runs."""
    if not isinstance(expr, FunCall):
        message = f"{type(expr).__name__} is not a call"
        raise InternalError(message)
    return lambda_of(expr.fun).body


def zipped(expr: Expr) -> tuple[Expr, ...]:
    """The arrays of a `zip`; none of another expression."""
    return expr.args if isinstance(expr, FunCall) and isinstance(expr.fun, Zip) else ()


def parameter(expr: Expr) -> Param:
    """The parameter of the function that a map applies, or the variable of a `let`."""
    if not isinstance(expr, FunCall):
        message = f"{type(expr).__name__} is not a call"
        raise InternalError(message)
    (param,) = lambda_of(expr.fun).params
    return param


def is_let(expr: Expr) -> bool:
    """Whether an expression is a `let` of one variable."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Lambda) and len(expr.args) == 1


def lets(expr: Expr) -> Iterator[FunCall]:
    """The lets of one variable at the beginning of an expression, outermost first."""
    while isinstance(expr, FunCall) and is_let(expr):
        yield expr
        expr = body_of(expr)


def renamed(expr: Expr, path: Path, name: str) -> Expr:
    """Rename the variable of the `let` at a path, to a similar name if its body reads this one."""
    let = next(lets(at(expr, path)))
    param, inner = parameter(let), at(let, (1,))
    own = Param(fresh(name, {p.name for p in inner.free - {param}}), param.type)
    body = substitute(inner, {param: own})
    return replace_at(expr, path, FunCall(Lambda((own,), body), let.args))


def named_part(name: str, path: Path) -> Strategy:
    """Introduce a `let` of this name for the part at a path."""
    introduced = rule("let_introduction", {"v": path})
    return seq(introduced, lambda expr: Success(renamed(expr, (), name)))


def array_type(expr: Expr) -> ArrayType:
    """The type of an array expression; InternalError for another type."""
    if not isinstance(expr.type, ArrayType):
        message = f"an array is needed here, this is {expr.type}"
        raise InternalError(message)
    return expr.type


def longest(t: ArrayType) -> int:
    """The length of arrays of a type; if it is open, its upper bound."""
    _, most = t.length.bounds
    if most is None:
        message = f"{t} has no largest length"
        raise InternalError(message)
    return most


def maps_over(inner: Predicate) -> Predicate:
    """A predicate for a `map` whose function's result satisfies `inner`."""
    return lambda expr: (
        isinstance(expr, FunCall) and isinstance(expr.fun, Map) and inner(body_of(expr))
    )


def is_reduce(expr: Expr) -> bool:
    """Whether an expression is a `reduce` that has no loop yet, other than `xs[k]`."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Reduce) and not is_element(expr)


def is_element(expr: Expr) -> bool:
    """Whether an expression reads an element of an array, which is written as a `reduce` of one."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Reduce):
        return False
    source, step = expr.args[1], expr.fun.f
    single = isinstance(source.type, ArrayType) and source.type.length.constant == 1
    return single and step.body == step.params[1] and not computes(source)


MOST_SMALL = 64
"""The most elements of a small array, which one work-item makes in registers."""


def is_small(expr: Expr) -> bool:
    """Whether a value is a small array, of a number of elements that is known."""
    number = math.prod(size.constant or MOST_SMALL + 1 for size in expr.type.lengths())
    return isinstance(expr.type, ArrayType) and number <= MOST_SMALL


def lists_elements(expr: Expr) -> bool:
    """Whether an expression is a small array that is given by an expression for each element."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Concat)
        and any(isinstance(a, FunCall) and isinstance(a.fun, Repeat) for a in expr.args)
        and computes(expr)
        and is_small(expr)
    )


def is_folded(expr: Expr) -> bool:
    """Whether an expression is a reduction, or a scalar computed from exactly one reduction."""
    if is_reduce(expr):
        return True
    reductions = {at(expr, path) for path in outer_reductions(expr)}
    return rank(expr.type) == 0 and len(reductions) == 1


def outer_reductions(expr: Expr, path: Path = ()) -> list[Path]:
    """The paths of reductions that are not inside another reduction."""
    if is_reduce(expr):
        return [path]
    inner = (outer_reductions(e, (*path, k)) for k, e in enumerate(children(expr)))
    return [found for paths in inner for found in paths]


def is_padding(expr: Expr) -> bool:
    """Whether an expression is a padded input: `pads`, or a `map` of it, possibly nested."""
    if not isinstance(expr, FunCall) or len(expr.args) != 1:
        return False
    if isinstance(expr.fun, Map):
        padded = not expr.fun.f.free and is_padding(expr.fun.f.body)
    else:
        padded = pads(expr)
    return padded and (is_input(expr.args[0]) or is_padding(expr.args[0]))


def pads(call: FunCall) -> bool:
    """Whether a layout gives an array whose elements are cheaper to read if it is stored.

    These are `pad` and similar layouts, which have a condition or a minimum in each index. An array
    written through the inverse of its layout is already stored.
    """
    if not isinstance(call.fun, Layout) or writable(call.fun, call.args):
        return False
    (of,) = call.args
    return rank(call.type) == rank(of.type) > 0 and is_indirect(call.fun, of.type)


def is_input(expr: Expr) -> bool:
    """Whether an expression is a variable, under layouts that keep each element exactly once."""
    match expr:
        case Param():
            return True
        case FunCall(Map(f), (of,)):
            return not f.free and is_input(f.body) and is_input(of)
        case FunCall(Layout() as fun, (of,)):
            return writable(fun, (of,)) and is_input(of)
        case _:
            return False


def is_windows(expr: Expr) -> bool:
    """Whether an expression is a view that contains a `slide`."""
    return (
        isinstance(expr, FunCall)
        and not computes(expr)
        and any(isinstance(e, FunCall) and isinstance(e.fun, Slide) for e in every_part(expr))
    )


def is_window_map(expr: Expr) -> bool:
    """Whether an expression is a map over the windows of a `slide`."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Map)
        and isinstance(expr.args[0], FunCall)
        and isinstance(expr.args[0].fun, Slide)
    )


def rank(t: Type) -> int:
    """The number of dimensions of an array; 0 for another type."""
    return 1 + rank(t.element) if isinstance(t, ArrayType) else 0


def working(name: str) -> Strategy:
    """Apply a lowering rule to the outermost map that computes."""
    return outermost(where(working_map, rule(name), "working map"))


@dataclass(frozen=True, slots=True)
class MapNest:
    """A map that makes (part of) the result, and the maps that make its function's result."""

    path: Path
    inner: tuple[MapNest, ...]


def nests(expr: Expr, path: Path = (), *, inside: bool = False) -> tuple[MapNest, ...]:
    """The maps that make the result of an expression.

    A map that is only read, for example by a zip, does not count: it is computed where it is read.
    Two more kinds do not count inside another map: a map that reads the array of a fold, scan or
    iteration, since one work-item has that array; and a map next to a value that no map makes,
    since every work-item would store that value.
    """

    def of(part: Expr, *steps: int, inside: bool = inside) -> tuple[MapNest, ...]:
        return nests(part, (*path, *steps), inside=inside)

    match expr:
        case Tuple(elements):
            parts = [of(e, k) for k, e in enumerate(elements)]
            return () if inside and not all(parts) else tuple(itertools.chain(*parts))
        case FunCall((Lambda() | Map()) as fun, args) if (
            inside and not is_view(fun) and any(map(is_in_registers, args))
        ):
            return ()
        case FunCall(Lambda() as f, args):
            return of(f.body, len(args))
        case FunCall(Map() as fun, _) if working_map(expr):
            return (MapNest(path, of(fun.f.body, 1, inside=True)),)
        case FunCall(Primitive() as fun, args) if is_layout(fun) and writable(fun, args):
            parts = [of(a, k) for k, a in enumerate(args)]
            return tuple(itertools.chain(*parts)) if all(parts) else ()
        case _:
            return ()


def result_maps(expr: Expr) -> tuple[MapNest, ...]:
    """The maps that ids run over: `nests`, or the maps that copy a result that none makes."""
    return nests(expr) or copying(expr)


def copying(expr: Expr, path: Path = ()) -> tuple[MapNest, ...]:
    """The nested maps that copy a view down to its scalars."""
    match expr:
        case FunCall(Lambda() as f, args):
            return copying(f.body, (*path, len(args)))
        case FunCall(Map() as fun, (xs,)) if is_layout(fun) and not is_in_registers(xs):
            if not isinstance(fun.f.body.type, ArrayType):
                return (MapNest(path, ()),)
            inner = copying(fun.f.body, (*path, 1))
            return (MapNest(path, inner),) if inner else ()
        case _:
            return ()


def is_one_kernel(expr: Expr) -> bool:
    """Whether one kernel can make an array: no scan, iteration or let, and no fold to an array."""
    lets = any(isinstance(e, FunCall) and isinstance(e.fun, Lambda) for e in every_part(expr))
    return makes_array(expr) and not lets and not folds_arrays(expr)


def makes_array(expr: Expr) -> bool:
    """Whether an expression is an array, computed without a scan or an iteration."""
    calls = [e.fun for e in every_part(expr) if isinstance(e, FunCall)]
    sequences = any(isinstance(fun, AnyReduceByIndex | AnyScan | AnyIterate) for fun in calls)
    return isinstance(expr.type, ArrayType) and not sequences


def is_view(fun: Function) -> bool:
    """Whether a call only moves elements of its arguments."""
    return isinstance(fun, Primitive) and is_layout(fun)


def maker(expr: Expr, path: Path = ()) -> Path:
    """The path of the part that makes the result, below the lets and layouts at the end."""
    match expr:
        case FunCall(Lambda() as f, args):
            return maker(f.body, (*path, len(args)))
        case FunCall(Primitive() as fun, (arg,)) if is_layout(fun) and writable(fun, (arg,)):
            return maker(arg, (*path, 0))
        case _:
            return path


def folds_arrays(expr: Expr) -> bool:
    """Whether anything is folded to an array, other than in a kernel of its own."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal):
        return False
    return (is_reduce(expr) and isinstance(expr.type, ArrayType)) or any(
        map(folds_arrays, children(expr))
    )


def is_in_registers(expr: Expr) -> bool:
    """Whether anything makes an array that is private to a work-item."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal):
        return False
    sequence = isinstance(expr, FunCall) and isinstance(
        expr.fun, AnyReduceByIndex | AnyScan | AnyIterate | ToPrivate
    )
    if sequence and any(True for _ in expr.type.lengths()):
        return True
    if lanes_by_statements(expr):  # stored before they are read (`store_lanes`)
        return True
    return (is_reduce(expr) and isinstance(expr.type, ArrayType)) or any(
        map(is_in_registers, children(expr))
    )


def lanes_by_statements(expr: Expr) -> bool:
    """Whether lanes are elements of an unstored array, each made by statements of its own."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, AsVector)):
        return False
    return makes_by_statements(expr.args[0])


def makes_by_statements(expr: Expr) -> bool:
    """Whether an element of an array that is not stored is made by statements of its own."""
    if not isinstance(expr, FunCall) or isinstance(expr.fun, MemoryPrimitive):
        return False
    if isinstance(expr.fun, Map | Generate):
        return not is_pure(expr.fun.f.body) or any(map(makes_by_statements, expr.args))
    laid_out = isinstance(expr.fun, Primitive) and is_layout(expr.fun)
    return laid_out and any(map(makes_by_statements, expr.args))


def layers(trees: tuple[MapNest, ...]) -> Iterator[tuple[Path, ...]]:
    """The paths of nests at the same depth, outermost first, down to the depth that all have."""
    while trees:
        yield tuple(nest.path for nest in trees)
        deeper = all(nest.inner for nest in trees)
        trees = tuple(nest for outer in trees for nest in outer.inner) if deeper else ()


def paths_of(trees: tuple[MapNest, ...]) -> Iterator[Path]:
    """The paths of nests, outermost first."""
    for nest in trees:
        yield nest.path
        yield from paths_of(nest.inner)


def function_around(expr: Expr, path: Path) -> Path | None:
    """The path of the innermost map, fold or iteration whose function contains the part."""
    calls = ((path[:k], at(expr, path[:k])) for k in reversed(range(len(path))))
    return next(
        (
            found
            for found, e in calls
            if isinstance(e, FunCall)
            and isinstance(e.fun, Primitive)
            and path[len(found)] == len(e.args)
        ),
        None,
    )
