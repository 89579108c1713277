"""Laws of real numbers: what is equal, and what rescales."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from liftpy.ir.call import FunCall, apply
from liftpy.ir.expr import Expr, Literal, Param
from liftpy.ir.function import Lambda, UserFun
from liftpy.ir.primitive import Get, ScalarOp
from liftpy.ir.types import F32, F64, I8, I32, U8, TupleType, Type
from liftpy.language.embedded.functions import function
from liftpy.language.embedded.lang import add, exp, maximum, minimum, sin
from liftpy.language.embedded.operations import operate
from liftpy.rewrite import reals
from liftpy.rewrite.reals import accumulates, adds, are_equal, finite_neutral, keeps, rescaling
from liftpy.rewrite.strategy import Failure, rule
from liftpy.semantics.evaluate import evaluate
from tests.rewrite.fixtures import sections

a, b, c = (Param(name, F32) for name in "abc")
m, s, x = (Param(name, F32) for name in "msx")
i, j = (Param(name, I32) for name in "ij")

EQUAL = {
    "order": (a + b * c, c * b + a),
    "distribution": ((a + b) * (a - b), a * a - b * b),
    "powers": (exp(a) * exp(b), exp(a + b)),
    "a power of 0": (exp(a - a), a * 0 + 1),
    "division by a power": (a / exp(b), a * exp(-b)),
    "division by a number": (a / 8, a * 0.125),
    "a function of the program": (add(a, b) * c, a * c + b * c),
    "an operator without laws": (2 * sin(a * b), sin(a * b) + sin(a * b)),
}
DIFFERENT = {
    "a quotient of what may be 0": ((a / b) * b, a),
    "a quotient of integers, which wrap around": (i * 2 / 2, i),
    "a product of integers in another type": (
        operate("f32", i * j),
        operate("f32", i) * operate("f32", j),
    ),
    "powers of a sum": (exp(a) + exp(b), exp(a + b)),
    "the difference of infinities": (Literal(math.inf, F32) * 0, Literal(0.0, F32)),
}


@pytest.mark.parametrize("name", EQUAL)
def test_expressions_of_one_form_are_equal(name: str) -> None:
    one, two = EQUAL[name]
    assert are_equal(one, two)
    assert not are_equal(one, two + c)
    values = [np.float32(v) for v in (0.75, -1.25, 1.5)]
    results = [evaluate(Lambda((a, b, c), side), *values, dtype=np.float64) for side in (one, two)]
    np.testing.assert_allclose(*results, rtol=1e-12)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_is_no_law_of_real_numbers_is_not_one_here(name: str) -> None:
    assert not are_equal(*DIFFERENT[name])


def test_sums_and_products_of_integers_are_those_of_a_ring() -> None:
    """They are kept modulo 2^32, also where they wrap around."""
    one, two = (i + j) * (i - j) * 2, i * i * 2 - j * j * 2
    assert are_equal(one, two)
    assert not are_equal(one, two + 1)
    values = np.int32(2**31 - 1), np.int32(-(2**30) + 5)
    results = [evaluate(Lambda((i, j), side), *values) for side in (one, two)]
    assert results[0] == results[1]


PAIR = Param("p", TupleType((U8, I8)))
OPERANDS = [operate("i32", FunCall(Get(k), (PAIR,))) for k in range(2)]


@pytest.mark.parametrize(
    ("body", "is_product"),
    [
        (i + OPERANDS[0] * OPERANDS[1], True),
        (OPERANDS[1] * OPERANDS[0] + i, True),
        (i - OPERANDS[0] * OPERANDS[1], False),
        (i + OPERANDS[0] * OPERANDS[0], False),
        (i + OPERANDS[0] * OPERANDS[1] * 2, False),
        (i + (OPERANDS[0] - 3) * OPERANDS[1], False),
    ],
)
def test_what_accumulates_adds_the_product_of_a_pair(body: Expr, is_product: bool) -> None:
    """Of integers that are converted to the type of the sum."""
    assert accumulates(Lambda((i, PAIR), body)) == is_product


@pytest.mark.parametrize(
    ("body", "is_sum"),
    [(add(a, b), True), (b + a, True), (a - b, False), (maximum(a, b), False), (a + b + 1, False)],
)
def test_what_adds_is_a_sum_of_its_arguments(body: Expr, is_sum: bool) -> None:
    assert adds(Lambda((a, b), body)) == is_sum


def test_a_linear_map_of_other_folds_is_left_alone() -> None:
    """The rule is for sums: a linear map of maxima is not the maximum of its results."""
    before = sections("linear_map_of_sums")["before"]
    maxima = replace(before, text=before.text.replace("reduce(add, 0)", "reduce(maximum, 0)"))
    result = rule("linear_map_of_sums")(maxima.program.body.body)
    assert isinstance(result, Failure)
    assert result.reason == "the function does not add its arguments"


ACCUMULATED = {
    "exponents": s + exp(x - m),
    "with a factor": s + exp((x - m) * 0.5),
    "with a variable factor": s + exp(c * (x - m)),
    "multiples": add(s, x * exp(x - m)),
    "what is accumulated is scaled": s * 0.5 + exp(m - x),
}
NOT_RESCALED = {
    "squares": s + (x - m) * (x - m),
    "an exponent that is not 0 for m itself": s + exp(x - 2 * m),
    "two exponents": s + exp(x - m) + exp(2 * x - 2 * m),
    "a summand without m": s + exp(x - m) + x,
}


@pytest.mark.parametrize("name", ACCUMULATED)
def test_what_is_accumulated_for_one_parameter_is_rescaled_to_another(name: str) -> None:
    k = Lambda((m, s, x), ACCUMULATED[name])
    r = rescaling(k)
    assert r is not None
    n = r.params[1]
    numbers = dict(zip((m, n, s, x, c), (0.75, -1.25, 3.5, 2.0, 0.375), strict=True))

    def value(expr: Expr) -> float:
        given = tuple(np.float32(v) for v in numbers.values())
        return float(evaluate(Lambda(tuple(numbers), expr), *given, dtype=np.float64))

    rescaled, again = apply(r, m, n, k.body), apply(k, n, apply(r, m, n, s), x)
    assert value(rescaled) == pytest.approx(value(again), rel=1e-12)
    assert value(rescaled) != pytest.approx(value(k.body), rel=1e-3)


@pytest.mark.parametrize("name", NOT_RESCALED)
def test_nothing_rescales_what_is_no_multiple_of_a_power(name: str) -> None:
    assert rescaling(Lambda((m, s, x), NOT_RESCALED[name])) is None


def test_an_infinite_start_is_tried() -> None:
    zero, low, high = (Literal(v, F32) for v in (0.0, -math.inf, math.inf))
    falls, rises = (rescaling(Lambda((m, s, x), s + exp(e))) for e in (x - m, m - x))
    assert falls is not None
    assert rises is not None
    assert keeps(falls, zero, [])
    assert not keeps(falls, Literal(1.0, F32), [])
    assert keeps(falls, zero, [low])
    assert not keeps(falls, zero, [high])
    assert keeps(rises, zero, [high])
    assert not keeps(rises, zero, [low])
    unknown = rescaling(Lambda((m, s, x), s + exp(c * (x - m))))
    assert unknown is not None
    assert keeps(unknown, zero, [])
    assert not keeps(unknown, zero, [low]), "the sign of c is not known"


def test_a_constant_beyond_the_domain_of_a_function_has_no_value() -> None:
    for op, number in (("asin", 2.0), ("log", -1.0), ("acosh", 0.5), ("atanh", 1.0)):
        assert reals.value(operate(op, Literal(number, F32))) is None
    assert reals.value(operate("asin", Literal(1.0, F32))) == math.pi / 2


def test_real_numbers_have_no_bits() -> None:
    for number, count in ((-1.0, 1), (1, 1 << 40)):
        given = Literal(number, I32), Literal(count, I32)
        assert reals.value(FunCall(ScalarOp("shiftLeft"), given)) is None


def test_an_extreme_is_neutral_among_finite_numbers() -> None:
    def user(f: Callable[..., Expr], t: Type) -> UserFun:
        body = function(f, (t, t)).body
        assert isinstance(body, FunCall)
        assert isinstance(body.fun, UserFun)
        return body.fun

    for t, kind in ((F32, np.float32), (F64, np.float64)):
        assert kind(finite_neutral(user(maximum, t))) == np.finfo(kind).min
        assert kind(finite_neutral(user(minimum, t))) == np.finfo(kind).max
    assert finite_neutral(user(maximum, I32)) is None
    assert finite_neutral(user(add, F32)) is None
