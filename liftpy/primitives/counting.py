"""The number of arithmetic operations of a program as written."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.types import SCALARS, ArrayType
from liftpy.primitives import (
    AnyIterate,
    AnyMap,
    AnyReduce,
    AnyReduceByIndex,
    AnyScan,
    Generate,
)


def operations(program: Program) -> int:
    """The number of arithmetic operations of a run: one for each operator except conversions.

    Each operator counts once for each element for which it is evaluated. Expressions that depend
    only on constants count 0: the prepare phase computes them. A candidate may execute fewer
    operations, or more if it computes elements again.

    >>> import liftpy as lp
    >>> operations(lp.parse("def f(xs: [8][3]f32) = xs |> map(x => x |> reduce(add, 0))"))
    24
    """
    constants = frozenset(p for p in program.params if p.name in program.constants)
    return _count(program.body.body, constants)


def _count(expr: Expr, constants: frozenset[Param]) -> int:
    """The number of operations of an expression, for one value of its free variables."""
    if isinstance(expr, Tuple):
        return sum(_count(part, constants) for part in expr.elements)
    if not isinstance(expr, FunCall):
        return 0
    if expr.free and expr.free <= constants:
        return 0
    own = sum(_count(a, constants) for a in expr.args)
    match expr.fun:
        case UserFun() as f:
            return own + _count(f.body, frozenset())
        case Lambda() as f:
            fixed = {
                p
                for p, a in zip(f.params, expr.args, strict=True)
                if a.free and a.free <= constants
            }
            return own + _count(f.body, constants | fixed)
        case ScalarOp() as operator:
            return own + (operator.op not in SCALARS)
        case AnyMap() | AnyReduce() | AnyScan() | AnyReduceByIndex() as loop:
            last = expr.args[-1].type
            length = int(last.length) if isinstance(last, ArrayType) else 1
            return own + length * _count(loop.f.body, constants)
        case Generate() as loop:
            return own + int(loop.length) * _count(loop.f.body, constants)
        case AnyIterate() as loop:
            return own + int(loop.times) * _count(loop.f.body, constants)
        case _:
            return own
