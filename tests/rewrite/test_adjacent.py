"""Which map makes adjacent results, and the order of the loops of a reduction."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.ir.call import FunCall
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.walk import at
from liftpy.language.text.program import parse
from liftpy.rewrite.strategies.adjacent import adjacent_map
from liftpy.rewrite.strategies.order import innermost_first
from liftpy.rewrite.strategies.shapes import outer_reductions, parameter
from liftpy.rewrite.strategy import Failure, Success
from liftpy.semantics.evaluate import evaluate

ROWS = "xss: [3][5][7]f32"

PRODUCTS = {
    "as written": ("xs |> map(x => ys |> map(y => x * y))", "y"),
    "transposed": ("xs |> map(x => ys |> map(y => x * y)) |> transpose", "x"),
    "twice": ("xs |> map(x => ys |> map(y => x * y) |> split(5)) |> map(join) |> transpose", "x"),
    "joined": ("xs |> map(x => ys |> map(y => x * y)) |> join", "y"),
    "transposed and joined": ("xs |> map(x => ys |> map(y => x * y)) |> transpose |> join", "x"),
    "split": ("xs |> map(x => ys |> map(y => x * y)) |> map(split(5))", "y"),
    "named": ("let zs = xs |> map(z => z + 1) in zs |> map(x => ys |> map(y => x * y))", "y"),
    "blocks": (
        "xs |> split(3) |> map(b => b |> map(x => ys |> map(y => x * y)) |> transpose)",
        "x",
    ),
    "reversed": (
        "xs |> map(x => ys |> map(y => x * y)) |> map(reorder(i => 34 - i, i => 34 - i))",
        None,
    ),
    "padded": ("xs |> map(x => ys |> map(y => x * y)) |> map(pad(1, 1, 0))", None),
    "single rows": ("xs |> map(x => ys |> map(y => x * y)) |> map(split(1))", None),
    "numbers": ("xs |> map(x => ys |> map(y => x * y) |> reduce(add, 0)) |> repeat(4)", "x"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_map_whose_results_are_adjacent(name: str) -> None:
    text, variable = PRODUCTS[name]
    body = parse(f"def p(xs: [15]f32, ys: [35]f32) = {text}").body.body
    path = adjacent_map(body)
    assert (None if path is None else parameter(at(body, path)).name) == variable


def reordered(text: str) -> Program:
    """The program with the innermost loop of its reductions outermost."""
    program = parse(text)
    result = innermost_first()(program.body.body)
    assert isinstance(result, Success)
    return Program(program.name, Lambda(program.params, result.expr), program.constants)


@pytest.mark.parametrize(
    "source",
    [
        "xss |> join |> join",
        "xss |> map(join) |> join",
        "zip(xss |> join |> join, yss |> join |> join) |> map(mul)",
        "xss |> join |> join |> map(x => x * x) |> map(x => x + 1)",
    ],
)
def test_the_innermost_loop_becomes_the_outermost(source: str) -> None:
    text = f"def p(xss: [3][5][7]f32, yss: [3][5][7]f32) = {source} |> reduce(add, 0.5)"
    program, other = parse(text), reordered(text)
    (path,) = outer_reductions(other.body.body)
    join = at(other.body.body, (*path, 1))
    rows = {"xss |> map(join) |> join": (35, 3)}.get(source, (7, 15))
    assert isinstance(join, FunCall)
    assert tuple(n.constant for n in join.args[0].type.lengths()) == rows
    rng = np.random.default_rng(3)
    given = [rng.integers(-9, 9, (3, 5, 7)).astype(np.float32) for _ in range(2)]
    expected = evaluate(program, *given, dtype=np.float64)
    np.testing.assert_array_equal(evaluate(other, *given, dtype=np.float64), expected)


@pytest.mark.parametrize(
    "text",
    [
        "xss |> join |> join |> reduce((a, x) => a * 0.5 + x, 0)",  # not commutative
        "xss |> join |> join |> reduce((a, x) => a - x, 0)",
        "xss |> map(xs => xs |> map(reduce(add, 0)))",  # one loop
    ],
)
def test_an_order_that_matters_is_kept(text: str) -> None:
    body = parse(f"def p({ROWS}) = {text}").body.body
    assert isinstance(innermost_first()(body), Failure)
