"""Stores constant operands of sums of products so that the elements of adjacent rows are adjacent.

In `map(x -> map(y -> f(reduce(g, z, zip(left(x), right(y))))))`, work-items that copy one element
each, of many rows, then read adjacent elements. The packed copy reads only constants, so it is made
once for all runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.nat import ZERO
from liftpy.ir.types import ArrayType, ScalarType, Type, size_bytes
from liftpy.ir.walk import Path, at, top_down
from liftpy.primitives import Zip
from liftpy.rewrite.strategies.epilogue import taken_apart
from liftpy.rewrite.strategies.lower import copy_kernel
from liftpy.rewrite.strategies.shapes import body_of, is_view, outer_reductions
from liftpy.rewrite.strategies.share import outside_functions
from liftpy.rewrite.strategies.strides import stride
from liftpy.rewrite.strategy import (
    Failure,
    Result,
    Strategy,
    Success,
    at_path,
    attempt,
    identity,
    rule,
    seq,
)


def operands_packed(path: Path, constants: frozenset[str]) -> Strategy:
    """Store the operands of the map of a map at `path` that are made from constants alone."""
    return seq(*(attempt(operand_packed(path, side, constants)) for side in (1, 0)))


def operand_packed(path: Path, side: int, constants: frozenset[str]) -> Strategy:
    """Store the operand of the outer map (side 0), or of the inner one (side 1)."""

    def run(expr: Expr) -> Result:
        inner = (*path, 1)
        rows = inner if side else path
        sums = outer_reductions(body_of(at(expr, inner)))[0]
        operand = (*inner, 1, *sums, 1, side)
        if stride(expr, operand, operand) is None or stride(expr, operand, rows) == 1:
            return Failure("operand_packed", "its rows are not in memory, or adjacent")
        made = at(expr, operand)
        apart = identity if isinstance(made, Param) else taken_apart(operand[len(rows) + 1 :])
        result = at_path(rows, apart)(expr)
        if isinstance(result, Failure):
            return result
        source = at(result.expr, (*rows, 0))
        place = next(arrays_of(source, made.type, constants), None)
        if place is None:
            return Failure("operand_packed", "it is not made from constants alone")
        if repeats(at(source, place)):
            return Failure("operand_packed", "it has elements of the constants several times")
        return seq(lambda _: result, at_path((*rows, 0, *place), stored_transposed()))(expr)

    return run


def stored_transposed() -> Strategy:
    """Store an array of rows such that its columns are adjacent in memory."""
    return seq(rule("transpose_introduction"), at_path((0,), copy_kernel()))


def zipped_rows_packed(constants: frozenset[str]) -> Strategy:
    """Store zipped rows that are made from constants alone, so that lanes read adjacent elements.

    Each lane reads a row, so the elements k of all rows become adjacent.
    """

    def run(expr: Expr) -> Result:
        # the variable of a `let` may have the name of a constant
        return packed_from(frozenset(p for p in expr.free if p.name in constants))(expr)

    return run


def packed_from(constants: frozenset[Param]) -> Strategy:
    """`zipped_rows_packed` for rows that are made from these parameters alone."""

    def run(expr: Expr) -> Result:
        for path, part in top_down(expr):
            if not isinstance(part, FunCall) or not isinstance(part.fun, Zip):
                continue
            for k, rows in enumerate(part.args):
                if are_apart(rows, constants):
                    named = rule("let_introduction", {"v": (*path, k)})
                    return seq(named, at_path((0,), stored_transposed()), at_path((1,), run))(expr)
        return Success(expr)

    return run


def are_apart(rows: Expr, constants: frozenset[Param]) -> bool:
    """Whether an expression is rows of constants whose first elements are not adjacent."""
    layout = isinstance(rows, Param) or (isinstance(rows, FunCall) and is_view(rows.fun))
    if not layout or not rows.free or not rows.free <= constants:
        return False
    row = rows.type.element if isinstance(rows.type, ArrayType) else None
    if not isinstance(row, ArrayType) or not isinstance(row.element, ScalarType):
        return False
    return stride(rows, (), ()) not in {None, 1} and not repeats(rows)


def repeats(array: Expr) -> bool:
    """Whether a layout of constants has more elements than the constants, as windows have."""
    held = sum((size_bytes(p.type) for p in array.free), ZERO)
    more = (size_bytes(array.type) - held).constant
    return more is None or more > 0


def arrays_of(source: Expr, element: Type, constants: frozenset[str]) -> Iterator[Path]:
    """Yield the path of the array with such elements in a source, if constants alone make it."""
    for path, part in outside_functions(source):
        layout = isinstance(part, Param) or (isinstance(part, FunCall) and is_view(part.fun))
        names = {p.name for p in part.free}
        if layout and isinstance(part.type, ArrayType) and part.type.element == element:
            if names and names <= constants:
                yield path
            return
