"""Which expressions compute, which are only views, and which can be written through."""

from __future__ import annotations

from liftpy.ir.by_identity import by_identity
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Primitive
from liftpy.primitives import At, Generate, Layout, Map, Zip


def computes(expr: Expr) -> bool:
    """Whether an expression computes, so that its result needs memory; false for a view."""
    if isinstance(expr, FunCall):
        return call_computes(expr)
    return isinstance(expr, Tuple) and any(computes(e) for e in expr.elements)


@by_identity(1 << 13)
def call_computes(expr: FunCall) -> bool:
    """`computes` for a call, cached: expressions share most of their parts."""
    match expr.fun:
        case UserFun():
            return True
        case Lambda() as f:
            return computes(f.body) or any(map(computes, expr.args))
        case Primitive() as p:
            return not is_layout(p) or any(map(computes, expr.args))
        case _:
            return False


def is_layout(p: Primitive) -> bool:
    """Whether a primitive only moves elements: a layout, `at`, or a `map` or `generate` of one."""
    if isinstance(p, Map | Generate):
        return not computes(p.f.body)
    return isinstance(p, Layout | At)


def writable(primitive: Primitive, args: tuple[Expr, ...]) -> bool:
    """Whether a layout's arguments can be written directly to their places in its result."""
    if isinstance(primitive, Map):
        f = primitive.f
        return not f.free and leads_to(f.body, f.params[0])
    if isinstance(primitive, Zip):
        return False  # the producers of its arrays would be separate
    return primitive.inverse(*(arg.type for arg in args)) is not None


def leads_to(expr: Expr, param: Param) -> bool:
    """Whether an expression is `param` under layouts that can be written through."""
    if expr == param:
        return True
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Primitive) or len(expr.args) != 1:
        return False
    return writable(expr.fun, expr.args) and leads_to(expr.args[0], param)
