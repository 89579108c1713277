"""Every rule is a general law: it fires on programs that have nothing to do with convolution."""

from __future__ import annotations

import re

import numpy as np
import pytest

from liftpy.ir.expr import Lambda, Program
from liftpy.primitives.text import parse, show_expr
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.strategy import Success, outermost, rule
from liftpy.semantics.evaluate import evaluate

XS = "xs: [12]f32"
XSS = "xss: [6][4]f32"
XSSS = "xsss: [3][4][5]f32"
SQUARE = "fun square(x: f32) = x * x\nfun twice(x: f32) = x + x\nfun sub(x: f32, y: f32) = x - y\n"

#: For each rule a program it fires on, the sizes it tunes, and its hints.
PROGRAMS: dict[str, tuple[str, str, dict[str, int], dict[str, tuple[int, ...]]]] = {
    "map_fusion": (XS, "xs |> map(square) |> map(twice)", {}, {}),
    "map_fission": (XS, "xs |> map(x => twice(square(x)))", {}, {"g": (0,)}),
    "map_fission_zip": (XS, "xs |> map(x => sub(x, square(x)))", {}, {"g": (1,)}),
    "reduce_map_fusion": (XS, "xs |> map(square) |> reduce(sub, 1)", {}, {}),
    "map_identity": (XS, "xs |> map(x => x)", {}, {}),
    "map_copy": (XS, "xs", {}, {}),
    "map_zip_first": (XS, "zip(xs, xs |> map(square)) |> map(p => twice(p.0))", {}, {}),
    "map_zip_second": (XS, "zip(xs, xs |> map(square)) |> map(p => twice(p.1))", {}, {}),
    "split_join": (XS, "xs |> map(square)", {"m": 4}, {}),
    "split_introduction": (XS, "xs", {"m": 3}, {}),
    "join_of_split": (XS, "xs |> split(3) |> join", {}, {}),
    "split_of_join": (XSS, "xss |> join |> split(4)", {}, {}),
    "map_of_join": (XSS, "xss |> join |> map(square)", {}, {}),
    "split_of_map": (XS, "xs |> map(square) |> split(3)", {}, {}),
    "map_map_join": (XSS, "xss |> map(map(square))", {}, {}),
    "zip_of_joins": (XSS, "zip(xss |> join, xss |> map(map(square)) |> join) |> map(sub)", {}, {}),
    "split_of_zip": (XS, "zip(xs, xs |> map(square)) |> split(4) |> map(map(sub))", {}, {}),
    "slide_tiling": (XS, "xs |> slide(3, 1) |> map(reduce(sub, 0))", {"tile": 4}, {}),
    "slide_of_map": (XS, "xs |> map(square) |> slide(3, 2)", {}, {}),
    "map_map_of_slide": (XS, "xs |> slide(3, 2) |> map(map(square))", {}, {}),
    "map_transpose_of_slide": (XSS, "xss |> slide(3, 2) |> map(transpose)", {}, {}),
    "slide_extension": (XS, "xs |> slide(5, 2) |> map(reduce(sub, 0))", {"extra": 3}, {}),
    "pad_of_pad": (XS, "xs |> pad(1, 2, 7) |> pad(3, 0, 7)", {}, {}),
    "pad_exchange": (XSS, "xss |> map(pad(1, 2, 7)) |> pad(3, 0, 7)", {}, {}),
    "pad_exchange_back": (XSS, "xss |> pad(3, 0, 7) |> map(pad(1, 2, 7))", {}, {}),
    "transpose_of_map_pad": (XSS, "xss |> map(pad(1, 2, 7)) |> transpose", {}, {}),
    "map_of_crop": (XS, "xs |> pad(-2, -3, 0) |> map(square)", {}, {}),
    "transpose_twice": (XSS, "xss |> transpose |> transpose", {}, {}),
    "transpose_introduction": (XSS, "xss", {}, {}),
    "transpose_of_map_map": (XSS, "xss |> map(map(square)) |> transpose", {}, {}),
    "map_map_of_transpose": (XSS, "xss |> transpose |> map(map(square))", {}, {}),
    "transpose_of_map_join": (XSSS, "xsss |> map(join) |> transpose", {}, {}),
    "map_interchange": (
        XSS,
        "xss |> join |> map(x => xss |> map(r => sub(x, r |> reduce(sub, 0))))",
        {},
        {},
    ),
    "reduce_split": (XS, "xs |> reduce(add, 5)", {"m": 3}, {}),
    "reduce_of_join": (XSS, "xss |> join |> reduce(sub, 5)", {}, {}),
    "reduce_exchange": (XSS, "xss |> map(reduce(add, 0)) |> reduce(add, 5)", {}, {}),
    "map_reduce_interchange": (XSS, "xss |> map(row => row |> reduce(sub, 5))", {}, {}),
    "vectorize_map": (XS, "xs |> map(square)", {"v": 4}, {}),
    "as_vector_of_map": (XS, "xs |> map(square) |> asVector(4) |> asScalar", {}, {}),
    "vectorize_reduce": (XS, "xs |> reduce(add, 5)", {"v": 4}, {}),
    "as_scalar_of_as_vector": (XS, "xs |> asVector(4) |> asScalar", {}, {}),
    "reduce_to_seq": (XS, "xs |> reduce(sub, 5)", {}, {}),
    "reduce_to_seq_unroll": (XS, "xs |> reduce(sub, 5)", {}, {}),
    "map_to_seq": (XS, "xs |> map(square)", {}, {}),
    "map_to_seq_unroll": (XS, "xs |> map(square)", {}, {}),
    "scan_to_seq": (XS, "xs |> scan(sub, 5)", {}, {}),
    "iterate_to_seq": (XSS, "xss |> map(iterate(3, map(x => sub(x, 2) * x)))", {}, {}),
    "slide_to_seq": (XS, "xs |> slide(5, 2) |> map(reduce(sub, 5))", {}, {}),
    "to_global": (XS, "xs |> map(square)", {}, {}),
    "to_local": (XS, "xs |> map(square)", {}, {}),
    "to_private": (XS, "xs |> map(square)", {}, {}),
} | {
    f"map_to_{level}_{d}": (XS, "xs |> map(square)", {}, {})
    for level in ("glb", "wrg", "lcl")
    for d in range(3)
}


