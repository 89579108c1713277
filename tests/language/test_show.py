"""Text out, and text back in: `parse(show(p)) == p`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from liftpy.errors import TypeRefused
from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, Law, UserFun
from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.operators import LOGICAL, OPERATORS
from liftpy.ir.primitive import Get, ScalarOp
from liftpy.ir.program import Program
from liftpy.ir.types import (
    BOOL,
    F16,
    F32,
    F64,
    I32,
    INTEGERS,
    SCALARS,
    STORAGE,
    Type,
    TypeVar,
    array,
    integer_range,
)
from liftpy.language.embedded.lang import PRELUDE, add_int, fun, neutral, section
from liftpy.language.embedded.operations import operate
from liftpy.language.printing.show import show as show_plain
from liftpy.language.printing.spelling import show_nat, show_number
from liftpy.language.text.parse import parse_expr
from liftpy.language.text.program import parse, parse_expression, show, show_expr
from liftpy.language.text.size_elaborator import SizeElaborator
from liftpy.primitives import PRIMITIVES, Join, Map, Pad, Reduce, Slide, Split, Transpose, Zip
from liftpy.source.spans import Source
from liftpy.workloads import Convolution, convolution
from tests.primitives.examples import example, xs
from tests.programs import programs

add, mul = PRELUDE["add"], PRELUDE["mul"]

CONV = Convolution(128, 112, 112, 256, (3, 3), (1, 1), (1, 1, 1, 1))


def program(body: Expr, *params: Param) -> Program:
    return Program("f", Lambda(params, body))


def back(p: Program) -> None:
    text = show(p)
    again = parse(text)
    assert again == p, text
    assert again.body.body.type == p.body.body.type
    assert show(again) == text


@given(programs())
def test_every_program_reads_back(p):
    back(p)


@given(programs(lowered=True))
def test_every_lowered_program_reads_back(p):
    back(p)


@given(programs(lowered=True))
def test_a_line_without_end_reads_back(p):
    assert "\n" not in show_expr(p.body.body)
    text = (
        show(p).split("def ")[0]
        + "def f("
        + ", ".join(f"{q.name}: {q.type}" for q in p.params)
        + ") = "
        + show_expr(p.body.body)
    )
    assert parse(text).body == p.body


def test_the_convolution_reads_back(golden):
    p = convolution(CONV)
    back(p)
    golden(show(p), "lift")


# --- every primitive ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRIMITIVES)
def test_every_primitive_reads_back(name):
    expr = example(PRIMITIVES[name])
    back(program(expr, *sorted(expr.free, key=lambda p: p.name)))


def test_every_operator_reads_back():
    c, d, x, y = Param("c", BOOL), Param("d", BOOL), Param("x", F32), Param("y", F32)
    m, n = Param("m", I32), Param("n", I32)
    given_ = {1: (x,), 2: (x, y), 3: (c, x, y)}
    logical = {1: (c,), 2: (c, d)}
    for op, record in OPERATORS.items():
        args = (logical if op in LOGICAL else given_)[record.arity]
        if record.operands == "integers":
            args = (m, n)[: record.arity]
        if op in SCALARS and (base := STORAGE.get(SCALARS[op])) is not None:
            args = (FunCall(ScalarOp(base.name), args),)
        back(program(FunCall(ScalarOp(op), args), c, d, x, y, m, n))


@pytest.mark.parametrize("outer", ["and", "or", "not", "==", "!="])
@pytest.mark.parametrize("inner", ["and", "or", "not"])
def test_logical_operators_nest_in_every_way(outer, inner):
    x, y = Param("x", BOOL), Param("y", BOOL)
    part = operate(inner, x) if inner == "not" else operate(inner, x, y)
    whole = (
        [operate(outer, part)]
        if outer == "not"
        else [operate(outer, part, y), operate(outer, y, part), operate(outer, part, part)]
    )
    for expr in whole:
        back(program(expr, x, y))


@pytest.mark.parametrize("outer", ["+", "-", "*", "/", "%", "<", "neg", "min", "f64"])
@pytest.mark.parametrize("inner", ["+", "-", "*", "/", "%", "neg", "max", "f32"])
def test_operators_nest_in_every_way(outer, inner):
    x, y = Param("x", F32), Param("y", F32)
    unary = {"neg", "f32", "f64"}
    part = operate(inner, x) if inner in unary else operate(inner, x, y)
    whole = (
        [operate(outer, part)]
        if outer in unary
        else [operate(outer, part, y), operate(outer, y, part), operate(outer, part, part)]
    )
    for expr in whole:
        back(program(expr, x, y))


# --- literals -----------------------------------------------------------------------------------


FINITE = {F16: 16, F32: 32, F64: 64}


@given(
    st.sampled_from(list(FINITE)).flatmap(
        lambda t: st.tuples(st.floats(allow_nan=False, width=FINITE[t]), st.just(t))
    )
)
def test_floats_read_back_exactly(pair):
    value, t = pair
    expr = parse_expression(show_number(value, t))
    assert expr == Literal(value, t)
    assert math.copysign(1, expr.value) == math.copysign(1, value)


@given(
    st.sampled_from(INTEGERS).flatmap(
        lambda t: st.tuples(st.integers(*integer_range(t)), st.just(t))
    )
)
def test_integers_read_back_exactly(pair):
    value, t = pair
    expr = parse_expression(show_number(value, t))
    assert expr == Literal(value, t)
    assert type(expr.value) is int


def test_nan_reads_back():
    expr = parse_expression(show_number(math.nan, F64))
    assert isinstance(expr, Literal)
    assert math.isnan(expr.value)
    assert expr.type == F64


def test_a_negated_literal_is_not_a_negative_literal():
    x = Param("x", F32)
    for inner in (Literal(1.5, F32), Literal(-1.5, F32)):
        back(program(operate("-", operate("neg", inner), operate("*", inner, x)), x))
        back(program(operate("neg", operate("neg", inner)), x))


def test_an_initial_value_of_another_type_keeps_it():
    ints = Param("ints", array(I32, 7))
    acc, x = Param("acc", F32), Param("x", I32)
    step = Lambda((acc, x), operate("select", operate("<", x, Literal(2, I32)), acc, acc * 2))
    p = program(call(Reduce(step), Literal(0.0, F32), ints), ints)
    assert "0f32" in show(p)
    back(p)
    back(
        program(
            call(Reduce(Lambda(add_int.params, add_int(*add_int.params))), Literal(0, I32), ints),
            ints,
        )
    )


# --- names --------------------------------------------------------------------------------------


def test_a_hidden_variable_has_a_caret():
    outer, inner = Param("x", array(F32, 5)), Param("x", F32)
    body = call(Reduce(Lambda(add.params, add(*add.params))), inner, outer)
    expr = call(Map(Lambda((inner,), body)), outer)
    assert show_expr(call(Lambda((outer,), expr), xs_of(5))) == (
        "let x = xs in x |> map(x => ^x |> reduce(add, x))"
    )
    back(program(call(Lambda((outer,), expr), xs_of(5)), xs_of(5)))


def xs_of(length: int) -> Param:
    return Param("xs", array(F32, length))


def test_names_that_are_words_have_quotes():
    odd = fun("map", {"const": F32}, lambda x: x + 1)
    strange = fun("in", {"a b": F32}, odd)
    x = Param("join", array(F32, 5))
    let = Param("let", F32)
    p = program(call(Map(Lambda((let,), strange(let) + odd(let))), x), x)
    back(p)
    assert "`map`(`let`)" in show(p)


def test_size_is_a_name_like_any_other():
    size = Param("size", array(F32, var("size")))
    p = program(call(Split(var("size")), size), size)
    assert "size size\ndef f(size: [size]f32)" in show(p)
    back(p)


def test_a_variable_may_have_the_name_of_a_primitive():
    join = Param("join", array(F32, 3, 4))
    assert show_expr(call(Join(), join)) == "join |> join"
    back(program(call(Join(), join), join))


def test_two_functions_of_one_name_cannot_be_one_text():
    other = fun("add", {"x": F32, "y": F32}, lambda x, y: x - y)
    x = Param("x", F32)
    with pytest.raises(TypeRefused, match="two different user functions named add"):
        show(program(add(x, other(x, x)), x))


def test_a_function_that_is_not_the_prelude_s_is_defined():
    other = fun(
        "add", {"x": F32, "y": F32}, lambda x, y: x - y, (neutral(-math.inf), Law("associative"))
    )
    x = Param("x", F32)
    back(program(other(x, x), x))


def test_functions_are_defined_before_they_are_used():
    inner = fun("inner", {"t": F32}, lambda t: t * t)
    outer = fun("outer", {"t": F32}, lambda t: inner(t) + 1)
    x = Param("x", F32)
    text = show(program(outer(x), x))
    assert text.index("fun inner") < text.index("fun outer")
    back(program(outer(x), x))


def test_without_a_prelude_every_function_is_defined():
    x = Param("x", F32)
    p = program(add(x, mul(x, x)), x)
    assert show_plain(p).count("fun ") == 2
    assert parse(show_plain(p)) == p


# --- sections and functions ---------------------------------------------------------------------


def test_a_section_is_printed_as_one():
    f = section(lambda x: call(Transpose(), call(Slide(nat(3), nat(1)), x)), (array(F32, 5, 4),))
    x = Param("x", array(F32, 2, 5, 4))
    p = program(call(Map(f), x), x)
    assert "map(slide(3, 1) |> transpose)" in show(p)
    back(p)


def test_a_pipeline_that_mentions_its_parameter_again_is_no_section():
    _ = Param("_", array(F32, 5))
    acc, y = Param("acc", F32), Param("y", F32)
    inner = call(
        Reduce(Lambda((acc, y), acc + y)),
        call(Reduce(Lambda((acc, y), acc)), Literal(0.0, F32), _),
        _,
    )
    x = Param("x", array(F32, 2, 5))
    p = program(call(Map(Lambda((_,), inner)), x), x)
    assert "_ =>" in show(p)
    back(p)


def test_nested_sections_do_not_confuse_their_parameters():
    outer = Param("_", array(F32, 3, 5))
    inner = Param("_", array(F32, 5))
    step = Lambda(add.params, add(*add.params))
    hidden = call(Reduce(step), Literal(0.0, F32), call(Join(), outer))
    body = call(Map(Lambda((inner,), call(Reduce(step), hidden, inner))), outer)
    x = Param("x", array(F32, 2, 3, 5))
    p = program(call(Map(Lambda((outer,), body)), x), x)
    back(p)
    assert "^_" in show(p)


def test_a_section_may_hold_functions_of_another_underscore():
    row, x = Param("_", array(F32, 2)), Param("_", F32)
    negated = call(Map(Lambda((x,), operate("neg", x))), row)
    inner = Lambda((row,), call(Split(nat(1)), negated))
    y = Param("_", array(F32, 3, 2))
    body = Tuple((call(Map(inner), y), y))
    xs = Param("xs", array(F32, 2, 3, 2))
    p = program(call(Map(Lambda((y,), body)), xs), xs)
    assert "map(map(_ => -_) |> split(1))" in show(p)
    back(p)


def test_a_user_function_is_printed_by_name_only_where_reading_gives_it_back():
    pairs = Param("ps", call(Zip(), xs, xs).type)
    pair, other = Param("_", pairs.type.element), Param("p", pairs.type.element)
    back(program(call(Map(Lambda((pair,), mul(*pair))), pairs), pairs))
    back(program(call(Map(Lambda((other,), mul(*other))), pairs), pairs))
    back(program(call(Map(Lambda((pair,), mul(pair[1], pair[0]))), pairs), pairs))
    u, x, y = Param("u", F32), Param("x", F32), Param("y", F32)
    for params in ((u, x), (x, y), (y, x)):
        f = Lambda(params, add(*params))
        back(program(call(Reduce(f), Literal(0.0, F32), xs), xs))
        g = Lambda(params, add(*reversed(params)))
        back(program(call(Reduce(g), Literal(0.0, F32), xs), xs))


def test_tuples_are_not_arguments():
    one = fun("first", {"p": Tuple((xs, xs)).type}, lambda p: p[0])
    two = fun("second", {"a": xs.type, "b": xs.type}, lambda a, b: b)
    back(program(one(Tuple((xs, two(xs, xs)))), xs))


def test_let_of_several_names_reads_back():
    a, b = Param("a", F32), Param("b", F32)
    x, y = Param("x", F32), Param("y", F32)
    swap = FunCall(
        Lambda((x, y), x - y), (FunCall(Lambda((b,), b), (b,)), FunCall(Lambda((x,), x), (a,)))
    )
    back(program(operate("+", swap, swap), a, b))
    back(program(FunCall(Lambda((x,), Tuple((x, swap))), (swap,))[1], a, b))


def test_components_and_stages():
    p = Param("p", Tuple((Tuple((xs, xs)), xs)).type)
    assert show_expr(call(Split(nat(3)), p[0][1])) == "p.0.1 |> split(3)"
    deep = call(Get(0), call(PRIMITIVES["unzip"](), call(Zip(), xs, xs)))
    assert show_expr(call(Join(), call(Split(nat(3)), deep))) == (
        "zip(xs, xs) |> unzip |> get(0) |> split(3) |> join"
    )
    back(program(Tuple((p[0][1], deep)), p, xs))


# --- sizes --------------------------------------------------------------------------------------

m, n, k = var("m", 1, 64), var("n"), var("k", None, 9)


@st.composite
def naturals(draw, depth: int = 3) -> Nat:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from((m, n, k, nat(1), nat(3), nat(-2), nat(12))))
    a, b = draw(naturals(depth=depth - 1)), draw(naturals(depth=depth - 1))
    op = draw(st.sampled_from("+-*/%^"))
    if op in "/%^" and (b.bounds[0] or 0) < 1:
        op = "*"
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "/": lambda: a // b,
        "%": lambda: a % b,
        "^": lambda: a.exact_div(b),
    }[op]()


def read_nat(text: str) -> Nat:
    known = {"m": m, "n": n, "k": k}
    source = Source(text)
    return SizeElaborator(source, known).nat(parse_expr(source))


@given(naturals())
def test_sizes_read_back(size):
    assert read_nat(show_nat(size)) == size, show_nat(size)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        ((3 * n) % 7, "3*n % 7"),
        (2 * (n // 5) + 1, "2*(n // 5) + 1"),
        (n.exact_div(m), "n/^m"),
        (n.exact_div(m * m) * 3, "3*n/^(m*m)"),
        (-n - 2, "-n - 2"),
        ((n + 1) // (2 * m), "(n + 1) // (2*m)"),
    ],
)
def test_sizes_are_written_as_in_python(size, text):
    assert show_nat(size) == text


def test_symbolic_sizes_are_declared_with_their_ranges():
    x = Param("x", array(F32, m * n))
    inner = Param("row", array(F32, m))
    body = call(Map(Lambda((inner,), call(Pad(nat(-1), k, math.inf), inner))), call(Split(m), x))
    p = program(body, x)
    text = show(p)
    assert text.splitlines()[:3] == ["size k: ..9", "size m: 1..64", "size n"]
    back(p)


def test_a_parameter_whose_size_is_spelt_otherwise_keeps_its_type():
    x = Param("x", array(F32, n, m))
    row = Param("row", array(F32, k))
    p = program(FunCall(Map(Lambda((row,), call(Join(), call(Split(nat(1)), row)))), (x,)), x)
    assert "(row: [k]f32) =>" in show(p)
    back(p)
    back(
        program(
            FunCall(Lambda((row,), row), (Param("y", array(F32, m)),)), Param("y", array(F32, m))
        )
    )


# --- layout -------------------------------------------------------------------------------------


def test_long_pipelines_have_a_line_for_each_stage(golden):
    golden(show_expr(convolution(CONV).body.body, width=60) + "\n", "lift")


def test_no_line_is_longer_than_asked():
    for width in (50, 70, 100):
        text = show_expr(convolution(CONV).body.body, width=width)
        assert max(map(len, text.splitlines())) <= width


def test_rules_can_be_shown():
    t = TypeVar("T")
    x, z = Param("x", t), Param("xs", array(t, n))
    f = FunVar("f", (t,), t)
    assert show_expr(call(Map(Lambda((x,), FunCall(f, (x,)))), z)) == "xs |> map(x => f(x))"


def test_types_of_user_functions_may_be_tuples():
    t: Type = Tuple(
        (Literal(0.0, F32), Literal(1, I32), Literal(True, BOOL), Literal(0.0, F64))
    ).type
    first = UserFun("first", (Param("p", t),), Param("p", t)[0])
    p = Param("p", t)
    back(program(first(p), p))


@pytest.mark.parametrize(
    "over",
    ["(bool, i64)", "((f32, f32), f32)", "(i64, f32)", "i32", "bool", "f32", "(f32, f32, f32)"],
)
@pytest.mark.parametrize("init", ["(0f32, 3f32)", "(0f32, 3i64)", "(k, -3f32)"])
def test_an_initial_tuple_reads_back_in_its_own_types(over, init):
    """Whatever types its numbers would have without being asked for."""
    p = parse(f"def p(ps: [3]{over}, k: f32) = ps |> reduce((s, t) => (s.0, s.1), {init})")
    assert [str(t) for t in p.type.elements] == ["f32", "i64" if "i64" in init else "f32"]
    assert parse(show(p)) == p


@pytest.mark.parametrize(
    "body",
    [
        "zip(a, b) |> map((a, b) => a * b)",
        "zip(a, b) |> map((x, y) => x * y)",
        "zip(a, b) |> map(xy => xy.0 * xy.1)",
        "zip(a, zip(a, b)) |> map((x, yz) => x * yz.0 * yz.1)",
        "zip(a, b) |> map((x, y) => let p = x * y in p + y)",
        "zip(a, b) |> map((x, y) => zip(a, b) |> map((p, q) => p + q) |> reduce(add, x * y))",
    ],
)
def test_a_tuple_prints_as_it_was_taken_apart(body):
    p = parse(f"def p(a: [8]f32, b: [8]f32) =\n  {body}\n")
    assert " ".join(show(p).split()) == f"def p(a: [8]f32, b: [8]f32) = {body}"
    assert parse(show(p)) == p
    assert "(x, y)" not in show(p, canonical=True)
    assert parse(show(p, canonical=True)) == p


def test_names_that_mean_something_else_are_not_printed_for_components():
    """Each would read back as another program."""
    inner = "zip(a, b) |> map((x, y) => x + y) |> reduce(add, x)"
    for body in (
        f"zip(a, b) |> map((x, y) => {inner})",
        "zip(a, b) |> map((x, y) => x) |> map(xy => xy)",
    ):
        p = parse(f"def p(a: [8]f32, b: [8]f32) = {body}")
        assert parse(show(p)) == p
    p = parse("def p(a: [8]f32, b: [8]f32) = zip(a, b) |> map((x, y) => x * y)")
    (pair,) = p.body.body.fun.function.params
    whole = Lambda((pair,), pair)
    kept = Program("p", Lambda(p.params, call(Map(whole), p.body.body.args[0])))
    assert "xy => xy" in show(kept)
    assert parse(show(kept)) == kept
