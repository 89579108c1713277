"""Which expressions compute, which are only views, and which can be written through."""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Lambda, Param, Primitive, Tuple, UserFun
from liftpy.primitives import Generate, Layout, Map, Zip


def computes(expr: Expr) -> bool:
    """Whether an expression computes, so that its result needs memory; false for a view."""
    match expr:
        case FunCall(UserFun(), _):
            return True
        case FunCall(Lambda() as f, args):
            return computes(f.body) or any(computes(a) for a in args)
        case FunCall(Primitive() as p, args):
            return not is_layout(p) or any(computes(a) for a in args)
        case Tuple(elements):
            return any(computes(e) for e in elements)
        case _:
            return False


def is_layout(p: Primitive) -> bool:
    """Whether a primitive only moves elements: a layout, or a `map` or `generate` of one."""
    if isinstance(p, Map | Generate):
        return not computes(p.f.body)
    return isinstance(p, Layout)


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
