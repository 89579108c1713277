"""Whether a step of a fold may read an element of its accumulator that it has overwritten.

The emitter copies such elements before the step (`liftpy.loops.in_place`).
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import function_of
from liftpy.ir.types import ScalarType, Type, VectorType
from liftpy.ir.uses import Component, component_of, uses
from liftpy.ir.walk import has_call
from liftpy.primitives import AnyIterate, AnyMap, AnyReduce, AsScalar, AsVector, ReduceVec, Zip

FOLDS = (AnyReduce, AnyIterate, ReduceVec)
"""The functions that may overwrite their result while they read."""


def may_read_overwritten(step: Lambda) -> bool:
    """Whether a step may store an element and then read the same element of its first argument.

    False only if each element of the result reads no other element of the accumulator.
    """
    return not Old(step.params[0]).is_read_in_place_by(step.body)


@dataclass(frozen=True)
class Old:
    """A variable, or a component of one, that holds the value of an accumulator before a step."""

    param: Param
    component: Component = ()

    def is_read_by(self, expr: Expr) -> bool:
        """Whether an expression reads any of it."""
        return any(overlap(used, self.component) for used in uses(expr, self.param))

    def is_read_in_place_by(self, expr: Expr) -> bool:
        """Whether each element of `expr` reads no element of it but the one at the same place."""
        if component_of(expr) == (self.param, self.component):
            return True
        if not isinstance(expr, FunCall):
            return not self.is_read_by(expr)
        fun, args = expr.fun, expr.args
        if isinstance(fun, Lambda):
            if not any(map(self.is_read_by, args)):
                return self.is_read_in_place_by(fun.body)
            # a scalar that no fold computes is stored after everything has been read
            return isinstance(expr.type, ScalarType) and not has_call(fun.body, *FOLDS)
        if isinstance(fun, FOLDS):
            inside = function_of(fun)
            read = (*args[1:], *(() if inside is None else (inside.body,)))
            return not any(map(self.is_read_by, read)) and self.is_read_in_place_by(args[0])
        if is_stored_at_once(expr.type):
            return True
        match fun, args:
            case AnyMap() as mapped, (xs,):
                return self.is_mapped_in_place(mapped, xs)
            case AsScalar(), (FunCall(AnyMap() as mapped, (FunCall(AsVector(), (xs,)),)),):
                return self.is_mapped_in_place(mapped, xs)
            case _:
                return not self.is_read_by(expr)

    def is_mapped_in_place(self, mapped: AnyMap, xs: Expr) -> bool:
        """`is_read_in_place_by` for a map over an array, or over vectors of its elements."""
        if self.is_read_by(mapped.f.body):
            return False
        element = mapped.f.params[0]
        if not (isinstance(xs, FunCall) and isinstance(xs.fun, Zip)):
            parts = [(Old(element), xs)]
        else:
            parts = [(Old(element, (k,)), x) for k, x in enumerate(xs.args)]
        return all(
            not self.is_read_by(x)
            or (
                component_of(x) == (self.param, self.component)
                and part.is_read_in_place_by(mapped.f.body)
            )
            for part, x in parts
        )


def is_stored_at_once(t: Type) -> bool:
    """Whether values are stored after all that they are computed from was read, unlike tuples."""
    return isinstance(t.element if isinstance(t, VectorType) else t, ScalarType)


def overlap(a: Component, b: Component) -> bool:
    """Whether one of two components is a part of the other."""
    return all(i == j for i, j in zip(a, b, strict=False))
