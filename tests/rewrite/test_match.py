"""What the matcher binds keeps its own variables, and what it cannot find is a failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import pytest

from liftpy.ir.call import FunCall, call
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.function import FunVar, Lambda, UserFun
from liftpy.ir.nat import nat
from liftpy.ir.primitive import Get, Primitive, function_of, nat_fields
from liftpy.ir.program import Program
from liftpy.ir.types import F32, I32, ArrayType
from liftpy.ir.walk import Path, bound_names, children, constant_fields, with_child
from liftpy.language.embedded.lang import add
from liftpy.language.embedded.operations import operate
from liftpy.language.text.program import parse
from liftpy.primitives import Map, Reduce
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.correlation import EACH
from liftpy.rewrite.strategy import Failure, Strategy, Success, at_path, outermost, rule
from liftpy.semantics.evaluate import evaluate
from tests.rewrite.fixtures import DEFINITIONS as SQUARE
from tests.rewrite.fixtures import sections
from tests.rewrite.test_rules_fire import flat, values_of

PARAMS = "xs: [5]f32, ys: [5]f32, zs: [3]f32, xss: [5][3]f32, ks: [2]i32"

#: Rules whose templates have projections, on programs in which `f(t.0, ...)` meets a binder in `f`.
CAPTURES: list[tuple[str, str]] = [
    ("map_zip_first", "zip(xs, ys) |> map(t => zs |> map(x => sub(t.0, x)))"),
    ("map_zip_second", "zip(xs, ys) |> map(t => zs |> map(x => add(t.1, x)))"),
    ("map_fission_zip", "xs |> map(x => zs |> map(t => sub(t, sub(x, square(x)))))"),
    ("map_fission_both", "xs |> map(x => zs |> map(t => sub(t, sub(twice(x), square(x)))))"),
    (
        "map_fission_both_second",
        "zip(xs, ys) |> map(p => zs |> map(t => sub(sub(t, p.0), sub(twice(p.1), square(p.1)))))",
    ),
    ("map_fission_first", "zip(xs, ys) |> map(p => zs |> map(t => sub(t, sub(p.1, square(p.0)))))"),
    (
        "map_fission_second",
        "zip(xs, ys) |> map(p => zs |> map(t => sub(t, sub(p.0, square(p.1)))))",
    ),
    (
        "map_reduce_interchange",
        """xss |> map(row => row |> reduce((a, x) =>
            zs |> map(t => sub(t, x)) |> reduce((x, t) => sub(x, t), a), 5))""",
    ),
    (
        "zip_of_joins",
        "xs |> map(p => zip(xss |> join, xss |> map(map(q => sub(q, p))) |> join) |> map(sub))",
    ),
    (
        "split_of_zip",
        "xss |> map(p => zip(p, zs |> map(q => sub(q, p |> reduce(sub, q)))) |> split(3))",
    ),
    (
        "zip_of_map_first",
        "zip(xs |> map(t => zs |> map(x => sub(x, t)) |> reduce(sub, t)), ys) |> map(sub)",
    ),
    (
        "zip_of_map_second",
        "zip(xs, ys |> map(t => zs |> map(x => sub(x, t)) |> reduce(sub, t))) |> map(sub)",
    ),
    (
        "maps_reduce_interchange",
        """xss |> map(row => xss |> map(step => zip(row, step) |> reduce((t, p) =>
            zs |> map(row => sub(row, p.0)) |> reduce(sub, sub(t, p.1)), 5)))""",
    ),
    (
        "maps_reduce_interchange",
        """xss |> map(row => xss |> map(step => zip(row, step) |> reduce((row, t) =>
            zs |> map(step => sub(step, t.1)) |> reduce((step, t) => sub(t, step),
              sub(row, t.0)), 5)))""",
    ),
    (
        "map_map_interchange",
        "xss |> map(x => x |> map(t => zs |> map(column => sub(column, t)) |> reduce(sub, t)))",
    ),
    (
        "transpose_of_maps_of_zip",
        """zip(xss, ys) |> map(column => column.0 |> map(t =>
            zs |> map(x => sub(x, column.1)) |> reduce(sub, t))) |> transpose""",
    ),
    (
        "reduce_map_interchange",
        """xss |> reduce((a, row) => zip(a, row) |> map(t =>
            ks |> map(x => select(x < 1, t.1, t.0)) |> reduce(sub, t.0)), zs)""",
    ),
    (
        "reduce_pair",
        """(xs |> reduce((x, t) => zs |> map(a => sub(a, t)) |> reduce(sub, x), 5),
            ys |> reduce((t, a) => zs |> map(x => sub(x, a)) |> reduce(sub, t), 1))""",
    ),
    (
        "reduce_first",
        """(xs |> reduce((a, x) => (zs |> map(x1 => sub(x1, x)) |> reduce(sub, a.0), a.1),
            (5, 1))).0""",
    ),
    (
        "reduce_second",
        """(xs |> reduce((a, x) => (a.0, zs |> map(x1 => sub(x1, x)) |> reduce(sub, a.1)),
            (5, 1))).1""",
    ),
    (
        "reduce_online",
        """let p = xs |> reduce((n, p) => zs |> map(a => sub(a, p)) |> reduce(maximum, n), 5) in
            let n = xs |> reduce((a, n) =>
              a + exp(n - p) * (zs |> map(x => sub(x, n)) |> reduce(maximum, n)), 0)
            in zs |> map(a => sub(a, p) * n)""",
    ),
    (
        "reduce_online_of_rows",
        """let ps = xss |> map(p => p |> reduce((n, s) => maximum(n, s), 5))
              |> reduce((p, ps) => maximum(p, ps), 5) in
            let n = xss |> map(n => n |> reduce((p, m) =>
                p + exp(m - ps) * (zs |> map(n => sub(n, m)) |> reduce(maximum, m)), 0))
              |> reduce((p, n) => p + n, 0)
            in zs |> map(p => sub(p, ps) * n)""",
    ),
    (
        "map_of_let",
        """xs |> map(x => let v = zs |> map(t => sub(t, x)) in
            v |> reduce((vs, t) => sub(vs, sub(t, x)), x))""",
    ),
    (
        "map_of_zip_of_three",
        """zip(xs, ys, xs) |> map(t =>
            zs |> map(x => sub(sub(t.0, x), sub(t.1, t.2))) |> reduce(sub, t.0))""",
    ),
    (
        "maps_of_zip_of_transpose",
        """xss |> transpose |> map(column => zip(column, ys) |> map(t =>
            zs |> map(x => sub(x, t.1)) |> reduce(sub, t.0)))""",
    ),
    (
        "maps_of_zips_interchange",
        """xss |> map(xs => xss |> map(ys => zip(xs, ys) |> map(p =>
            zs |> map(a => sub(a, p.1)) |> reduce((a, b) => sub(a, sub(b, p.0)), p.0))))""",
    ),
    (
        "reduce_fission_first",
        """zip(xs, ys) |> reduce((a, t) =>
            zs |> map(x => sub(x, square(t.0))) |> reduce(sub, sub(a, t.1)), 1)""",
    ),
    (
        "reduce_fission_second",
        """zip(xs, ys) |> reduce((a, t) =>
            zs |> map(x => sub(x, square(t.1))) |> reduce(sub, sub(a, t.0)), 1)""",
    ),
    (
        "overlaps_of_maps",
        """xs |> map(d => zs |> map(w =>
            d * (zs |> map(t => sub(t, w)) |> reduce(sub, d)))) |> overlaps(7, 1, 0)""",
    ),
    # every binder is named `x`, but for accumulators; of two in each other the types differ
    ("map_zip_first", "zip(xs, ys) |> map(x => zs |> map(x => sub(^x.0, x)))"),
    ("map_zip_second", "zip(xs, ys) |> map(x => zs |> map(x => sub(^x.1, x)))"),
    (
        "map_fission_zip",
        "xs |> map(x => ks |> map(x => select(x < 1, sub(^x, square(^x)), ^x)))",
    ),
    (
        "map_fission_both",
        """xs |> map(x => ks |> map(x =>
            select(x < 1, sub(twice(^x), square(^x)), twice(^x))))""",
    ),
    (
        "map_fission_both_second",
        """zip(xs, ys) |> map(x => ks |> map(x =>
            select(x < 1, sub(twice(^x.1), square(^x.1)), ^x.0)))""",
    ),
    (
        "map_fission_first",
        "zip(xs, ys) |> map(x => ks |> map(x => select(x < 1, sub(^x.1, square(^x.0)), ^x.1)))",
    ),
    (
        "map_fission_second",
        "zip(xs, ys) |> map(x => ks |> map(x => select(x < 1, sub(^x.0, square(^x.1)), ^x.0)))",
    ),
    (
        "map_reduce_interchange",
        """xss |> map(x => x |> reduce((a, x) =>
            ks |> map(x => select(x < 1, ^x, a)) |> reduce(sub, a), 5))""",
    ),
    (
        "zip_of_joins",
        """ks |> map(x => zip(xss |> map(map(x => select(^x < 1, x, square(x)))) |> join,
            xss |> join) |> map(x => sub(x.0, x.1)))""",
    ),
    (
        "split_of_zip",
        """ks |> map(x => zip(xs |> map(x => select(^x < 1, x, square(x))), ys) |> split(5)
            |> map(map(x => sub(x.0, x.1))))""",
    ),
    (
        "zip_of_map_first",
        """zip(xs |> map(x => ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)), ys)
            |> map(sub)""",
    ),
    (
        "zip_of_map_second",
        """zip(xs, ys |> map(x => ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)))
            |> map(sub)""",
    ),
    (
        "map_map_interchange",
        "xss |> map(x => x |> map(x => ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)))",
    ),
    (
        "transpose_of_maps_of_zip",
        """zip(xss, ys) |> map(x => x.0 |> map(x =>
            ks |> map(x => select(x < 1, ^^x.1, ^x)) |> reduce(sub, x))) |> transpose""",
    ),
    (
        "reduce_map_interchange",
        """xss |> reduce((a, x) => zip(a, x) |> map(x =>
            ks |> map(x => select(x < 1, ^x.0, ^x.1)) |> reduce(sub, x.0)), zs)""",
    ),
    (
        "reduce_pair",
        """(xs |> reduce((a, x) => ks |> map(x => select(x < 1, ^x, a)) |> reduce(sub, a), 5),
            ys |> reduce((a, x) => ks |> map(x => select(x < 1, a, ^x)) |> reduce(sub, a), 1))""",
    ),
    (
        "reduce_first",
        """(xs |> reduce((a, x) =>
            (ks |> map(x => select(x < 1, ^x, a.0)) |> reduce(sub, a.0), a.1), (5, 1))).0""",
    ),
    (
        "reduce_second",
        """(xs |> reduce((a, x) =>
            (a.0, ks |> map(x => select(x < 1, ^x, a.1)) |> reduce(sub, a.1)), (5, 1))).1""",
    ),
    (
        "reduce_online",
        """let a = xs
              |> reduce((a, x) => ks |> map(x => select(x < 1, ^x, a)) |> reduce(sub, a), 5) in
            let s = xs |> reduce((s, x) =>
              s + exp(x - a) * (ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)), 0)
            in ks |> map(x => select(x < 1, s, a))""",
    ),
    (
        "reduce_online_of_rows",
        """let a = xss |> map(x => x |> reduce((a, x) => maximum(a, x), 5))
              |> reduce((a, x) => ks |> map(x => select(x < 1, ^x, a)) |> reduce(sub, a), 5) in
            let s = xss |> map(x => x |> reduce((s, x) =>
                s + exp(x - a) * (ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)), 0))
              |> reduce((s, x) => ks |> map(x => select(x < 1, ^x, s)) |> reduce(sub, s), 5)
            in ks |> map(x => select(x < 1, s, a))""",
    ),
    (
        "map_of_let",
        """xs |> map(x => let v = ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x) in
            ks |> map(x => select(x < 1, ^x, v)) |> reduce(sub, v))""",
    ),
    (
        "map_of_zip_of_three",
        """zip(xs, ys, xs) |> map(x =>
            ks |> map(x => select(x < 1, sub(^x.0, ^x.1), ^x.2)) |> reduce(sub, x.1))""",
    ),
    (
        "maps_of_zip_of_transpose",
        """xss |> transpose |> map(x => zip(x, ys) |> map(x =>
            ks |> map(x => select(x < 1, ^x.1, ^x.0)) |> reduce(sub, x.0)))""",
    ),
    (
        "maps_of_zips_interchange",
        """xss |> map(x => xss |> map(y => zip(x, y) |> map(x =>
            ks |> map(x => select(x < 1, ^x.1, ^x.0)) |> reduce(sub, x.0))))""",
    ),
    (
        "reduce_fission_first",
        """zip(xs, ys) |> reduce((a, x) =>
            ks |> map(x => select(x < 1, square(^x.0), ^x.1)) |> reduce(sub, a), 1)""",
    ),
    (
        "reduce_fission_second",
        """zip(xs, ys) |> reduce((a, x) =>
            ks |> map(x => select(x < 1, square(^x.1), ^x.0)) |> reduce(sub, a), 1)""",
    ),
    (
        "overlaps_of_maps",
        """xss |> map(x => zs |> map(x => (^x |> reduce(add, 0)) *
            (ks |> map(x => select(x < 1, ^x, 2)) |> reduce(sub, x)))) |> overlaps(7, 1, 0)""",
    ),
    *(
        (
            f"reduce_by_index_owned_{t}",
            f"""zip(ks, xs |> take(2) |> map({t})) |> reduceByIndex((a, x) =>
            zs |> map(p => {t}(p) - {own}) |> reduce((bin, p) => {step}, {other}),
            ys |> map({t}))""",
        )
        for t in ("f32", "f64", "i32")
        for own, step, other in (("x", "bin - p * 3", "a"), ("a", "p - bin * 3", "x"))
    ),
    (
        "reduce_by_index_of_rows",
        """zip(ks, xss |> take(2)) |> reduceByIndex((a, x) => zip(a, x) |> map(t =>
            zs |> map(c => sub(c, t.1)) |> reduce((c, t) => sub(c, t), t.0)), xss)""",
    ),
    (
        "reduce_by_index_of_rows",
        """zip(ks, xss |> take(2)) |> reduceByIndex((a, x) => zip(a, x) |> map(t =>
            zs |> map(t => sub(t, ^t.0)) |> reduce((c, t) => sub(t, c), t.1)), xss)""",
    ),
]


def of_channels(m: int, r: int, dimensions: int, t: str, x: str, q: str) -> str:
    """Correlations of two channels with kernels made of a number each; `x` and `q` are binders."""
    n, taps = m + r - 1, r**dimensions
    tiles = f"xss |> join |> repeat(8) |> join |> take({2 * n**dimensions}) |> split(2)"
    tiles += f" |> split({n})" * dimensions
    windows = {1: f"tile |> slide({r}, 1)", 2: f"tile |> map(slide({r}, 1)) |> slide({r}, 1)"}
    part, rows = ("part", "") if dimensions == 1 else ("part |> join", " |> map(transpose) |> join")
    kernel = f"xss |> join |> repeat(2) |> join |> take({taps}) |> map({x} => sub({x}, {t}.1))"
    start = f"zs |> map({q} => sub({q}, {t}.1)) |> reduce(sub, {t}.1)"
    return f"""{tiles} |> map(tile => {windows[dimensions]}{rows} |> map(part =>
        zip({part} |> transpose, ys |> take(2)) |> map({t} =>
          zip({t}.0, {kernel}) |> reduce((a, z) => a + z.0 * z.1, {start}))))"""


CAPTURES += [
    (f"correlation_each{shape}_{m}_{r}", of_channels(m, r, dimensions, *names))
    for shape, dimensions in (("", 2), ("_line", 1))
    for m, r in EACH
    for names in (("p", "y", "x"), ("y", "p", "row"))
]


def of_integers(t: str, u: str, x: str, q: str) -> str:
    """Correlations in two dimensions of integers of types `t` and `u`, with 3 x 3 elements."""
    text = of_channels(2, 3, 2, x, q, "r")
    changed = {
        "take(32) |> split(2)": f"take(32) |> map({t}) |> split(2)",
        f"map({q} => sub({q}, {x}.1))": f"map({q} => {u}(sub({q}, {x}.1)))",
        "a + z.0 * z.1": "a + i32(z.0) * i32(z.1)",
        f"zs |> map(r => sub(r, {x}.1)) |> reduce(sub, {x}.1)": (
            f"i32(zs |> map(r => sub(r, {x}.1)) |> reduce(sub, {x}.1))"
        ),
    }
    for old, new in changed.items():
        assert old in text
        text = text.replace(old, new)
    return text


CAPTURES += [
    (f"integral_each_2_3_{t}_{u}", of_integers(t, u, *names))
    for t in ("u8", "i8")
    for u in ("u8", "i8")
    for names in (("p", "y"), ("y", "p"))
]


def values(program: Program) -> list[np.ndarray]:
    """Distinct numbers for every parameter."""
    return [
        np.arange(1, -1, -1, dtype=np.int32) if p.type == KS.type else values_of(p.type, k)
        for k, p in enumerate(program.params)
    ]


def value(program: Program) -> list[float]:
    """Its numbers for distinct parameters."""
    return flat(evaluate(program, *values(program), dtype=np.float64))


def rewritten(program: Program, strategy: Strategy) -> Program:
    """The program after the strategy, which applies."""
    result = strategy(program.body.body)
    assert isinstance(result, Success), result
    return Program(program.name, Lambda(program.params, result.expr))


def keeps_the_value(program: Program, strategy: Strategy) -> None:
    """The strategy applies, and before and after agree."""
    after = rewritten(program, strategy)
    np.testing.assert_allclose(value(after), value(program), rtol=1e-12)


@pytest.mark.parametrize(("name", "body"), CAPTURES)
def test_a_projection_is_not_captured(name: str, body: str) -> None:
    """A variable put for `t.0` or `t.1` is told apart from every binder it comes to stand in."""
    hints = {"g": (1, 1, 1)} if name.startswith(("map_fission_", "reduce_fission_")) else {}
    hints |= {"h": (1, 1, 0)} if name.startswith("map_fission_both") else {}
    program = parse(f"{SQUARE}def p({PARAMS}) = {body}")
    keeps_the_value(program, outermost(rule(name, hints)))


def test_every_rule_that_projects_for_a_function_has_two_programs() -> None:
    """A rule that gives an unknown function a part of a tuple is tested above."""
    projecting = {
        name
        for name, law in RULES.items()
        for part in (*parts(law.left), *parts(law.right))
        if isinstance(part, FunCall)
        and isinstance(part.fun, FunVar)
        and any(isinstance(a, FunCall) and isinstance(a.fun, Get) for a in part.args)
    }
    counted = Counter(name for name, _ in CAPTURES)
    assert set(counted.values()) == {2}
    assert projecting <= set(counted)


def parts(template: Expr) -> list[Expr]:
    """Each part of a template once, functions' bodies and arguments of metavariables included."""
    found, waiting = dict[int, Expr](), [template]
    while waiting:
        part = waiting.pop()
        if id(part) not in found:
            found[id(part)] = part
            waiting += [*children(part), *(part.args if isinstance(part, FunCall) else ())]
    return [*found.values()]


