"""Results outside functions as maps and tuples of arrays, to which ids can be assigned."""

from __future__ import annotations

from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.types import I32
from liftpy.primitives import Generate, SplitAt
from liftpy.primitives.work import computes
from liftpy.rewrite.strategies.shapes import maker
from liftpy.rewrite.strategy import Result, Strategy, Success, at_path, rule, seq


@cache
def results_exposed() -> Strategy:
    """Turn generated elements into maps over their indices, and `splitAt` into its two parts.

    It changes what a program returns and what lets name, outside functions. Otherwise a single
    work-item would compute or copy the whole result.
    """

    def run(expr: Expr) -> Result:
        if isinstance(expr, Tuple):
            return seq(*(at_path((k,), run) for k in range(len(expr.elements))))(expr)
        if not isinstance(expr, FunCall):
            return Success(expr)
        if isinstance(expr.fun, Lambda):
            return seq(*(at_path((k,), run) for k in range(len(expr.args) + 1)))(expr)
        if isinstance(expr.fun, SplitAt):
            apart = rule("split_at_as_parts")
            if not computes(expr):
                return apart(expr)
            named = seq(rule("let_introduction", {"v": (0,)}), at_path((1,), apart))
            return seq(named, at_path((0,), run))(expr)
        return at_path(maker(expr), generated)(expr)

    return run


def generated(expr: Expr) -> Result:
    """Turn computed elements of `generate` into maps over their indices, also inside these maps."""
    if not isinstance(expr, FunCall) or not isinstance(expr.fun, Generate) or not computes(expr):
        return Success(expr)
    if expr.fun.f.params[0].type != I32:
        return Success(expr)  # the rule is about indices of type i32
    return seq(rule("generate_as_map"), at_path((1,), generated))(expr)