def test_every_rule_has_a_program() -> None:
    """A rule without a program here is not shown to be general."""
    assert set(PROGRAMS) == set(RULES)


@pytest.mark.parametrize("name", list(RULES))
def test_rule_fires_and_keeps_the_value(name: str) -> None:
    """The rule applies, and before and after agree on distinct values."""
    params, body, sizes, hints = PROGRAMS[name]
    program = parse(f"{SQUARE}def p({params}) = {body}")
    result = outermost(rule(name, hints, **sizes))(program.body.body)
    assert isinstance(result, Success), result
    after = Program("p", Lambda(program.params, result.expr))
    arrays = [np.random.default_rng(3).permutation(a) for a in inputs(program)]
    before_value = evaluate(program, *arrays, dtype=np.float64)
    after_value = evaluate(after, *arrays, dtype=np.float64)
    assert before_value.shape == after_value.shape
    if RULES[name].reassociates:
        np.testing.assert_allclose(after_value, before_value, rtol=1e-12)
    else:
        np.testing.assert_array_equal(after_value, before_value)


def inputs(program: Program) -> list[np.ndarray]:
    """Distinct values for every parameter."""
    arrays = []
    for p in program.params:
        shape = tuple(int(s) for s in p.type.shape)
        arrays.append((np.arange(np.prod(shape), dtype=np.float32) - 3.25).reshape(shape))
    return arrays


@pytest.mark.parametrize("name", list(RULES))
def test_no_rule_speaks_of_convolution(name: str) -> None:
    """Names, families and templates use the language's words only, and few primitives."""
    law = RULES[name]
    text = f"{law.name} {law.family} {show_expr(law.left)} {show_expr(law.right)}"
    assert not re.search(
        r"conv|kernel|image|channel|window|layer|weight|bias|winograd|im2col", text, re.IGNORECASE
    )
    assert len(set(re.findall(r"\|> (\w+)", show_expr(law.left)))) <= 3


def test_a_law_without_its_condition_does_not_apply() -> None:
    """`split_join` refuses a size that does not divide, with the condition."""
    program = parse(f"{SQUARE}def p({XS}) = xs |> map(square)")
    result = outermost(rule("split_join", m=5))(program.body.body)
    assert not isinstance(result, Success)
    assert "5 divides 12" in str(result)


def test_a_function_without_the_law_is_refused() -> None:
    """`reduce_split` needs a declared associative function."""
    program = parse(f"{SQUARE}def p({XS}) = xs |> reduce(sub, 5)")
    result = rule("reduce_split", m=3)(program.body.body)
    assert not isinstance(result, Success)
    assert "sub is not declared associative" in str(result)


def test_the_operator_may_not_depend_on_the_outer_element() -> None:
    """`map_reduce_interchange` does not match where the step mentions the mapped element."""
    program = parse(
        f"{SQUARE}def p({XSS}) = xss |> map(row => "
        "xss |> join |> reduce((a, y) => sub(a, row |> reduce(sub, y)), 0))"
    )
    result = rule("map_reduce_interchange")(program.body.body)
    assert not isinstance(result, Success)
