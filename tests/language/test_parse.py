"""Text in: what each sentence of the text form means."""

import cProfile
import math
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import LiftError, SyntaxRefused, TypeRefused, UnknownName
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.nat import nat, var
from liftpy.ir.program import Program
from liftpy.ir.types import BOOL, F32, F64, I32, I64, VectorType, array
from liftpy.ir.walk import DEPTH
from liftpy.language.embedded import lang
from liftpy.language.embedded.lang import (
    PRELUDE,
    add,
    add_int,
    array_type,
    as_scalar,
    as_vector,
    const,
    fun,
    get,
    join,
    let,
    map,
    map2d,
    map_glb,
    map_seq,
    map_vec,
    maximum,
    mul,
    neutral,
    pad,
    pad2d,
    program,
    reduce,
    reduce_seq,
    reduce_vec,
    reorder,
    slide,
    slide2d,
    split,
    to_global,
    transpose,
    unzip,
    zip,
)
from liftpy.language.embedded.operations import operate
from liftpy.language.text.program import parse, parse_expression, show, show_expr
from liftpy.language.text.text_errors import MOST_WORDS
from liftpy.workloads import Convolution, convolution
from liftpy.workloads.family import define

x, y, c = Param("x", F32), Param("y", F32), Param("c", BOOL)
i = Param("i", I32)
xs, ys = Param("xs", array(F32, 12)), Param("ys", array(F32, 12))
ints = Param("ints", array(I32, 12))
grid = Param("grid", array(F32, 6, 10))
lanes = Param("lanes", VectorType(F32, nat(4)))
pair = Param("pair", Tuple((xs, x)).type)
PARAMS = (x, y, c, i, xs, ys, ints, grid, lanes, pair)


def read(text: str) -> Expr:
    return parse_expression(text, PARAMS)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("x + y * x", x + y * x),
        ("x - y - x", (x - y) - x),
        ("x - (y - x)", x - (y - x)),
        ("-x * y", (-x) * y),
        ("-(x * y)", -(x * y)),
        ("x / y < x", (x / y) < x),
        ("x > y", y < x),
        ("x >= y", y <= x),
        ("x == y", operate("==", x, y)),
        ("min(x, max(y, abs(x)))", operate("min", x, operate("max", y, operate("abs", x)))),
        ("sqrt(x) + exp(y)", operate("sqrt", x) + operate("exp", y)),
        ("select(c, x, 1)", operate("select", c, x, 1.0)),
        ("x |> sqrt |> abs", operate("abs", operate("sqrt", x))),
        ("(x, (y, xs))", Tuple((x, Tuple((y, xs))))),
        ("pair.0", pair[0]),
        ("pair |> get(1)", pair[1]),
        ("((x, y), c).0.1", Tuple((Tuple((x, y)), c))[0][1]),
        ("add(x, 2)", add(x, Literal(2.0, F32))),
        ("let a = x + y in a * a", x + y >> let(lambda a: a * a)),
        ("x |> (a => a * a)", x >> let(lambda a: a * a)),
        ("(((x)))", x),
        ("x  # the variable\n + y", x + y),
    ],
)
def test_scalars(text, meaning):
    assert read(text) == meaning


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("1", Literal(1.0, F32)),
        ("1.5", Literal(1.5, F32)),
        ("1e-3", Literal(1e-3, F32)),
        ("-2.5", Literal(-2.5, F32)),
        ("2i32", Literal(2, I32)),
        ("-2i32", Literal(-2, I32)),
        ("1f64", Literal(1.0, F64)),
        ("0.1f64", Literal(0.1, F64)),
        ("2.0f32", Literal(2.0, F32)),
        ("true", Literal(True, BOOL)),
        ("false", Literal(False, BOOL)),
        ("-inf", Literal(-math.inf, F32)),
        ("inff64", Literal(math.inf, F64)),
    ],
)
def test_literals(text, literal):
    found = read(text)
    assert found == literal
    assert type(found.value) is type(literal.value)


