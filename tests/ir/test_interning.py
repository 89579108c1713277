"""Equal expressions are one object, except for those that the forms of the language record."""

from __future__ import annotations

import gc

import pytest

import liftpy as lp
from liftpy.ir import interning
from liftpy.ir.expr import Expr, Literal, Param, Tuple
from liftpy.ir.types import F32, I32
from liftpy.ir.walk import children, map_sizes, replace_at, top_down
from liftpy.language.text.program import parse, show
from liftpy.rewrite.strategy import rule
from liftpy.rewrite.strategy.result import Success

SQUARES = "def p(xs: [6]f32) = (xs |> map(x => x * x), xs |> map(x => x * x))"


def rebuilt(expr: Expr) -> Expr:
    """An equal expression, of which every call is made again."""
    return map_sizes(expr, lambda size: size)


def test_equal_expressions_that_are_made_twice_are_the_same_object() -> None:
    written = parse(SQUARES).body.body
    first, second = children(written)
    assert first == second
    assert first is not second  # each has its place in the text
    made = rebuilt(written)
    assert made is rebuilt(written) is rebuilt(made)
    assert made == written
    assert rebuilt(first) is children(made)[0]


def test_each_call_of_a_text_keeps_its_place() -> None:
    program = parse("def p(xs: [6]f32) =\n  xs |> map(x => x * x)\n  |> map(x => x * x)")
    assert program.spans is not None
    calls = [path for path, part in top_down(program.body.body) if children(part)]
    assert len({program.spans.calls[path] for path in calls}) == len(calls)


def test_a_value_that_python_names_is_still_told_apart_from_an_equal_one() -> None:
    """A variable that is used twice is bound once; two equal expressions are written twice."""

    @lp.program
    def named(xs: lp.array(lp.f32, 6)):
        sums = xs >> lp.map(lambda x: x * x) >> lp.reduce(lp.add, 0)
        return xs >> lp.map(lambda x: x + sums), xs >> lp.map(lambda x: x - sums)

    @lp.program
    def twice(xs: lp.array(lp.f32, 6)):
        one = xs >> lp.map(lambda x: x * x) >> lp.reduce(lp.add, 0)
        two = xs >> lp.map(lambda x: x * x) >> lp.reduce(lp.add, 0)
        return xs >> lp.map(lambda x: x + one), xs >> lp.map(lambda x: x - two)

    assert show(named).count("reduce") == 1
    assert show(twice).count("reduce") == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Literal(0.0, F32), Literal(-0.0, F32)),
        (Literal(1.0, F32), Literal(1, I32)),
        (Literal(True, I32), Literal(1, I32)),
        (Param("x", F32), Param("x", I32)),
        (Param("x", F32), Param("x", F32, ("a", "b"))),
    ],
)
def test_what_computes_or_prints_differently_is_told_apart(one: Expr, other: Expr) -> None:
    assert one is not other
    assert Tuple((one, one)) is not Tuple((other, other))
    assert Tuple((one, one)) is Tuple((one, one))


def test_nans_of_one_type_are_one_number() -> None:
    assert Literal(float("nan"), F32) is Literal(-float("nan"), F32)


def test_the_names_that_a_text_unpacks_are_kept() -> None:
    one = parse("def p(xs: [6]f32) = zip(xs, xs) |> map((a, b) => a * b)")
    other = parse("def p(xs: [6]f32) = zip(xs, xs) |> map(t => t.0 * t.1)")
    for program in (one, other, one):
        again = lp.parse(show(program))
        assert show(again) == show(program)


def test_a_rule_gives_the_same_object_for_equal_expressions() -> None:
    body = parse("def p(xs: [6]f32) = xs |> map(x => x + 1) |> map(x => x * 2)").body.body
    first, second = (rule("map_fusion")(rebuilt(body)) for _ in range(2))
    assert isinstance(first, Success)
    assert first is second


def test_expressions_that_nothing_mentions_are_forgotten() -> None:
    def count() -> int:
        gc.collect()
        return len(interning._KNOWN)

    before = count()
    kept = [Tuple((Param(f"unusual{k}", F32),)) for k in range(100)]
    assert count() == before + 200
    assert kept.pop().type == Tuple((Param("unusual99", F32),)).type
    kept.clear()
    assert count() == before


def test_replacing_a_part_makes_the_same_object_in_either_order() -> None:
    body = rebuilt(parse("def p(xs: [6]f32, ys: [6]f32) = (xs, ys)").body.body)
    other = Param("zs", children(body)[0].type)
    one = replace_at(replace_at(body, (0,), other), (1,), other)
    assert one is replace_at(replace_at(body, (1,), other), (0,), other)
