"""The values of the scalar types: their ranges, their rounding, and their bits."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable
from numbers import Integral
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.scalar_types import RECORDS, ScalarRecord
from liftpy.ir.types import (
    BOOL,
    INTEGERS,
    STORAGE,
    OpenType,
    ScalarType,
    Type,
    integer_range,
    with_article,
)

#: The largest finite number of each floating-point type, as it is printed.
LARGEST = {name: record.largest for name, record in RECORDS.items() if record.kind == "float"}


def bounds(t: Type) -> str:
    """The range of a type, as text."""
    if isinstance(t, ScalarType) and t in INTEGERS:
        low, high = integer_range(t)
        return f"{with_article(t)} is a whole number from {low} to {high}"
    if isinstance(t, ScalarType) and t in STORAGE:
        return f"the numbers of {t} have {RECORDS[t.name].significand} significant bits"
    return f"the largest {t} is {LARGEST.get(str(t), 1)}; infinity is written inf"


def misfit(value: float, t: Type) -> str | None:
    """Why a number is not a value of a type; None if it is one, for floats after rounding."""
    if not isinstance(t, ScalarType) or t == BOOL or isinstance(t, OpenType):
        return None
    if t in INTEGERS:
        low, high = integer_range(t)
        if not low <= value <= high:
            return "it is out of range"
        return None if value == int(value) else "it is not a whole number"
    if t in STORAGE and stored(float(value), t) != value and not math.isnan(value):
        return "it would be rounded"
    try:
        rounded(float(value), t)
    except OverflowError:
        return "it is out of range"
    return None


def cast_literal(value: float, t: Type) -> float | bool:
    """A Python number as the value of a literal of type `t`; TypeRefused if it does not fit."""
    if (why := misfit(value, t)) is not None:
        name = with_article(t) if isinstance(t, ScalarType) else str(t)
        raise TypeRefused(f"{value} is not {name}: {why}; {bounds(t)}")
    if t == BOOL:
        return bool(value)
    if isinstance(t, OpenType):
        return value
    return int(value) if t in INTEGERS else float(value)


def exact(value: Any) -> Hashable:
    """What two constants have in common if no computation tells them apart.

    0 and -0 are equal numbers, but their reciprocals are not. NaN is not equal to itself.

    >>> exact(1) == exact(1.0), exact(0.0) == exact(-0.0), exact(math.nan) == exact(-math.nan)
    (True, False, True)
    """
    if isinstance(value, float):
        if math.isnan(value):
            return value if value == value else "nan"  # noqa: PLR0124  a rule's constant by name
        if not value and math.copysign(1, value) < 0:
            return "-0"
    return value


def as_float(value: float) -> float:
    """A number as a float, or a large integer as it is: f64 does not have all of them.

    >>> as_float(7), as_float(2**64 - 1)
    (7.0, 18446744073709551615)
    """
    whole = int(value) if isinstance(value, Integral) else 0
    return whole if abs(whole) > 1 << 53 else float(value)


def rounded(value: float, t: ScalarType) -> float:
    """The nearest float of a float type; OverflowError if that is infinite and `value` is not."""
    if t in STORAGE:
        return stored(value, t)
    form = RECORDS[t.name].packed
    return struct.unpack(form, struct.pack(form, value))[0]


def stored_bits(value: float, t: ScalarType) -> int:
    """The bits of a number in a storage type.

    >>> from liftpy.ir.types import SCALARS
    >>> hex(stored_bits(21.35, SCALARS["flyte16"])), stored(21.35, SCALARS["flyte16"])
    ('0x41aa', 21.25)
    """
    record, base = RECORDS[t.name], RECORDS[STORAGE[t].name]
    dropped = base.bits - record.bits
    try:
        packed = struct.pack(base.packed, value)
    except OverflowError:
        packed = struct.pack(base.packed, math.copysign(math.inf, value))
    bits = int.from_bytes(packed, "little")
    if record.packed:
        return formatted(struct.unpack(base.packed, packed)[0], bits, record)
    if not record.nearest:
        return bits >> dropped
    if math.isnan(value):
        return (bits >> dropped) | record.quiet
    return (bits + (1 << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped


def formatted(value: float, bits: int, record: ScalarRecord) -> int:
    """The bits of a number, which has `bits` in the base of a type, in the type's own format.

    A NaN keeps its sign and the leading bits of its fraction, and becomes quiet.
    """
    sign = int(math.copysign(1, value) < 0) << (record.bits - 1)
    infinite = ((1 << record.exponent) - 1) << (record.significand - 1)
    if math.isnan(value):
        base = RECORDS[record.base]
        fraction = (bits & ((1 << (base.significand - 1)) - 1)) >> (
            base.significand - record.significand
        )
        return sign | infinite | record.quiet | fraction
    try:
        return int.from_bytes(struct.pack(record.packed, value), "little")
    except OverflowError:
        return sign | infinite


def stored(value: float, t: ScalarType) -> float:
    """A number after it was stored in a storage type, and read again."""
    record, base = RECORDS[t.name], RECORDS[STORAGE[t].name]
    if record.packed:
        return struct.unpack(record.packed, stored_bits(value, t).to_bytes(record.bytes, "little"))[
            0
        ]
    bits = stored_bits(value, t) << (base.bits - record.bits)
    return struct.unpack(base.packed, bits.to_bytes(base.bytes, "little"))[0]