def test_a_plain_number_takes_the_type_beside_it():
    assert read("i + 1") == operate("+", i, Literal(1, I32))
    assert read("1 - i") == operate("-", Literal(1, I32), i)
    assert read("select(c, 0, i)") == operate("select", c, Literal(0, I32), i)
    assert read("ints |> reduce(addInt, 0)") == ints >> reduce(add_int, 0)
    assert read("addInt(1, i)") == add_int(Literal(1, I32), i)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("xs |> map(a => a + 1)", xs >> map(lambda a: a + 1)),
        ("xs |> split(4) |> join", xs >> split(4) >> join()),
        ("xs |> split(4) |> join()", xs >> split(4) >> join()),
        ("xs |> split(2 + 2*1)", xs >> split(4)),
        ("xs |> split(4) |> map(reduce(add, 0))", xs >> split(4) >> map(reduce(add, 0))),
        ("grid |> map(slide(3, 1) |> transpose)", grid >> map(slide(3, 1) >> transpose())),
        ("grid |> map(map(sqrt))", grid >> map(map(lambda _: operate("sqrt", _)))),
        ("zip(xs, ys) |> map(mul)", zip(xs, ys) >> map(mul)),
        ("zip(xs, ys) |> map((a, b) => a - b)", zip(xs, ys) >> map(lambda a, b: a - b)),
        ("zip(xs, ys) |> map(p => p.0)", zip(xs, ys) >> map(lambda p: p[0])),
        ("zip(xs, ys) |> unzip |> get(1)", zip(xs, ys) >> unzip() >> get(1)),
        ("xs |> reduce((a, b) => a + b, x)", xs >> reduce(lambda a, b: a + b, x)),
        ("xs |> reduce(maximum, -inf)", xs >> reduce(maximum, -math.inf)),
        ("xs |> pad(1, -2, 0.5)", xs >> pad(1, -2, 0.5)),
        ("xs |> asVector(4) |> asScalar", xs >> as_vector(4) >> as_scalar()),
        ("lanes |> mapVec(a => a * a)", lanes >> map_vec(lambda a: a * a)),
        ("lanes |> reduceVec(add, 0)", lanes >> reduce_vec(add, 0)),
        ("xs |> mapGlb(0, a => a * a)", xs >> map_glb(0, lambda a: a * a)),
        ("grid |> mapGlb(1, mapSeq(a => a))", grid >> map_glb(1, map_seq(lambda a: a))),
        ("xs |> reduceSeq(add, 0) |> toGlobal", xs >> reduce_seq(add, 0) >> to_global),
        (
            "xs |> reorder(i => 5*i % 12, j => 5*j % 12)",
            xs >> reorder((5 * var("i")) % 12, (5 * var("i")) % 12),
        ),
        ("grid |> map2d(a => a + 1)", grid >> map2d(lambda a: a + 1)),
        ("grid |> pad2d(1, 0, 2, 3, 0.5)", grid >> pad2d(1, 0, 2, 3, 0.5)),
        ("grid |> slide2d(3, 2)", grid >> slide2d(3, 2)),
        ("zip(grid, grid) |> map(slide2d)", None),
    ],
)
def test_arrays(text, meaning):
    if meaning is None:
        with pytest.raises(SyntaxRefused):
            read(text)
    else:
        assert read(text) == meaning


def test_abbreviations_may_stand_in_sections():
    many = Param("many", array(F32, 2, 6, 10))
    text = "many |> map(pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1))"
    meaning = many >> map(pad2d(1, 1, 1, 1, 0.0) >> slide2d(3, 1))
    assert parse_expression(text, [many]) == meaning


def test_a_program_is_what_the_embedded_form_makes():
    @program
    def dot(xs: array_type(F32, 8), w: const(F32, 8)):
        return zip(xs, w) >> map(lambda a, b: a * b) >> reduce(add, 0)

    text = """
    def dot(xs: [8]f32, const w: [8]f32) =
      zip(xs, w) |> map((a, b) => a * b) |> reduce(add, 0)
    """
    assert parse(text) == dot


