"""Programs over open sizes: numbers given, numbers read off arrays, conditions judged."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused, ConstraintRefused, TypeRefused, UnknownName
from liftpy.explore.measure.inputs import inputs
from liftpy.ir.open_sizes import size_ranges
from liftpy.semantics.obligations import Outcome, conditions, obligations
from liftpy.semantics.sizes import closed
from liftpy.workloads import Convolution, convolution

DOT = lp.parse(
    "size n: 1..64\n"
    "def dot(xs: [n]f32, ys: [n]f32) =\n"
    "  zip(xs, ys) |> split(4) |> map(map((x, y) => x * y) |> reduce(add, 0))\n"
)
SUMS = lp.parse(
    "size m: 1..64\nsize n\ndef sums(xs: [m*n]f32) = xs |> split(m) |> map(reduce(add, 0))\n"
)


def floats(n):
    return np.arange(1, n + 1, dtype=np.float32)


def judged(program):
    return {str(o.condition): o for o in obligations(program)}


# --- numbers ------------------------------------------------------------------------------------


def test_sizes_are_read_off_the_arrays():
    expected = [1 + 4 + 9 + 16, 25 + 36 + 49 + 64]
    assert lp.evaluate(DOT, floats(8), floats(8)).tolist() == expected
    assert lp.evaluate_at(DOT, np.array([[1]]), floats(8), floats(8)).tolist() == [expected[1]]


def test_a_size_that_the_arrays_leave_open_is_given():
    assert lp.evaluate(SUMS, floats(6), sizes={"m": 3}).tolist() == [6, 15]
    assert lp.evaluate(SUMS, floats(6), sizes={"m": 2}).tolist() == [3, 7, 11]
    with pytest.raises(ArgumentRefused, match="do not determine m and n"):
        lp.evaluate(SUMS, floats(6))
    with pytest.raises(
        ArgumentRefused, match=r"(?s)no whole number for n fits .* 7 elements, .* m = 3"
    ):
        lp.evaluate(SUMS, floats(7), sizes={"m": 3})


@pytest.mark.parametrize("n", [1, 5])
def test_sizes_behind_sums_and_in_later_arrays_are_read(n):
    program = lp.parse(
        "size n\ndef f(xs: [2*n + 3]f32, ys: [n]f32) = zip(xs |> slide(n + 4, 1), ys)"
    )
    assert lp.evaluate(program, floats(2 * n + 3), floats(n))[1].tolist() == floats(n).tolist()


def test_an_array_of_tuples_says_its_sizes():
    program = lp.parse("size n\ndef f(xs: [n](f32, f32)) = xs |> map((a, b) => a - b)")
    assert lp.evaluate(program, (floats(3), floats(3)[::-1])).tolist() == [-2, 0, 2]


def test_shapes_that_contradict_each_other_are_refused():
    with pytest.raises(ArgumentRefused, match=r"ys has 8 elements.*n = 12 from xs"):
        lp.evaluate(DOT, floats(12), floats(8))


def test_a_program_with_numbers_is_the_one_written_with_them():
    given = lp.at_sizes(DOT, {"n": 12})
    assert given == lp.parse(lp.show(DOT).replace("size n: 1..64\n", "").replace("[n]", "[12]"))
    assert lp.show(DOT, {"n": 12}) == lp.show(given)
    assert size_ranges(given) == {}


def test_some_sizes_may_stay_open():
    given = lp.at_sizes(SUMS, {"m": 8})
    assert list(size_ranges(given)) == ["n"]
    assert lp.evaluate(given, floats(16)).shape == (2,)


def test_a_number_is_needed_where_a_program_is_compiled():
    for use in (lp.compile, lp.space, closed):
        with pytest.raises(ConstraintRefused, match=r"open sizes.* n: 1\.\.64\n.*--size n=\.\.\."):
            use(DOT)


@pytest.mark.parametrize("n", [4, 12])
def test_a_compiled_program_has_its_numbers(n):
    kernel = lp.compile(DOT, sizes={"n": n})
    expected = (floats(n) ** 2).reshape(-1, 4).sum(1)
    np.testing.assert_allclose(kernel(floats(n), floats(n)), expected)
    kernel.close()


def test_an_embedded_program_may_have_sizes():
    n = lp.size("n", 2, 40)

    @lp.program
    def pairs(xs: lp.array(lp.f32, 2 * n), ys: lp.array(lp.f32, n)):
        return lp.zip(xs >> lp.split(2), ys) >> lp.map(lambda pair, y: pair >> lp.reduce(lp.add, y))

    assert lp.evaluate(pairs, floats(6), floats(3)).tolist() == [4, 9, 14]
    kernel = lp.compile(pairs, sizes={"n": 3})
    assert kernel(floats(6), floats(3)).tolist() == [4, 9, 14]
    kernel.close()
    with pytest.raises(ConstraintRefused, match=r"cannot have n = 1: .*\n.*nearest number is 2"):
        lp.compile(pairs, sizes={"n": 1})


def test_an_impossible_number_is_refused_with_the_place_and_what_would_work():
    with pytest.raises(ConstraintRefused) as refusal:
        lp.compile(DOT, sizes={"n": 7})
    assert str(refusal.value).splitlines() == [
        "dot: n = 7 is not possible: `split(4)` requires that 4 divides n",
        "  line 3 |   zip(xs, ys) |> split(4) |> map(map((x, y) => x * y) |> reduce(add, 0))",
        "         |                  ^^^^^^^^",
        "  4 does not divide 7",
        "  n: 4, 8, 12 would work",
    ]


def test_an_embedded_program_says_which_stage():
    n = lp.var("n")

    @lp.program
    def rows(xs: lp.array(lp.f32, 3, n)):
        return xs >> lp.map(lambda row: row >> lp.split(5))

    with pytest.raises(ConstraintRefused, match=r"split\(5\) in map\(row => ...\) requires that 5"):
        lp.compile(rows, sizes={"n": 7})


def test_suggested_numbers_work_and_none_is_nearer():
    program = lp.parse(
        "size m: 1..9\nsize n: 1..99\n"
        "def f(xs: [n]f32) = xs |> split(m) |> map(slide(3, 1) |> map(reduce(add, 0)))"
    )
    with pytest.raises(ConstraintRefused, match=r"m: 5, 10|m: 5 would work") as refusal:
        lp.at_sizes(program, {"m": 4, "n": 25})
    assert "n: 20, 24, 28 would work with the others kept" in str(refusal.value)


def test_a_size_nobody_knows_is_refused():
    with pytest.raises(UnknownName, match=r"no size 'k': its sizes are n: 1\.\.64"):
        lp.at_sizes(DOT, {"k": 4})
    with pytest.raises(UnknownName, match="all its sizes are numbers already"):
        lp.compile(lp.workload("matmul/2x3x4"), sizes={"n": 4})


@pytest.mark.parametrize("value", [1.5, True, "4"])
def test_a_size_is_a_whole_number(value):
    with pytest.raises(ConstraintRefused, match="needs a whole number"):
        lp.at_sizes(DOT, {"n": value})


CONVOLUTION = """
size c, h, w, m: 1..
size k: 1..11
size p: 0..5

