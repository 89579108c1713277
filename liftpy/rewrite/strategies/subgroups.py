"""Folds that the work-items of a group compute together, by subgroups.

    reduce(f, z)(xs)
    -> reduceSubgroups(f, z)(mapLcl(part -> reduce(f, e)(part))(parts of xs))

Each work-item folds its part of the array in registers, as in a tree (`strategies/tree.py`). The
results are folded by subgroup functions: there is one barrier, whereas a tree has one for each
halving.
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.walk import lambda_of
from liftpy.primitives.subgroups import (
    SUBGROUP_OPERATORS,
    SUBGROUP_TYPES,
    subgroup_operator,
)
from liftpy.rewrite.strategies.partial import reduced
from liftpy.rewrite.strategies.shapes import is_reduce
from liftpy.rewrite.strategies.tree import ceiling, in_parts, operator_apart
from liftpy.rewrite.strategy import Failure, Result, at_path, rule, seq


@dataclass(frozen=True)
class Subgroups:
    """A fold by `items` work-items and their subgroups.

    A work-item folds adjacent elements, or if `strided`, elements that are as far apart as
    possible, so that adjacent work-items read adjacent elements.
    """

    items: Nat
    strided: bool

    def fold(self, expr: Expr) -> Result:
        """Turn a fold in the function of a group into one by subgroups."""
        if not is_reduce(expr):
            return Failure("subgroups", "no reduction here")
        size = ceiling(reduced(expr).length, self.items)
        return seq(
            operator_apart,
            in_parts(self.items, size, strided=self.strided),
            by_functions,
            at_path((1,), rule("map_to_lcl_0")),
        )(expr)


def by_functions(expr: Expr) -> Result:
    """Turn a fold into one by subgroup functions, if there is one for its operator."""
    f = lambda_of(expr.fun) if isinstance(expr, FunCall) and is_reduce(expr) else None
    if f is None or subgroup_operator(f) is None:
        operators = ", ".join(SUBGROUP_OPERATORS)
        types = ", ".join(map(str, SUBGROUP_TYPES))
        return Failure("subgroups", f"they fold by {operators} of {types}")
    return rule("reduce_to_subgroups")(expr)