def test_user_functions_and_their_laws():
    p = parse(
        """
        fun twice(x: f32) = x + x
        fun mix(a: f32, b: f32) = twice(a) + b laws associative, commutative, neutral -1.5
        def f(xs: [4]f32) = xs |> map(twice) |> reduce(mix, 0)
        """
    )
    twice = fun("twice", {"x": F32}, lambda x: x + x)
    from_text = next(f for f in calls(p) if f.name == "mix")
    assert from_text.laws[2] == neutral(-1.5)
    assert from_text.body == operate("+", twice(Param("a", F32)), Param("b", F32))


def calls(p: Program):
    found = p.body.body.fun.f.body.fun
    return [found]


def test_a_text_may_define_a_function_of_the_prelude_anew():
    p = parse("fun add(x: f32, y: f32) = x - y def f(a: f32) = add(a, a)")
    assert p.body.body.fun != PRELUDE["add"]


def test_a_call_of_a_function_of_arrays_is_its_body() -> None:
    """An argument that is computed has a name, so that it is computed once."""
    text = """
        fun twice(xs: [8]f32, by: f32) = zip(xs, xs) |> map((a, b) => a * by + b)
        def p(ys: [8]f32, by: f32) = twice(twice(ys, 2), by)"""
    written = """
        def p(ys: [8]f32, by: f32) =
          let xs = (let by = 2 in zip(ys, ys) |> map((a, b) => a * by + b)) in
          zip(xs, xs) |> map((a, b) => a * by + b)"""
    ys = np.arange(8, dtype=np.float32)
    found, wanted = (lp.evaluate(parse(t), ys, np.float32(3)) for t in (text, written))
    assert found.tolist() == wanted.tolist() == (12 * ys).tolist()
    assert "fun" not in show(parse(text))
    assert show(parse(show(parse(text)))) == show(parse(text))


def test_arrays_inside_a_function_of_scalars_are_part_of_the_program_too() -> None:
    p = parse(
        "fun sum(x: f32) = iota(4) |> map(i => x * f32(i)) |> reduce(add, 0) def f(x: f32) = sum(x)"
    )
    assert lp.evaluate(p, np.float32(2)) == 12
    assert "fun" not in show(p)


def test_a_call_of_a_function_of_arrays_has_no_let_for_what_costs_nothing() -> None:
    """Numbers, variables and components: a `let` would hide the body from the forms of a map."""
    text = """
        fun dot(a: [4]f32, b: [4]f32, c: f32) = zip(a, b) |> map(mul) |> reduce(add, c)
        def p(xs: [6][4]f32, ys: [6][4]f32) = zip(xs, ys) |> map((a, b) => dot(a, b, 2))"""
    written = """
        def p(xs: [6][4]f32, ys: [6][4]f32) =
          zip(xs, ys) |> map((a, b) => zip(a, b) |> map(mul) |> reduce(add, 2))"""
    assert show(parse(text)) == show(parse(written))


def test_the_body_of_a_function_of_arrays_has_the_sizes_of_its_arguments() -> None:
    p = parse("""
        size n, m: 1..
        fun twice(x: [n]f32) = x |> map(e => e * 2) |> take(n)
        def p(xs: [m]f32) = twice(twice(xs) |> map(e => e + 1))""")
    assert lp.evaluate(p, np.arange(3, dtype=np.float32)).tolist() == [2, 6, 10]
    (m,) = p.body.body.type.lengths()
    assert m.names() == {"m"}


def test_a_function_of_arrays_can_be_made_in_python() -> None:
    twice = lp.fun("twice", {"xs": lp.array(lp.f32, 4)}, lambda xs: xs >> lp.map(lambda x: x + x))
    xs = np.arange(4, dtype=np.float32)
    p = define("p", lambda xs: twice(twice(xs)), xs=array(F32, 4))
    assert lp.evaluate(p, xs).tolist() == (4 * xs).tolist()
    assert "twice" not in show(p)


