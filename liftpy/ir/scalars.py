"""The scalar language: operators and their types, the values of each type, and a reference."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import Any

from liftpy.errors import TypeRefused, plural
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import (
    BOOL,
    FLOATS,
    INTEGERS,
    SCALARS,
    STORAGE,
    OpenType,
    ScalarType,
    Type,
    integer_range,
)

#: Scalar operators: the number of arguments, and whether the result is a truth value. The name of a
#: scalar type is the conversion to it.
OPERATORS: dict[str, tuple[int, bool]] = {
    "+": (2, False),
    "-": (2, False),
    "*": (2, False),
    "/": (2, False),
    "%": (2, False),
    "min": (2, False),
    "max": (2, False),
    "neg": (1, False),
    "abs": (1, False),
    "sqrt": (1, False),
    "exp": (1, False),
    "log": (1, False),
    "sin": (1, False),
    "cos": (1, False),
    "tanh": (1, False),
    "pow": (2, False),
    "floor": (1, False),
    "ceil": (1, False),
    "<": (2, True),
    "<=": (2, True),
    "==": (2, True),
    "!=": (2, True),
    "and": (2, True),
    "or": (2, True),
    "not": (1, True),
    "select": (3, False),
    **{name: (1, name == "bool") for name in SCALARS},
}
FLOAT_OPERATORS = frozenset({"sqrt", "exp", "log", "sin", "cos", "tanh", "pow", "floor", "ceil"})
LOGICAL = frozenset({"and", "or", "not"})
COMPARISONS = frozenset({"<", "<=", "==", "!="})
LARGEST = {name: record.largest for name, record in RECORDS.items() if record.kind == "float"}
#: Operators on both numbers and truth values.
ANY_SCALAR = frozenset({"select", "==", "!=", *SCALARS})


def operator_type(op: str, operand: ScalarType) -> ScalarType:
    """The type of an operator's result, given the type of its last operand."""
    if op in SCALARS:
        return SCALARS[op]
    return BOOL if OPERATORS[op][1] else operand


def type_of_operator(op: str, args: tuple[Type, ...]) -> Type:
    """The type of an operator's result; TypeRefused if it does not take these operands."""
    arity, _ = OPERATORS[op]
    got = ", ".join(map(str, args))
    if len(args) != arity or not all(isinstance(a, ScalarType) for a in args):
        raise TypeRefused(f"`{op}` takes {plural(arity, 'scalar')}, got {got}")
    values = args[1:] if op == "select" else args
    if op == "select" and args[0] != BOOL:
        raise TypeRefused(
            f"`select` needs a bool as its condition, got {args[0]}: write a comparison"
        )
    if any(a != values[0] for a in values):
        raise TypeRefused(f"`{op}` needs scalars of the same type, got {got}")
    if (why := stored_operand(op, values)) is not None:
        raise TypeRefused(why)
    if op in FLOAT_OPERATORS and values[0] not in FLOATS:
        floats = ", ".join(map(str, FLOATS))
        raise TypeRefused(f"`{op}` needs a float ({floats}), got {values[0]}: `f32(x)` converts")
    if op not in ANY_SCALAR and (values[0] == BOOL) != (op in LOGICAL):
        truth = "bools", "write a comparison"
        needed, suggestion = truth if op in LOGICAL else ("numbers", "`f32(x)` converts a bool")
        raise TypeRefused(f"`{op}` needs {needed}, got {got}: {suggestion}")
    last = values[-1]
    return operator_type(op, last) if isinstance(last, ScalarType) else last


def stored_operand(op: str, values: tuple[Type, ...]) -> str | None:
    """Why an operator does not take values of storage types; None if it does, or if none has one.

    They are moved, chosen, and converted from and to the type in which they are computed.
    """
    given = values[-1]
    base = STORAGE.get(given) if isinstance(given, ScalarType) else None
    wanted = SCALARS.get(op)
    if wanted in STORAGE and given not in {wanted, STORAGE[wanted]}:
        if isinstance(given, OpenType):
            return None
        return (
            f"`{op}` stores an {STORAGE[wanted]}, got {given}: write `{op}({STORAGE[wanted]}(x))`"
        )
    if base is None or op == "select" or wanted in {base, given}:
        return None
    if wanted is not None:
        return f"{given} converts to {base} only: write `{op}({base}(x))`"
    return f"`{op}` does not compute with the storage type {given}: `{base}(x)` converts"


def bounds(t: Type) -> str:
    """The range of a type, as text."""
    if isinstance(t, ScalarType) and t in INTEGERS:
        low, high = integer_range(t)
        return f"an {t} is a whole number from {low} to {high}"
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
        raise TypeRefused(f"{value} is not an {t}: {why}; {bounds(t)}")
    if t == BOOL:
        return bool(value)
    if isinstance(t, OpenType):
        return value
    return int(value) if t in INTEGERS else float(value)


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
    if not record.nearest:
        return bits >> dropped
    if math.isnan(value):
        return (bits >> dropped) | record.quiet
    return (bits + (1 << (dropped - 1)) - 1 + (bits >> dropped & 1)) >> dropped


def stored(value: float, t: ScalarType) -> float:
    """A number after it was stored in a storage type, and read again."""
    record, base = RECORDS[t.name], RECORDS[STORAGE[t].name]
    bits = stored_bits(value, t) << (base.bits - record.bits)
    return struct.unpack(base.packed, bits.to_bytes(base.bytes, "little"))[0]


# --- the reference ------------------------------------------------------------------------------


def toward_zero(a: float, b: float) -> float:
    """`a / b`; for whole numbers it is rounded towards zero, and 0 if `b` is 0."""
    if not isinstance(a, int):
        return a / b
    if b == 0:
        return 0
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


def rest(a: float, b: float) -> float:
    """The remainder of `a / b` rounded towards zero."""
    return a - toward_zero(a, b) * b if isinstance(a, int) else math.fmod(a, b)


def converted(t: ScalarType) -> Callable[[Any], Any]:
    """The conversion to a type."""
    if t == BOOL:
        return bool
    if t in STORAGE:
        return lambda a: stored(a, t)
    if t in FLOATS:
        return lambda a: rounded(a, t) if misfit(a, t) is None else math.copysign(math.inf, a)
    low, high = integer_range(t)

    def whole(a: Any) -> int:
        if not isinstance(a, float):
            return (int(a) - low) % (high - low + 1) + low
        if math.isnan(a):
            return 0
        return int(max(low, min(high, a)))

    return whole


#: The operators on Python numbers, which do not wrap around.
REFERENCE_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": toward_zero,
    "%": rest,
    "min": min,
    "max": max,
    "neg": lambda a: -a,
    "abs": abs,
    "sqrt": lambda a: a**0.5,
    "exp": lambda a: math.e**a,
    "log": math.log,
    "sin": math.sin,
    "cos": lambda a: math.sin(a + math.pi / 2),
    "tanh": lambda a: 1 - 2 / (math.e ** (2 * a) + 1),
    "pow": lambda a, b: a**b,
    "floor": lambda a: float(math.floor(a)),
    "ceil": lambda a: -float(math.floor(-a)),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: b if a else False,
    "or": lambda a, b: True if a else b,
    "not": lambda a: not a,
    "select": lambda c, a, b: a if c else b,
    **{name: converted(t) for name, t in SCALARS.items()},
}
