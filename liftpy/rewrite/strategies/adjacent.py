"""Which map makes adjacent results: results that are next to each other in memory."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Layout
from liftpy.ir.types import ArrayType, Type, VectorType
from liftpy.ir.walk import Path
from liftpy.primitives import AnyMap, Map, MemoryPrimitive
from liftpy.primitives.places import stepped
from liftpy.rewrite.strategies.shapes import body_of, rank, working_map


def adjacent_map(expr: Expr) -> Path | None:
    """The path of the map whose successive results are adjacent in the memory of the result.

    None if no map makes them, or if the layouts between it and the result are not followed: those
    of several arrays, and those that read elements under a condition.
    """
    path, dimension = (), rank(expr.type) - 1
    while isinstance(expr, FunCall):
        if isinstance(expr.fun, Lambda):
            expr, path = expr.fun.body, (*path, len(expr.args))
        elif working_map(expr):
            if dimension == 0:
                return path
            expr, path, dimension = body_of(expr), (*path, 1), dimension - 1
        else:
            found = read_in(expr, dimension)
            if found is None:
                return None
            expr, path, dimension = expr.args[0], (*path, 0), found
    return None


def stores_vectors(expr: Expr) -> bool:
    """Whether the lanes of vectors are adjacent in the memory of a lowered kernel's result."""
    dimension = rank(expr.type) - 1
    while not (is_of_vectors(expr.type) and dimension == rank(expr.type)):
        match expr:
            case FunCall(Lambda() as f, _):
                expr = f.body
            case FunCall(MemoryPrimitive(), (of, *_)):
                expr = of
            case FunCall(AnyMap() as fun, _) if working_map(expr) or not isinstance(fun, Map):
                if dimension == 0:
                    return False
                expr, dimension = body_of(expr), dimension - 1
            case FunCall() if (found := read_in(expr, dimension)) is not None:
                expr, dimension = expr.args[0], found
            case _:
                return False
    return True


def is_of_vectors(t: Type) -> bool:
    """Whether the elements of an array are vectors, or the type itself is a vector."""
    return is_of_vectors(t.element) if isinstance(t, ArrayType) else isinstance(t, VectorType)


def read_in(call: FunCall, dimension: int) -> int | None:
    """The dimension in which a layout reads its argument for a step in one of its result."""
    match call:
        case FunCall(Layout() as layout, (source,)) if isinstance(source.type, ArrayType):
            return stepped(layout, source.type, dimension)
        case FunCall(Map(f), (_,)):
            if dimension == 0:
                return 0
            part, inner = f.body, dimension - 1
            while isinstance(part, FunCall) and isinstance(part.fun, Layout | Map):
                found = read_in(part, inner)
                if found is None:
                    return None
                part, inner = part.args[0], found
            return inner + 1 if part == f.params[0] else None
        case _:
            return None
