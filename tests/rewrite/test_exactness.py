"""What f32 computes exactly: bounds from the ranges of types, and sums that are one too long."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.ir.types import SCALARS, integer_range
from liftpy.language.text.program import parse
from liftpy.rewrite.exactness import LARGEST_EXACT, exact_in_f32


def step(text, *types):
    """The function of parameters a, b, ... with a body in the text form."""
    names = "abc"[: len(types)]
    params = ", ".join(f"{n}: {t}" for n, t in zip(names, types, strict=True))
    return parse(f"def p({params}) = {text}").body


def most(text, *types):
    """The most results that f32 can add without rounding."""
    found = exact_in_f32(step(text, *types))
    assert found is not None
    return LARGEST_EXACT // found[1]


@pytest.mark.parametrize(
    ("types", "count"),
    [(("u8", "i8"), 514), (("i8", "i8"), 1024), (("u8", "u8"), 258), (("i16", "u8"), 2)],
)
def test_the_ranges_of_the_types_bound_the_number_of_products(types, count):
    assert most("i32(a) * i32(b)", *types) == count
    ends = [integer_range(SCALARS[t]) for t in types]
    largest = max(abs(x * y) for x in ends[0] for y in ends[1])
    assert count * largest <= 2**24 < (count + 1) * largest


def test_zero_points_and_negation_are_counted():
    assert most("(i32(a) - 255) * -(i32(b) + 1)", "u8", "i8") == 2**24 // (255 * 128)
    assert most("(i32(a) - i32(b)) * i32(c)", "u8", "u8", "i8") == 2**24 // (255 * 128)


@pytest.mark.parametrize(
    ("text", "types"),
    [
        ("a * b", ("i32", "i32")),  # their range is not known to be small
        ("i32(a)", ("u32",)),
        ("i32(a) * i32(a) * i32(a) * i32(a)", ("u8",)),
        ("i32(a) / 2", ("u8",)),
        ("i32(a)", ("f32",)),
        ("i32(a) * 16777217", ("u8",)),
    ],
)
def test_what_may_be_rounded_or_is_not_known_is_left_in_i32(text, types):
    assert exact_in_f32(step(text, *types)) is None


def test_a_sum_of_one_product_more_is_rounded():
    """255 * -128 alone does not show it: it is a multiple of 128. One odd product does."""
    xs = np.full(515, 255, np.float32)
    ys = np.full(515, -128, np.float32)
    exact = int(xs.astype(np.int64) @ ys.astype(np.int64))
    assert np.add.accumulate(xs * ys)[-1] == exact
    ys[-1] = -127
    sums = np.add.accumulate(xs * ys)
    assert int(sums[513]) == -514 * 255 * 128
    assert int(sums[514]) != -514 * 255 * 128 - 255 * 127


def test_the_function_in_f32_computes_the_same():
    found = exact_in_f32(step("(i32(a) - 7) * i32(b)", "u8", "i8"))
    assert found is not None
    assert str(found[0].body.type) == "f32"
