"""Which expressions do work of their own, and which are only views."""

from __future__ import annotations

from liftpy.ir.expr import Expr, FunCall, Lambda, Primitive, Tuple, UserFun
from liftpy.primitives import LAYOUTS, Generate, Map


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
    if type(p) is Map or isinstance(p, Generate):
        return not computes(p.f.body)
    return isinstance(p, LAYOUTS)
