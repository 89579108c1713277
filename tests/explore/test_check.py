import numpy as np
import pytest

from liftpy.explore.measure.check import POISON, TOLERANCE, Error, Expected
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import (
    Judge,
    Meaning,
    allowed,
    choose_points,
    expected,
    terms,
)
from liftpy.explore.measure.outcome import WrongResult
from liftpy.language.text.program import parse
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.numbers import NumpyReader

SMALL = parse("def sums(x: [7][5]f32) = x |> map(reduce(add, 0))")
LARGE = parse(
    "def shifted(x: [101][103]f32, const w: [103]f32) = x |> map(r => zip(r, w) |> map(add))"
)
WHOLE = parse("def next(x: [11]i32) = x |> map(i => i + 1i32)")
ROOTS = parse("def roots(x: [90][91]f32) = x |> map(map(v => sqrt(v)))")


def judge(program, **options):
    arrays = inputs(program)
    return Judge(program, arrays, expected(program, arrays, **options))


def right(program):
    return evaluate(program, *inputs(program).values())


# --- inputs and points ----------------------------------------------------------------------------


def test_inputs_are_distinct_of_both_signs_and_always_the_same():
    first, again = inputs(LARGE), inputs(LARGE)
    x, w = first["x"], first["w"]
    assert x.shape == (101, 103)
    assert x.dtype == np.float32
    assert len(np.unique(x)) == x.size
    assert x.min() < -0.4
    assert x.max() > 0.9
    assert not np.array_equal(x[0], w)
    assert all(np.array_equal(first[n], again[n]) for n in first)
    assert not np.array_equal(inputs(LARGE, seed=1)["x"], x)


def test_integers_are_distinct_too():
    x = inputs(WHOLE)["x"]
    assert x.dtype == np.int32
    assert sorted(x) == list(range(-5, 6))


def test_a_number_by_itself_is_not_zero():
    """Else a program that multiplies by it gives zeros, whatever else it does."""
    program = parse(
        "def p(a: f32, b: f32, k: i32, xs: [3]f32) = xs |> map(x => a * x + b * f32(k))"
    )
    a, b, k, _ = inputs(program).values()
    assert 0.5 <= a < 1
    assert 0.5 <= b < 1
    assert a != b
    assert k > 1


def test_a_parameter_of_tuples_is_a_tuple_of_arrays():
    (x,) = inputs(parse("def firsts(x: [4](f32, (i8, [3]f64))) = x |> map(p => p.0)")).values()
    assert [x[0].dtype, x[1][0].dtype, x[1][1].dtype] == [np.float32, np.int8, np.float64]
    assert [x[0].shape, x[1][0].shape, x[1][1].shape] == [(4,), (4,), (4, 3)]


def test_the_tolerance_is_that_of_the_roughest_float():
    half = parse("def half(x: [4]f16) = x |> map(x => f32(x) * 3)")
    (wanted,) = expected(half, inputs(half), tolerance=1e-5)
    assert wanted.tolerance == 1e-5 * 2**10
    double = parse("def double(x: [4]f64) = x |> map(x => (x * 3, i64(x)))")
    floats, whole = expected(double, inputs(double), tolerance=1e-5)
    assert (floats.tolerance, whole.tolerance) == (1e-5 * 2**-20, 0)


def test_a_long_sum_may_round_more():
    """2^20 numbers, added in two strided halves in f32, are off by more than 1e-5, and right."""
    total = lambda n: parse(f"def total(xs: [{n}]f32) = xs |> reduce(add, 0)")
    assert allowed(total(5), TOLERANCE) == TOLERANCE
    nested = parse("def total(xs: [6][7]f32) = xs |> map(reduce(add, 0)) |> reduce(add, 0)")
    assert terms(nested.body.body) == 42
    program = total(1 << 20)
    numbers = np.abs(inputs(program)["xs"])
    halves = [np.add.accumulate(numbers[k::2], dtype=np.float32)[-1] for k in range(2)]
    right = numbers.sum(dtype=np.float64)
    assert TOLERANCE < abs(halves[0] + halves[1] - right) / right < allowed(program, TOLERANCE)


def test_large_integers_are_compared_exactly():
    large = parse("def large(x: [4]i64) = x |> map(x => x + 9007199254740993)")
    judged = judge(large)
    result = right(large).astype(np.int64)
    assert judged.judge(result) == Error(0.0, 0.0)
    result[2] += 1
    assert isinstance(judged.judge(result), WrongResult)


def test_a_small_result_is_compared_whole():
    assert len(choose_points((7, 5), 10)) == 35
    assert len(choose_points((), 10)) == 1


@pytest.mark.parametrize("shape", [(5000,), (101, 103), (20, 31, 17)])
def test_points_of_a_large_result_have_all_corners_many_edges_and_are_inside(shape):
    points = choose_points(shape, 512)
    assert points.shape == (512, len(shape))
    assert (points >= 0).all()
    assert (points < shape).all()
    last = np.array(shape) - 1
    on_edge = ((points == 0) | (points == last)).any(axis=1)
    assert on_edge.sum() > 150
    corners = {tuple(p) for p in points if ((p == 0) | (p == last)).all()}
    assert len(corners) == 2 ** len(shape)
    for axis in range(len(shape)):
        assert (points[:, axis] == 0).sum() > 20
        assert (points[:, axis] == last[axis]).sum() > 20
    np.testing.assert_array_equal(points, choose_points(shape, 512))


