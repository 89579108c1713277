"""Which functions are 0 if their first argument is, for finite numbers."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.language.text.program import parse
from liftpy.rewrite.zeros import is_zero_of_zero
from liftpy.semantics.evaluate import evaluate
from tests.rewrite.test_rules_fire import flat, values_of

NUMBER, ROW, PAIR = "d: f32, y: f32", "d: [5]f32, y: [5]f32", "d: (f32, f32), y: f32"
FUNCTIONS = "fun scaled(x: f32, by: f32) = x * by\nfun shifted(x: f32, by: f32) = x + by\n"

#: Bodies of functions of d and y that are 0 where d is.
ZERO = {
    NUMBER: [
        "d",
        "d * y",
        "y * d",
        "d + d * y",
        "-d",
        "abs(d)",
        "sin(d) + tanh(d)",
        "floor(d) - ceil(d * y)",
        "f32(i32(d * 3))",
        "d / 4",
        "max(d, 0)",
        "min(d * 2, 0 * y)",
        "select(y < 1, d, d * y)",
        "select(y < 1, d, 0)",
        "let t = d * y in t * t",
        "let y = d in y * 3",
        "scaled(d, y)",
        "scaled(y, d)",
        "0",
        "(d, d * y)",
        "((d, y).0, 0)",
        "d |> repeat(3)",
    ],
    ROW: [
        "d",
        "zip(d, y) |> map(mul)",
        "zip(d, y) |> map(mul) |> reduce(add, 0)",
        "zip(y, d) |> reduce((s, p) => s + p.0 * p.1, 0)",
        "d |> reduce(maximum, 0)",
        "d |> reduce((s, x) => (s.0 + x, s.1 * 2), (0, 0))",
        "d |> pad(1, 2, 0)",
        "d |> slide(3, 1) |> map(reduce(add, 0))",
        "zip(d, y) |> unzip |> get(0)",
        "zip(d, y) |> map(p => p.0)",
        "zip(d, d |> map(x => x * 2))",
        "y |> map(v => d |> map(x => x * v))",
        "concat(d, d |> take(2))",
    ],
    PAIR: ["d.0 + d.1", "d", "(d.1 * y, d.0)", "d.0 * y"],
}

#: Bodies that are not.
OTHER = {
    NUMBER: [
        "y",
        "d + y",
        "d + 1",
        "exp(d)",
        "cos(d)",
        "max(d, -y)",
        "max(d, 1)",
        "y / d",
        "select(y < 1, 1, d)",
        "select(d < 1, y, d)",
        "(d, y)",
        "let t = d + y in t * t",
        "shifted(d, y)",
        "log(d + 1) + y",
    ],
    ROW: [
        "y",
        "zip(d, y) |> map(add)",
        "d |> reduce(add, 1)",
        "d |> reduce((s, x) => s + x + 1, 0)",
        "d |> reduce((s, x) => (s.0 + x, s.1 + 2), (0, 0))",
        "d |> pad(1, 2, 3)",
        "zip(d, y)",
        "zip(d, y) |> map(p => p.1)",
        "zip(d, y) |> unzip |> get(1)",
        "concat(d, y)",
        "y |> map(v => d |> map(x => x + v))",
    ],
    PAIR: ["d.0 + y", "(d.1, y)"],
}


def cases(bodies: dict[str, list[str]]) -> list[tuple[str, str]]:
    """The parameters and the body of each."""
    return [(params, body) for params, given in bodies.items() for body in given]


def value_at_zero(params: str, body: str) -> np.ndarray:
    """The value where d is 0 and y has distinct numbers."""
    program = parse(f"{FUNCTIONS}def p({params}) = {body}")
    first, second = (values_of(p.type, k) for k, p in enumerate(program.params))
    nothing = tuple(x * 0 for x in first) if isinstance(first, tuple) else first * 0
    with np.errstate(all="ignore"):
        return flat(evaluate(program, nothing, second, dtype=np.float64))


@pytest.mark.parametrize(("params", "body"), cases(ZERO))
def test_a_function_that_is_0_is_known(params: str, body: str) -> None:
    assert is_zero_of_zero(parse(f"{FUNCTIONS}def p({params}) = {body}").body)
    assert not np.any(value_at_zero(params, body))


@pytest.mark.parametrize(("params", "body"), cases(OTHER))
def test_a_function_that_may_be_another_number_is_told_apart(params: str, body: str) -> None:
    assert not is_zero_of_zero(parse(f"{FUNCTIONS}def p({params}) = {body}").body)
    assert np.any(value_at_zero(params, body) != 0)


@pytest.mark.parametrize(
    "body",
    [
        "pow(d, 2)",
        "d |> repeat(5) |> reduce(mul, 1)",
        "d |> iterate(2, x => x * y)",
        "d * y |> repeat(2) |> scan(add, 0)",
    ],
)
def test_what_is_not_known_counts_as_another_number(body: str) -> None:
    assert not is_zero_of_zero(parse(f"def p({NUMBER}) = {body}").body)


@pytest.mark.parametrize(
    "body",
    [
        "exp(y) * d",
        "log(y) * d",
        "d - d / (y + 20)",
        "sqrt(d * d)",
        "pow(y, 2.0) * d",
        "d % y",
        "d / 0",
    ],
)
def test_operators_with_infinite_results_are_not_trusted(body: str) -> None:
    """Where a rule pads with 0, they may make an infinite number, and 0 times that is NaN."""
    assert not is_zero_of_zero(parse(f"def p(d: f32, y: f32) = {body}").body)
