"""What a Python variable names is computed once: the `let`s that a traced function gets."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda
from liftpy.ir.operators import OPERATORS
from liftpy.ir.walk import top_down
from liftpy.language.text.program import parse

N = 12
XS = lp.array(lp.f32, N)


def text(program):
    return " ".join(lp.show(program).split())


def same(program, expected):
    """Whether a program is a text's, up to the names of what is bound."""
    assert " ".join(lp.show(parse(expected)).split()) == text(program)


def test_softmax_is_its_form_with_lets():
    @lp.program
    def softmax(xs: XS):
        m = xs >> lp.reduce(lp.maximum, -1e30)
        e = xs >> lp.map(lambda x: lp.exp(x - m))
        s = e >> lp.reduce(lp.add, 0)
        return e >> lp.map(lambda x: x / s)

    natural = softmax

    @lp.program
    def softmax(xs: XS):
        def shifted(m):
            def divided(e):
                total = e >> lp.reduce(lp.add, 0)
                return lp.let(total, lambda s: e >> lp.map(lambda x: x / s))

            return xs >> lp.map(lambda x: lp.exp(x - m)) >> lp.let(divided)

        return xs >> lp.reduce(lp.maximum, -1e30) >> lp.let(shifted)

    assert natural == softmax
    assert sum(isinstance(e, FunCall) and isinstance(e.fun, Lambda) for _, e in lets(natural)) == 3


def lets(program):
    return top_down(program.body.body)


def test_a_chain_of_doublings_stays_as_long_as_it_is_written():
    @lp.program
    def doubled(xs: XS):
        def one(x):
            for _ in range(60):
                x = x + x
            return x

        return xs >> lp.map(one)

    assert sum(1 for _ in lets(doubled)) < 60 * 5
    assert lp.parse(lp.show(doubled)) == doubled


def test_a_chain_of_shared_arrays_stays_as_long_as_it_is_written():
    @lp.program
    def doubled(xs: XS):
        for _ in range(60):
            xs = lp.zip(xs, xs) >> lp.map(lp.add)
        return xs

    assert sum(1 for _ in lets(doubled)) < 60 * 12
    assert lp.parse(lp.show(doubled)) == doubled


def test_variables_numbers_and_views_are_written_where_they_are_used():
    @lp.program
    def f(xs: XS):
        rows, two = xs >> lp.split(4), 2
        return lp.zip(rows, rows) >> lp.map(lambda a, b: lp.zip(a, b) >> lp.map(lp.mul)), two

    assert "let" not in text(f)


def test_what_is_computed_outside_a_function_is_bound_outside():
    """Also where it is used once: the function runs for each element."""

    @lp.program
    def f(xs: XS):
        total = xs >> lp.reduce(lp.add, 0)
        return xs >> lp.map(lambda x: x / total)

    same(f, "def f(xs: [12]f32) = let total = xs |> reduce(add, 0) in xs |> map(x => x / total)")


def test_what_is_written_inside_a_function_stays_there():
    @lp.program
    def f(xs: XS):
        return xs >> lp.map(lambda x: x / (xs >> lp.reduce(lp.add, 0)))

    assert "let" not in text(f)


def test_what_hangs_on_a_parameter_is_bound_in_its_function():
    @lp.program
    def f(xs: XS):
        def one(x):
            y = lp.exp(x)
            return y * y

        return xs >> lp.map(one)

    same(f, "def f(xs: [12]f32) = xs |> map(x => let v = exp(x) in v * v)")


def test_two_functions_share_what_both_use():
    @lp.program
    def f(xs: XS):
        a = xs >> lp.map(lp.exp)
        return lp.zip(a >> lp.map(lambda x: x + 1), a >> lp.map(lambda x: x * 3))

    same(
        f,
        "def f(xs: [12]f32) = let a = xs |> map(x => exp(x)) in "
        "zip(a |> map(x => x + 1), a |> map(x => x * 3))",
    )


def test_a_user_function_shares_too():
    def squared(x):
        power = lp.exp(x)
        return power * power

    g = lp.fun("g", {"x": lp.f32}, squared)

    @lp.program
    def f(xs: XS):
        return xs >> lp.map(g)

    same(f, "fun g(x: f32) = let v = exp(x) in v * v def f(xs: [12]f32) = xs |> map(g)")


def test_equal_names_of_nested_functions_are_told_apart():
    @lp.program
    def f(xs: XS, ys: XS):
        def outer(x):
            kept = x
            return ys >> lp.map(lambda x: x - kept)

        return xs >> lp.map(outer)

    same(f, "def f(xs: [12]f32, ys: [12]f32) = xs |> map(x => ys |> map(x1 => x1 - x))")
    x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
    np.testing.assert_array_equal(f(x, y), y - x[:, None])


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -2, 0.5, 1.5, float("inf")])
def test_powers_are_those_of_numpy(exponent):
    @lp.program
    def f(xs: XS):
        return xs >> lp.map(lambda x: x**exponent)

    xs = np.linspace(0.5, 2, N, dtype=np.float32)
    np.testing.assert_allclose(f(xs), xs**exponent, rtol=1e-5)


