"""Gradients of reductions, scans and iterations."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.language.text.program import parse, show
from tests.gradient.differences import agrees_with_differences, gradient_of

SEVEN = np.array([0.75, -1.25, 2.5, 0.375, -0.625, 1.5, -2.0])
THREE = np.array([-1.5, 0.25, 2.0])

#: Programs of xs: [7]f32, ys: [3]f32, a: f32.
SMOOTH = {
    "sum": "xs |> reduce(add, a) |> (s => s * s)",
    "sum of squares": "xs |> map(x => x * x * a) |> reduce(add, 0)",
    "product": "xs |> reduce(mul, a)",
    "largest": "xs |> map(x => x * a) |> reduce(maximum, -inf)",
    "smallest": "xs |> map(x => x * x * a) |> reduce(minimum, inf)",
    "largest of a function": "xs |> reduce((m, x) => max(sin(x) * a, m), -2)",
    "not associative": "xs |> reduce((s, x) => sin(s) * x + a, 0.5)",
    "captures an array": (
        "xs |> reduce((s, x) => s * 0.5 + (ys |> map(y => y * x) |> reduce(add, s)), a)"
    ),
    "state is a tuple": "xs |> reduce((s, x) => (s.0 + x * s.1, s.1 * a - x), (1, a)) |> get(0)",
    "state is an array": "xs |> reduce((s, x) => s |> map(v => v * x + a), ys)",
    "state is a tuple of arrays": (
        "xs |> reduce((s, x) => (s.1, s.0 |> map(v => v * x + a)), (ys, ys |> map(sin)))"
    ),
    "state has a counter": "xs |> reduce((s, x) => (s.0 * x + a, s.1 + 1i32), (1, 0i32)) |> get(0)",
    "one step": "xs |> take(1) |> reduce((s, x) => sin(s * x), a)",
    "of arrays": (
        "xs |> map(x => ys |> map(y => x * y))"
        " |> reduce((s, row) => zip(s, row) |> map((p, q) => p * q), ys)"
    ),
    "of tuples": "zip(xs, xs |> drop(4) |> pad(4, 0, 1)) |> reduce((s, p) => s * p.0 + p.1 * a, 1)",
    "softmax": (
        "let m = xs |> reduce(maximum, -inf) in let e = xs |> map(x => exp(x - m)) in"
        " let s = e |> reduce(add, 0) in e |> map(v => v / s * a)"
    ),
    "running sum": "xs |> scan(add, a)",
    "scan": "xs |> scan((s, x) => sin(s) * x + a, 0.5)",
    "fold in a fold": "xs |> reduce((s, x) => s * (ys |> reduce((t, y) => sin(t) * y + x, s)), a)",
    "scan in a scan": (
        "xs |> scan((s, x) => s + (ys |> exclusiveScan((t, y) => t * y + x, s)"
        " |> reduce(mul, 1)), a)"
    ),
    "exclusive sum": "xs |> exclusiveScan(add, a)",
    "exclusive scan": "xs |> exclusiveScan((s, x) => sin(s) * x + a, 0.5)",
    "exclusive scan of tuples": "xs |> exclusiveScan((s, x) => (s.1 * x, s.0 + a), (1, a))",
    "exclusive scan of arrays": "xs |> exclusiveScan((s, x) => s |> map(v => v * x + a), ys)",
    "scan of tuples": "xs |> scan((s, x) => (s.1 * x, s.0 + a), (1, a))",
    "scan of arrays": "xs |> scan((s, x) => s |> map(v => v * x + a), ys)",
    "scan in a map": "ys |> map(y => xs |> scan((s, x) => s * y + x, a))",
    "scan of a scan": "xs |> scan(add, 0) |> scan((s, x) => s * a + x, 0)",
    "iterate": "a |> iterate(5, v => sin(v) * 1.5) |> (v => ys |> map(y => y * v))",
    "iterate an array": "ys |> iterate(3, map(y => y * y * a - y))",
    "iterate a tuple": "(a, ys) |> iterate(3, s => (s.0 * 0.5 + 1, s.1 |> map(y => y * s.0)))",
    "iterate to another type": "xs |> iterate(2, vs => vs |> slide(2, 1) |> map(reduce(mul, 1)))",
}
PARAMETERS = {"xs": SEVEN, "ys": THREE, "a": np.float64(1.25)}


def program_of(body: str) -> str:
    """The text of a program of `xs`, `ys` and `a`."""
    return f"def p(xs: [7]f32, ys: [3]f32, a: f32) = {body}"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SMOOTH)
def test_the_gradient_of_a_fold_is_that_of_differences(name: str) -> None:
    program = parse(program_of(SMOOTH[name]))
    used = [p.name for p in program.params if p in program.body.body.free]
    agrees_with_differences(program, list(PARAMETERS.values()), used)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SMOOTH)
def test_a_gradient_of_a_fold_is_a_program_with_a_text(name: str) -> None:
    made = lp.gradient(parse(program_of(SMOOTH[name])))
    assert parse(show(made)) == made


#: Programs of xs: [5]f32 at special values, with their gradients.
AT = {
    "a product with one zero": ("reduce(mul, 1)", [2, 3, 0, 5, 7], [0, 0, 210, 0, 0]),
    "a product with two zeros": ("reduce(mul, 1)", [2, 0, 3, 0, 5], [0] * 5),
    "the first of the largest": ("reduce(maximum, -inf)", [2, 7, 3, 7, 7], [0, 1, 0, 0, 0]),
    "the first of the smallest": ("reduce(minimum, inf)", [5, 2, 2, 7, 2], [0, 1, 0, 0, 0]),
    "all are the largest": ("reduce(maximum, -inf)", [3] * 5, [1, 0, 0, 0, 0]),
    "no element is larger than the first value": ("reduce(maximum, 9)", [2, 7, 3, 7, 9], [0] * 5),
    "the largest square": (
        "reduce((m, x) => max(m, x * x), 0)",
        [2, -5, 3, 5, 1],
        [0, -10, 0, 0, 0],
    ),
    "a sum": ("reduce(add, 0)", [2, 7, 3, 11, 5], [1] * 5),
}


@pytest.mark.parametrize("name", AT)
def test_a_fold_at_special_values(name: str) -> None:
    stage, xs, expected = AT[name]
    found = gradient_of(f"def p(xs: [5]f32) = xs |> {stage}", np.float64(xs))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("first", "expected"), [(9.0, 1), (7.0, 1), (6.0, 0)])
def test_a_first_value_that_is_the_largest_gets_the_cotangent(first: float, expected: int) -> None:
    text = "def p(a: f32, xs: [3]f32) = xs |> reduce(maximum, a)"
    of_first, of_array = gradient_of(text, first, np.float64([2, 7, 5]))
    assert of_first == expected
    np.testing.assert_array_equal(of_array, [0, 1 - expected, 0])


def test_iterating_0_times_passes_the_cotangent_on() -> None:
    text = "def p(xs: [3]f32) = xs |> iterate(0, map(x => x * x))"
    ys = np.float64([2, 3, 5])
    np.testing.assert_array_equal(gradient_of(text, THREE, ys), ys)


@pytest.mark.parametrize("times", [1, 5])
def test_iterating_multiplies_the_derivatives(times: int) -> None:
    text = f"def p(x: f32) = x |> iterate({times}, v => v * v)"
    assert gradient_of(text, 1.5) == 2**times * 1.5 ** (2**times - 1)


def test_a_sum_needs_no_accumulators() -> None:
    """Each cotangent is that of the result, so no fold runs backwards."""
    made = lp.gradient(parse("def p(xs: [7]f32) = xs |> reduce(add, 0) |> (s => s * s)"))
    assert "scan" not in show(made)
    assert "reorder" not in show(made)
