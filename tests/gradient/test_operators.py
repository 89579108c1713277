"""The derivative of each scalar operator, and of what has no tangent."""

from __future__ import annotations

import math

import numpy as np
import pytest

from liftpy.gradient.derivatives import DERIVATIVES
from liftpy.ir.operators import COMPARISONS, LOGICAL, OPERATORS
from liftpy.ir.types import SCALARS
from liftpy.language.text.program import parse
from tests.gradient.differences import agrees_with_differences, gradient_of, meaning

#: For each operator, an expression in x and y, which the function depends on smoothly.
EXPRESSIONS = {
    "+": "x + 3 * y",
    "-": "2 * x - 5 * y",
    "*": "x * y * x",
    "/": "x / y",
    "min": "min(2 * x, y)",
    "max": "max(2 * x, y)",
    "neg": "-x + y",
    "abs": "abs(x) + abs(y * 3)",
    "sqrt": "sqrt(x * x + y * y)",
    "exp": "exp(x * 0.5 - y)",
    "log": "log(x * x * 3 + y * y)",
    "sin": "sin(x * 2) + y",
    "cos": "cos(x * 2) * y",
    "tanh": "tanh(x) * y",
    "asin": "asin(x * 0.5) * y",
    "acos": "acos(x * 0.5) * y",
    "atan": "atan(x * 2) - y",
    "atan2": "atan2(x, y) * x",
    "sinh": "sinh(x) * y",
    "cosh": "cosh(x * 2) - y",
    "asinh": "asinh(x * 2) * y",
    "acosh": "acosh(x * x + y * y + 1) * y",
    "atanh": "atanh(x * 0.5) * y",
    "erf": "erf(x) * y",
    "pow": "pow(x * x, y)",
    "select": "select(x < y, x * 2 + y, y * 3 - x)",
}
POINTS = [(0.75, 2.5), (-1.25, 0.5), (1.5, -0.375), (-0.625, -2.0)]


def test_every_operator_has_a_derivative_or_a_reason() -> None:
    """A conversion is apart; the results of comparisons, connectives and others are no floats."""
    of_integers = {op for op, record in OPERATORS.items() if record.operands == "integers"}
    others = COMPARISONS | LOGICAL | of_integers | SCALARS.keys()
    assert DERIVATIVES.keys() == OPERATORS.keys() - others


def test_every_derivative_has_an_expression() -> None:
    assert EXPRESSIONS.keys() == {op for op, how in DERIVATIVES.items() if not isinstance(how, str)}


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", EXPRESSIONS)
def test_the_derivative_of_an_operator_is_that_of_differences(op: str, t: str) -> None:
    program = parse(f"def p(x: {t}, y: {t}) = {EXPRESSIONS[op]}")
    for point in POINTS:
        agrees_with_differences(program, [np.float64(v) for v in point])


#: Expressions in x at places without a derivative, and what is taken for it.
CORNERS = {
    "max(x, 0)": (0.0, 0.0),
    "max(0, x)": (0.0, 0.0),
    "min(x, 0)": (0.0, 0.0),
    "max(x, 2 * x)": (0.0, 1.0),
    "min(3 * x, 2 * x)": (0.0, 3.0),
    "max(x, 3)": (3.0, 0.0),
    "abs(x)": (0.0, 0.0),
    "select(x < 1, 2 * x, 5 * x)": (1.0, 5.0),
    "pow(x, 0)": (0.0, 0.0),
    "pow(x, 1)": (0.0, 1.0),
    "pow(x, 3)": (-2.0, 12.0),
}


@pytest.mark.parametrize("text", CORNERS)
def test_at_a_corner_one_side_is_taken(text: str) -> None:
    x, slope = CORNERS[text]
    assert gradient_of(f"def p(x: f32) = {text}", x) == slope


#: Expressions that avoid what is infinite at 0, and their derivatives there.
GUARDED = {
    "select(0 < x, 1 / x, 0)": 0.0,
    "select(0 < x, sqrt(x), 2 * x)": 2.0,
    "select(0 < x, log(x) * x, x)": 1.0,
    "select(x == 0, 3 * x, sin(x) / x)": 3.0,
    "let v = 1 / x in select(0 < x, v * v * v, 7 * x)": 7.0,
    "max(log(x), -5)": 0.0,
    "select(x < 1, select(0 < x, 1 / x, x), 0)": 1.0,
    "(let r = sqrt(x) in select(0 < x, r * r + r, 0)) + x": 1.0,
}


@pytest.mark.parametrize("text", GUARDED)
def test_what_is_not_chosen_adds_nothing_where_it_is_infinite(text: str) -> None:
    assert gradient_of(f"def p(x: f32) = {text}", 0.0) == GUARDED[text]


@pytest.mark.parametrize("text", GUARDED)
def test_a_guarded_expression_has_its_derivative_elsewhere(text: str) -> None:
    agrees_with_differences(parse(f"def p(x: f32) = {text} + 4 * x"), [np.float64(0.375)])


def test_a_condition_has_no_derivative() -> None:
    found = gradient_of("def p(x: f32, y: f32) = select(x * y < 1, 2 * x, 3)", 0.5, 0.25)
    assert found == (2, 0)


def test_a_power_with_a_constant_exponent_needs_no_logarithm() -> None:
    """Else the base of an even power would have to be positive."""
    (found,) = meaning(parse("def p(x: f32) = pow(x, 2)"), [-3.0])
    assert found == 9
    assert gradient_of("def p(x: f32) = pow(x, 2)", -3.0) == -6
    assert gradient_of("def p(x: f32, y: f32) = pow(x, y)", 2.0, 3.0) == (
        12,
        pytest.approx(8 * math.log(2)),
    )


@pytest.mark.parametrize(
    ("text", "t"),
    [
        ("f64(x) * f64(x)", "f32"),
        ("f32(x * x)", "f64"),
        ("f32(f64(x) * 3.0) * x * f32(7i32)", "f32"),
    ],
)
def test_a_conversion_between_floats_is_passed(text: str, t: str) -> None:
    agrees_with_differences(parse(f"def p(x: {t}) = {text}"), [np.float64(1.25)])


def test_a_gradient_is_of_the_type_of_its_parameter() -> None:
    program = parse("def p(x: f64, y: f32) = f32(x) * y")
    assert gradient_of("def p(x: f64, y: f32) = f32(x) * y", 3.0, 5.0) == (5, 3)
    assert [str(p.type) for p in program.params] == ["f64", "f32"]
