"""A number that is written without a type takes it from where it goes, in both forms."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from liftpy.language.text.program import parse, show

#: The program, and the same with every type written.
TEXTS = {
    "xs |> map(x => select(x == b, 1, 0)) |> reduce(addInt, 0)": "xs |> map(x => select(x == b, "
    "1i32, 0i32)) |> reduce(addInt, 0i32)",
    "xs |> map(x => select(x == b, 1, 0) + x)": "xs |> map(x => select(x == b, 1i32, 0i32) + x)",
    "let k = select(1 < 2, 1, 2) in xs |> map(x => x * k)": "let k = select(1 < 2, 1i32, 2i32) in "
    "xs |> map(x => x * k)",
    "xs |> map(x => g(select(x == 3, 1, 0)))": "xs |> map(x => g(select(x == 3i32, 1i64, 0i64)))",
    "concat(full(3, 0), xs)": "concat(0i32 |> repeat(3), xs)",
    "xs |> map(x => (1, x)) |> map(p => p.0 + p.1)": "xs |> map(x => (1i32, x)) |> "
    "map(p => p.0 + p.1)",
    "let k: i32 = 2 in xs |> map(x => x * k)": "let k = 2i32 in xs |> map(x => x * k)",
    "1 |> (k => xs |> map(x => x * k))": "let k = 1i32 in xs |> map(x => x * k)",
    "xs |> map(x => select(x == b, 1, 0)) |> scan((a, c) => a + c, b)": "xs |> map(x => select("
    "x == b, 1i32, 0i32)) |> scan((a, c) => a + c, b)",
    "xs |> map(x => add(select(x == b, 1, 0), x))": "xs |> map(x => addInt(select(x == b, 1i32, "
    "0i32), x))",
    "ys |> map(y => y * select(y < 0, 1, 2))": "ys |> map(y => y * select(y < 0f64, 1f64, 2f64))",
    "ys |> map(y => select(y < 0, 0.5, 2))": "ys |> map(y => select(y < 0f64, 0.5, 2))",
    "full(3, 2)": "2f32 |> repeat(3)",
    "xs |> map(x => select(x == b, 1f32, 0))": "xs |> map(x => select(x == b, 1f32, 0f32))",
}


def program(body):
    head = "fun g(x: i64) = x + 1 def f(xs: [4]i32, b: i32, ys: [4]f64) = "
    return parse(head + body)


@pytest.mark.parametrize("text", TEXTS)
def test_a_number_takes_the_type_of_where_it_goes(text):
    found = program(text)
    assert found == program(TEXTS[text])
    assert parse(show(found)) == found


@pytest.mark.parametrize(
    "text",
    [
        "xs |> map(x => select(x == b, 1, 0))",
        "let k = xs |> map(x => select(x == b and x < 3, 1, 0)) in k",
    ],
)
def test_where_an_f32_would_be_a_guess_the_number_is_pointed_at(text):
    with pytest.raises(
        TypeRefused, match=r"(?s)the type of `1` is ambiguous: i32 or f32.*\^\n.*`1i32` or `1f32`"
    ):
        program(text)


def test_a_number_that_its_type_lacks_is_pointed_at():
    with pytest.raises(TypeRefused, match=r"(?s)`0.5` is not an i32.*\^\^\^\n"):
        program("xs |> map(x => x * select(x == b, 0.5, 1))")


def test_parts_keep_their_places():
    """Also those that are made anew when a type is known."""
    found = program("xs |> map(x => select(x == b, 1, 0)) |> split(2) |> map(reduce(addInt, 0))")
    calls = {found.spans.source.snippet(p) for p in found.spans.calls.values()}
    assert {"select(x == b, 1, 0)", "split(2)", "reduce(addInt, 0)"} <= calls


XS = np.int32([3, 1, 3, 2])


def test_the_embedded_form_infers_them_too():
    @lp.program
    def counted(xs: lp.array(lp.i32, 4)):
        return (
            xs
            >> lp.map(lambda x: lp.select(x == 3, 1, 0))
            >> lp.reduce(lp.fun("total", {"x": lp.i32, "y": lp.i32}, lambda x, y: x + y), 0)
        )

    assert counted(XS) == 2


def test_a_declared_result_says_the_type():
    @lp.program
    def marked(xs: lp.array(lp.i32, 4)) -> lp.array(lp.i32, 4):
        return xs >> lp.map(lambda x: lp.select(x == 3, 1, 0))

    assert marked(XS).dtype == np.int32
    assert lp.parse(lp.show(marked)) == marked


def test_a_shared_number_has_one_type():
    @lp.program
    def f(xs: lp.array(lp.i64, 4)):
        def one(x):
            flag = lp.select(x == 3, 1, 0)
            return flag * flag + x

        return xs >> lp.map(one)

    assert f(XS.astype(np.int64)).tolist() == [4, 1, 4, 2]
    assert lp.show(f).count("select") == 1


@pytest.mark.parametrize("t", [lp.f32, lp.f64, lp.i32, lp.i64])
def test_a_function_may_give_a_number(t):
    @lp.program
    def f(xs: lp.array(t, 4)):
        return xs >> lp.map(lambda x: (x, 1)) >> lp.reduce(lambda a, p: a + p[0] * p[1], 0)

    assert str(f.type) == str(t)