KS = Param("crowd", ArrayType(I32, nat(2)))
HINTS: dict[str, dict[str, Path]] = {
    "map_fission": {"g": (1, 1, 2)},
    "map_fission_both": {"g": (1, 1, 2), "h": (1, 1, 1, 1)},
    "map_fission_both_second": {"g": (1, 1, 2), "h": (1, 1, 1, 1, 1, 1, 1, 1)},
    "map_fission_first": {"g": (1, 1, 2)},
    "map_fission_second": {"g": (1, 1, 2)},
    "map_fission_zip": {"g": (1, 1, 1, 1)},
    "reduce_fission_first": {"g": (1, 1, 1, 1, 0)},
    "reduce_fission_second": {"g": (1, 1, 1, 1, 1)},
}


def crowded(expr: Expr, name: str) -> Expr:
    """The expression with a map whose variable is `name` in place of every `square` and the like.

    The variable is an i32, so that building it captures nothing.
    """
    for position, child in enumerate(children(expr)):
        expr = with_child(expr, position, crowded(child, name))
    if not (isinstance(expr, FunCall) and isinstance(expr.fun, UserFun)):
        return expr
    if expr.fun.name not in {"square", "twice", "sub"}:
        return expr
    k = Param(name, I32)
    by_operator = {"square": "*", "twice": "+", "sub": "-"}
    full = operate(by_operator[expr.fun.name], expr.args[0], expr.args[-1])
    body = operate("select", operate("<", k, Literal(1, I32)), full, expr.args[0])
    a, b = Param("left", F32), Param("right", F32)
    fold = Reduce(Lambda((a, b), add(a, b)))
    return call(fold, Literal(0.0, F32), call(Map(Lambda((k,), body)), KS))


