"""How far apart in memory elements are read."""

import pytest

import liftpy as lp
from liftpy.ir.walk import top_down
from liftpy.primitives import Reduce
from liftpy.rewrite.strategies.strides import stride

PRODUCT = """
def p(a: [5][7]f32, b: [7][11]f32) =
  a |> map(row => b |> transpose |> map(column =>
    zip(row, column) |> reduce((sum, p) => sum + p.0 * p.1, 0)))
"""
IMAGE = """
def p(x: [9][8][3]f32, w: [4][3][3][3]f32) =
  x |> pad2d(1, 1, 1, 1, 0) |> slide2d(3, 1) |> map(map(window => w |> map(kernel =>
    zip(window |> join |> join, kernel |> join |> join)
      |> reduce((sum, p) => sum + p.0 * p.1, 0))))
"""
COMPUTED = """
def p(a: [5][8]i32) = a |> map(row => iota(8) |> map(k => k + 1) |> reduce(add, 0))
"""


def found(text, operand, over):
    """The stride of an operand of the only reduction; `over` counts from its elements outwards."""
    body = lp.parse(text).body.body
    (path,) = (p for p, e in top_down(body) if isinstance(getattr(e, "fun", None), Reduce))
    maps = [p for p, e in top_down(body) if p == path[: len(p)] and "Map" in type_of(e)]
    read = (*path, 1, operand) if operand is not None else (*path, 1)
    return stride(body, read, ([*maps, read])[-1 - over])


def type_of(expr):
    return type(getattr(expr, "fun", None)).__name__


@pytest.mark.parametrize(
    ("text", "operand", "strides"),
    [
        (PRODUCT, 0, (1, 0, 7)),
        (PRODUCT, 1, (11, 1, 0)),
        (IMAGE, 0, (1, 0, 3, 24)),
        (IMAGE, 1, (1, 27, 0, 0)),
    ],
)
def test_the_strides_of_elements_and_of_the_maps_around_them(text, operand, strides):
    assert tuple(found(text, operand, k) for k in range(len(strides))) == strides


def test_what_is_computed_has_no_stride():
    assert found(COMPUTED, None, 0) is None


def test_an_open_size_has_no_stride():
    assert found("size k: 1..64" + PRODUCT.replace("[7]", "[k]"), 0, 0) is None