def conv(x: [h][w][c]f32, weights: [m][k][k][c]f32, bias: [m]f32) =
  x
  |> pad2d(p, p, p, p, 0.0)
  |> slide2d(k, 1)
  |> map(map(window =>
    zip(weights, bias) |> map((kernel, b) =>
      zip(window |> join |> join, kernel |> join |> join) |> map(mul) |> reduce(add, b))))
"""


def test_a_convolution_of_any_size_is_the_one_of_each_size():
    program = lp.parse(CONVOLUTION)
    recorded = {str(o.condition) for o in obligations(program) if o.outcome is Outcome.RECORDED}
    assert recorded == {"k <= h + 2*p", "k <= 2*p + w"}
    layer = Convolution(3, 6, 7, 4, (3, 3), padding=(1, 1, 1, 1))
    arrays = [a - 0.5 for a in inputs(convolution(layer)).values()]
    expected = lp.evaluate(convolution(layer), *arrays)
    np.testing.assert_array_equal(lp.evaluate(program, *arrays, sizes={"p": 1}), expected)
    sizes = {"c": 3, "h": 6, "w": 7, "m": 4, "k": 3, "p": 1}
    kernel = lp.compile(program, strategy="direct", sizes=sizes)
    np.testing.assert_allclose(kernel(*arrays), expected, rtol=1e-4, atol=1e-5)
    kernel.close()
    with pytest.raises(
        ConstraintRefused, match=r"slide\(k, 1\) in `slide2d\(k, 1\)` requires that k"
    ):
        lp.at_sizes(program, sizes | {"k": 9})


# --- conditions ---------------------------------------------------------------------------------


def test_conditions_are_proved_or_recorded():
    found = judged(DOT)
    assert found["1 <= n"].outcome is Outcome.PROVED
    recorded = found["4 divides n"]
    assert recorded.outcome is Outcome.RECORDED
    assert recorded.breaks == {"n": 1}
    assert recorded.works == {"n": 4}
    assert str(recorded) == (
        "4 divides n: recorded (n = 1: 4 does not divide 1), "
        "required by `split(4)` at line 3, column 18"
    )


def test_a_condition_is_judged_where_those_before_it_hold():
    found = judged(
        lp.parse(
            "size n: 5..\ndef f(xs: [n]f32) = xs |> split(6) |> map(reduce(add, 0)) |> split(1)"
        )
    )
    assert found["6 divides n"].outcome is Outcome.RECORDED
    twice = lp.parse("size n: 1..\ndef f(xs: [n]f32) = (xs |> split(6), xs |> split(3))")
    assert judged(twice)["3 divides n"].outcome is Outcome.PROVED
    assert judged(lp.parse(lp.show(twice).replace("6", "5")))["3 divides n"].outcome is (
        Outcome.RECORDED
    )


def test_witnesses_bear_their_outcome_out():
    program = lp.parse(
        "size m: 1..30\nsize n: 100..900\n"
        "def f(xs: [n]f32) = xs |> slide(m + 120, 3) |> split(7) |> map(join)"
    )
    recorded = [o for o in obligations(program) if o.outcome is Outcome.RECORDED]
    assert len(recorded) == 2
    for o in recorded:
        assert not o.condition.holds(o.breaks)
        assert o.condition.holds(o.works)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "size n: 1..64\ndef f(xs: [2*n+1]f32) = xs |> split(2)",
            "2 divides 2.n . 1, and no sizes",
        ),
        ("size n: 5..7\ndef f(xs: [n]f32) = xs |> split(4)", "4 divides n, and no sizes"),
        ("size n: 1..2\ndef f(xs: [n]f32) = xs |> slide(3, 1)", "3 <= n\n  n: 1..2"),
        (
            "size n: 2..\ndef f(xs: [2*n]f32) = xs |> split(2) |> join |> slide(2*n + 1, 1)",
            "requires that 2.n . 1 <= 2.n",
        ),
    ],
)
def test_a_condition_that_no_sizes_satisfy_is_refused_at_once(text, message):
    with pytest.raises(TypeRefused, match=message) as refusal:
        lp.parse(text)
    assert "^^^" in str(refusal.value)


def test_conditions_that_exclude_each_other_are_named_together():
    with pytest.raises(TypeRefused) as refusal:
        lp.parse(
            "size n: 1..\ndef f(xs: [n]f32, ys: [n + 1]f32) = (xs |> split(2), ys |> split(2))"
        )
    assert "requires that 2 divides n + 1, and no sizes satisfy it" in str(refusal.value)
    assert "\n  together with 2 divides n\n" in str(refusal.value)


def test_user_functions_over_arrays_keep_their_conditions():
    program = lp.parse(
        "size n\nfun g(xs: [n]f32) = xs |> split(3)\ndef f(xs: [n]f32) = xs |> (x => g(x))"
    )
    assert "3 divides n" in judged(program)
    with pytest.raises(ConstraintRefused, match="3 does not divide 7"):
        lp.at_sizes(program, {"n": 7})
    assert lp.at_sizes(program, {"n": 6}).type.shape == (2, 3)


def test_a_size_written_as_a_quotient_has_a_divisor_and_is_exact():
    program = lp.parse("size m, n\ndef f(xs: [n /^ m]f32) = xs |> map(x => x + 1)")
    assert {"1 <= m", "m divides n"} <= judged(program).keys()
    with pytest.raises(
        ConstraintRefused, match="m = 0 is not possible: parameter xs requires that 1 <= m"
    ):
        lp.at_sizes(program, {"m": 0, "n": 4})


def test_every_condition_has_its_place():
    assert {a.asker for a in conditions(SUMS)} == {
        "parameter xs",
        "`split(m)` at line 3, column 32",
    }
    pads = lp.parse("size n\ndef f(xs: [n][n]f32) =\n  xs |> pad2d(1, 1, 1, 1, 0.0)")
    asked = {a.asker for a in conditions(pads)} - {"parameter xs"}
    at = "`pad2d(1, 1, 1, 1, 0.0)` at line 3, column 9"
    assert asked == {f"pad(1, 1, 0.0) in {at}"}


def test_places_are_no_part_of_a_program():
    elsewhere = lp.parse(f"# a line more\n{lp.show(DOT)}")
    assert elsewhere == DOT
    assert elsewhere.spans != DOT.spans
    assert hash(elsewhere) == hash(DOT)