# --- judging --------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [SMALL, LARGE, WHOLE, ROOTS], ids=lambda p: p.name)
def test_the_meaning_is_right(program):
    error = judge(program).judge(right(program))
    assert isinstance(error, Error)
    assert 0 <= error.rms <= error.largest < 1e-6


def test_a_wrong_element_is_found_with_its_place():
    result = right(SMALL)
    result[3] += 0.5
    verdict = judge(SMALL).judge(result)
    assert isinstance(verdict, WrongResult)
    assert verdict.where == (3,)
    assert verdict.got == pytest.approx(verdict.expected + 0.5)


def test_the_tolerance_is_relative_to_the_largest_value():
    wanted = Expected(np.array([[0], [1]]), np.array([100.0, 0.0]), 1e-2)
    lenient = Judge(SMALL, inputs(SMALL), (wanted,))
    result = np.zeros(7, np.float32)
    result[0] = 100.9
    error = lenient.judge(result)
    assert error.largest == pytest.approx(9e-3, rel=1e-2)
    assert error.rms == pytest.approx(9e-3 / np.sqrt(2), rel=1e-2), "one of two points is off"
    result[0] = 101.1
    assert isinstance(lenient.judge(result), WrongResult)


def test_integers_must_be_equal():
    result = right(WHOLE)
    result[10] += 1
    assert judge(WHOLE).judge(result) == WrongResult((10,), float(result[10] - 1), result[10])


@pytest.mark.parametrize("place", [(50, 51), (3, 77)])
def test_an_unwritten_element_is_found_wherever_it_is(place):
    result = right(LARGE)
    result[place] = np.nan
    verdict = judge(LARGE).judge(result)
    assert isinstance(verdict, WrongResult)
    assert verdict.where == place
    assert "no work-item wrote" in verdict.reason


def test_an_unwritten_integer_is_found():
    large = parse("def next(x: [70][71]i32) = x |> map(map(i => i + 1i32))")
    result = right(large)
    result[31, 41] = POISON["i32"]
    assert judge(large).judge(result).where == (31, 41)


def test_a_nan_that_the_program_means_is_right():
    """Square roots of negative numbers."""
    assert np.isnan(right(ROOTS)).any()
    assert judge(ROOTS).judge(right(ROOTS)).largest < 1e-6


def test_a_wrong_element_that_no_point_meets_is_found_against_the_first_right_result():
    tried = judge(LARGE)
    assert isinstance(tried.judge(right(LARGE)), Error)
    points = {tuple(p) for p in tried.wanted[0].points}
    place = next(p for p in np.ndindex(101, 103) if p not in points)
    result = right(LARGE)
    result[place] += 0.25
    assert isinstance(judge(LARGE).judge(result), Error)
    assert tried.judge(result).where == place


def test_a_result_that_is_compared_whole_is_not_evaluated_again(monkeypatch):
    """The meaning of a long sum takes seconds; a campaign asks for it once."""
    program = parse("def total(xs: [5]f32) = xs |> reduce(add, 0)")
    tried = Judge(program, inputs(program), expected(program, inputs(program)))
    monkeypatch.delattr(Meaning, "at")
    right = inputs(program)["xs"].sum(dtype=np.float32)
    assert tried.judge(right).largest < 1e-6
    assert tried.judge(right).largest < 1e-6


def test_the_meaning_at_points_is_that_of_the_whole():
    points = np.array([[0, 0], [100, 102], [17, 31]])
    whole = evaluate(LARGE, *inputs(LARGE).values(), dtype=np.float64)
    np.testing.assert_array_equal(Meaning(LARGE, inputs(LARGE)).at(points), whole[tuple(points.T)])


def test_what_a_program_names_is_evaluated_once(monkeypatch):
    """Where a result is doubtful, the meaning is asked for again: it costs what a point needs."""
    named = parse("""
        def twice(xs: [300][40]f32) =
          let sums = (xs |> map(reduce(add, 0))) in sums |> map(a => sums |> map(b => a * b))
    """)
    meaning = Meaning(named, inputs(named))
    whole = evaluate(named, *inputs(named).values(), dtype=np.float64)
    stored: list[int] = []
    storing = NumpyReader.stored_array
    monkeypatch.setattr(
        NumpyReader,
        "stored_array",
        lambda self, value, like: stored.append(int(value.length)) or storing(self, value, like),
    )
    for point in ((3, 7), (299, 0)):
        assert meaning.at(np.array([point])) == whole[point]
    assert stored.count(300) == 1


@pytest.mark.parametrize("n", [5000, 100000])
def test_a_sum_of_noise_is_large_and_a_wrong_one_is_told(n):
    program = parse(f"def total(xs: [{n}]f32) = xs |> reduce(add, 0)")
    arrays = inputs(program)
    wanted = expected(program, arrays)
    right = np.float64(arrays["xs"].astype(np.float64).sum())
    assert right > n / 10
    judge = Judge(program, arrays, wanted)
    assert isinstance(judge.judge(np.float32(right) * np.ones((), np.float32)), Error)
    verdict = judge.judge(np.zeros((), np.float32))
    assert isinstance(verdict, WrongResult)
    assert verdict.got == 0
