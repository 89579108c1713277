"""`direct` with long reductions in parts: the results of all parts, then their reductions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.gradient.program import gradient
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.rewrite.strategies.families import direct, skeletons_of
from liftpy.workloads import Convolution, convolution
from tests.arrays import distinct_integers
from tests.candidates import compiled, launches, result
from tests.spaces import words_of

SUM = "zip(row, c) |> map(mul) |> reduce(add, 0)"
SCALED = f"""
def scaled(a: [6][12]f32, b: [12][10]f32, d: [6]f32) =
  zip(a, d) |> map((row, e) => b |> transpose |> map(c => max(({SUM}) * e, 0)))
"""
BEGUN = """
def begun(a: [6][12]f32, b: [12][10]f32, h: f32) =
  a |> map(row => b |> transpose |> map(c => zip(row, c) |> map(mul) |> reduce(add, h)))
"""
LEAST = """
fun smaller(x: f32, y: f32) = min(x, y) laws associative, commutative, neutral inf
def least(a: [6][12]f32, b: [12][10]f32) =
  a |> map(row => b |> transpose |> map(c =>
    zip(row, c) |> map((x, y) => max(x, y)) |> reduce(smaller, inf)))
"""
LAST = """
fun later(x: f32, y: f32) = select(y == 0, x, y) laws associative, neutral 0
def last(a: [6][12]f32, b: [12][10]f32) =
  a |> map(row => b |> transpose |> map(c =>
    zip(row, c) |> map(mul) |> reduce(later, 0)))
"""
BATCH = """
def batch(a: [4][5][7][6]f32, b: [4][5][7][10]f32) =
  a |> join |> join |> transpose |> map(row => b |> join |> join |> transpose |> map(c =>
    zip(row, c) |> map(mul) |> reduce(add, 0)))
"""
ROWS = """
def rows(a: [6][12]f32, b: [10][12]f32) =
  a |> map(row => b |> map(c => zip(row, c) |> map(mul) |> reduce(add, 0)))
"""
LAYER = Convolution(3, 4, 7, 6, (3, 3), (1, 1), (1, 1, 1, 1))
WEIGHTS = gradient(convolution(LAYER, "weights"), wrt=["w"])


def weights(x: np.ndarray, w: np.ndarray, _b: np.ndarray, d: np.ndarray) -> np.ndarray:
    """The gradient of a padded convolution with respect to its weights."""
    padded = np.pad(x, ((1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[1:3], axis=(0, 1))
    return np.einsum("yxcij,yxk->kijc", windows, d)


def last_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The last product of each pair that is not 0: an operator that does not commute."""
    found = np.zeros((a.shape[0], b.shape[1]))
    for x, y in zip(a.T, b, strict=True):
        products = np.outer(x, y)
        found = np.where(products == 0, found, products)
    return found


CASES: dict[str, tuple[Program, int, Callable[..., np.ndarray]]] = {
    "a factor of rows": (parse(SCALED), 3, lambda a, b, d: np.maximum((a @ b) * d[:, None], 0)),
    "sums that begin with a value": (parse(BEGUN), 4, lambda a, b, h: a @ b + h),
    "no sum": (parse(LEAST), 6, lambda a, b: np.maximum(a[:, :, None], b).min(axis=1)),
    "an order": (parse(LAST), 2, last_of),
    "rows": (parse(ROWS), 4, lambda a, b: a @ b.T),
    "a batch": (parse(BATCH), 35, lambda a, b: np.einsum("nyxk,nyxl->kl", a, b)),
    "weights": (WEIGHTS, 1, weights),
}


@pytest.fixture(autouse=True)
def _short_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reductions of a few elements are long."""
    monkeypatch.setattr(direct, "LONG_SUM", 1)
    monkeypatch.setattr(direct, "LONG_UNPACKED", 1)


FORMS = {
    "glb": {"level": "glb", "v": 1},
    "wrg": {"level": "wrg", "v": 1},
    "lanes": {"level": "glb", "lanes": "outer", "kappa": 2, "v": 2},
}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(CASES))
def test_each_form_is_right(runtime: Device, name: str, form: str) -> None:
    program, part, reference = CASES[name]
    settings = {"family": "direct", "parts": "yes", "part": part, **FORMS[form]}
    module, arrays = compiled(program, settings), distinct_integers(program)
    expected = reference(*(a.astype(np.float64) for a in arrays.values()))
    np.testing.assert_array_equal(result(runtime, module, arrays), expected)
    assert launches(module) >= 2


def test_only_long_reductions_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction of 12 elements is short, or long only where neither matrix is packed."""

    def has_parts(name: str, constant: str) -> bool:
        text = LEAST.replace("least", name).replace("b: ", f"{constant}b: ")
        return ("parts", "yes") in words_of(parse(text), "direct")

    assert has_parts("one", "")
    assert has_parts("two", "const ")
    monkeypatch.setattr(direct, "LONG_SUM", 12)
    assert has_parts("three", "")
    assert not has_parts("four", "const ")
    monkeypatch.setattr(direct, "LONG_UNPACKED", 12)
    assert not has_parts("five", "")


BYTES = """
def bytes(a: [6][1030]u8, b: [10][1030]i8) =
  a |> map(row => b |> map(c => zip(row, c) |> map((x, y) => i32(x) * i32(y)) |> reduce(add, 0)))
"""


@pytest.mark.parametrize("program", [*(case[0] for case in CASES.values()), parse(BYTES)], ids=str)
def test_every_choice_has_a_form(program: Program) -> None:
    """A family without a form for one of its choices has none at all."""
    found = skeletons_of(direct.DIRECT, program)
    assert not isinstance(found, str), found
    assert any("parts" in skeleton.words for skeleton in found)
