"""The scalar operators: one record each, which every package reads.

A new operator is a record here. Its derivative is in `gradient/derivatives.py`, and what its
arithmetic needs in C besides an operator symbol or a function is in `opencl/scalars.py`.
CONTRIBUTING lists the files.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from liftpy.errors import TypeRefused, plural
from liftpy.ir.scalars import misfit, rounded, stored
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
    with_article,
)


@dataclass(frozen=True)
class OperatorRecord:
    """What a scalar operator takes and returns, and how other languages write it.

    `operands` says what it is applied to: numbers, floats, integers, truth values, or any scalars.
    (The condition of `select` is not counted among them.) If `truth`, the result is a truth value,
    else a value of the operands' type. `reference` is the operator on Python numbers, which do not
    wrap around; the numbers of the language do if they are integers and the operator `wraps`.
    `neutral` is the right operand with which it changes nothing; on the left, only if it is
    `commutative`. It wraps around too: for unsigned integers, -1 is the largest number. If the
    operator is `idempotent`, equal operands are the result.

    `zero` names the operands that have to be 0 for the result to be 0: any of them, all of them,
    the first one, or both values of `select`. (`0 / x` is 0 where it is a number.) The operator is
    `finite` if its result is for finite operands, apart from the overflow of arithmetic; `/` is if
    it divides by a constant other than 0. `cost` is the assumed time in multiply-adds.

    Libraries are not imported here: a field holds a name. `numpy` is a function of NumPy; it is
    empty if no function agrees on all types (`semantics/operations.py`). `c` is an operator symbol
    or a function of OpenCL C; `c_integers` and `c_vectors` are those for integers and for vectors
    of truth values, where they differ. `z3` is a function of z3: on truth values, or on floats,
    which it rounds; `reference` then holds for z3's real numbers, too. It is empty for operators
    that are unknown functions to z3.
    """

    name: str
    arity: int
    operands: Literal["numbers", "floats", "integers", "bools", "scalars"]
    reference: Callable[..., Any]
    numpy: str = ""
    c: str = ""
    c_integers: str = ""
    c_vectors: str = ""
    z3: str = ""
    truth: bool = False
    neutral: float | None = None
    commutative: bool = False
    wraps: bool = False
    idempotent: bool = False
    zero: Literal["", "any", "all", "first", "branches"] = ""
    finite: bool = True
    cost: int = 1


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


# --- the records --------------------------------------------------------------------------------


def arithmetic(
    name: str, reference: Callable[..., Any], numpy: str, c: str = "", **fields: Any
) -> OperatorRecord:
    """A binary operator on numbers; C uses the same symbol unless `c` is given."""
    return OperatorRecord(name, 2, "numbers", reference, numpy, c or name, **fields)


def extremum(
    name: str, reference: Callable[..., Any], numpy_and_c: str, neutral: float
) -> OperatorRecord:
    """The smaller or the larger of two numbers."""
    return arithmetic(
        name,
        reference,
        numpy_and_c,
        numpy_and_c,
        c_integers=name,
        neutral=neutral,
        commutative=True,
        idempotent=True,
        zero="all",
    )


def of_floats(
    name: str, reference: Callable[..., Any], cost: int, numpy: str | None = None, **fields: Any
) -> OperatorRecord:
    """A function of a float, which has the same name everywhere, or other ones in NumPy and C."""
    arity, c = fields.pop("arity", 1), fields.pop("c", name)
    known = name if numpy is None else numpy
    return OperatorRecord(name, arity, "floats", reference, known, c, cost=cost, **fields)


def on_bits(
    name: str, reference: Callable[..., Any], numpy: str, c: str, arity: int = 2, **fields: Any
) -> OperatorRecord:
    """An operator on the bits of integers."""
    return OperatorRecord(name, arity, "integers", reference, numpy, c, **fields)


def comparison(
    name: str,
    reference: Callable[..., Any],
    numpy: str,
    operands: Literal["numbers", "scalars"] = "numbers",
) -> OperatorRecord:
    """A comparison."""
    return OperatorRecord(name, 2, operands, reference, numpy, name, truth=True)


def connective(
    name: str, arity: int, reference: Callable[..., Any], c: str, c_vectors: str
) -> OperatorRecord:
    """An operator on truth values."""
    return OperatorRecord(
        name,
        arity,
        "bools",
        reference,
        f"logical_{name}",
        c,
        c_vectors=c_vectors,
        z3=name.capitalize(),
        truth=True,
    )


#: The scalar operators by name. The name of a scalar type is the conversion to it.
OPERATORS = {
    record.name: record
    for record in (
        arithmetic(
            "+",
            lambda a, b: a + b,
            "add",
            z3="fpAdd",
            neutral=0,
            commutative=True,
            wraps=True,
            zero="all",
        ),
        arithmetic(
            "-", lambda a, b: a - b, "subtract", z3="fpSub", neutral=0, wraps=True, zero="all"
        ),
        arithmetic(
            "*",
            lambda a, b: a * b,
            "multiply",
            z3="fpMul",
            neutral=1,
            commutative=True,
            wraps=True,
            zero="any",
        ),
        arithmetic("/", toward_zero, "", z3="fpDiv", zero="first", cost=8),
        arithmetic("%", rest, "", c="fmod", c_integers="%", zero="first", finite=False, cost=16),
        extremum("min", min, "fmin", math.inf),
        extremum("max", max, "fmax", -math.inf),
        OperatorRecord(
            "neg", 1, "numbers", lambda a: -a, "negative", "-", z3="fpNeg", wraps=True, zero="first"
        ),
        OperatorRecord("abs", 1, "numbers", abs, "abs", "fabs", zero="first"),
        of_floats("sqrt", lambda a: a**0.5, 8, zero="first", finite=False),
        of_floats("exp", lambda a: math.e**a, 16, finite=False),
        of_floats("log", math.log, 16, finite=False),
        of_floats("sin", math.sin, 16, zero="first"),
        of_floats("cos", lambda a: math.sin(a + math.pi / 2), 16),
        of_floats("tanh", lambda a: 1 - 2 / (math.e ** (2 * a) + 1), 16, zero="first"),
        of_floats("asin", math.asin, 16, "arcsin", zero="first", finite=False),
        of_floats("acos", math.acos, 16, "arccos", finite=False),
        of_floats("atan", math.atan, 16, "arctan", zero="first"),
        of_floats("atan2", math.atan2, 32, "arctan2", arity=2),
        of_floats("sinh", math.sinh, 16, zero="first", finite=False),
        of_floats("cosh", math.cosh, 16, finite=False),
        of_floats("asinh", math.asinh, 16, "arcsinh", zero="first"),
        of_floats("acosh", math.acosh, 16, "arccosh", finite=False),
        of_floats("atanh", math.atanh, 16, "arctanh", zero="first", finite=False),
        of_floats("erf", math.erf, 16, "", zero="first"),
        of_floats("pow", lambda a, b: a**b, 32, "power", arity=2, finite=False),
        of_floats("floor", lambda a: float(math.floor(a)), 1, zero="first"),
        of_floats("ceil", lambda a: -float(math.floor(-a)), 1, zero="first"),
        of_floats("round", lambda a: float(round(a)), 1, "rint", c="rint", zero="first"),
        on_bits(
            "bitAnd",
            lambda a, b: a & b,
            "bitwise_and",
            "&",
            neutral=-1,
            commutative=True,
            idempotent=True,
            zero="any",
        ),
        on_bits(
            "bitOr",
            lambda a, b: a | b,
            "bitwise_or",
            "|",
            neutral=0,
            commutative=True,
            idempotent=True,
            zero="all",
        ),
        on_bits(
            "bitXor",
            lambda a, b: a ^ b,
            "bitwise_xor",
            "^",
            neutral=0,
            commutative=True,
            zero="all",
        ),
        on_bits("bitNot", lambda a: ~a, "invert", "~", arity=1, wraps=True),
        on_bits("shiftLeft", lambda a, b: a << b, "", "<<", neutral=0, wraps=True, zero="first"),
        on_bits("shiftRight", lambda a, b: a >> b, "", ">>", neutral=0, zero="first"),
        comparison("<", lambda a, b: a < b, "less"),
        comparison("<=", lambda a, b: a <= b, "less_equal"),
        comparison("==", lambda a, b: a == b, "equal", "scalars"),
        comparison("!=", lambda a, b: a != b, "not_equal", "scalars"),
        connective("and", 2, lambda a, b: b if a else False, "&&", "&"),
        connective("or", 2, lambda a, b: True if a else b, "||", "|"),
        connective("not", 1, lambda a: not a, "!", "^"),
        OperatorRecord(
            "select", 3, "scalars", lambda c, a, b: a if c else b, "where", z3="If", zero="branches"
        ),
        *(
            OperatorRecord(name, 1, "scalars", converted(t), truth=t == BOOL, zero="first")
            for name, t in SCALARS.items()
        ),
    )
}
#: The operators that shift the bits of their first operand by the second.
SHIFTS = ("shiftLeft", "shiftRight")
#: The operators on truth values.
LOGICAL = frozenset(name for name, record in OPERATORS.items() if record.operands == "bools")
#: The operators that compare two scalars.
COMPARISONS = (
    frozenset(name for name, record in OPERATORS.items() if record.truth and record.arity == 2)
    - LOGICAL
)


# --- types --------------------------------------------------------------------------------------


def operator_type(op: str, operand: ScalarType) -> ScalarType:
    """The type of an operator's result, given the type of its last operand."""
    if op in SCALARS:
        return SCALARS[op]
    return BOOL if OPERATORS[op].truth else operand


