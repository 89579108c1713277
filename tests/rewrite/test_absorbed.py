"""What is done to sums of products with constants becomes part of the constants."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.rewrite.strategies.absorbed import absorbed
from liftpy.rewrite.strategy import Failure, Success, replay
from liftpy.semantics.evaluate import evaluate

PRODUCT = """def p(xs: [5][3]f32, const ys: [4][3]f32, const scale: [4]f32, shift: [4]f32) =
  xs
    |> map(x => ys |> map(y => zip(x, y) |> map(mul) |> reduce(add, 2)))
    |> map(row => row |> map(s => s * 3))
    |> map(row => zip(row, {other}) |> map(t => {operation}))
"""


def program(operation, other="scale"):
    return parse(PRODUCT.format(operation=operation, other=other))


def absorbing(given):
    return absorbed(given.constants)(given.body.body)


def test_a_scaled_product_of_matrices_is_a_product_with_scaled_factors():
    given = program("1 - t.0 / t.1")
    result = absorbing(given)
    assert isinstance(result, Success), result
    *_, (_, last) = replay(given.body.body, result.steps)
    made = Program("q", Lambda(given.params, last), given.constants)
    text = lp.show(made)
    assert "1 - 2 * 3 / x" in text
    assert text.count("reduce") == 1
    rng = np.random.default_rng(7)
    arrays = [rng.standard_normal([int(n) for n in p.type.shape]) for p in given.params]
    np.testing.assert_allclose(
        evaluate(made, *arrays, dtype=np.float64), evaluate(given, *arrays, dtype=np.float64)
    )


@pytest.mark.parametrize(
    ("operation", "other", "reason"),
    [
        ("t.0 * t.1", "shift", "not constant"),
        ("max(t.0, t.1)", "scale", "not a multiple of its argument and a constant"),
        ("t.0 * t.0 + t.1", "scale", "2 sums"),
        ("t.1 / t.0", "scale", "not a multiple of its argument and a constant"),
    ],
)
def test_other_operations_stay(operation, other, reason):
    result = absorbing(program(operation, other))
    assert isinstance(result, Failure)
    assert reason in result.reason
