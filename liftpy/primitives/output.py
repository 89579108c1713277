"""Output views: where the result of an expression is stored.

A layout at the end of an expression is not computed: its inverse is applied to the destination, and
the producer writes through the inverse. The inverse is a primitive, so indices follow from its
meaning only. If the inverse has a constant at a position, the value for it is not stored.
"""

from __future__ import annotations

from liftpy.errors import InternalError
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.primitives.map import Map
from liftpy.primitives.work import writable


def through(
    primitive: Primitive, args: tuple[Expr, ...], dest: Value, read: Reader
) -> tuple[Value, ...] | None:
    """The destinations of a call's arguments; None if the primitive cannot be written through."""
    return into(primitive, args, dest, read) if writable(primitive, args) else None


def into(
    primitive: Primitive, args: tuple[Expr, ...], dest: Value, read: Reader
) -> tuple[Value, ...]:
    """`through` for a primitive that can be written through."""
    if isinstance(primitive, Map):
        f = primitive.f
        return (Pull(dest.length, lambda i: push(f.body, f.params[0], dest[i], read)),)
    inverse = primitive.inverse(*(arg.type for arg in args))
    if inverse is None:
        message = f"{primitive} has no inverse"
        raise InternalError(message)
    inner = inverse.meaning(read, *(dest if isinstance(dest, tuple) else (dest,)))
    return inner if len(args) > 1 else (inner,)


def push(expr: Expr, param: Param, dest: Value, read: Reader) -> Value:
    """The destination to which `param` must be written so that `expr` is stored in `dest`."""
    while expr != param:
        if not isinstance(expr, FunCall) or not isinstance(expr.fun, Primitive):
            message = f"{type(expr).__name__} cannot be written through"
            raise InternalError(message)
        (dest,) = into(expr.fun, expr.args, dest, read)
        (expr,) = expr.args
    return dest
