"""Reductions by index by atomic updates: ids run over the pairs.

    reduceByIndex(f, bins)(pairs)
      ->  reduceByIndexAtomic(f, toGlobal(map(x -> x)(bins)))(mapGlb(0, p -> p)(pairs))

One kernel stores the initial values, and the next one updates them. The laws of the operator permit
this: it is associative and commutative. It is one for which OpenCL has an atomic function, on
integers: the order of updates differs from run to run, and would change the rounding of floats.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.primitives import ReduceByIndex, ToGlobal
from liftpy.primitives.atomics import atomic_operator
from liftpy.rewrite.strategies.lower import (
    nest_reductions,
    plain,
    store_sequences,
    stored_plain,
)
from liftpy.rewrite.strategies.share import outside_functions, store_shared
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    at_path,
    identity,
    if_then_else,
    rule,
    satisfies,
    seq,
)


def atomic(expr: Expr) -> Result:
    """Update bins atomically in each reduction by index outside of functions that permits it."""
    paths = [path for path, part in outside_functions(expr) if has_function(part)]
    if not paths:
        return Failure("atomic", "no outer reduction by index has an atomic function")
    # from the last to the first: a step changes no path to a part before it or around it
    updates = (at_path(path, updated(stored=bool(path))) for path in reversed(paths))
    return seq(*updates)(expr)


def has_function(expr: Expr) -> bool:
    """Whether an expression is a reduction by index whose bins an atomic function can update."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, ReduceByIndex)
        and atomic_operator(expr.fun.f) is not None
    )


def updated(*, stored: bool) -> Strategy:
    """Atomic updates of initial values that a kernel stores; the bins are `stored` or a result.

    What the work-items share of the pairs is stored before.
    """
    start = if_then_else(satisfies(is_not_stored), stored_plain())
    return seq(
        store_sequences(),
        at_path((1,), seq(nest_reductions(), store_shared(plain()))),
        rule("reduce_by_index_to_atomic"),
        at_path((0,), start),
        rule("to_global") if stored else identity,
    )


def is_not_stored(expr: Expr) -> bool:
    """Whether an expression is not stored in global memory."""
    return not (isinstance(expr, FunCall) and isinstance(expr.fun, ToGlobal))