def test_calls_of_functions_of_arrays_in_python_share_nothing() -> None:
    """Neither variables, of which one would be bound inside its own value, nor operators."""
    n = var("n", 1)
    twice = lp.fun("twice", {"xs": array(F32, 4)}, lambda xs: xs >> lp.map(lambda x: x + x))
    p = define("p", lambda xs: twice(twice(twice(xs))), xs=array(F32, 4))
    xs = np.arange(4, dtype=np.float32)
    assert lp.evaluate(p, xs).tolist() == (8 * xs).tolist()
    total = lp.fun("total", {"xs": array(F32, n)}, lambda xs: xs >> lp.reduce(add, 0))
    q = define("q", lambda x: x >> lp.map(total) >> total, x=array(F32, 6, 5))
    assert show(q).count("reduce(add, 0)") == 2


def test_variables_of_a_call_are_not_those_of_its_arguments() -> None:
    p = parse("""
        fun sub(a: [4]f32, b: [4]f32) = zip(a, b) |> map((x, y) => x - y)
        def f(a: [4]f32, b: [4]f32) = sub(b |> map(t => t * 2), a |> map(t => t + 1))""")
    a, b = np.arange(4, dtype=np.float32), np.arange(7, 11, dtype=np.float32)
    assert lp.evaluate(p, a, b).tolist() == (2 * b - (a + 1)).tolist()
    assert show(parse(show(p))) == show(p)


@pytest.mark.parametrize(
    ("params", "args"),
    [
        ("xs: [n]f32, ys: [n]f32", "a, b"),
        ("xs: [2*n]f32", "a"),
        ("xs: [n][n]f32", "c"),
    ],
)
def test_a_size_of_a_function_has_one_value_in_a_call(params: str, args: str) -> None:
    text = f"size n: 1.. fun g({params}) = xs |> map(x => x) "
    with pytest.raises(TypeRefused, match=r"(?s)g cannot be applied.*whole length"):
        parse(f"{text} def f(a: [3]f32, b: [4]f32, c: [3][4]f32) = g({args})")


def test_a_size_of_a_function_may_have_the_name_of_one_of_its_caller() -> None:
    p = parse("size n: 1.. fun g(x: [n]f32) = x |> take(n) def p(xs: [2*n]f32) = g(xs)")
    assert lp.evaluate(p, np.arange(6, dtype=np.float32)).tolist() == [0, 1, 2, 3, 4, 5]


def test_a_length_out_of_the_range_of_a_size_of_a_function_is_refused() -> None:
    text = "size n: 1..63 size m: 1.. fun g(xs: [n]f32) = xs |> take(n % 64) "
    with pytest.raises(TypeRefused, match="in the range of the size"):
        parse(f"{text} def p(ys: [m]f32) = g(ys)")


@pytest.mark.parametrize(("steps", "limit"), [(12, "parts"), (1, "nested levels")])
def test_bodies_that_replace_calls_are_limited(steps: int, limit: str) -> None:
    each = "xs |> map(x => x + 1)" if steps > 1 else "xs" + " |> map(x => x + 1)" * 50
    text = f"fun f0(xs: [4]f32) = {each}\n"
    for k in range(1, 12):
        call = f"f{k - 1}(f{k - 1}(xs))" if steps > 1 else f"xs |> f{k - 1}" + each[2:]
        text += f"fun f{k}(xs: [4]f32) = {call}\n"
    with pytest.raises(TypeRefused, match=limit):
        parse(text + "def p(xs: [4]f32) = f11(xs)")


@pytest.mark.parametrize(
    "text",
    [
        "fun plus(x: [4]f32, y: [4]f32) = zip(x, y) |> map(add) laws associative",
        "fun same(x: f32) = x laws commutative",
    ],
)
def test_only_operations_on_one_type_without_arrays_have_laws(text: str) -> None:
    with pytest.raises(TypeRefused, match=r"cannot be .*\n.*\n.*uses no arrays"):
        parse(text + " def f(x: f32) = x")


