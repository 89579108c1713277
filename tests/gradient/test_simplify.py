"""Simplified gradients are what an expert writes; the texts are golden files."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr
from liftpy.ir.primitive import Primitive
from liftpy.ir.walk import top_down
from liftpy.language.text.program import parse, show
from liftpy.primitives import Overlaps, Pad, Reduce, Slide

LINE = """
def line(xs: [13]f32, ws: [3]f32) =
  xs |> pad(1, 1, 0) |> slide(3, 1) |> map(v => zip(v, ws) |> map(mul) |> reduce(add, 0))
"""
IMAGE = """
def image(x: [7][9]f32, w: [3][3]f32) =
  x |> slide2d(3, 1) |> map2d(v => zip(v |> join, w |> join) |> map(mul) |> reduce(add, 0))
"""
PROGRAMS = {
    "dot": "def dot(xs: [7]f32, ys: [7]f32) = zip(xs, ys) |> map(mul) |> reduce(add, 0)",
    "matrix_and_vector": """
        def matvec(a: [7][5]f32, x: [5]f32) =
          a |> map(row => zip(row, x) |> map(mul) |> reduce(add, 0))
    """,
    "matrix_product": show(lp.workload("matmul/7x11x5")),
    "convolution": LINE,
    "sum_of_squares": "def p(xs: [7]f32) = xs |> map(x => x * x) |> reduce(add, 0)",
    "mean": "def p(xs: [7]f32) = (xs |> reduce(add, 0)) / 7",
    "scaled": "def p(xs: [7]f32, a: f32) = xs |> map(x => x * a)",
    "windows_that_share_nothing": "def p(xs: [7]f32) = xs |> slide(2, 2) |> map(reduce(add, 0))",
    "windows_with_gaps": "def p(xs: [9]f32) = xs |> slide(2, 3) |> map(reduce(mul, 1))",
    "transposed": "def p(x: [3][5]f32) = x |> transpose |> map(reduce(add, 0))",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_gradient_is_what_an_expert_writes(name: str, golden) -> None:
    golden(show(lp.gradient(parse(PROGRAMS[name]))), "lift")


def primitives(program: lp.Program) -> list[Primitive]:
    """The primitives in a program."""
    parts: list[Expr] = [part for _, part in top_down(program.body.body)]
    return [p.fun for p in parts if isinstance(p, FunCall) and isinstance(p.fun, Primitive)]


CONVOLUTIONS = {
    "of a line": (LINE, "xs", "ws"),
    "of an image": (IMAGE, "x", "w"),
    "of channels": (show(lp.workload("convolution/strided/5x7x3x2x3x1")), "x", "w"),
    "depthwise": (show(lp.workload("convolution/depthwise/5x7x3x3x1")), "x", "w"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_gradient_of_a_convolution_to_its_input_is_a_convolution(name: str) -> None:
    """With the kernels reversed: it reads windows of padded cotangents, and adds nothing else."""
    text, x, _ = CONVOLUTIONS[name]
    found = primitives(lp.gradient(parse(text), x))
    assert not any(isinstance(p, Overlaps) for p in found)
    assert {Pad, Slide} <= set(map(type, found))
    assert sum(isinstance(p, Reduce) for p in found) == 1


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_the_gradient_of_a_convolution_to_its_weights_is_a_fold_for_each(name: str) -> None:
    text, _, w = CONVOLUTIONS[name]
    found = primitives(lp.gradient(parse(text), w))
    assert sum(isinstance(p, Reduce) for p in found) == 1


def test_reversed_kernels_are_read_at_the_right_place() -> None:
    """NumPy's `convolve` reverses the kernel itself."""
    rng = np.random.default_rng(3)
    xs, ws, ys = (rng.standard_normal(n) for n in (13, 3, 13))
    of_xs, of_ws = lp.evaluate(lp.gradient(parse(LINE)), xs, ws, ys, dtype=np.float64)
    np.testing.assert_allclose(of_xs, np.convolve(ys, ws, "same"))
    np.testing.assert_allclose(of_ws, np.correlate(np.pad(xs, 1), ys, "valid"))
