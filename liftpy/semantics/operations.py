"""The scalar operators on NumPy numbers, which carry the type that they are computed in."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from liftpy.ir.operators import OPERATORS
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import FLOATS, STORAGE, ScalarType, Type

DTYPES: dict[str, Any] = {
    name: getattr(np, record.numpy) if record.is_whole else np.dtype(record.numpy)
    for name, record in RECORDS.items()
}
"""The NumPy type of each scalar type."""


def computed_type(t: Type, dtype: DTypeLike | None = None) -> Any:
    """The NumPy type in which scalars of a type are computed: `dtype` for floats, if it is given.

    Values of a storage type are computed in its base.
    """
    base = STORAGE.get(t, t) if isinstance(t, ScalarType) else t
    return dtype if dtype is not None and base in FLOATS else DTYPES[str(base)]


def typed(value: Any, dtype: Any) -> Any:
    """A Python number as a NumPy number of a type; any other value unchanged.

    As in NumPy, an integer converts to any type that can represent it, and a fraction to a
    floating-point type. A value that would change its kind or does not fit is returned unchanged,
    for the caller to refuse.
    """
    kind = np.dtype(dtype).kind
    if type(value) is int and kind in "iu":
        limits = np.iinfo(dtype)
        return dtype(value) if limits.min <= value <= limits.max else value
    if type(value) in {int, float} and kind == "f":
        return dtype(value)
    return dtype(value) if type(value) is bool and kind == "b" else value


def quotient(a: Any, b: Any) -> Any:
    """`a / b`; for integers rounded towards zero, and 0 if `b` is 0."""
    t = np.result_type(a, b)
    if not np.issubdtype(t, np.integer):
        return a / b
    divisor = np.where(b == 0, t.type(1), b)
    down = a // divisor
    inexact = (down * divisor != a) & ((a < 0) != (divisor < 0))
    return np.where(b == 0, t.type(0), down + inexact.astype(t))


def rest(a: Any, b: Any) -> Any:
    """The remainder of `a / b` rounded towards zero."""
    if np.issubdtype(np.result_type(a, b), np.integer):
        return a - quotient(a, b) * b
    return np.fmod(a, b)


def convert(a: Any, t: Any) -> Any:
    """A number converted to another type."""
    given, wanted = np.asarray(a), np.dtype(t)
    if given.dtype.kind != "f" or wanted.kind not in "iu":
        return given.astype(wanted)
    low, high = np.iinfo(wanted).min, np.iinfo(wanted).max
    whole = np.trunc(given.astype(np.float64))  # exact; `high + 1` is a float64, `high` need not be
    inside = (whole >= float(low)) & (whole < float(high) + 1)
    safe = np.where(inside, whole, 0.0).astype(wanted)
    return np.where(whole >= float(high) + 1, high, np.where(whole < low, low, safe)).astype(wanted)


def shifted(shift: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A shift by a count modulo the number of bits; NumPy shifts all bits out instead."""

    def operation(a: Any, b: Any) -> Any:
        t = np.result_type(a, b)
        return shift(a, b & t.type(8 * t.itemsize - 1))

    return operation


EACH_ERF = np.frompyfunc(math.erf, 1, 1)
"""The error function of each number; NumPy has none."""


def erf(a: Any) -> Any:
    """The error function, rounded to the type of its operand."""
    return np.asarray(EACH_ERF(a)).astype(np.asarray(a).dtype)


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, record.numpy) for name, record in OPERATORS.items() if record.numpy},
    "/": quotient,
    "%": rest,
    "erf": erf,
    "shiftLeft": shifted(np.left_shift),
    "shiftRight": shifted(np.right_shift),
}
