"""Operands of exact sums of small integers, converted to f32 once instead of at each reading.

A sum of products of two small integers may be computed in f32 as far as it is exact
(`in_floats.py`). Each operand is then converted where it is read: once for each result that reads
it. Here the conversions are moved out of all functions and past the layouts that the sum reads,

    slide(xs) |> map(window -> reduce((a, t) -> a + f32(t.0) * f32(t.1), 0, zip(window, ys)))

becomes a program of `map(f32)(xs)` and `map(f32)(ys)`, with no conversion in the sum. These arrays
are values of the program, which a stage can store: in each run, or before the runs if they are made
from constants.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.ir.walk import at, top_down
from liftpy.rewrite.strategies.conversions import (
    SIDES,
    conversions_outside,
    converts_array,
    outermost,
    parameters,
)
from liftpy.rewrite.strategies.in_floats import FLAT, sums_in_f32
from liftpy.rewrite.strategies.lower import nest_reductions
from liftpy.rewrite.strategies.outward import component
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_reduce,
    named_part,
)
from liftpy.rewrite.strategies.sliced import innermost_length
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    choose,
    normalize,
    rule,
    seq,
)

STRIPS = range(1024, 15, -1)
"""Numbers of products that f32 may sum, the largest first, if neither a sum nor its rows are exact.

No sum of more products of 8-bit integers is exact. In shorter strips, most of the work is in i32.
"""

OPERANDS = ("left", "right")
"""The names of converted operands: that of the outer map, and that of the inner one."""


def exact_sum(expr: Expr) -> Result:
    """Compute a sum of integers in f32, in the longest strips that are exact."""
    flat = FLAT(expr)
    if isinstance(flat, Failure):
        return flat
    length = innermost_length(flat.expr)
    strips = [m for m in STRIPS if length % m == 0] or [length]
    return choose(*map(sums_in_f32, strips))(expr)


def operands_widened(expr: Expr) -> Result:
    """Compute the integer sum of an expression in f32, from operands that are converted in lets.

    Fails if there is no such sum, or if a conversion remains in a function.
    """
    found = [path for path, part in top_down(expr) if is_reduce(part) and part.type == I32]
    if len(found) != 1:
        return Failure("operands_widened", f"{len(found)} sums of integers are here, not one")
    nested = seq(exact_sum, normalize(rule("split_of_zip")), nest_reductions())
    apart = seq(nested, conversions_apart)
    return seq(at_path(found[0], apart), conversions_outside(is_widened), conversions_named)(expr)


def conversions_apart(expr: Expr) -> Result:
    """Move the conversions of both operands out of the innermost fold, which adds products."""
    found = [path for path, part in top_down(expr) if is_reduce(part) and part.type == F32]
    if not found:
        return Failure("operands_widened", "no sum is computed in f32")
    path, fold = found[-1], at(expr, found[-1])
    *_, element = parameters(fold)
    steps: list[Strategy] = []
    for side, word in enumerate(SIDES):
        conversions = (p for p, e in top_down(body_of(fold)) if converts(e))
        read = (p for p in conversions if component(at(fold, (2, *p, 0)), element) == (side,))
        hint = next(read, None)
        if hint is None:
            return Failure("operands_widened", "an operand is not converted to f32")
        steps.append(at_path(path, rule(f"reduce_fission_{word}", {"g": hint})))
    return seq(*steps)(expr)


def converts(expr: Expr) -> bool:
    """Whether an expression converts a number to f32."""
    return isinstance(expr, FunCall) and expr.fun == ScalarOp("f32")


def is_widened(expr: Expr) -> bool:
    """Whether an expression is an array converted to f32."""
    return converts_array(expr, converts)


def conversions_named(expr: Expr) -> Result:
    """Name the converted arrays, that of the outer map first; fails if one is in a function."""
    found = [*outermost(expr, is_widened)]
    if len(found) != len(OPERANDS) or any(not at(expr, path).free <= expr.free for path in found):
        return Failure("operands_widened", "an operand is computed in a function")
    parts = enumerate(zip(OPERANDS, found, strict=True))
    return seq(*(at_path((1,) * k, named_part(*part)) for k, part in parts))(expr)