def test_sizes_have_ranges():
    p = parse("size m, n: 1..64  size k: ..  size j: -3.. def f(x: [m*n][k][j]f32) = x |> split(m)")
    bounds = {
        v.name: v.bounds for t in p.params for length in t.type.lengths() for v in length.atoms()
    }
    assert bounds == {"m": (1, 64), "n": (1, 64), "k": (None, None), "j": (-3, None)}
    assert p.type == array(
        array(F32, var("k", None), var("j", -3)), var("n", 1, 64), var("m", 1, 64)
    )


def test_types():
    p = parse("def f(a: [2][3]f32, b: <4>f64, c: (i32, [2]bool), d: [4]<2>f32) = a")
    assert [str(q.type) for q in p.params] == ["[2][3]f32", "<4>f64", "(i32, [2]bool)", "[4]<2>f32"]


def test_the_nearest_binder_is_meant():
    assert read("grid |> map(x => x |> map(x => x))") == grid >> map(
        lambda x: x >> map(lambda x: x)
    )
    hidden = read("grid |> map(x => x |> map(x => ^x))").fun.f
    assert hidden.body.fun.f.body == hidden.params[0]


def test_parts_of_a_pair_are_not_captured():
    text = "zip(xs, ys) |> map((a, b) => zip(xs, ys) |> map(ab => a * ab.0) |> reduce(add, 0))"
    outer = read(text).fun.f
    inner = outer.body.args[1].fun.f
    assert outer.params[0].name == "ab1"
    assert inner.free == {outer.params[0]}


def test_the_convolution_is_read_in_few_steps():
    """Twenty thousand calls take 3 ms; counted, since a busy machine takes longer for them."""
    text = show(convolution(Convolution(128, 112, 112, 256, (3, 3), (1, 1), (1, 1, 1, 1))))
    parse(text)
    profile = cProfile.Profile()
    profile.runcall(parse, text)
    assert sum(entry.callcount for entry in profile.getstats()) < 40_000


def steps(text: str) -> int:
    """How many functions are called to read a text, or to refuse it."""
    profile = cProfile.Profile()
    with suppress(LiftError):
        profile.runcall(parse, text)
    return sum(entry.callcount for entry in profile.getstats())


