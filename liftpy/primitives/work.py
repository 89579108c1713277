"""Which expressions do work of their own, which are only views, which can be written through."""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Lambda, Param, Primitive, Tuple, UserFun
from liftpy.primitives import Generate, Layout, Map, Zip


def computes(expr: Expr) -> bool:
    """Whether an expression does work of its own, so that its result needs a place: no view."""
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
    """Whether a primitive only moves elements: a layout, or `map` or `generate` of one."""
    if isinstance(p, Map | Generate):
        return not computes(p.f.body)
    return isinstance(p, Layout)


def writable(primitive: Primitive, args: tuple[Expr, ...]) -> bool:
    """Whether a layout's result can be filled by writing its arguments where they belong."""
    if isinstance(primitive, Map):
        f = primitive.f
        return not f.free and leads_to(f.body, f.params[0])
    if isinstance(primitive, Zip):
        return False  # what makes one of its arrays would be apart from what makes the others
    return primitive.inverse(*(arg.type for arg in args)) is not None


def leads_to(expr: Expr, param: Param) -> bool:
    """Whether an expression is a variable under layouts that can be written through."""
    if expr == param:
        return True
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Primitive) or len(expr.args) != 1:
        return False
    return writable(expr.fun, expr.args) and leads_to(expr.args[0], param)
