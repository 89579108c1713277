"""What the records of operators say of 0, of infinity and of equal operands, on NumPy numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from liftpy.ir.operators import OPERATORS, OperatorRecord
from liftpy.ir.types import BOOL, FLOATS, INTEGERS, SCALARS, STORAGE, ScalarType, integer_range
from liftpy.semantics.operations import DTYPES, OPERATIONS, convert

#: Types of operands. A float of 16 bits overflows at once, so f32 and f64 stand for the floats.
TYPES = [BOOL, *(t for t in FLOATS if t.name != "f16"), *INTEGERS]
FRACTIONS = (0.0, 0.5, 1.0, 2.75, 7.0, 1000.0, -0.25, -1.0, -3.5, -11.0)


def numbers(t: ScalarType) -> list[np.generic]:
    """Some numbers of a type, 0 among them; of integers also the ends."""
    kind = DTYPES[t.name]
    if t == BOOL:
        return [kind(False), kind(True)]
    if t in FLOATS:
        return [kind(x) for x in FRACTIONS]
    low, high = integer_range(t)
    return [kind(x) for x in sorted({low, max(low, -3), 0, 1, 5, high})]


def takes(record: OperatorRecord, t: ScalarType) -> bool:
    """Whether an operator takes operands of a type; of storage types, conversions do apart."""
    if record.name in SCALARS:
        return SCALARS[record.name] not in STORAGE
    return {
        "numbers": t != BOOL,
        "floats": t in FLOATS,
        "integers": t in INTEGERS,
        "bools": t == BOOL,
        "scalars": True,
    }[record.operands]


def operands(record: OperatorRecord, t: ScalarType) -> itertools.product[tuple[np.generic, ...]]:
    each = [numbers(t)] * record.arity
    if record.name == "select":
        each[0] = numbers(BOOL)
    return itertools.product(*each)


def result(record: OperatorRecord, args: tuple[np.generic, ...]) -> float:
    with np.errstate(all="ignore"):
        if record.name in SCALARS:
            return convert(args[0], DTYPES[record.name])
        return OPERATIONS[record.name](*args)


def says_zero(record: OperatorRecord, args: tuple[np.generic, ...]) -> bool:
    zero = [not arg for arg in args]
    return {
        "": False,
        "any": any(zero),
        "all": all(zero),
        "first": zero[0],
        "branches": all(zero[1:]),
    }[record.zero]


CASES = [
    pytest.param(record, t, id=f"{record.name} of {t}")
    for record in OPERATORS.values()
    for t in TYPES
    if takes(record, t)
]


@pytest.mark.parametrize(("record", "t"), CASES)
def test_a_result_is_zero_where_the_record_says(record: OperatorRecord, t: ScalarType) -> None:
    for args in operands(record, t):
        if says_zero(record, args):
            got = result(record, args)
            divided = record.name in {"/", "%"} and not args[1]
            assert got == 0 or (divided and np.isnan(got)), args


@pytest.mark.parametrize(("record", "t"), CASES)
def test_a_finite_operator_makes_finite_numbers(record: OperatorRecord, t: ScalarType) -> None:
    results = [
        result(record, args)
        for args in operands(record, t)
        if record.name != "/" or args[1]  # only constant divisors other than 0 count
        if record.name != "f16" or abs(int(args[0])) < 2**15  # larger numbers overflow
    ]
    if record.finite:
        assert np.all(np.isfinite(np.array(results)))
    else:
        assert t in INTEGERS or not np.all(np.isfinite(np.array(results)))


@pytest.mark.parametrize(("record", "t"), CASES)
def test_equal_operands_of_an_idempotent_operator_are_the_result(
    record: OperatorRecord, t: ScalarType
) -> None:
    if record.arity != 2 or record.truth:
        assert not record.idempotent
        return
    same = all(result(record, (x, x)) == x for x in numbers(t))
    assert same == record.idempotent


@pytest.mark.parametrize("t", STORAGE, ids=str)
def test_zero_is_stored_as_zero(t: ScalarType) -> None:
    record = OPERATORS[str(t)]
    assert record.zero == "first"
    assert record.reference(0.0) == 0
