"""Output views: where an expression's result goes.

A layout at the end of an expression is not computed: its inverse is applied to the destination, and
the producer below writes through it. The inverse is a primitive, and its meaning is the only index
law.
"""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Param, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.primitives import Map, Unzip, Zip


def push(expr: Expr, param: Param, dest: Value, read: Reader) -> Value | None:
    """The destination of `param` for which `expr` arrives in `dest`; None if no view is that."""
    if expr == param:
        return dest
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Primitive) or len(expr.args) != 1:
        return None
    inner = through(expr.fun, expr.args, dest, read)
    return None if inner is None else push(expr.args[0], param, inner[0], read)


def through(
    primitive: Primitive, args: tuple[Expr, ...], dest: Value, read: Reader
) -> tuple[Value, ...] | None:
    """The destinations of a call's arguments; None if the primitive cannot be written through."""
    if type(primitive) is Map:
        f = primitive.f
        (param,) = f.params
        if f.free or not isinstance(dest, Pull) or push(f.body, param, dest[0], read) is None:
            return None
        return (Pull(dest.length, lambda i: push(f.body, param, dest[i], read)),)
    if isinstance(primitive, Zip | Unzip):
        return None
    inverse = primitive.inverse(*(arg.type for arg in args))
    if inverse is None:
        return None
    inner = inverse.meaning(read, dest)
    return inner if len(args) > 1 else (inner,)
