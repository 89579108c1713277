"""Straight-line code: small arrays that a work-item makes, in registers and without loops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import Primitive
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import MemoryPrimitive, Zip
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
        source = next((p for p in sources_of(part, (0,)) if small_map(at(part, p))), ())
        if source:
            return seq(at_path((*path, *source), rule("to_private")), in_registers)(expr)
    return Success(expr)


def sources_of(expr: Expr, path: Path) -> Iterator[Path]:
    """The paths of the arrays that the part at a path lays out or zips, and that are not stored."""
    part = at(expr, path)
    if is_view(part):
        yield from sources_of(expr, (*path, 0))
    elif isinstance(part, FunCall) and isinstance(part.fun, Zip):
        for k in range(len(part.args)):
            yield from sources_of(expr, (*path, k))
    elif not (isinstance(part, FunCall) and isinstance(part.fun, MemoryPrimitive)):
        yield path


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
