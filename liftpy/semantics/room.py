"""An upper bound on the memory that evaluating a program takes, computed before evaluation."""

from __future__ import annotations

from numpy import dtype as numpy_type
from numpy.typing import DTypeLike

from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import function_of
from liftpy.ir.types import Type, components
from liftpy.ir.walk import top_down
from liftpy.primitives import AnyIterate, AnyReduce, AnyScan
from liftpy.semantics import numbers
from liftpy.semantics.operations import computed_type

#: The most arrays of a block that operators on scalars hold at one time.
TEMPORARIES = 64


def evaluation_bytes(
    function: Lambda, dtype: DTypeLike | None = None, points: int | None = None
) -> int:
    """An upper bound on the bytes that `evaluate` holds at one time, without its arguments.

    With `points`, the bound is for `evaluate_at` with that number of points. All sizes of the
    function must be numbers. The bound counts the result, everything that is stored (values that a
    `let` names, scans, accumulators that are arrays, rows that a function mentions more than once),
    once for all of its elements and once for those being added, and the values that are stored and
    computed for a block.
    """
    body = function.body
    total = numbers.ROOM + TEMPORARIES * 8 * numbers.BLOCK
    if points is None:
        total += bytes_of(body.type, dtype)
    else:
        total += sum(points * item_size(part.scalar, dtype) for part in components(body.type))
    stored = sum(bytes_of(t, dtype) for _, part in top_down(body) for t in stored_by(part))
    return total + 2 * stored


def stored_by(part: object) -> list[Type]:
    """The types of the values that one part of an expression stores."""
    match part:
        case FunCall(Lambda() | UserFun(), args):
            return [a.type for a in args]
        case FunCall(AnyScan(), (init, _)):
            return [part.type, init.type, *parameters(part)]
        case FunCall(AnyReduce() | AnyIterate(), (init, *_)):
            return [init.type, *parameters(part)]
        case FunCall():
            return parameters(part)
        case _:
            return []


def parameters(part: FunCall) -> list[Type]:
    """The types of the arrays that are passed to a primitive's function."""
    function = function_of(part.fun)
    given = () if function is None else function.params
    return [p.type for p in given if any(part.shape for part in components(p.type))]


def bytes_of(t: Type, dtype: DTypeLike | None) -> int:
    """The bytes of a value."""
    total = 0
    for part in components(t):
        size = item_size(part.scalar, dtype)
        for length in part.shape:
            size *= int(length)
        total += size
    return total


def item_size(t: Type, dtype: DTypeLike | None) -> int:
    """The bytes of a scalar in the type that it is computed in."""
    return numpy_type(computed_type(t, dtype)).itemsize