def nameless(expr: Expr, bound: tuple[Param, ...] = ()) -> Hashable:
    """The expression with the distance to its binder in place of each bound variable.

    It is apart from the substitution that is tested: two expressions have the same one exactly if
    they differ in the names of bound variables only.
    """
    match expr:
        case Param():
            return bound[::-1].index(expr) if expr in bound else expr
        case FunCall(fun, args):
            inner = function_of(fun)
            given: tuple[Hashable, ...] = (type(fun),) if inner is not None else (fun,)
            if isinstance(fun, Primitive):
                sizes = (getattr(fun, name) for name in nat_fields(type(fun)))
                given = (type(fun), *sizes, *constant_fields(fun))
            if inner is not None:
                types = tuple(p.type for p in inner.params)
                given = (*given, types, nameless(inner.body, (*bound, *inner.params)))
            return (*given, *(nameless(a, bound) for a in args))
        case Tuple(elements):
            return (Tuple, *(nameless(e, bound) for e in elements))
        case _:
            return expr


def test_expressions_without_names_differ_in_what_is_bound() -> None:
    """Only what the names of bound variables are makes no difference."""

    def body(text: str) -> Hashable:
        return nameless(parse(f"{SQUARE}def p({PARAMS}) = {text}").body.body)

    fold = "xs |> map(x => zs |> map(z => sub(z, x)) |> reduce(sub, x))"
    assert body(fold) == body(fold.replace("x =>", "z1 =>").replace("x)", "z1)"))
    assert body(fold) != body("xs |> map(z => zs |> map(x => sub(z, x)) |> reduce(sub, z))")
    assert body(fold) != body("ys |> map(x => zs |> map(z => sub(z, x)) |> reduce(sub, x))")
    assert body("xs |> split(5)") != body("xs |> split(1)")
    assert body("xs |> map(x => x * 2)") != body("xs |> map(x => x * 3)")


