"""Scans, iterations and conversions by numbers: `evaluate` against the references, and by hand."""

import math

import numpy as np
import pytest

from liftpy.errors import TypeRefused
from liftpy.ir.denote import Closure
from liftpy.ir.scalars import bounds, cast_literal, misfit
from liftpy.ir.types import BOOL, F16, F32, F64, I8, I32, I64
from liftpy.language.text.program import parse
from liftpy.semantics import numbers
from liftpy.semantics.evaluate import evaluate, evaluate_at
from liftpy.semantics.operations import convert, quotient, rest
from liftpy.semantics.reference import reference

XS = np.array([3, -7, 11, 2, -5, 13, 1], np.int64)
XSS = np.arange(35, dtype=np.int64).reshape(5, 7) % 11 - 4
HORNER = "(s, x) => s * 3 - x"
PROGRAMS = {
    "scan": f"xs |> scan({HORNER}, 2)",
    "exclusive scan": f"xs |> exclusiveScan({HORNER}, 2)",
    "exclusive scan of rows": f"xss |> map(exclusiveScan({HORNER}, 2))",
    "exclusive scan of pairs": "zip(xs, xs) "
    "|> exclusiveScan((s, t) => (s.1 - t.0, s.0 + t.1), (0, 1))",
    "scan of rows": f"xss |> map(scan({HORNER}, 2))",
    "scan under a scan": f"xss |> scan((s, row) => s * 3 - (row |> scan({HORNER}, s) "
    "|> reduce((a, x) => a - x, 0)), 1)",
    "scan from each element": f"xs |> map(x => xs |> scan({HORNER}, x))",
    "windows of a scan": f"xs |> scan({HORNER}, 2) |> slide(3, 2) |> map(reduce({HORNER}, 0))",
    "transposed scans": f"xss |> map(scan({HORNER}, 2)) |> transpose |> map(scan({HORNER}, 0))",
    "scan of arrays": "xss |> transpose |> scan((s, c) => zip(s, c) "
    "|> map((a, x) => a * 2 - x), xss |> map(row => 1i64))",
    "scan that turns its accumulator": "xss |> transpose |> scan((s, c) => zip(s "
    "|> reorder(i => (i + 1) % 5, i => (i + 4) % 5), c) |> map((a, x) => a * 2 - x), "
    "xss |> map(row => 1i64))",
    "scan of pairs": "zip(xs, xs) |> scan((s, t) => (s.1 - t.0, s.0 * 2 + t.1), (0, 1))",
    "iterate": "xs |> map(iterate(4, x => x * 3 - 1))",
    "iterate an array": "xs |> iterate(3, ys => zip(ys, ys |> reorder(i => 6 - i, i => 6 - i)) "
    "|> map((a, b) => a * 2 - b))",
    "iterate never": "xs |> iterate(0, map(x => x + 1))",
    "iterate with an outer name": "xs |> map(x => xs |> iterate(2, map(y => y * x - 1)))",
    "slideSeq": f"xss |> map(slideSeq(3, 2, reduce({HORNER}, 0)))",
    "whole divisions": "xss |> map(map(x => (x / 3, x % 3, x / -2, x % -2, x / (x - 2))))",
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_sequence_is_what_its_reference_says(name):
    program = parse(f"def p(xs: [7]i64, xss: [5][7]i64) = {PROGRAMS[name]}")
    got = evaluate(program, XS, XSS)
    wanted = reference(program, XS, XSS)
    if isinstance(got, tuple):
        got = np.stack(got, axis=-1)
    np.testing.assert_array_equal(got, np.array(wanted))


@pytest.mark.parametrize("name", ["scan of rows", "scan of arrays", "transposed scans"])
def test_a_scan_at_points_is_that_of_the_whole(name):
    program = parse(f"def p(xs: [7]i64, xss: [5][7]i64) = {PROGRAMS[name]}")
    whole = evaluate(program, XS, XSS)
    points = np.argwhere(np.ones(whole.shape, bool))[::3]
    np.testing.assert_array_equal(evaluate_at(program, points, XS, XSS), whole[tuple(points.T)])


def test_a_scan_is_numpys_running_sum():
    program = parse("def p(xs: [7]i64, xss: [5][7]i64) = xss |> map(scan((s, x) => s + x, 0))")
    np.testing.assert_array_equal(evaluate(program, XS, XSS), np.cumsum(XSS, axis=1))


def test_tuples_are_padded_in_each_step_of_an_iteration():
    text = "xs |> iterate(3, ys => ys |> pad(1, -1, 4)) |> map(t => (t.1, t.0))"
    floats, whole = np.arange(1, 6, dtype=np.float32), np.arange(11, 16, dtype=np.int32)
    program = parse(f"def p(xs: [5](f32, i32)) = {text}")
    first, second = evaluate(program, (floats, whole))
    np.testing.assert_array_equal(first, [4, 4, 4, 11, 12])
    np.testing.assert_array_equal(second, [4, 4, 4, 1, 2])


# --- whole numbers --------------------------------------------------------------------------------


def test_division_rounds_towards_zero_and_the_rest_has_the_sign_of_the_dividend():
    a = np.array([7, -7, 7, -7, 5, -5, -128, -128, 127], np.int8)
    b = np.array([2, 2, -2, -2, 0, 0, -1, 0, -128], np.int8)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(quotient(a, b), [3, -3, -3, 3, 0, 0, -128, 0, 0])
        np.testing.assert_array_equal(rest(a, b), [1, -1, 1, -1, 5, -5, 0, -128, 127])
        np.testing.assert_array_equal(quotient(a, b) * b + rest(a, b), a)


def test_every_byte_divided_by_every_byte():
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    safe = np.where(b == 0, 1, b)
    wanted = np.where(b == 0, 0, np.trunc(a / safe)).astype(np.int64)
    with np.errstate(all="ignore"):
        got = quotient(a.astype(np.int8), b.astype(np.int8))
        left = rest(a.astype(np.int8), b.astype(np.int8))
    np.testing.assert_array_equal(got, wanted.astype(np.int8))
    np.testing.assert_array_equal(left, np.where(b == 0, a, np.fmod(a, safe)))


def test_a_float_becomes_the_nearest_whole_number_towards_zero():
    floats = np.array([1.9, -1.9, 127.9, 128, -129, 3e9, np.inf, -np.inf, np.nan], np.float32)
    with np.errstate(all="ignore"):
        bytes_ = convert(floats, np.int8)
        words = convert(floats, np.int32)
    np.testing.assert_array_equal(bytes_, [1, -1, 127, 127, -128, 127, 127, -128, 0])
    top, low = 2**31 - 1, -(2**31)
    np.testing.assert_array_equal(words, [1, -1, 127, 128, -129, top, top, low, 0])


def test_a_large_float_is_the_end_of_64_bits():
    top = np.iinfo(np.int64).max
    got = convert(np.array([2.0**63, 2.0**63 - 1024, -(2.0**63)]), np.int64)
    np.testing.assert_array_equal(got, [top, 2**63 - 1024, -top - 1])


# --- literals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "t", "why"),
    [
        (127, I8, None),
        (128, I8, "it is out of range"),
        (-129, I8, "it is out of range"),
        (2**31, I32, "it is out of range"),
        (2**63 - 1, I64, None),
        (2**63, I64, "it is out of range"),
        (1.5, I32, "it is not a whole number"),
        (65504, F16, None),
        (65520, F16, "it is out of range"),
        (1e39, F32, "it is out of range"),
        (1e39, F64, None),
        (math.inf, F16, None),
        (1, BOOL, None),
    ],
)
def test_numbers_fit_their_types(value, t, why):
    assert misfit(value, t) == why
    if why is None:
        assert cast_literal(value, t) == value
    else:
        with pytest.raises(TypeRefused, match=bounds(t)):
            cast_literal(value, t)


