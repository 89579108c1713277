"""Functions on integers that f32 computes exactly.

Every integer up to 2^24 is an f32, and a sum, difference or product in f32 that is such an integer
is not rounded. So a function of small integers can be computed in f32 if no intermediate result is
larger; the ranges of the types of what is converted to i32 bound these results.
"""

from __future__ import annotations

from dataclasses import dataclass

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import F32, I32, INTEGERS, ScalarType, integer_range
from liftpy.rewrite.reals import inside

LARGEST_EXACT = 2 ** RECORDS["f32"].significand
"""The largest integer up to which every integer is an f32."""


@dataclass(frozen=True, slots=True)
class Whole:
    """An expression in f32 whose value is an integer from `low` to `high`."""

    expr: Expr
    low: int
    high: int

    @property
    def size(self) -> int:
        """The largest magnitude."""
        return max(-self.low, self.high)


def exact_in_f32(g: Lambda) -> tuple[Lambda, int] | None:
    """A function in f32 with the same results as one in i32, and the bound of their magnitude.

    None if an operation may be rounded, or is not known.
    """
    found = whole(g.body)
    return None if found is None else (Lambda(g.params, found.expr), found.size)


def whole(expr: Expr) -> Whole | None:
    """An expression of type i32 computed in f32; None if it may be rounded, or is not known."""
    found = computed(expr) if expr.type == I32 else None
    return found if found is not None and found.size <= LARGEST_EXACT else None


def computed(expr: Expr) -> Whole | None:
    """`whole`, whatever the size of the result is."""
    match expr:
        case Literal(value):
            return Whole(Literal(float(value), F32), int(value), int(value))
        case FunCall(UserFun() | Lambda() as f, args):
            return computed(inside(f, args))
        case FunCall(ScalarOp("i32"), (x,)) if isinstance(x.type, ScalarType):
            if x.type not in INTEGERS:
                return None
            return Whole(FunCall(ScalarOp("f32"), (x,)), *integer_range(x.type))
        case FunCall(ScalarOp(op), args):
            parts = [part for a in args if (part := whole(a)) is not None]
            return operated(op, parts) if len(parts) == len(args) else None
        case _:
            return None


def operated(op: str, parts: list[Whole]) -> Whole | None:
    """A sum, difference, product or negation."""
    made = FunCall(ScalarOp(op), tuple(part.expr for part in parts))
    match op, parts:
        case "+", [a, b]:
            return Whole(made, a.low + b.low, a.high + b.high)
        case "-", [a, b]:
            return Whole(made, a.low - b.high, a.high - b.low)
        case "*", [a, b]:
            ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            return Whole(made, min(ends), max(ends))
        case "neg", [a]:
            return Whole(made, -a.high, -a.low)
        case _:
            return None
