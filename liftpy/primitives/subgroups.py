"""Which folds the subgroups of a device have functions for.

A subgroup is the work-items of a work-group that a device executes together. OpenCL's functions
`sub_group_reduce_*` fold a value of each of them without local memory or a barrier.
"""

from __future__ import annotations

from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import FLOATS, INTEGERS, ScalarType

SUBGROUP_OPERATORS = ("+", "max", "min")
"""The scalar operators by which OpenCL's subgroups fold."""

SUBGROUP_TYPES = (*FLOATS, *(t for t in INTEGERS if RECORDS[t.name].bits >= RECORDS["i32"].bits))
"""The scalar types that OpenCL's subgroups fold, without further extensions."""


def subgroup_operator(f: Lambda) -> str | None:
    """The operator of a fold's function, if OpenCL's subgroups fold by it; None otherwise."""
    t = f.body.type
    if not isinstance(t, ScalarType) or t not in SUBGROUP_TYPES:
        return None
    return operator_of(f)


def operator_of(f: Lambda | UserFun) -> str | None:
    """The operator that a function applies to its two parameters, in either order."""
    match f.body:
        case FunCall(ScalarOp(op), args) if set(args) == set(f.params):
            return op if op in SUBGROUP_OPERATORS else None
        case FunCall(Lambda() | UserFun() as inner, args) if set(args) == set(f.params):
            return operator_of(inner)
        case _:
            return None