HEAD = "def f(x: [8]f32) = "
LONG = {
    "stages": lambda n: HEAD + "x" + " |> map(x => x)" * n,
    "parentheses": lambda n: HEAD + "(" * n + "x" + ")" * n,
    "parentheses that stay open": lambda n: HEAD + "(" * n,
    "a sum": lambda n: HEAD + "x |> map(x => x" + " + x" * n + ")",
    "signs": lambda n: HEAD + "-" * n + "x",
    "negations": lambda n: HEAD + "not " * n + "x",
    "functions of functions": lambda n: HEAD + "y => " * n + "x",
    "calls in calls": lambda n: HEAD + "f(" * n + "x" + ")" * n,
    "components": lambda n: HEAD + "x" + ".0" * n,
    "a type": lambda n: "def f(x: " + "[2]" * n + "f32) = x",
    "a size": lambda n: "size m\ndef f(x: [m" + " + m" * n + "]f32) = x",
    "lets in lets": lambda n: HEAD + "".join(f"let a{k} = x in " for k in range(n)) + "x",
    "a name": lambda n: HEAD + "x" * n,
    "a quoted name": lambda n: HEAD + "`" + "x" * n + "`",
    "a number": lambda n: HEAD + "x |> map(x => x + " + "1" * n + ")",
    "an exponent": lambda n: HEAD + "x |> map(x => x + 1e" + "1" * n + ")",
    "a length": lambda n: "def f(x: [" + "1" * n + "]f32) = x",
    "a comment": lambda n: "#" * n + "\n" + HEAD + "x",
    "comments": lambda n: "# -\n" * n + HEAD + "x",
    "words at a wrong place": lambda n: HEAD + "x " * n,
    "an error at the end": lambda n: HEAD + "(" + "x, " * n + "& x)",
    "an unknown name at the end": lambda n: HEAD + "(" + "x, " * n + "y)",
    "a tuple": lambda n: HEAD + "(" + "x, " * n + "x)",
    "a tuple type": lambda n: "def f(x: (" + "f32, " * n + "f32)) = x",
    "a let": lambda n: HEAD + "let " + ", ".join(f"a{k} = x" for k in range(n)) + " in x",
    "functions": lambda n: "".join(f"fun g{k}(a: f32) = a\n" for k in range(n)) + HEAD + "x",
    "parameters": lambda n: "def f(" + ", ".join(f"a{k}: f32" for k in range(n)) + ") = a0",
    "sizes": lambda n: "size " + ", ".join(f"a{k}" for k in range(n)) + "\n" + HEAD + "x",
    "laws": lambda n: "fun g(a: f32) = a laws " + "neutral 0, " * n + "neutral 1\n" + HEAD + "x",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", LONG)
def test_a_text_twice_as_long_is_read_in_twice_the_steps(what):
    """Function calls are counted; a loop in C over all that came before would not be seen."""
    of = LONG[what]
    steps(of(1))
    once, twice = steps(of(100)), steps(of(200))
    assert twice < 2.2 * once + 500
    assert twice < 500 * len(of(200))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", LONG)
def test_a_text_of_any_length_is_refused_at_its_beginning(what):
    """Only the words are counted, at the speed of a regular expression, and at most so many."""
    steps(LONG[what](1))  # the grammar is read once
    text = LONG[what](300_000)
    assert steps(text) < 12 * MOST_WORDS


def test_a_text_may_be_nested_as_deep_as_is_said_and_no_deeper():
    fits = [n for n in range(100, 130) if not refused(HEAD + "(" * n + "x" + ")" * n)]
    assert 100 < fits[-1] < DEPTH
    assert fits == list(range(100, fits[-1] + 1))


def refused(text: str) -> bool:
    with suppress(SyntaxRefused):
        parse(text)
        return False
    with pytest.raises(SyntaxRefused, match="nested more than 120 levels deep"):
        parse(text)
    return True


LANGUAGE = Path(__file__).parents[2] / "docs" / "language.md"
BLOCKS = re.findall(r"```lift\n(.*?)```", LANGUAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", BLOCKS)
def test_the_examples_of_the_documentation_are_programs(text):
    p = parse(text)
    assert parse(show(p)) == p


def test_an_expression_may_mention_sizes():
    v = Param("v", array(F32, var("n")))
    expr = parse_expression("v |> split(m)", [v], sizes=["m", "n"])
    assert show_expr(expr) == "v |> split(m)"


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("zzz", UnknownName, "known here"),
        ("xs |> splt(3)", UnknownName, "did you mean `split`"),
        ("xs |> split(5)", TypeRefused, "sizes that work: 1, 2, 3, 4, 6, 12"),
        ("x // y", SyntaxRefused, "divide values by `/`"),
        ("xs |> split(4/2)", SyntaxRefused, "`//`"),
        ("xs |> split(4//0)", SyntaxRefused, "divide by 1 or more"),
        ("xs |> zip(ys)", SyntaxRefused, "`zip\\(xs, ys, ...\\)`"),
        ("join(grid)", SyntaxRefused, "xs |> join"),
        ("split(xs, 3)", SyntaxRefused, "xs |> split\\(size\\)"),
        ("x + i", TypeRefused, "2i32"),
        ("xs + xs", TypeRefused, "each element"),
        ("1.5i32", TypeRefused, "whole number"),
        ("xs |> map(a => a, 3)", SyntaxRefused, "xs |> map\\(f\\)"),
        ("xs |> reduce(split(4), 0)", TypeRefused, "a section takes one"),
        ("xs |> 3", SyntaxRefused, "not a function"),
        ("xs |> map(3)", SyntaxRefused, "a function is needed"),
        ("x => x", SyntaxRefused, "a value is needed here"),
        ("(x: f32, y)", SyntaxRefused, "a type is written after a parameter"),
        ("xs |> map((3, a) => a)", SyntaxRefused, "only names"),
        ("xs |> reduce((a, a) => a, 0)", SyntaxRefused, "bound twice"),
        ("xs |> map(x => ^^x)", UnknownName, r"\^\^ skips 2 bindings"),
        ("x |> (x => ^x)", SyntaxRefused, "have the same type"),
        ("xs |> map(add(x))", TypeRefused, "as a pipeline step, `add` gets 2"),
        ("xs |> map(min)", SyntaxRefused, "min\\(a, b\\)"),
        ("xs |> pad(1, 1, x)", SyntaxRefused, "number is needed"),
        ("xs |> mapGlb(0.5, x => x)", SyntaxRefused, "whole number"),
        ("xs |> reorder(3, 4)", SyntaxRefused, "index function"),
        ("xs |> map(_ => ys |> map(reduce(add, _)))", SyntaxRefused, "cannot be used in a section"),
        ("grid |> map(reduce(add, _))", SyntaxRefused, "cannot be used in a section"),
        ("pair.2", TypeRefused, "at least 3 components"),
        ("sqrt(x, y)", SyntaxRefused, "takes 1 argument"),
        ("map2d(xs)", SyntaxRefused, "is a pipeline step"),
        ("grid |> slide2d(3)", SyntaxRefused, "slide2d\\(window, step\\)"),
    ],
)
def test_refusals(text, kind, says):
    with pytest.raises(kind, match=says) as refusal:
        read(text)
    assert "^" in str(refusal.value)


