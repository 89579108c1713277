"""Straight-line code: small arrays that a work-item makes, in registers and without loops."""

from __future__ import annotations

from functools import cache

from liftpy.ir.expr import Expr, FunCall, Primitive
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import MemoryPrimitive
from liftpy.primitives.work import is_layout
from liftpy.rewrite.strategies.shapes import (
    body_of,
    is_element,
    is_let,
    is_small,
    lists_elements,
    rank,
    working_map,
)
from liftpy.rewrite.strategy import (
    Result,
    Strategy,
    Success,
    at_path,
    choose,
    normalize,
    rule,
    seq,
    where,
)


def in_registers(expr: Expr) -> Result:
    """Store the small arrays that maps to small arrays read in registers."""
    for path, part in top_down(expr):
        if not small_map(part):
            continue
        source = source_of(part)
        if source and small_map(at(part, source)):
            return seq(at_path((*path, *source), rule("to_private")), in_registers)(expr)
    return Success(expr)


def source_of(expr: Expr) -> Path:
    """The path of what the argument of a map lays out."""
    path: Path = (0,)
    while is_view(part := at(expr, path)):
        path = (*path, 0)
    return () if isinstance(part, FunCall) and isinstance(part.fun, MemoryPrimitive) else path


def is_view(expr: Expr) -> bool:
    """Whether an expression lays out one array."""
    return (
        isinstance(expr, FunCall)
        and isinstance(expr.fun, Primitive)
        and is_layout(expr.fun)
        and len(expr.args) == 1
    )


def small_map(expr: Expr) -> bool:
    """Whether an expression is a map to a small array, of scalars or of lists, without a loop."""
    if not working_map(expr) or not is_small(expr):
        return False
    made = body_of(expr)
    while is_let(made):
        made = body_of(made)
    return rank(made.type) == 0 or lists_elements(made)


@cache
def unrolled() -> Strategy:
    """Unroll the maps that make small arrays, and the readings of their elements."""
    return normalize(
        choose(
            where(small_map, rule("map_to_seq_unroll")),
            where(is_element, rule("reduce_to_seq_unroll")),
        )
    )
