"""What strategies look for: predicates on expressions, and where to look."""

from __future__ import annotations

from liftpy.errors import InternalError
from liftpy.ir.expr import Expr, FunCall, Param
from liftpy.ir.types import ArrayType, Type
from liftpy.ir.walk import lambda_of
from liftpy.primitives import Map, Pad, Reduce
from liftpy.primitives.work import is_layout
from liftpy.rewrite.strategy import Predicate, Strategy, outermost, rule, where


def working_map(expr: Expr) -> bool:
    """A `map` that computes something and has no loop or level yet."""
    return isinstance(expr, FunCall) and type(expr.fun) is Map and not is_layout(expr.fun)


def body_of(expr: Expr) -> Expr:
    """The body of the function that a call runs."""
    if not isinstance(expr, FunCall):
        message = f"{type(expr).__name__} is not a call"
        raise InternalError(message)
    return lambda_of(expr.fun).body


def array_type(expr: Expr) -> ArrayType:
    """The type of an expression that is an array."""
    if not isinstance(expr.type, ArrayType):
        message = f"an array is needed here, this is {expr.type}"
        raise InternalError(message)
    return expr.type


def maps_over(inner: Predicate) -> Predicate:
    """A `map` whose function's result satisfies a predicate."""
    return lambda expr: isinstance(expr, FunCall) and type(expr.fun) is Map and inner(body_of(expr))


def is_reduce(expr: Expr) -> bool:
    """A `reduce` that has no loop yet."""
    return isinstance(expr, FunCall) and type(expr.fun) is Reduce


def is_padding(expr: Expr) -> bool:
    """A padded input: `pad`, or `map` of one, of a variable or of another padded input."""
    if not isinstance(expr, FunCall) or len(expr.args) != 1:
        return False
    if isinstance(expr.fun, Pad):
        return isinstance(expr.args[0], Param) or is_padding(expr.args[0])
    if type(expr.fun) is not Map or expr.fun.f.free:
        return False
    return is_padding(expr.fun.f.body) and (
        isinstance(expr.args[0], Param) or is_padding(expr.args[0])
    )


def rank(t: Type) -> int:
    """The number of dimensions of an array."""
    return 1 + rank(t.element) if isinstance(t, ArrayType) else 0


def working(name: str) -> Strategy:
    """A lowering rule at the outermost map that computes."""
    return outermost(where(working_map, rule(name), "working map"))