@pytest.mark.parametrize(
    "index",
    [0, 3, -1, slice(2, 5), slice(None, -2), slice(1, None, 3), slice(-4, 99), slice(None)],
    ids=str,
)
def test_an_index_is_that_of_numpy(index):
    @lp.program
    def f(xs: XS):
        return xs[index]

    @lp.program
    def g(rows: lp.array(lp.i32, N, 2)):
        return rows[index]

    xs, rows = np.arange(N, dtype=np.float32), np.arange(2 * N, dtype=np.int32).reshape(N, 2)
    np.testing.assert_array_equal(f(xs), xs[index])
    np.testing.assert_array_equal(g(rows), rows[index])


def test_an_element_may_be_a_tuple_or_a_truth_value():
    @lp.program
    def f(xs: XS, ns: lp.array(lp.i32, N)):
        pair = lp.zip(xs, ns)[2]
        flag = (xs >> lp.map(lambda x: x > 1))[-1]
        return pair[0], pair[-1], flag

    x, n, flag = f(np.arange(N, dtype=np.float32), np.arange(N, dtype=np.int32))
    assert (x, n, flag) == (2, 2, True)


UNARY = [
    *(
        getattr(np, o.numpy)
        for o in OPERATORS.values()
        if o.operands == "floats" and o.arity == 1
        if o.numpy
    ),
    np.abs,
    np.square,
]
BINARY = [
    np.arctan2,
    np.maximum,
    np.minimum,
    np.power,
    np.add,
    np.subtract,
    np.multiply,
    np.divide,
    np.fmod,
]


@pytest.mark.parametrize("f", UNARY + BINARY + [np.less, np.greater_equal, np.not_equal], ids=str)
def test_functions_of_numpy_are_the_language_s(f):
    arrays = [np.linspace(0.5, 2, N, dtype=np.float32), np.linspace(2, 1, N, dtype=np.float32)]
    used = arrays[: f.nin]

    @lp.program
    def by_name(xs: XS, ys: XS):
        return lp.zip(xs, ys) >> lp.map(lambda x, y: f(*(x, y)[: f.nin]))

    with np.errstate(invalid="ignore", divide="ignore"):
        np.testing.assert_allclose(by_name(*arrays), f(*used), rtol=1e-5)


def test_other_functions_of_numpy_and_python():
    @lp.program
    def f(xs: XS):
        def one(x):
            kept = np.where(x == 3, -1, np.clip(abs(x - np.float64(2)), 1, 4))
            return kept + (+x) ** 2 // 2 + round(x / 4)

        return xs >> lp.map(one)

    xs = np.arange(N, dtype=np.float32)
    expected = np.where(xs == 3, -1, np.clip(abs(xs - 2), 1, 4)) + xs**2 // 2 + np.rint(xs / 4)
    np.testing.assert_array_equal(f(xs), expected)


@pytest.mark.parametrize(
    "write",
    [
        lambda xs: lp.let(xs >> lp.map(lp.exp), lambda e: lp.zip(e, e)),
        lambda xs: lp.let(lambda e: lp.zip(e, e), xs >> lp.map(lp.exp)),
        lambda xs: xs >> lp.map(lp.exp) >> lp.let(lambda e: lp.zip(e, e)),
    ],
)
def test_let_as_one_guesses(write):
    @lp.program
    def f(xs: XS):
        return write(xs)

    same(f, "def f(xs: [12]f32) = let e = xs |> map(x => exp(x)) in zip(e, e)")


@pytest.mark.parametrize("t", ["f16", "f32", "f64", "i8", "i32", "i64"])
@pytest.mark.parametrize("word", ["add", "mul", "maximum", "minimum"])
def test_functions_for_folds_are_there_for_every_type(t, word):
    start = 1 if word == "mul" else 0

    @lp.program
    def f(xs: lp.array(getattr(lp, t), 4)):
        return xs >> lp.reduce(getattr(lp, word), start)

    assert str(f.type) == t
    assert lp.parse(lp.show(f)) == f
    assert lp.parse(f"def f(xs: [4]{t}) = xs |> reduce({word}, {start})") == f


def test_a_word_without_arguments_needs_no_parentheses():
    @lp.program
    def f(xs: XS):
        return (
            xs
            >> lp.split(3)
            >> lp.transpose
            >> lp.split(1)
            >> lp.map(lp.join >> lp.map(lp.exp))
            >> lp.join
        )

    same(
        f,
        "def f(xs: [12]f32) = xs |> split(3) |> transpose |> split(1) |> "
        "map(join |> map(x => exp(x))) |> join",
    )
