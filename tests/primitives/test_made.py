"""Arrays that are made, not read: `generate`, `repeat`, `full`, `iota`."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import SyntaxRefused, TypeRefused
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import BOOL, F64, I32
from liftpy.language.text.program import parse_expression
from liftpy.semantics.evaluate import evaluate
from tests.primitives.values import numbers, says

i = np.arange(5)
CASES = {
    "generate(5, i => i)": i.astype(np.int32),
    "generate(5, i => 7 - 2 * i)": (7 - 2 * i).astype(np.int32),
    "generate(5, (i: f32) => i * 0.5)": (i * 0.5).astype(np.float32),
    "generate(5, (i: f64) => i / 3)": i / 3,
    "generate(5, i => i < 2)": i < 2,
    "generate(5, (i: f32) => select(i < 2, 1, i))": np.float32([1, 1, 2, 3, 4]),
    "generate(5, i => generate(3, j => 10 * i + j))": 10 * i[:, None] + np.arange(3),
    "generate(1, i => i)": np.int32([0]),
    "iota(5)": i.astype(np.int32),
    "iota(5) |> map(i => i * i)": (i * i).astype(np.int32),
    "full(5, 2.5)": np.float32([2.5] * 5),
    "full(5, 2i32)": np.int32([2] * 5),
    "full(2, full(3, -1))": np.full((2, 3), -1, np.float32),
    "0 |> repeat(4)": np.zeros(4, np.float32),
}


@pytest.mark.parametrize("text", CASES)
def test_what_is_made(text):
    got = says(text)
    np.testing.assert_array_equal(got, CASES[text])
    assert got.dtype == np.asarray(CASES[text]).dtype or "generate(3" in text


def test_a_made_array_may_use_what_is_around_it():
    xs = numbers(3)
    got = says("generate(4, (i: f32) => xs |> map(x => x + 10 * i))", xs)
    np.testing.assert_array_equal(got, xs + 10 * np.arange(4)[:, None])


def test_a_value_that_is_repeated_is_that_of_the_place_where_it_stands():
    """No binder of an abbreviation catches a variable of its argument."""
    got = says("xs |> map(i => full(2, i)) |> join", numbers(3))
    np.testing.assert_array_equal(got, np.repeat(numbers(3), 2))
    got = says("xs |> map(length => full(2, length)) |> join", numbers(3))
    np.testing.assert_array_equal(got, np.repeat(numbers(3), 2))


def test_embedded_forms():
    made = lp.generate(5, lambda i: i * 3, F64)
    assert evaluate(Lambda((), made)).dtype == np.float64
    assert lp.iota(5) == parse_expression("iota(5)")
    assert lp.full(5, 2) == parse_expression("full(5, 2)")
    assert lp.generate(5, lambda i: lp.generate(2, lambda j: i - j)) == parse_expression(
        "generate(5, i => generate(2, j => i - j))"
    )
    program = Program("p", Lambda((), lp.generate(3, lambda i: i)))
    assert lp.parse(lp.show(program)) == program


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("generate(0, i => i)", "it requires that 1 <= 0"),
        ("generate(3000000000, i => i)", "3000000000 <= 2147483648"),
        ("generate(3, (i: bool) => i)", "generate cannot take bool"),
        ("generate(3, (i: [2]f32) => i)", r"generate cannot take \[2\]f32"),
        ("full(0, 1)", "it requires that 1 <= 0"),
    ],
)
def test_what_cannot_be_made_is_refused(text, why):
    with pytest.raises(TypeRefused, match=why):
        says(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("generate(3)", "`generate` takes 2 argument"),
        ("generate(3, i => i, i => i)", "`generate` takes 2 argument"),
        ("xs |> generate(3, i => i)", "`generate` is not a pipeline step"),
        ("xs |> full(3, 1)", "`full` is a value, not a pipeline step"),
        ("iota(3, 4)", r"`iota` takes 1 argument, not 2"),
        ("slice(3, 4)", "`slice` is a pipeline step"),
        ("permute(1, 0)", "`permute` is a pipeline step"),
        ("xs |> gather(3, 4)", "an index function is needed here"),
    ],
)
def test_what_is_not_written_like_that_is_refused(text, why):
    with pytest.raises(SyntaxRefused, match=why):
        says(text, numbers(4))


def test_a_truth_value_is_no_index():
    with pytest.raises(TypeRefused, match="generate cannot take bool"):
        lp.generate(3, lambda i: i, BOOL)
    assert lp.generate(3, lambda i: i).type == lp.array(I32, 3)
