"""Operators on the bits of integers, in both forms."""

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from liftpy.semantics.operations import DTYPES

N = 7
XS, YS = np.int32([-9, 7, 0, 100, -1, 2**31 - 1, 12]), np.int32([3, -2, 31, 33, 1, -31, 5])


@lp.program
def combined(xs: lp.array(lp.i32, N), ys: lp.array(lp.i32, N)):
    return lp.zip(xs, ys) >> lp.map(lambda x, y: ((x & y) | (x ^ 6), ~x, 5 & y, 2 | x, 9 ^ y))


@lp.program
def moved(xs: lp.array(lp.i32, N), ys: lp.array(lp.i32, N)):
    return lp.zip(xs, ys) >> lp.map(
        lambda x, y: (x << y, x >> y, 3 << y, -100 >> y, x >> 2, x << 3)
    )


def test_the_operators_of_python_combine_the_bits_of_integers():
    found = combined(XS, YS)
    wanted = (XS & YS) | (XS ^ 6), ~XS, YS & 5, XS | 2, YS ^ 9
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_operators_of_python_shift_by_a_count_modulo_the_bits():
    found = moved(XS, YS)
    n = YS & 31
    wanted = XS << n, XS >> n, np.int32(3) << n, np.int32(-100) >> n, XS >> 2, XS << 3
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_text_has_words_for_them():
    found = lp.parse("""def p(xs: [7]i32, ys: [7]i32) =
      zip(xs, ys) |> map((x, y) => (shiftLeft(x, y), shiftRight(x, y), bitXor(bitNot(x), 6)))""")
    left, right, other = lp.evaluate(found, XS, YS)
    np.testing.assert_array_equal(left, XS << (YS & 31))
    np.testing.assert_array_equal(right, XS >> (YS & 31))
    np.testing.assert_array_equal(other, ~XS ^ 6)
    assert lp.parse(lp.show(found)) == found


def test_functions_and_numbers_of_numpy_are_operators_of_python():
    @lp.program
    def p(xs: lp.array(lp.u8, 3)):
        return xs >> lp.map(
            lambda x: (
                np.bitwise_xor(np.bitwise_and(x, 12), np.invert(np.uint8(3) | x))
                + np.left_shift(x, 1)
                - np.right_shift(x, 2)
            )
        )

    xs = np.uint8([200, 7, 77])
    np.testing.assert_array_equal(p(xs), ((xs & 12) ^ ~(xs | 3)) + (xs << 1) - (xs >> 2))


def test_truth_values_keep_their_logic():
    @lp.program
    def p(xs: lp.array(lp.i32, N)):
        return xs >> lp.map(lambda x: ((x & 1 == 1) & ~(x < 0)) ^ (x == 7))

    np.testing.assert_array_equal(p(XS), ((XS & 1 == 1) & ~(XS < 0)) ^ (XS == 7))


def test_a_user_function_of_bits_is_folded_with_its_laws():
    flags = lp.parse("""
      fun either(x: u16, y: u16) = bitOr(x, y) laws associative, commutative, neutral 0
      fun both(x: u16, y: u16) = bitAnd(x, y) laws associative, commutative, neutral 65535
      def p(xs: [96]u16) = (xs |> reduce(either, 0), xs |> reduce(both, 65535))""")
    xs = np.random.default_rng(5).integers(0, 1 << 16, 96, np.uint16)
    either, both = lp.evaluate(flags, xs | 2)
    assert either == np.bitwise_or.reduce(xs | 2)
    assert both == np.bitwise_and.reduce(xs | 2)


@pytest.mark.parametrize(
    ("write", "why"),
    [
        (lambda x: x << 40, "shifts i32 by 40 bits: write a count from 0 to 31"),
        (lambda x: x >> -1, "shifts i32 by -1 bits"),
        (lambda x: 1.5 & x, "1.5 is not an i32"),
        (lambda x: lp.convert(x, lp.f32) << 2, "`<<` needs integers, got f32, 2"),
        (lambda x: lp.convert(x, lp.f32) ^ 2, r"needs truth values or integers, got f32"),
        (lambda x: lp.convert(x, lp.f32) | 1, r"`\|` needs truth values or integers, got f32"),
        (lambda x: ~lp.convert(x, lp.f32), "`~` needs truth values or integers, got f32"),
        (lambda x: x & lp.convert(x, lp.i64), r"(?s)scalars of the same type.*lp.i32\) converts"),
        (lambda x: x & (x < 3), "scalars of the same type"),
    ],
)
def test_what_has_no_bits_is_refused(write, why):
    with pytest.raises(TypeRefused, match=why):
        lp.iota(4) >> lp.map(write)


@pytest.mark.parametrize(
    ("t", "op", "unit"),
    [("u64", "bitAnd", 2**64 - 1), ("i64", "min", 2**63 - 1), ("u64", "min", 2**64 - 1)],
)
def test_a_neutral_element_of_64_bits_is_exact(t, op, unit, runtime, tmp_path):
    text = f"""
      fun both(x: {t}, y: {t}) = {op}(x, y) laws associative, commutative, neutral {unit}
      def p(xs: [60]{t}) = xs |> reduce(both, {unit})"""
    found = lp.parse(text)
    assert lp.parse(lp.show(found)) == found
    campaign = lp.explore(
        found, samples=6, search="random", db=tmp_path / "p.db", device=runtime, again=False
    )
    assert campaign.counts == {"measured": 6}
    types = {"x": getattr(lp, t), "y": getattr(lp, t)}
    for value in (unit, DTYPES[t](unit)):
        law = lp.fun("both", types, lambda x, y: x & y, (lp.neutral(value),)).laws[0]
        assert law.value == unit


@pytest.mark.parametrize(
    ("name", "written"), [("bitwise_and", "x & y"), ("xor", r"x \^ y"), ("shift_left", "x << n")]
)
def test_a_name_without_a_word_suggests_the_operator(name, written):
    with pytest.raises(AttributeError, match=f"write {written}$"):
        getattr(lp, name)
