"""The folds and the types for which OpenCL has subgroup functions.

A subgroup consists of the work-items of a work-group that a device executes together. The functions
`sub_group_reduce_*` fold a value of each of them without local memory or a barrier.
"""

from __future__ import annotations

from collections.abc import Container

from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import FLOATS, INTEGERS, ArrayType, ScalarType, Type

SUBGROUP_OPERATORS = ("+", "max", "min")
"""The scalar operators for which OpenCL has subgroup functions."""

SUBGROUP_TYPES = (*FLOATS, *(t for t in INTEGERS if RECORDS[t.name].bits >= RECORDS["i32"].bits))
"""The scalar types of subgroup functions, without further extensions."""


def subgroup_operator(f: Lambda) -> str | None:
    """The operator of a fold's function, if there is a subgroup function for it; None otherwise."""
    t = f.body.type
    if not isinstance(t, ScalarType) or t not in SUBGROUP_TYPES:
        return None
    return operator_of(f, SUBGROUP_OPERATORS)


def operator_of(f: Lambda | UserFun, among: Container[str]) -> str | None:
    """Which of some operators a function applies to its two parameters, in either order."""
    match f.body:
        case FunCall(ScalarOp(op), args) if set(args) == set(f.params):
            return op if op in among else None
        case FunCall(Lambda() | UserFun() as inner, args) if set(args) == set(f.params):
            return operator_of(inner, among)
        case _:
            return None


def cannot_hold(t: Type) -> str | None:
    """Why subgroups cannot hold an array in their registers; None if they can."""
    while isinstance(t, ArrayType):
        t = t.element
    if t in SUBGROUP_TYPES:
        return None
    types = ", ".join(map(str, SUBGROUP_TYPES))
    return f"subgroups hold elements of type {types}, and OpenCL has no broadcast of {t}"
