"""Values inside kernels: how their elements are made, and where they are stored."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.uses import used_often
from liftpy.ir.walk import Path, at, every_part, has_call
from liftpy.primitives import AnyMap, Generate, Map, MemoryPrimitive, ToGlobal
from liftpy.primitives.in_place import is_pure
from liftpy.rewrite.strategies.shapes import is_in_registers


def has_statements(expr: Expr) -> bool:
    """Whether an array is not stored, and a function that makes it has statements of its own."""
    if isinstance(expr, FunCall) and isinstance(expr.fun, MemoryPrimitive):
        return False
    calls = (e.fun for e in every_part(expr) if isinstance(e, FunCall))
    return not all(is_pure(fun.f.body) for fun in calls if isinstance(fun, Map | Generate))


def reads_stored_again(expr: Expr) -> bool:
    """Whether a map's function reads an element more than once that takes a place in a buffer."""
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, AnyMap)):
        return False
    return bool(used_often(expr.fun.f)) and stores_elements(expr.args[0])


def stores_elements(expr: Expr) -> bool:
    """Whether making an element of an array takes a place in a buffer."""
    if not isinstance(expr, FunCall) or isinstance(expr.fun, MemoryPrimitive):
        return False
    if isinstance(expr.fun, AnyMap | Generate) and has_call(expr.fun.f.body, ToGlobal):
        return True
    return any(map(stores_elements, expr.args))


def named_at(expr: Expr, path: Path) -> Path:
    """The path; if the part there is a variable of a `let`, the path of its value."""
    part = at(expr, path)
    if isinstance(part, Param):
        for depth in reversed(range(len(path))):
            let = at(expr, path[:depth])
            if isinstance(let, FunCall) and isinstance(let.fun, Lambda) and part in let.fun.params:
                return named_at(expr, (*path[:depth], let.fun.params.index(part)))
    return path


def reads_registers(expr: Expr, path: Path) -> bool:
    """Whether the part at a path makes an array in registers, or reads one that a `let` names."""
    part = at(expr, path)
    around = (at(expr, path[:depth]) for depth in range(len(path)))
    named = (
        arg
        for let in around
        if isinstance(let, FunCall) and isinstance(let.fun, Lambda)
        for param, arg in zip(let.fun.params, let.args, strict=True)
        if param in part.free
    )
    return any(map(is_in_registers, (part, *named)))
