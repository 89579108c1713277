"""The updates for which OpenCL has atomic functions.

An atomic function reads a number in memory and stores a new one as one indivisible step. The order
in which work-items do so is the device's choice. The operators here are exact, associative and
commutative for integers, so the last number does not depend on the order.
"""

from __future__ import annotations

from liftpy.ir.function import Lambda
from liftpy.ir.types import I32, U32, ScalarType, integer_range
from liftpy.primitives.subgroups import operator_of

ATOMIC_OPERATORS = ("+", "min", "max", "bitAnd", "bitOr", "bitXor")
"""The scalar operators for which OpenCL C 1.2 has atomic functions."""

ATOMIC_TYPES = (I32, U32)
"""The scalar types of these functions, without extensions. (Floats can only be exchanged.)"""


def atomic_operator(f: Lambda) -> str | None:
    """The operator of a step's function, if there is an atomic function for it; None otherwise."""
    return operator_of(f, ATOMIC_OPERATORS) if f.body.type in ATOMIC_TYPES else None


def unchanging(op: str, t: ScalarType) -> int:
    """The operand with which an atomic update changes nothing."""
    low, high = integer_range(t)
    return {"min": high, "max": low, "bitAnd": -1 if low else high}.get(op, 0)