def test_the_binder_of_a_lambda_is_the_formal_one():
    assert isinstance(read("xs |> map(q => q)").fun.f, Lambda)


# --- initial values of folds ----------------------------------------------------------------------


def start_of(text):
    program = parse(text)
    assert parse(show(program)) == program
    return program.body.body.args[0]


@pytest.mark.parametrize(
    ("start", "meant"),
    [
        ("reduce((s, t) => s + t.0, 0)", "0i32"),
        ("reduce((s, t) => s + t.1 * f64(t.0), 0)", "0f64"),
        ("reduce((s, t) => (s.0 + t.0, s.1 + t.1), 0)", "(0i32, 0f64)"),
        ("reduce((s, t) => (s.0 + t.0, s.1 + t.1), -3)", "(-3i32, -3f64)"),
        ("reduce((s, t) => (s.0 + t.0, s.1 + t.1), (0, 1.5))", "(0i32, 1.5f64)"),
        ("reduce((s, t) => (s.0 + f32(t.0), s.1 + t.1), (0f32, 0))", "(0, 0f64)"),
        ("reduce((s, t) => s + f32(t.1), 0f32)", "0"),
    ],
)
def test_a_number_begins_a_fold_in_the_type_that_its_function_gives(start, meant):
    assert show_expr(start_of(f"def p(ts: [5](i32, f64)) = ts |> {start}")) == meant


def test_two_numbers_begin_a_fold_of_scalars_as_two():
    extremes = "reduce((s, x) => (min(s.0, x), max(s.1, x)), (9, -9))"
    start = start_of(f"def p(xs: [5]i64) = xs |> {extremes}")
    assert show_expr(start) == "(9i64, -9i64)"


def test_a_number_over_pairs_of_floats_is_one_float_where_that_fits():
    text = "def p(xs: [5]f32) = zip(xs, xs) |> reduce((s, t) => s + t.0 * t.1, 0)"
    assert start_of(text) == Literal(0.0, F32)
    assert "0)" in show(parse(text))


# --- let ------------------------------------------------------------------------------------------


def test_a_value_of_let_may_use_the_names_before_it():
    first = parse("def p(x: f32) = let a = x + 1, b = a * a, c = a - b in c * x")
    again = parse("def p(x: f32) = let a = x + 1 in let b = a * a in let c = a - b in c * x")
    assert first == again
    assert parse(show(first)) == first


