"""Gradients of what is read at data, and of sums by index: finite differences, NumPy, devices."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.language.text.program import parse, show
from tests.gradient.differences import gradient_of

IS = np.array([3, -1, 7, 0, 3, 6, 3, 2**31 - 1, -(2**31), 0, 5], np.int32)
JS = np.array([[3, -1, 7, 0, 3], [6, 6, 2, 2, 6], [9, 9, -9, 8, 7]], np.int32)
RNG = np.random.default_rng(3)
TABLE, XS = RNG.standard_normal(7), RNG.standard_normal(11)
ROWS, XSS = RNG.standard_normal((7, 3)), RNG.standard_normal((11, 3))

PROGRAMS = {
    "rows of a table": (
        "def p(t: [7][3]f32, is: [11]i32) = is |> map(i => t |> at(i) |> map(x => x * x))",
        (ROWS, IS),
    ),
    "sums of elements, weighted": (
        """def p(t: [7]f32, w: [3]f32, js: [3][5]i32) = zip(w, js) |> map((v, row) => row
          |> map(i => v * exp(t |> at(i))) |> reduce(add, 0))""",
        (TABLE, ROWS[0], JS),
    ),
    "two readings of one table": (
        """def p(t: [7]f32, is: [11]i32) = is
          |> map(i => (t |> at(i)) * (t |> at(6i32 - i)))""",
        (TABLE, IS),
    ),
    "a computed table of pairs": (
        """def p(t: [7]f32, is: [11]i32) = let u = t |> map(x => (x * x, sin(x))) in
          is |> map(i => u |> at(i) |> (q => q.0 * q.1))""",
        (TABLE, IS),
    ),
    "windows": (
        """def p(t: [7]f32, is: [11]i32) = is
          |> map(i => t |> slide(3, 2) |> at(i) |> reduce((a, x) => a * x + x, 1))""",
        (TABLE, IS),
    ),
    "one element": ("def p(t: [7]f32, i: i32) = t |> at(i) |> (x => x * x)", (TABLE, np.int32(4))),
    "bins": (
        """def p(z: [7]f32, is: [11]i32, xs: [11]f32) = zip(is, xs)
          |> reduceByIndex(add, z |> map(x => x * x)) |> map(x => x * x)""",
        (TABLE, IS, XS),
    ),
    "bins of computed values": (
        """def p(is: [11]i32, xs: [11]f32, c: f32) = zip(is, xs)
          |> reduceByIndex((a, x) => a + x * x * c, 0 |> repeat(7)) |> map(sin)""",
        (IS, XS, np.float64(0.75)),
    ),
    "bins of rows": (
        """def p(is: [11]i32, xss: [11][3]f32) = zip(is, xss) |> reduceByIndex((a, x) => zip(a, x)
          |> map(add), 0 |> repeat(3) |> repeat(7)) |> map(map(x => x * x))""",
        (IS, XSS),
    ),
    "an index that another value chose": (
        """def p(xs: [11]f32, t: [3]f32) = xs
          |> map(x => (t |> at(select(x < 0, 0i32, 2i32))) * x)""",
        (XS, ROWS[0]),
    ),
}


def floats(program: lp.Program, arrays: tuple[object, ...]) -> list[int]:
    """The positions of the parameters that are floating-point numbers."""
    return [k for k, a in enumerate(arrays) if np.asarray(a).dtype.kind == "f"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_differences(name: str) -> None:
    text, arrays = PROGRAMS[name]
    program = parse(text)
    places = floats(program, arrays)
    result = lp.evaluate(program, *arrays, dtype=np.float64)
    ct = np.random.default_rng(1).standard_normal(np.shape(result))
    made = lp.gradient(program, [program.params[k].name for k in places])
    assert parse(show(made)) == made
    given = arrays if np.shape(result) == () else (*arrays, ct)
    weight = 1.0 if np.shape(result) == () else ct
    found = lp.evaluate(made, *given, dtype=np.float64)
    parts = found if isinstance(found, tuple) else (found,)
    rng = np.random.default_rng(2)
    for _ in range(3):
        steps = [rng.standard_normal(np.shape(arrays[k])) for k in places]

        def along(by: float, steps: list[np.ndarray] = steps) -> float:
            moved = list(arrays)
            for k, step in zip(places, steps, strict=True):
                moved[k] = np.float64(arrays[k] + by * step)
            return float((lp.evaluate(program, *moved, dtype=np.float64) * weight).sum())

        slope = (along(1e-6) - along(-1e-6)) / 2e-6
        exact = sum(float((p * s).sum()) for p, s in zip(parts, steps, strict=True))
        assert exact == pytest.approx(slope, rel=1e-6, abs=1e-7)


EMBEDDING = parse("def e(t: [7][3]f32, is: [11]i32) = is |> map(i => t |> at(i))")


def test_the_gradient_of_an_embedding_is_one_reduction_by_index() -> None:
    wanted = np.zeros((7, 3))
    inside = (IS >= 0) & (IS < 7)
    np.add.at(wanted, IS[inside], XSS[inside])
    np.testing.assert_allclose(gradient_of(show(EMBEDDING), ROWS, IS, XSS), wanted, rtol=1e-12)
    text = show(lp.gradient(EMBEDDING))
    assert text.count("reduceByIndex") == 1
    assert " reduce(" not in text


def test_the_gradient_of_a_sum_by_index_reads_it_at_the_index() -> None:
    program = parse(
        "def s(is: [5]i32, xs: [5]f32) = zip(is, xs) |> reduceByIndex(add, 0 |> repeat(7))"
    )
    assert show(lp.gradient(program)).split("=\n")[1].strip() == "is |> map(x => dresult |> at(x))"


@pytest.mark.covering(2)
@pytest.mark.parametrize("bins", ["owned", "in_place", "privatized"])
def test_the_gradient_of_an_embedding_on_devices(bins: str, runtime: Device) -> None:
    made = lp.gradient(EMBEDDING)
    arrays = np.float32(ROWS), IS, np.float32(XSS)
    space = lp.space(made, device=runtime)
    drawn = [c for c in space.sample(space.count(), seed=0) if c.assignment["bins"] == bins]
    assert drawn
    wanted = lp.evaluate(made, *arrays, dtype=np.float64)
    kernel = lp.compile(made, drawn[0].assignment, device=runtime)
    np.testing.assert_allclose(kernel(*arrays), wanted, rtol=1e-5, atol=1e-6)
    kernel.close()
