"""Scans, iterations and bins: which parts are of these kinds, and what is in memory before them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.types import ArrayType
from liftpy.ir.walk import Path, at
from liftpy.primitives import ExclusiveScan, Iterate, Layout, Map, ReduceByIndex, Scan, ToGlobal
from liftpy.primitives.work import computes, is_layout
from liftpy.rewrite.strategies.shapes import body_of, is_view, layers, nests


def gives(expr: Expr, made: Callable[[Expr], bool], *, inside: bool = False) -> bool:
    """Whether reading a value, or an element of it, reads a part that satisfies `made`.

    The arguments of views, maps and lets count only `inside` a map's function; elsewhere they can
    be stored separately.
    """
    if made(expr):
        return True
    if isinstance(expr, Tuple):
        return any(gives(e, made, inside=inside) for e in expr.elements)
    if not isinstance(expr, FunCall):
        return False
    fun, parts = expr.fun, expr.args if inside else ()
    if isinstance(fun, Lambda):
        return any(gives(e, made, inside=inside) for e in (*parts, fun.body))
    if isinstance(fun, Map):
        return any(gives(e, made, inside=True) for e in (*parts, fun.f.body))
    view = isinstance(fun, Primitive) and is_layout(fun)
    return view and any(gives(e, made, inside=inside) for e in parts)


def is_scan_or_bins(expr: Expr) -> bool:
    """Whether an expression is a `scan`, or a reduction by index, that has no loop yet."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, Scan | ExclusiveScan | ReduceByIndex)


def is_bins(expr: Expr) -> bool:
    """Whether an expression is a reduction by index that has no loop yet."""
    return isinstance(expr, FunCall) and isinstance(expr.fun, ReduceByIndex)


def is_sequence(expr: Expr) -> bool:
    """Whether work-items must share the result: of a scan, bins, or an iteration of arrays."""
    iterates = isinstance(expr, FunCall) and isinstance(expr.fun, Iterate)
    return is_scan_or_bins(expr) or (iterates and any(True for _ in expr.type.lengths()))


def is_kernel_iteration(expr: Expr) -> bool:
    """Whether an expression iterates a function that has maps."""
    return (
        isinstance(expr, FunCall) and isinstance(expr.fun, Iterate) and bool(nests(body_of(expr)))
    )


def let_below(expr: Expr) -> Path | None:
    """The path of a `let` below layouts that end an expression."""
    path: Path = ()
    while isinstance(expr, FunCall) and is_view(expr.fun) and len(expr.args) == 1:
        (expr,), path = expr.args, (*path, 0)
    named = isinstance(expr, FunCall) and isinstance(expr.fun, Lambda)
    return path if named and path else None


def below_layouts(expr: Expr) -> Path:
    """The path of what makes the result, if bins are updated through the layouts at its end.

    Each bin must have a place, so a layout whose inverse adds elements is not passed.
    """
    path: Path = ()
    while isinstance(expr, FunCall) and isinstance(expr.fun, Layout) and len(expr.args) == 1:
        inverse = expr.fun.inverse(expr.args[0].type)
        if not isinstance(inverse, Layout) or inverse.constants():
            break
        (expr,), path = expr.args, (*path, 0)
    mapped = isinstance(expr, FunCall) and isinstance(expr.fun, Map) and is_bins(expr.fun.f.body)
    return path if mapped or is_bins(expr) else ()


def first_sequence(expr: Expr, path: Path = ()) -> Path | None:
    """The path of the first value that must be in memory before a sequence or its reader runs."""
    if not isinstance(expr, FunCall) or isinstance(expr.fun, ToGlobal):
        return None
    sequence = isinstance(expr.fun, Scan | ExclusiveScan) or is_kernel_iteration(expr)
    for position, arg in enumerate(expr.args):
        here = (*path, position)
        reads = gives(arg, is_sequence)
        stored = isinstance(arg, FunCall) and isinstance(arg.fun, ToGlobal)
        if not stored and (
            reads or (sequence and isinstance(arg.type, ArrayType) and computes(arg))
        ):
            return here
        if (found := first_sequence(arg, here)) is not None:
            return found
    if isinstance(expr.fun, Lambda):
        return first_sequence(expr.fun.body, (*path, len(expr.args)))
    return None


def read_first(expr: Expr, path: Path) -> Path:
    """The path of what must become a kernel before the part at a path can.

    A kernel runs before the expression around it, so the values of the lets there that it reads
    must be stored first. The path itself if all of them are.
    """
    part = at(expr, path)
    for depth in reversed(range(len(path))):
        let = at(expr, path[:depth])
        if not (isinstance(let, FunCall) and isinstance(let.fun, Lambda)):
            continue
        for position, param in enumerate(let.fun.params):
            value = (*path[:depth], position)
            if param not in part.free or path[depth] != len(let.args):
                continue
            made = next(kernels_of(at(expr, value), value), None)
            found = read_first(expr, value if made is None else made)
            if found != value or made is not None:
                return found
    return path


def kernels_of(expr: Expr, path: Path) -> Iterator[Path]:
    """The paths of the kernels for the value of a `let`.

    The whole value is one kernel. A tuple whose components are over different numbers of ids, or
    some of them views, has a kernel for each component that computes.
    """
    if isinstance(expr, Tuple):
        depths = {len(tuple(layers(nests(e)))) for e in expr.elements}
        if len(depths) > 1 or not all(map(computes, expr.elements)):
            for k, element in enumerate(expr.elements):
                yield from kernels_of(element, (*path, k))
            return
    if computes(expr) and not (isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal)):
        yield path
