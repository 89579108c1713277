"""`direct` with inputs that a kernel of each run stores in panels (`pack`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from liftpy.constraints.device import Device
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.rewrite.strategies.families import direct, skeletons_of
from tests.arrays import distinct_integers
from tests.candidates import compiled, launches, result
from tests.spaces import words_of

SUM = "zip(row, c) |> map(mul) |> reduce(add, 0)"
COLUMNS = f"""
def columns(a: [12][7]f32, b: [7][10]f32) =
  a |> map(row => b |> transpose |> map(c => {SUM}))
"""
ROWS = f"""
def rows(a: [7][12]f32, b: [10][7]f32) =
  a |> transpose |> map(row => b |> map(c => {SUM}))
"""
BIAS = f"""
def bias(a: [12][7]f32, b: [10][7]f32, d: [10]f32) =
  a |> map(row => zip(b, d) |> map((c, e) => max(({SUM}) + e, 0)))
"""
BATCH = """
def batch(a: [3][12][7]f32, b: [3][7][10]f32) =
  zip(a, b) |> map((x, y) => x |> map(row => y |> transpose |> map(c =>
    zip(row, c) |> map(mul) |> reduce(add, 0))))
"""
SQUARES = """
def squares(a: [3][12][12]f32) =
  zip(a, a) |> map((x, y) => x |> map(row => y |> transpose |> map(c =>
    zip(row, c) |> map(mul) |> reduce(add, 0))))
"""
CONSTANT = COLUMNS.replace("columns", "constant").replace("b: ", "const b: ")
NOT_COMMUTING = """
fun later(x: f32, y: f32) = select(y == 0, x, y) laws associative, neutral 0
def last(a: [12][7]f32, b: [7][10]f32) =
  a |> map(row => b |> transpose |> map(c => zip(row, c) |> map(mul) |> reduce(later, 0)))
"""
PRIME = """
def prime(a: [19][7]f32, b: [7][23]f32) =
  a |> map(row => b |> transpose |> map(c => zip(row, c) |> map(mul) |> reduce(add, 0)))
"""
WINDOWS = """
def windows(x: [14][3]f32, w: [10][3][3]f32) =
  x |> slide(3, 1) |> map(window => w |> map(k =>
    zip(window |> join, k |> join) |> map(mul) |> reduce(add, 0)))
"""


def last_of(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The last product of each pair that is not 0."""
    found = np.zeros((a.shape[0], b.shape[1]))
    for x, y in zip(a.T, b, strict=True):
        products = np.outer(x, y)
        found = np.where(products == 0, found, products)
    return found


def convolved(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Windows of three rows by kernels."""
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=0)
    return np.einsum("yci,kic->yk", windows, w)


#: A program, how many kernels each word of `pack` adds, and its meaning.
CASES: dict[str, tuple[Program, dict[str, int], Callable[..., np.ndarray]]] = {
    "columns": (parse(COLUMNS), {"inner": 1, "both": 2}, lambda a, b: a @ b),
    "rows": (parse(ROWS), {"inner": 1, "both": 2}, lambda a, b: a.T @ b.T),
    "bias": (
        parse(BIAS),
        {"inner": 1, "both": 2},
        lambda a, b, d: np.maximum(a @ b.T + d, 0),
    ),
    "batch": (parse(BATCH), {"inner": 1, "both": 2}, lambda a, b: a @ b),
    "squares": (parse(SQUARES), {"inner": 1, "both": 2}, lambda a: a @ a),
    "constant": (parse(CONSTANT), {"outer": 1}, lambda a, b: a @ b),
    "an order": (parse(NOT_COMMUTING), {"inner": 1, "both": 2}, last_of),
    "windows": (parse(WINDOWS), {"inner": 1}, convolved),
    "prime": (parse(PRIME), {"inner": 1, "both": 2}, lambda a, b: a @ b),
}
FORMS = {
    "glb": {"level": "glb", "kappa": 5, "sigma": 4, "v": 1},
    "wrg": {"level": "wrg", "kappa": 2, "sigma": 3, "v": 2},
}
OTHER = {
    "prime": {"tail": "overlap", "kappa": 5, "sigma": 4, "v": 1},
    "squares": {"kappa": 4, "sigma": 3, "v": 2},
}
"""Sizes for other lengths than 10 and 12: blocks of a prime length overlap."""


def choices(program: Program) -> set[str]:
    """The words of the choice `pack` in a program's space."""
    return {word for name, word in words_of(program, "direct") if name == "pack"}


@pytest.mark.parametrize("name", CASES)
def test_the_choice_names_inputs_that_have_each_element_once(name: str) -> None:
    """Not constants, which are always packed, and not windows, which would be copied."""
    program, words, _ = CASES[name]
    assert choices(program) == words.keys()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "word"), [(name, word) for name, case in CASES.items() for word in case[1]]
)
def test_each_form_is_right(runtime: Device, name: str, word: str, form: str) -> None:
    program, added, reference = CASES[name]
    sizes = FORMS[form] | OTHER.get(name, {})
    module = compiled(program, {"family": "direct", "pack": word, **sizes})
    arrays = distinct_integers(program)
    expected = reference(*(a.astype(np.float64) for a in arrays.values()))
    np.testing.assert_array_equal(result(runtime, module, arrays), expected)
    assert launches(module) == 1 + added[word]


@pytest.mark.parametrize("name", CASES)
def test_every_choice_has_a_form(name: str) -> None:
    """A family without a form for one of its choices has none at all."""
    found = skeletons_of(direct.DIRECT, CASES[name][0])
    assert not isinstance(found, str), found
