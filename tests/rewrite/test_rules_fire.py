"""Each rule's fixture: it fires on `before`, makes `after` of it, and leaves `unchanged` alone.

The programs have nothing to do with convolution: every rule is a general law.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from liftpy.ir.expr import Param
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import I32, INTEGERS, ArrayType, TupleType, VectorType
from liftpy.ir.walk import top_down
from liftpy.language.text.program import parse, show, show_expr
from liftpy.rewrite.rules import FAMILIES, RULES, rules_of
from liftpy.rewrite.strategy import Success, outermost, rule
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.operations import DTYPES
from tests.rewrite.fixtures import DEFINITIONS, FOLDER, sections

XS = "xs: [12]f32"
XSS = "xss: [6][4]f32"


@cache
def before_and_after(name: str) -> tuple[Program, Program]:
    """The program of a rule's fixture, and what the rule makes of it."""
    section = sections(name)["before"]
    program = section.program
    result = outermost(rule(name, section.hints, **section.sizes))(program.body.body)
    assert isinstance(result, Success), result
    return program, Program(program.name, Lambda(program.params, result.expr))


def test_every_rule_has_a_fixture_and_every_fixture_a_rule() -> None:
    assert sorted(f.stem for f in FOLDER.iterdir()) == sorted(RULES)


def test_names_of_rules_are_used_once() -> None:
    assert sum(len(rules_of(family)) for family in FAMILIES) == len(RULES)


@pytest.mark.parametrize("name", list(RULES))
def test_rule_makes_after_of_before(name: str) -> None:
    text = show(before_and_after(name)[1])
    assert text[text.index("def ") :].strip() == sections(name)["after"].text


@pytest.mark.parametrize("name", list(RULES))
def test_rule_leaves_a_near_miss_alone(name: str) -> None:
    """And says why, in the words of the fixture. Only a law about every expression has none."""
    fixture = sections(name)
    if "unchanged" not in fixture:
        assert isinstance(RULES[name].left, Param)
        return
    near = fixture["unchanged"]
    apply = rule(name, near.hints, **near.sizes)
    results = [apply(part) for _, part in top_down(near.program.body.body)]
    assert not any(isinstance(result, Success) for result in results)
    assert results[0].reason == near.because


@pytest.mark.parametrize("name", list(RULES))
def test_rule_fires_and_keeps_the_value(name: str) -> None:
    """Before and after agree on distinct values."""
    program, after = before_and_after(name)
    arrays = inputs(program)
    values = flat(evaluate(program, *arrays, dtype=np.float64))
    assert np.unique(values).size > 1 or values.size == 1 or "repeat" in name
    if RULES[name].reassociates:
        check = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12)
    else:
        check = np.testing.assert_array_equal
    check(flat(evaluate(after, *arrays, dtype=np.float64)), values)


def flat(value) -> np.ndarray:
    """All scalars of a value, those of a tuple one after another."""
    if isinstance(value, tuple):
        return np.concatenate([flat(part) for part in value])
    return np.ravel(value)


def inputs(program: Program) -> list[np.ndarray]:
    """Distinct values for every parameter, in no order."""
    return [values_of(p.type, number) for number, p in enumerate(program.params)]


def values_of(t, number: int, outer: tuple[int, ...] = ()):
    """Distinct values of a type; an array of tuples is a tuple of arrays."""
    if isinstance(t, ArrayType | VectorType):
        length = t.length if isinstance(t, ArrayType) else t.width
        return values_of(t.element, number, (*outer, int(length)))
    if isinstance(t, TupleType):
        return tuple(values_of(e, 10 * number + k, outer) for k, e in enumerate(t.elements))
    if t in INTEGERS and t != I32:
        return small(t, outer, number)
    return indices(outer, number) if t == I32 else values(outer, number)


def small(t, shape: tuple[int, ...], number: int) -> np.ndarray:
    """Whole numbers from the whole range of an integer type, some of them equal."""
    kind = np.iinfo(DTYPES[t.name])
    drawn = np.random.default_rng(number).integers(kind.min, kind.max, shape, endpoint=True)
    return drawn.astype(kind.dtype)


def indices(shape: tuple[int, ...], number: int) -> np.ndarray:
    """Whole numbers from -1 to 7, some of them equal: indices of small arrays, and others."""
    size = int(np.prod(shape))
    return (np.random.default_rng(number).permutation(size) % 9 - 1).reshape(shape).astype(np.int32)


def values(shape: tuple[int, ...], number: int) -> np.ndarray:
    size = int(np.prod(shape))
    order = np.random.default_rng(number).permutation(size)
    return (order.reshape(shape) - 3.25 + 0.125 * number).astype(np.float32)


def test_no_rule_mentions_convolution() -> None:
    """Names, families and templates use the language's words only, and few primitives.

    The images of `asImage` are OpenCL's.
    """
    ours = r"conv|kernel|(?<!as)(?<!as_)image|channel|window|layer|weight|bias|winograd|im2col"
    for name, law in RULES.items():
        left = show_expr(law.left)
        text = f"{law.name} {law.family} {left} {show_expr(law.right)}"
        assert not re.search(ours, text, re.IGNORECASE), name
        words = set(re.findall(r"\|> (\w+)", left))
        assert len(words) <= (5 if law.family.startswith("correlation") else 3), name


def test_a_law_without_its_condition_does_not_apply() -> None:
    """`split_join` refuses a size that does not divide, with the condition."""
    program = parse(f"{DEFINITIONS}def p({XS}) = xs |> map(square)")
    result = outermost(rule("split_join", m=5))(program.body.body)
    assert not isinstance(result, Success)
    assert "5 divides 12" in str(result)


def test_a_function_without_the_law_is_refused() -> None:
    """`reduce_split` needs a declared associative function."""
    program = parse(f"{DEFINITIONS}def p({XS}) = xs |> reduce(sub, 5)")
    result = rule("reduce_split", m=3)(program.body.body)
    assert not isinstance(result, Success)
    assert "sub is not declared associative" in str(result)


def test_the_operator_may_not_depend_on_the_outer_element() -> None:
    """`map_reduce_interchange` does not match where the step mentions the mapped element."""
    program = parse(
        f"{DEFINITIONS}def p({XSS}) = xss |> map(row => "
        "xss |> join |> reduce((a, y) => sub(a, row |> reduce(sub, y)), 0))"
    )
    result = rule("map_reduce_interchange")(program.body.body)
    assert not isinstance(result, Success)
