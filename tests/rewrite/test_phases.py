"""Correlations with a stride by phases: the same results, from windows that are one apart."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.walk import top_down
from liftpy.language.text.program import parse
from liftpy.primitives import Slide
from liftpy.rewrite.algorithms import algorithms_of
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.stages import WINOGRAD
from liftpy.rewrite.strategies.phases import has_stride, phased
from liftpy.rewrite.strategy import Failure, Success
from liftpy.semantics.evaluate import evaluate
from liftpy.workloads.convolution import Convolution, convolution

LAYERS = [
    Convolution(3, 15, 17, 2, (5, 5), (2, 2), (2, 2, 2, 2)),
    Convolution(2, 14, 12, 3, (4, 4), (2, 2)),  # whole blocks, and the array ends with a window
    Convolution(2, 15, 13, 3, (4, 4), (2, 2)),  # elements after the last window
    Convolution(1, 13, 19, 2, (3, 7), (2, 3), (0, 1, 1, 0), layout="nchw"),
    Convolution(2, 11, 13, 3, (3, 3), (2, 1), (1, 1, 1, 1)),
    Convolution(2, 11, 13, 3, (3, 3), (1, 2), (1, 1, 1, 1), epilogue="relu"),
    Convolution(3, 23, 20, 2, (11, 11), (4, 4)),
    Convolution(3, 12, 12, 2, (4, 2), (2, 3), (0, 0, 0, 1)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_the_results_are_the_same_with_windows_one_apart(layer: Convolution) -> None:
    program = convolution(layer)
    result = phased(program.body.body)
    assert isinstance(result, Success), result
    assert sizes(result.expr) == blocks_of(layer)
    other = Program("other", Lambda(program.params, result.expr), program.constants)
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(tuple(map(int, p.type.shape))) for p in program.params]
    one, two = (evaluate(p, *arrays, dtype=np.float64) for p in (program, other))
    np.testing.assert_allclose(two, one, rtol=1e-11, atol=1e-11)


def sizes(expr: Expr) -> list[tuple[int, int]]:
    """The sizes and steps of the windows in an expression, outermost first."""
    calls = (e.fun for _, e in top_down(expr) if isinstance(e, FunCall))
    return sorted((int(f.size), int(f.step)) for f in calls if isinstance(f, Slide))


def blocks_of(layer: Convolution) -> list[tuple[int, int]]:
    """The number of blocks that hold a window, in each dimension, one apart."""
    return sorted((-(-r // s), 1) for r, s in zip(layer.kernel, layer.stride, strict=True))


def test_only_what_is_multiplied_by_zero_is_added() -> None:
    """An array of whole blocks is not padded, and one with elements left over is cropped."""
    whole, cropped = (phased(convolution(layer).body.body) for layer in LAYERS[1:3])
    assert isinstance(whole, Success)
    assert isinstance(cropped, Success)
    assert "pad(" not in str(whole).replace("pad(0, 0, 0)", "")  # as the program has it
    assert "pad(0, -1, 0)" in str(cropped)


LARGEST = """
def p(x: [9][9]f32) =
  x |> slide(3, 2) |> map(rows => rows |> map(slide(3, 2)) |> transpose |> map(part =>
    part |> join |> reduce((a, y) => {f}, 0)))
"""


@pytest.mark.parametrize("f", ["max(a, y)", "a + y * y"])
def test_windows_of_something_else_are_left_alone(f: str) -> None:
    program = parse(LARGEST.format(f=f))
    assert has_stride(program.body.body)
    assert isinstance(phased(program.body.body), Failure)
    assert not any(p.other_algorithm for p in partitions(program))


TWO = """
def p(x: [20][3]f32, const w: [4][3][3]f32, const v: [5][3][4]f32) =
  let y = x |> slide(3, {first}) |> map(part =>
    w |> map(k => zip(part |> join, k |> join) |> map(mul) |> reduce(add, 0))) in
  y |> slide(3, 2) |> map(part =>
    v |> map(k => zip(part |> join, k |> join) |> map(mul) |> reduce(add, 0)))
"""


@pytest.mark.parametrize(
    ("first", "used", "words"),
    [(1, 1, {"2", "4", "6", "4+overlap"}), (2, 2, {"2", "4", "2+overlap", "4+overlap"})],
    ids=["beside one without a stride", "both have one"],
)
def test_a_program_with_other_forms_keeps_them(first: int, used: int, words: set[str]) -> None:
    """Only programs without forms by F(m, r) get them by phases: campaigns keep their spaces."""
    found = [p for p in partitions(parse(TWO.format(first=first))) if p.other_algorithm]
    assert {dict(p.words)[WINOGRAD] for p in found} == words
    assert all(len([*algorithms_of(p)]) == used for p in found)
