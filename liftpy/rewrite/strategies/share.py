"""Store the values that the work-items of a result share, in earlier kernels.

An array that a fold makes is in the registers of one work-item. If the maps that make the result
read this array, it is stored in global memory first. So is a computed array that a layout at the
end reads.

An array whose elements are folds is a stage of the program. If it is not stored, a map that reads
it repeats a fold each time it reads an element.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import Primitive, function_of
from liftpy.ir.types import ArrayType, Type, VectorType
from liftpy.ir.walk import Path, at, children, every_part, has_call
from liftpy.primitives import Map, Reduce, ToGlobal, Zip
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.shapes import (
    body_of,
    folds_arrays,
    is_reduce,
    maker,
    nests,
    working_map,
)
from liftpy.rewrite.strategy import Result, Strategy, Success, at_path, rule, seq


def store_shared(lower: Strategy) -> Strategy:
    """Store the values that the work-items of a result share; `lower` makes kernels.

    If a single fold makes the result, nothing is stored: the work-item reads its own registers.
    """

    def run(expr: Expr) -> Result:
        result = maker(expr)
        last = at(expr, result)
        if not any(expr.type.lengths()) or is_reduce(last):
            return Success(expr)
        paths = () if nests(expr) else tuple(read_by(last, result))
        stored = at_paths(paths, lower)
        return seq(stored, store_folds(result, lower))(expr)

    return run


def at_paths(paths: tuple[Path, ...], lower: Strategy) -> Strategy:
    """Make kernels for the parts at these paths, none of which contains another."""
    return seq(*(at_path(p, seq(rule("to_global"), at_path((0,), lower))) for p in paths))


def stages(expr: Expr) -> Iterator[Path]:
    """The paths of maps of folds that the result reads, without those that make it, last first."""
    makers = {maker(expr), *(nest.path for nest in nests(expr))}
    for path, part in outside_functions(expr):
        if path not in makers and working_map(part) and is_storable(part.type) and has_fold(part):
            yield path


def has_fold(expr: Expr) -> bool:
    """Whether the function of a map contains a fold."""
    return any(is_reduce(part) for part in every_part(body_of(expr)))


def invariant(expr: Expr, around: tuple[frozenset[Param], ...] = ()) -> Iterator[Expr]:
    """The arrays of folds that an enclosing map recomputes for each of its elements.

    `around` has, for each enclosing map, the variables that depend on its element.
    """
    folded = isinstance(expr.type, ArrayType) and computes(expr) and has_fold_in(expr)
    if folded and any(expr.free.isdisjoint(dependent) for dependent in around):
        yield expr
    function = function_of(expr.fun) if isinstance(expr, FunCall) else None
    if function is None or not isinstance(expr, FunCall):
        for part in children(expr):
            yield from invariant(part, around)
        return
    given = frozenset(p for arg in expr.args for p in arg.free)
    params = frozenset(function.params)
    inside = tuple(d | params if not given.isdisjoint(d) else d for d in around)
    for arg in expr.args:
        yield from invariant(arg, around)
    mapped = isinstance(expr.fun, Map)
    yield from invariant(function.body, (*inside, params) if mapped else inside)


def has_fold_in(expr: Expr) -> bool:
    """Whether an expression contains a reduction."""
    return has_call(expr, Reduce) and any(is_reduce(part) for part in every_part(expr))


def store_folds(result: Path, lower: Strategy) -> Strategy:
    """Make a kernel for each array outside functions that a fold or a map of such folds makes."""

    def run(expr: Expr) -> Result:
        for path, part in outside_functions(expr):
            folded = is_reduce(part) or (working_map(part) and folds_arrays(body_of(part)))
            if folded and path != result and is_storable(part.type):
                return seq(at_paths((path,), lower), run)(expr)
        return Success(expr)

    return run


def read_by(expr: Expr, path: Path) -> Iterator[Path]:
    """The paths of the computed arrays that a view reads, possibly more than once.

    Those that are stored already are left out.
    """
    if isinstance(expr, FunCall) and isinstance(expr.fun, Zip):
        return
    for k, arg in enumerate(expr.args if isinstance(expr, FunCall) else ()):
        if isinstance(arg, FunCall) and isinstance(arg.fun, ToGlobal):
            continue
        if computes(arg) and is_storable(arg.type):
            yield (*path, k)
        elif computes(arg):
            yield from read_by(arg, (*path, k))


def outside_functions(expr: Expr, path: Path = ()) -> Iterator[tuple[Path, Expr]]:
    """The parts that no map or fold repeats, except those inside a `toGlobal`."""
    yield path, expr
    if isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal):
        return
    repeated = isinstance(expr, FunCall) and isinstance(expr.fun, Primitive)
    parts = expr.args if isinstance(expr, FunCall) and repeated else children(expr)
    for k, part in enumerate(parts):
        yield from outside_functions(part, (*path, k))


def is_storable(t: Type) -> bool:
    """Whether values of a type can be stored in buffers: arrays of scalars or of tuples of them."""
    if not isinstance(t, ArrayType):
        return False
    return is_storable(t.element) or not isinstance(t.element, ArrayType | VectorType)