def test_values_of_let_that_use_no_name_before_them_are_bound_together():
    body = parse("def p(x: f32) = let a = x + 1, b = x * 2 in a - b").body.body
    assert len(body.fun.params) == 2
    mixed = parse("def p(x: f32) = let a = x, b = x * 2, c = a + b, d = x - 1 in c * d")
    assert parse(show(mixed)) == mixed


def test_a_caret_in_let_looks_past_the_names_before_it():
    program = parse("def p(x: [4]f32) = let x = 3, y = ^x |> map(z => z * x) in y")
    assert parse(show(program)) == program


# --- sequences: the text form and the embedded form -----------------------------------------------


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("xs |> scan(add, 0)", lambda xs: xs >> lang.scan(add, 0)),
        ("xs |> scanSeq(add, 0)", lambda xs: xs >> lang.scan_seq(add, 0)),
        ("xs |> iterate(3, map(x => x * 2))", lambda xs: xs >> lang.iterate(3, doubled)),
        ("xs |> iterateSeq(3, map(x => x * 2))", lambda xs: xs >> lang.iterate_seq(3, doubled)),
        ("xs |> mapSeqUnroll(x => x * 2)", lambda xs: xs >> lang.map_seq_unroll(lambda x: x * 2)),
        (
            "xs |> slideSeq(3, 2, w => w |> reduce(add, 0))",
            lambda xs: xs >> lang.slide_seq(3, 2, lambda w: w >> lang.reduce(add, 0)),
        ),
        (
            "xs |> iterate(2, split(2) |> map(reduce(add, 0)))",
            lambda xs: xs >> lang.iterate(2, lang.split(2) >> lang.map(lang.reduce(add, 0))),
        ),
        ("xs |> map(x => i64(x) % 3)", lambda xs: xs >> lang.map(lambda x: convert64(x) % 3)),
        (
            "xs |> map(x => x < 2 and not x == 0 or x != 5)",
            lambda xs: xs >> lang.map(lambda x: (x < 2) & ~lang.equal(x, 0) | lang.unequal(x, 5)),
        ),
        (
            (
                "xs |> map(x => pow(x, 2) + log(x) - sin(x) * cos(x) / tanh(x)"
                " + max(floor(x), ceil(x)))"
            ),
            lambda xs: (
                xs
                >> lang.map(
                    lambda x: (
                        lang.power(x, 2)
                        + lang.log(x)
                        - lang.sin(x) * lang.cos(x) / lang.tanh(x)
                        + lang.larger(lang.floor(x), lang.ceil(x))
                    )
                )
            ),
        ),
        (
            "zip(xs, xs) |> reduce((s, t) => (s.0 + t.0, s.1 - t.1), (1, 2))",
            lambda xs: (
                lang.zip(xs, xs) >> lang.reduce(lambda s, t: (s[0] + t[0], s[1] - t[1]), (1, 2))
            ),
        ),
        (
            "zip(xs, xs) |> reduce((s, t) => (s.0 + t.0, s.1 - t.1), 3)",
            lambda xs: lang.zip(xs, xs) >> lang.reduce(lambda s, t: (s[0] + t[0], s[1] - t[1]), 3),
        ),
    ],
)
def test_both_forms_of_a_word_make_one_program(text, made):
    xs = Param("xs", array(F32, 16))
    program = Program("f", Lambda((xs,), made(xs)))
    read = parse(f"def f(xs: [16]f32) = {text}")
    assert read == program
    assert parse(show(read)) == read


doubled = lang.map(lambda x: x * 2)


def convert64(x):
    return lang.convert(x, I64)


def test_a_function_that_changes_the_type_is_written_out():
    program = parse("def p(xs: [16]i32) = xs |> iterate(3, split(2) |> map(reduce(addInt, 0)))")
    assert str(program.type) == "[2]i32"
    assert show(program).count("split(2)") == 3
    assert parse(show(program)) == program