def type_of_operator(op: str, args: tuple[Type, ...]) -> Type:
    """The type of an operator's result; TypeRefused if it does not take these operands."""
    operator = OPERATORS[op]
    arity, truth = operator.arity, operator.operands == "bools"
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
    if operator.operands == "floats" and values[0] not in FLOATS:
        floats = ", ".join(map(str, FLOATS))
        raise TypeRefused(f"`{op}` needs a float ({floats}), got {values[0]}: `f32(x)` converts")
    if operator.operands == "integers" and values[0] not in INTEGERS:
        integers = ", ".join(map(str, INTEGERS))
        raise TypeRefused(
            f"`{op}` needs an integer ({integers}), got {values[0]}: `i32(x)` converts"
        )
    if operator.operands != "scalars" and (values[0] == BOOL) != truth:
        needed, suggestion = ("numbers", "`f32(x)` converts a bool")
        if truth:
            needed, suggestion = "bools", "write a comparison"
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
            f"`{op}` stores {with_article(STORAGE[wanted])}, got {given}: "
            f"write `{op}({STORAGE[wanted]}(x))`"
        )
    if base is None or op == "select" or wanted in {base, given}:
        return None
    if wanted is not None:
        return f"{given} converts to {base} only: write `{op}({base}(x))`"
    return f"`{op}` does not compute with the storage type {given}: `{base}(x)` converts"
