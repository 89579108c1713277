"""Maps in vectors, whose lanes are computed by one operation.

A fold, a scan, an element at a data-dependent index or any other value that takes statements is
stored before it is read. If such a value differs by lane, its statements would have to run within
the operation, so the map that reads it stays a loop.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import NatLike
from liftpy.ir.primitive import function_of
from liftpy.ir.types import ArrayType, ScalarType, TupleType, Type
from liftpy.ir.walk import has_call
from liftpy.primitives import Map, MapVec
from liftpy.primitives.in_place import STATEMENTS
from liftpy.rewrite.strategies.outward import read_parts
from liftpy.rewrite.strategy import Failure, Result, Strategy, Success, rule, seq

NONE: frozenset[Param] = frozenset()
STORED_BY_LANE = Failure("vectorized", "lanes read what a fold or another statement computes")


def vectorized(width: NatLike) -> Strategy:
    """Put a map to scalars in vectors, unless its lanes would store values (`stores`)."""
    vectors = seq(arrays_unzipped, rule("vectorize_map", v=width))

    def run(expr: Expr) -> Result:
        result = vectors(expr)
        return STORED_BY_LANE if not isinstance(result, Failure) and stores(expr) else result

    return run


def arrays_unzipped(expr: Expr) -> Result:
    """Remove arrays that a map does not read from the elements of its zip: lanes hold scalars."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Map):
        return Success(expr)
    (element,) = expr.fun.f.params
    return read_parts(expr) if has_array(element.type) else Success(expr)


def has_array(t: Type) -> bool:
    """Whether a tuple has an array as a component, in tuples of any depth."""
    return isinstance(t, TupleType) and any(
        isinstance(e, ArrayType) or has_array(e) for e in t.elements
    )


def stores(expr: Expr, moving: frozenset[Param] = NONE, storing: frozenset[Param] = NONE) -> bool:
    """Whether reading an element of a value stores other values, which differ by element.

    `moving` are the variables whose value differs by element; `storing` are those of which reading
    an element stores other values.
    """
    match expr:
        case Param():
            return expr in storing
        case Tuple(elements):
            return any(stores(e, moving, storing) for e in elements)
        case FunCall(fun, _) if isinstance(fun, STATEMENTS):
            return not expr.free.isdisjoint(moving)
        case FunCall(fun, args):
            if any(stores(a, moving, storing) for a in args):
                return True
            inside = function_of(fun)
            if inside is None:
                return False
            pairs = zip(inside.params, args, strict=False) if isinstance(fun, Lambda) else ()
            still = {p for p, a in pairs if a.free.isdisjoint(moving)}
            return stores(inside.body, moving.union(inside.params) - still, storing)
        case _:
            return False


def lanes_store(expr: Expr, storing: frozenset[Param] = NONE) -> bool:
    """Whether the lanes of any vector in an expression would store values (`stores`)."""
    if not has_call(expr, MapVec):
        return False
    match expr:
        case FunCall(MapVec(), _):
            return stores(expr, storing=storing)
        case FunCall(fun, args):
            if any(lanes_store(a, storing) for a in args):
                return True
            inside = function_of(fun)
            if inside is None:
                return False
            pairs = [*zip(reversed(inside.params), reversed(args), strict=False)]
            views = pairs if isinstance(fun, Lambda) else pairs[:1]  # accumulators are stored
            arrays = ((p, a) for p, a in views if not isinstance(p.type, ScalarType))
            own = storing.union(p for p, a in arrays if stores(a, storing=storing))
            return lanes_store(inside.body, own)
        case Tuple(elements):
            return any(lanes_store(e, storing) for e in elements)
        case _:
            return False