STEPS = {
    "a sum": ("f32", "(s, x) => s + x"),
    "a sum that rounds": ("f32", "(s, x) => s * 0.99 + x"),
    "a product": ("i32", "(s, x) => s * x"),
    "a difference": ("i32", "(s, x) => s - x"),
    "a difference the other way round": ("i32", "(s, x) => x - s"),
    "a least one": ("f32", "(s, x) => min(s, x)"),
    "a quotient": ("i32", "(s, x) => s / x"),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "in rows"])
def test_a_long_reduction_takes_its_steps_in_order(monkeypatch, name, inside):
    """Bit for bit, whatever the blocks are in which its elements are computed."""
    scalar, step = STEPS[name]
    fold = f"map(x => x * 3) |> reduce({step}, 7)"
    shape, whole = ("[3][101]", f"xs |> map(row => row |> {fold})") if inside else ("[101]", "")
    program = parse(f"def p(xs: {shape}{scalar}) = {whole or f'xs |> {fold}'}")
    values = np.random.default_rng(3).integers(1, 9, (3, 101) if inside else 101)
    xs = values.astype({"f32": np.float32, "i32": np.int32}[scalar])
    given = evaluate(program, xs)
    monkeypatch.setattr(numbers, "LONG", 1 << 30)
    one_by_one = evaluate(program, xs)
    monkeypatch.setattr(numbers, "LONG", 2)
    monkeypatch.setattr(numbers, "BLOCK", 21)
    in_blocks = evaluate(program, xs)
    assert given.dtype == one_by_one.dtype == in_blocks.dtype
    np.testing.assert_array_equal(given, one_by_one)
    np.testing.assert_array_equal(in_blocks, one_by_one)


def test_a_sum_of_a_million_is_no_loop_of_a_million_steps(monkeypatch):
    """The step of a sum is numpy's: no step is taken here."""
    program = parse("def p(xs: [1000000]f32) = xs |> map(x => x * x) |> reduce(add, 0)")
    monkeypatch.setattr(Closure, "__call__", counted(Closure.__call__, calls := []))
    assert evaluate(program, np.ones(1000000, np.float32), dtype=np.float64) == 1000000
    assert len(calls) < 100


def counted(function, calls):
    """The function, which notes that it is called."""

    def noted(*values):
        calls.append(None)
        return function(*values)

    return noted
