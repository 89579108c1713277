"""Every abbreviation of the text form is the word of that name of the embedded form."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from liftpy.ir.expr import Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import var
from liftpy.ir.types import F32, array
from liftpy.language.embedded.lang import slide_nd
from liftpy.language.embedded.words import snake
from liftpy.language.text.compositions import ABBREVIATIONS, SIDES
from liftpy.language.text.program import parse_expression
from liftpy.semantics.evaluate import evaluate
from tests.primitives.values import numbers, says

xs, grid = Param("xs", array(F32, 7)), Param("grid", array(F32, 5, 6))
cube = Param("cube", array(F32, 4, 5, 6))
i = var("i")
AMOUNTS = (1, 2, 0, 3, 4, 2)
PAIRS = {
    "map2d": ("grid |> map2d(x => x + 1)", lambda: grid >> lp.map2d(lambda x: x + 1)),
    "map3d": ("cube |> map3d(x => x + 1)", lambda: cube >> lp.map3d(lambda x: x + 1)),
    "pad2d": ("grid |> pad2d(1, 0, 2, 3, 0.5)", lambda: grid >> lp.pad2d(1, 0, 2, 3, 0.5)),
    "pad3d": (
        "cube |> pad3d(1, 2, 0, 3, 4, 2, 0.5)",
        lambda: cube >> lp.pad3d(*AMOUNTS, 0.5),
    ),
    "slide2d": ("grid |> slide2d(3, 2)", lambda: grid >> lp.slide2d(3, 2)),
    "slide3d": ("cube |> slide3d(2, 1)", lambda: cube >> lp.slide3d(2, 1)),
    "slice": ("xs |> slice(2, 3)", lambda: xs >> lp.slice(2, 3)),
    "scatter": (
        "xs |> scatter(i => 3 * i % 7, i => 5 * i % 7)",
        lambda: xs >> lp.scatter(lambda i: 3 * i % 7, 5 * i % 7),
    ),
    "full": ("full(3, xs)", lambda: lp.full(3, xs)),
    "iota": ("iota(3)", lambda: lp.iota(3)),
    "permute": ("cube |> permute(2, 0, 1)", lambda: cube >> lp.permute(2, 0, 1)),
}


def bordered(word: str, rank: int):
    """Padding at the border in some dimensions, in both forms."""
    amounts, (name, array_) = AMOUNTS[: 2 * rank], {2: ("grid", grid), 3: ("cube", cube)}[rank]
    text = f"{name} |> {word}{rank}d({', '.join(map(str, amounts))})"
    return text, lambda: array_ >> getattr(lp, snake(f"{word}{rank}d"))(*amounts)


PAIRS |= {
    f"{word}{rank}d": bordered(word, rank)
    for word in ("padClamp", "padMirror", "padWrap")
    for rank in SIDES
}


def test_every_abbreviation_is_one_of_the_embedded_form():
    assert set(PAIRS) == ABBREVIATIONS


@pytest.mark.parametrize("name", PAIRS)
def test_an_abbreviation_is_the_embedded_word(name):
    text, embedded = PAIRS[name]
    assert parse_expression(text, (xs, grid, cube)) == embedded()


@pytest.mark.parametrize("word", ["padClamp", "padMirror", "padWrap"])
def test_padding_in_two_and_three_dimensions_is_that_of_numpy(word):
    mode = {"padClamp": "edge", "padMirror": "symmetric", "padWrap": "wrap"}[word]
    two, three = numbers(3, 5), numbers(2, 3, 5)
    got = says(f"xs |> {word}2d(2, 1, 0, 3)", two)
    np.testing.assert_array_equal(got, np.pad(two, ((2, 1), (0, 3)), mode=mode))
    got = says(f"xs |> {word}3d(1, 2, 0, 3, 4, 2)", three)
    np.testing.assert_array_equal(got, np.pad(three, ((1, 2), (0, 3), (4, 2)), mode=mode))


def test_windows_in_three_dimensions_are_those_of_numpy():
    data = numbers(4, 5, 7)
    view = np.lib.stride_tricks.sliding_window_view(data, (2, 2, 2))
    np.testing.assert_array_equal(says("xs |> slide3d(2, 1)", data), view)
    np.testing.assert_array_equal(says("xs |> slide3d(2, 3)", data), view[::3, ::3, ::3])


def test_windows_may_differ_in_each_dimension():
    sizes, steps = (2, 3, 1), (1, 2, 3)
    data = numbers(4, 5, 6)
    got = evaluate(Lambda((cube,), slide_nd(sizes, steps)(cube)), data)
    view = np.lib.stride_tricks.sliding_window_view(data, sizes)
    np.testing.assert_array_equal(got, view[::1, ::2, ::3])


def test_a_boundary_needs_two_amounts_for_each_dimension():
    with pytest.raises(TypeRefused, match="pad_clamp2d takes 4 amounts, two for each dimension"):
        lp.pad_clamp2d(1, 2, 3)
