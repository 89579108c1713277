"""Which folds can keep their accumulator in place: conditions that types do not express."""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import function_of
from liftpy.ir.walk import every_part
from liftpy.primitives.data_index import AnyReduceByIndex, At
from liftpy.primitives.iterate import AnyIterate
from liftpy.primitives.lowered import MemoryPrimitive
from liftpy.primitives.reduce import AnyReduce
from liftpy.primitives.scan import AnyScan

STATEMENTS = (MemoryPrimitive, AnyReduce, AnyReduceByIndex, AnyIterate, AnyScan, At)
"""The primitives whose calls have statements of their own, before the one that reads the result."""


def is_pure(expr: Expr) -> bool:
    """Whether an expression can be computed element by element where it is read."""
    parts = (part.fun for part in every_part(expr) if isinstance(part, FunCall))
    return not any(isinstance(fun, STATEMENTS) for fun in parts)


def rereads(step: Lambda, kind: type[AnyReduce]) -> bool:
    """Whether a fold of this kind in the step of another reads the outer accumulator again.

    It may begin with it. If its array or its function reads it, in place it would read elements
    that an earlier step of its own has updated.
    """
    depends = {step.params[0]}
    for part in every_part(step.body):
        if not isinstance(part, FunCall):
            continue
        if isinstance(part.fun, kind):
            _, xs = part.args
            if not depends.isdisjoint(xs.free | part.fun.f.free):
                return True
        elif (function := function_of(part.fun)) and any(
            not depends.isdisjoint(arg.free) for arg in part.args
        ):
            depends.update(function.params)
    return False
