"""`lp.gradient` as a function of programs: bindings, results, names, and what it applies to."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.gradient.data_index import BY_INDEX
from liftpy.gradient.folds import FOLDS
from liftpy.ir.primitive import Layout, Primitive
from liftpy.language.text.program import parse, show
from liftpy.primitives import PRIMITIVES, Generate, Map
from tests.gradient.differences import agrees_with_differences, gradient_of

SEVEN = np.array([0.75, -1.25, 2.5, 0.375, -0.625, 1.5, -2.0])
THREE = np.array([-1.5, 0.25, 2.0])

FUNCTIONS = """
fun wave(x: f32, y: f32) = sin(x) * y + x
fun twice(x: f32) = wave(x, wave(x, 2))
"""
#: Programs of xs: [7]f32, ys: [3]f32, a: f32.
PROGRAMS = {
    "let": "let b = a * a in xs |> map(x => x * b)",
    "let of a let": "let b = (let c = sin(a) in c * c + a) in let d = b * a in b * d - a",
    "let that hides": "let b = a * a in (let b = sin(b) in b * 3) + b",
    "let of a tuple": "let t = (a * 2, ys |> map(sin)) in t.1 |> map(y => y * t.0)",
    "let that is not used": "let b = a * a in a * 3",
    "let in a map": "xs |> map(x => let b = x * a in b * b)",
    "user function": "xs |> map(x => wave(x, a))",
    "user function in another": "xs |> map(twice)",
    "captured by two maps": "xs |> map(x => ys |> map(y => x * y * a))",
    "captured in a fold": "xs |> map(x => ys |> reduce((s, y) => s * x + y * a, a))",
    "array that is captured": "xs |> map(x => ys |> map(y => y * x) |> reduce(add, 0))",
    "the same array twice": "zip(xs, xs |> gather(7, i => 6 - i)) |> map((x, y) => x * y)",
    "map of a map": "xs |> map(sin) |> map(x => x * x)",
    "rows": "xs |> slide(3, 2) |> map(w => w |> map(x => x * x) |> reduce(add, a))",
    "generate": "generate(5, i => f32(i) * a) |> map(g => g * g)",
    "generate with an array": "generate(5, i => f32(i) * (xs |> reduce(add, 0)))",
    "integers beside": "zip(xs, iota(7)) |> map((x, k) => x * f32(k + 2) * a)",
    "integers of pairs with names": (
        "zip(xs, iota(7)) |> map(p => let q = p in q.0 * f32(let k = q.1 in k + 2) * a)"
    ),
    "integers of pairs of a map": "zip(xs, iota(7)) |> map((x, k) => x * f32((x, k).1 + 2) * a)",
    "integer state beside": "zip(xs, iota(7)) |> reduce((s, p) => s * p.0 + f32(p.1), a)",
    "f64": "xs |> map(x => f64(x) * f64(a)) |> reduce(add, 0)",
    "tuple": "(xs |> map(x => x * a), ys, a * a)",
    "nested tuple": "((a, ys |> map(y => y * y)), zip(xs, xs |> map(sin)))",
    "with an integer": "(xs |> map(x => x * x), iota(3))",
    "a parameter": "xs",
    "pairs": "zip(xs, xs |> map(x => x * a)) |> map((x, y) => (y, x * y))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gradient_is_that_of_differences(name: str) -> None:
    text = f"{FUNCTIONS}\ndef p(xs: [7]f32, ys: [3]f32, a: f32) = {PROGRAMS[name]}"
    program = parse(text)
    used = [p.name for p in program.params if p in program.body.body.free]
    agrees_with_differences(program, [SEVEN, THREE, np.float64(1.25)], used)
    made = lp.gradient(program)
    assert parse(show(made)) == made


def test_an_input_that_is_not_used_has_the_gradient_0() -> None:
    text = "def p(xs: [3]f32, pair: (f32, [2][5]f32)) = xs |> reduce(mul, 1)"
    pair = 1.0, np.ones((2, 5))
    of_xs, (one, other) = gradient_of(text, np.float64([2, 3, 5]), pair)
    np.testing.assert_array_equal(of_xs, [15, 10, 6])
    assert one == 0
    np.testing.assert_array_equal(other, np.zeros((2, 5)))


def test_a_program_in_python_has_a_gradient() -> None:
    @lp.program
    def loss(xs: lp.array(lp.f64, 3), a: lp.f64):
        return xs >> lp.map(lambda x: lp.exp(x * a)) >> lp.reduce(lp.add, 0)

    xs = np.array([0.5, 0.25, -1.5])
    of_xs, of_a = lp.gradient(loss)(xs, 2.0)
    np.testing.assert_allclose(of_xs, 2 * np.exp(2 * xs))
    np.testing.assert_allclose(of_a, (xs * np.exp(2 * xs)).sum())


# --- results and parameters -----------------------------------------------------------------------

PAIR = "def p(xs: [3]f32, a: f32) = (xs |> map(x => x * a), a * a)"


def signature(program: lp.Program) -> str:
    """The parameters of a program and its result, as types."""
    params = ", ".join(f"{p.name}: {p.type}" for p in program.params)
    return f"{program.name}({params}) -> {program.type}"


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("def p(x: f32) = x * x", {}, "p_gradient(x: f32) -> f32"),
        ("def p(x: f64) = x * x", {"value": True}, "p_gradient(x: f64) -> (f64, f64)"),
        ("def p(x: f32, y: f32) = x * y", {}, "p_gradient(x: f32, y: f32) -> (f32, f32)"),
        ("def p(x: f32, y: f32) = x * y", {"wrt": "y"}, "p_gradient(x: f32, y: f32) -> f32"),
        (
            "def p(x: f32, y: [2]f32) = y |> map(v => v * x)",
            {"wrt": ["y", "x", "y"]},
            "p_gradient(x: f32, y: [2]f32, dresult: [2]f32) -> ([2]f32, f32, [2]f32)",
        ),
        (
            "def p(x: f32, n: i32) = x * 2",
            {},
            "p_gradient(x: f32, n: i32) -> f32",
        ),
        (
            PAIR,
            {},
            "p_gradient(xs: [3]f32, a: f32, dresult_0: [3]f32, dresult_1: f32) -> ([3]f32, f32)",
        ),
        (PAIR, {"of": 0}, "p_gradient(xs: [3]f32, a: f32, dresult: [3]f32) -> ([3]f32, f32)"),
        (PAIR, {"of": 1, "wrt": "a"}, "p_gradient(xs: [3]f32, a: f32) -> f32"),
        (
            PAIR,
            {"of": 1, "wrt": ["a"], "value": True},
            "p_gradient(xs: [3]f32, a: f32) -> (([3]f32, f32), f32)",
        ),
        (
            "def p(x: f32, dresult: [2]f32) = dresult |> map(d => d * x)",
            {},
            "p_gradient(x: f32, dresult: [2]f32, dresult1: [2]f32) -> (f32, [2]f32)",
        ),
        (
            "size n: 1..64\ndef p(xs: [n]f32) = xs |> map(x => x * x)",
            {},
            "p_gradient(xs: [n]f32, dresult: [n]f32) -> [n]f32",
        ),
    ],
)
def test_parameters_and_results_are_those_asked_for(text, options, expected) -> None:
    assert signature(lp.gradient(parse(text), **options)) == expected


def test_the_value_comes_first() -> None:
    value, of_x, of_y = gradient_of("def p(x: f32, y: f32) = x * y + x", 3.0, 5.0, value=True)
    assert (value, of_x, of_y) == (18, 6, 3)


@pytest.mark.parametrize(("of", "expected"), [(0, ([2, 4, 6], 17)), (1, ([0, 0, 0], 4))])
def test_a_component_is_differentiated_alone(of: int, expected) -> None:
    ct = [np.float64([1, 2, 3])] if of == 0 else []
    of_xs, of_a = gradient_of(PAIR, np.float64([2, 3, 3]), 2.0, *ct, of=of)
    np.testing.assert_array_equal(of_xs, expected[0])
    assert of_a == expected[1]


def test_a_parameter_with_the_name_of_the_cotangent_is_kept_apart() -> None:
    text = "def p(x: f32, dresult: [2]f32) = dresult |> map(d => d * x)"
    of_x, of_d = gradient_of(text, 3.0, np.float64([5, 7]), np.float64([11, 13]))
    assert of_x == 5 * 11 + 7 * 13
    np.testing.assert_array_equal(of_d, [33, 39])


def test_constants_stay_constants() -> None:
    program = parse("def p(x: [3]f32, const w: [3]f32) = zip(x, w) |> map(mul)")
    assert lp.gradient(program).constants == program.constants


# --- gradients of gradients -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def p(x: f64) = x * x * x * x", lambda x: 12 * x**2),
        ("def p(x: f64) = exp(x * 2)", lambda x: 4 * np.exp(2 * x)),
        ("def p(x: f64) = tanh(x)", lambda x: -2 * np.tanh(x) * (1 - np.tanh(x) ** 2)),
        ("def p(x: f64) = x |> iterate(3, v => v * x)", lambda x: 12 * x**2),
        ("def p(x: f64) = 1 / sqrt(x)", lambda x: 0.75 * x**-2.5),
    ],
)
def test_the_gradient_of_a_gradient_is_the_second_derivative(text, expected) -> None:
    second = lp.gradient(lp.gradient(parse(text)))
    found = lp.evaluate(second, 0.625)
    np.testing.assert_allclose(found, expected(0.625), rtol=1e-12)


def test_a_gradient_of_a_gradient_of_arrays_is_that_of_differences() -> None:
    """A product of the matrix of second derivatives and a vector."""
    text = "def p(xs: [7]f32, a: f32) = xs |> map(x => sin(x * a)) |> reduce(mul, 1)"
    first = lp.gradient(parse(text))
    agrees_with_differences(first, [SEVEN, np.float64(0.875)])


# --- every primitive ------------------------------------------------------------------------------


def has_adjoint(layout: type[Layout]) -> bool:
    """Whether a layout says what its adjoint is."""
    own = ("adjoint", "inverse", "equivalent")
    base = {name: getattr(Layout, name, None) for name in own}
    defined = any(getattr(layout, name) is not base[name] for name in own)
    return bool(layout.adjoint_by_definition) or defined


#: What a gradient passes through by a case of its own.
BY_CASE = {Map, Generate, *FOLDS, *BY_INDEX}

#: Words of programs whose loops or memories are chosen, and of vectors.
LOWERED = {f"liftpy.primitives.{room}" for room in ("lowered", "parallel", "vector")}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_has_an_adjoint_or_a_case_or_is_lowered(name: str) -> None:
    cls: type[Primitive] = PRIMITIVES[name]
    ways = [
        issubclass(cls, Layout) and has_adjoint(cls),
        cls in BY_CASE,
        not issubclass(cls, Layout) and cls.__module__ in LOWERED,
    ]
    assert sum(ways) == 1, ways