NAMES = 12  # of those that a rule binds


def spread(many: Sequence[str], most: int) -> Sequence[str]:
    """Some of them at equal distances, the first among them."""
    return many[:: max(1, -(-len(many) // most))]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", list(RULES))
def test_no_rule_captures_a_variable(name: str) -> None:
    """The functions of a program may bind the very names that the rule's sides bind.

    Results that differ in the names of bound variables only are evaluated once. Of the many names
    in straight-line code, every few are tried.
    """
    before = sections(name)["before"]
    program, sizes, hints = before.program, before.sizes, before.hints
    own = bound_names(RULES[name].left) | bound_names(RULES[name].right)
    strategy = outermost(rule(name, HINTS.get(name, hints), **sizes))
    expected = None  # the same for all names of the variable
    evaluated = set[Hashable]()
    for binder in {*spread(sorted(own), NAMES), "x", "a"}:
        inner = crowded(program.body.body, binder)
        changed = Program("p", Lambda((*program.params, KS), inner))
        after = rewritten(changed, strategy)
        expected = value(changed) if expected is None else expected
        if (form := nameless(after.body.body)) not in evaluated:
            evaluated.add(form)
            np.testing.assert_allclose(value(after), expected, rtol=1e-12)


# --- paths that lead nowhere ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [(7,), (0, 5), (0, 0, 0), (1, 1, 1, 1)])
def test_an_absent_hint_is_a_failure(path: Path) -> None:
    program = parse(f"{SQUARE}def p(xs: [5]f32) = xs |> map(x => twice(square(x)))")
    result = rule("map_fission", {"g": path})(program.body.body)
    assert isinstance(result, Failure)
    assert result.strategy == "map_fission"


@pytest.mark.parametrize("path", [(7,), (0, 0), (1, 0, 0, 0), (2, 1)])
def test_an_absent_path_is_a_failure(path: Path) -> None:
    program = parse(f"{SQUARE}def p(xs: [5]f32) = xs |> map(x => twice(square(x)))")
    result = at_path(path, rule("map_copy"))(program.body.body)
    assert isinstance(result, Failure)


def test_a_hint_to_a_part_that_depends_on_an_inner_variable_is_a_failure() -> None:
    program = parse(f"{SQUARE}def p({PARAMS}) = xs |> map(x => zs |> map(y => sub(x, y)))")
    result = rule("map_fission", {"g": (1, 1)})(program.body.body)
    assert isinstance(result, Failure)


# --- types ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("map_zip_first", "zip(xs, xss) |> map(t => square(t.0))"),
        ("map_zip_first", "zip(xss, ys) |> map(t => t.0 |> map(square))"),
        ("map_zip_second", "zip(xss, ys) |> map(t => square(t.1))"),
        ("map_zip_second", "zip(xs, xss) |> map(t => t.1 |> map(square))"),
        ("map_zip_first", "zip(xs, ys) |> map(t => zs |> map(z => sub(z, t.0)))"),
    ],
)
def test_the_result_may_have_any_type(name: str, body: str) -> None:
    """The element types of the arrays and of the result have nothing to do with each other."""
    program = parse(f"{SQUARE}def p({PARAMS}) = {body}")
    keeps_the_value(program, rule(name))
