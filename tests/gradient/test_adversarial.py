"""Programs for which a plausible shortcut of the construction of a gradient would be wrong."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from tests.gradient.differences import agrees_with_differences, gradient_of

XS = np.array([1.25, 1.75, 1.5, 2.0, 1.125, 1.625, 1.875])
ROWS = np.array([[1.5, 2.25, 1.75, 1.25], [2.5, 1.125, 1.875, 1.0], [1.0, 2.0, 1.375, 2.75]])

PROGRAMS = {
    "windows with a logarithm: padding with 0 would make 0 / 0": (
        "def p(xs: [7]f32) = xs |> slide(3, 1) |> map(w => log(w |> reduce(add, 0)))",
        (XS,),
        ["xs"],
    ),
    "rows that are padded with 5: a padding with a constant is not linear": (
        """def p(w: [6]f32, xss: [3][4]f32) =
          xss |> map(pad(1, 1, 5)) |> map(row => zip(w, row) |> map(mul) |> reduce(add, 0))
            |> reduce(add, 0)""",
        (XS[:6], ROWS),
        ["w", "xss"],
    ),
    "indices that are floating-point numbers": (
        "def p(c: f32) = generate(3, (i: f32) => c * i * i) |> reduce(add, 0)",
        (np.float64(0.25),),
        ["c"],
    ),
    "a step on a component that is not asked for": (
        "def p(xs: [7]f32, ys: [7]f32) = zip(xs, ys) |> map((x, y) => floor(x) * y * y)",
        (XS, XS[::-1].copy()),
        ["ys"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_differences(name: str) -> None:
    text, arrays, wrt = PROGRAMS[name]
    agrees_with_differences(lp.parse(text), arrays, wrt)


def test_a_border_of_windows_is_finite() -> None:
    text = "def p(xs: [7]f32) = xs |> slide(3, 1) |> map(w => log(w |> reduce(add, 0)))"
    assert np.isfinite(gradient_of(text, XS, np.ones(5))).all()


def test_an_iteration_may_read_a_variable_named_like_its_counter() -> None:
    text = "def p(x: f32, step: i32) = x |> iterate(3, y => y * f32(step) + y * y)"
    y, slope = 0.25, 1.0
    for _ in range(3):
        y, slope = 2 * y + y * y, slope * (2 + 2 * y)
    assert gradient_of(text, np.float64(0.25), np.int32(2), wrt="x") == pytest.approx(slope)
