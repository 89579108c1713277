"""Bounds of rounding errors hold for what f32 computes, and are those of the transforms."""

import numpy as np
import pytest

from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import choose_points
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.rewrite.algorithms import Algorithm, algorithms_of
from liftpy.rewrite.forms import in_turn, partitions
from liftpy.rewrite.rules.correlation import FLAT, triple
from liftpy.rewrite.stages import WINOGRAD
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.rounding import DIVISION, ErrorBounds, Magnitudes, Unbounded, roundings
from liftpy.winograd.error import UNIT, compounded
from tests.fuzz.correlations import Case

DOT = "def p(x: [9]f32, w: [9]f32) = zip(x, w) |> map(mul) |> reduce(add, 0)"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("def p(x: [3]f32) = x |> pad(1, 1, 0.5) |> slide(2, 1) |> transpose", 0),
        ("def p(x: [3]f32) = x |> map(x => 2 * x)", 0),
        ("def p(x: [3]f32) = x |> map(x => 3 * x + 1)", 2),
        ("def p(x: [3]f32) = x |> map(x => 0.1 * x)", 2),
        ("def p(x: [3]f32) = x |> pad(1, 1, 0.1)", 1),
        ("def p(x: [3]f32) = x |> map(x => x / 4)", DIVISION),
        ("def p(x: [3]f32) = x |> map(x => x / 3)", DIVISION),
        ("def p(x: [3]f32) = x |> map(x => x * x * x * x)", 3),
        ("def p(x: [3]f32) = x |> map(x => max(0, x * 3) - abs(-x))", 2),
        ("def p(x: [3]f32) = x |> map(x => select(x < 0, x * 3, x))", 1),
        (DOT, 9),
        (DOT.replace("add, 0", "add, 1"), 10),
        ("def p(x: [4][5]f32) = x |> map(reduce(add, 0)) |> reduce(add, 0)", 7),
        ("def p(x: [4][5]f32) = x |> map(reduce(maximum, -inf)) |> reduce(add, 0)", 3),
        ("def p(x: [40]f32) = x |> scan(add, 0)", 39),
    ],
)
def test_roundings_are_those_of_the_longest_path(text, count):
    assert roundings(parse(text)) == count


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("def p(x: [3]f32) = x |> map(x => exp(x))", "`exp`"),
        ("def p(x: [3]f32) = x |> map(x => 1 / x)", "`/`"),
        ("def p(x: [3]f32) = x |> map(x => select(x * 3 < 1, x, 0))", "`<`"),
        ("def p(x: [3]f64) = x |> map(x => x + 1)", "f64"),
        ("def p(x: [9]f32) = x |> reduce((a, b) => a * a + b, 1)", "a fold multiplies"),
    ],
)
def test_what_has_no_bound_says_why(text, why):
    with pytest.raises(Unbounded, match=why):
        roundings(parse(text))


@pytest.mark.parametrize(
    "text",
    [
        DOT,
        "def p(x: [90]f32, w: [90]f32) = zip(x, w) |> map(mul) |> reduce(add, 0.3)",
        "def p(x: [9][7]f32) = x |> map(r => (r |> reduce(add, 0)) / 7) |> map(m => m * m)",
        "def p(x: [9][7]f32) = x |> map(reduce((a, b) => a - b, 0)) |> map(x => max(x, 0))",
        "def p(x: [9][7]f32) = x |> map(map(x => 0.7 * x - 0.1)) |> transpose |> map(scan(add, 0))",
        "def p(x: [9]f32) = x |> pad(1, 1, -0.3) |> slide(3, 1) |> map(reduce(minimum, inf))",
        "def p(x: [9]f32) = let y = x |> map(v => v / 3) in y |> scan(add, 0) |> map(v => v - 1)",
    ],
)
def test_the_bound_of_each_element_holds(text):
    program = parse(text)
    arrays = inputs(program)
    once = evaluate(program, *arrays.values())
    exact = evaluate(program, *arrays.values(), dtype=np.float64)
    points = choose_points(np.shape(exact), 1)
    limits = ErrorBounds(program, arrays).at(points)
    assert (np.abs(once - exact).ravel() <= limits).all()
    assert (limits <= 200 * float(UNIT) * (np.abs(exact).max() + 90)).all()


def unit(shape):
    return np.ones(shape, np.float32)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("taps", [7, 3, 5])  # the fewest forms first
def test_the_bound_of_a_form_by_f_m_r_is_that_of_its_matrices(taps):
    """On data of magnitude 1: the same sums of magnitudes, and more roundings for its quotients."""
    case = Case((19, 19), 2, 1, (taps, taps), 0)
    arrays = {"x": unit((19, 19, 2)), "w": unit((1, taps, taps, 2)), "b": 0 * unit(1)}
    points = np.indices((19, 19, 1)).reshape(3, -1).T
    found = 0
    for form in partitions(case.program):
        for used in algorithms_of(form):
            word = dict(form.words)[WINOGRAD]
            flat = word.endswith("+flat")
            *down, right = ((int(m), taps) for m in word.partition("+")[0].split("x"))
            summed = down == [(1, taps)]
            sizes = (right,) if summed else (*down, right)
            triples = tuple(triple(m, r) for m, r in sizes)
            assert used == Algorithm(triples, 2, taps if summed else 1, flat)
            params = case.program.params
            bounds = ErrorBounds(Program("p", Lambda(params, form.cut_form)), arrays)
            paths = bounds.at(points) / float(compounded(bounds.roundings))
            assert paths.max() == pytest.approx(float(used.bound.magnitude))
            assert 0 <= bounds.roundings - used.bound.roundings <= 4 * DIVISION
            found += 1
    flat_forms = sum(r == taps for _, r in FLAT)
    squares = len({m for m in (2, 4, 6) if m + taps <= 9})
    assert found == (1 + 2 + 2) * squares + 2 * flat_forms  # rows; tiles, also held; with overlap


def test_a_direct_form_uses_no_f_m_r():
    direct = next(in_turn(Case((5, 5), 2, 1, (3, 3), 0).program))
    assert [*algorithms_of(direct)] == []


def test_what_underflows_is_allowed_what_later_factors_make_of_it():
    """Here every product with 1e-20 is 0 or has few digits."""
    program = parse(
        "def p(x: [8]f32) = x |> map(v => v * small * large)".replace(
            "small", f"{1e-20:.25f}"
        ).replace("large", f"{1e20:.1f}")
    )
    arrays = {"x": np.arange(1, 9, dtype=np.float32) * np.float32(1e-20)}
    once = np.float32(np.float32(arrays["x"] * np.float32(1e-20)) * np.float32(1e20))
    limits = ErrorBounds(program, arrays).at(np.arange(8)[:, np.newaxis])
    exact = evaluate(program, *arrays.values(), dtype=np.float64)
    assert (np.abs(once - exact) <= limits).all()


@pytest.mark.parametrize("f", ["max(a, b)", "min(a, b)", "a - b"])
def test_long_folds_are_evaluated_at_once(f, monkeypatch):
    """Not one element after another in Python."""
    monkeypatch.setattr(Magnitudes, "fold", None)
    program = parse(f"def p(x: [70001]f32) = x |> reduce((a, b) => {f}, 0)")
    arrays = {"x": unit(70001)}
    bounds = ErrorBounds(program, arrays)
    assert bounds.at(np.zeros((1, 0), np.int64)) > 0
