"""Correlations of 8-bit integers by F(2, 3) are equal to sums in int64, to the bit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import liftpy as lp
from liftpy.rewrite.partition import other_algorithms
from liftpy.rewrite.rules import integral
from tests.candidates import compiled, result

RNG = np.random.default_rng(11)
TYPES = {"u8": np.uint8, "i8": np.int8}


def convolution(t, u, rows, columns, channels, kernels, pad=1, zero=0):
    """A convolution of 3 x 3 elements with a bias, channels last."""
    return lp.parse(f"""
        def convolution(x: [{rows}][{columns}][{channels}]{t},
                        const w: [{kernels}][3][3][{channels}]{u}, const b: [{kernels}]i32) =
          x |> pad({pad}, {pad}, {zero}) |> map(pad({pad}, {pad}, {zero}))
            |> slide(3, 1) |> map(map(slide(3, 1)) |> transpose)
            |> map(map(window => zip(w, b) |> map(k =>
              zip(window |> join |> join, k.0 |> join |> join)
                |> map((v, u) => i32(v) * i32(u)) |> reduce(add, k.1))))""")


def depthwise(t, u, rows, columns, channels):
    return lp.parse(f"""
        def depthwise(x: [{rows}][{columns}][{channels}]{t},
                      const w: [{channels}][3][3]{u}, const b: [{channels}]i32) =
          x |> slide(3, 1) |> map(map(slide(3, 1)) |> transpose)
            |> map(map(window => zip(window |> join |> transpose, w |> map(join), b) |> map(k =>
              zip(k.0, k.1) |> map((v, u) => i32(v) * i32(u)) |> reduce(add, k.2))))""")


def line(t, u, length, channels, kernels):
    return lp.parse(f"""
        def line(x: [{length}][{channels}]{t}, const w: [{kernels}][3][{channels}]{u}) =
          x |> slide(3, 1) |> map(window => w |> map(k =>
            zip(window |> join, k |> join)
              |> map((v, u) => i32(v) * i32(u)) |> reduce(add, 0)))""")


def drawn(program):
    """Numbers from the whole ranges of the types."""
    return {
        p.name: RNG.integers(low, high, shape, endpoint=True).astype(kind)
        for p in program.params
        for kind, shape in [kind_of(p)]
        for low, high in [(np.iinfo(kind).min, np.iinfo(kind).max)]
    }


def kind_of(param):
    """The NumPy type and the shape of a parameter."""
    element = str(param.type).rpartition("]")[2]
    kind = TYPES.get(element, np.int32)
    return kind, tuple(map(int, param.type.shape))


def extremes(program):
    """Numbers at the ends of their ranges: of one sign, and in patterns of tile and kernel."""
    for k, l in itertools.product(range(3), repeat=2):  # noqa: E741
        arrays = drawn(program)
        for name, number in (("x", k), ("w", l)):
            array = arrays[name]
            info = np.iinfo(array.dtype)
            if number == 2:
                place = np.indices(array.shape).sum(0) % 2
                arrays[name] = np.where(place, info.min, info.max).astype(array.dtype)
            else:
                arrays[name] = np.full_like(array, (info.min, info.max)[number])
        yield arrays


def summed(arrays, pad=0, zero=0):
    """The result of a convolution in int64, wrapped to i32."""
    x, w = arrays["x"].astype(np.int64), arrays["w"].astype(np.int64)
    sides = x.ndim - 1
    x = np.pad(x, [(pad, pad)] * sides + [(0, 0)], constant_values=zero)
    windows = np.lib.stride_tricks.sliding_window_view(x, (3,) * sides, tuple(range(sides)))
    if w.ndim == sides + 1:
        sums = np.einsum("yxcij,cij->yxc", windows, w)
    else:
        sums = np.einsum("yxcij,mijc->yxm" if sides == 2 else "xci,mic->xm", windows, w)
    return (sums + arrays.get("b", np.int64(0))).astype(np.int32)


def words(program):
    """The words of the choice `winograd`."""
    return {dict(form.words)["winograd"] for form in other_algorithms(program)}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("inputs", ["stored", "held"])
@pytest.mark.parametrize("types", integral.TYPES)
def test_a_convolution_is_exact(runtime, types, inputs):
    """At prime lengths, in the longest strips, with a zero point at an end of the range.

    Biases may make results wrap around.
    """
    t, u = types.split("_")
    zero = int(np.iinfo(TYPES[t]).max)
    program = convolution(t, u, 5, 7, 2 * integral.strips(f"integral_2_3_{types}"), 3, zero=zero)
    module = compiled(program, {"winograd": "2x2", "inputs": inputs})
    for arrays in (drawn(program), *extremes(program)):
        got = result(runtime, module, arrays)
        np.testing.assert_array_equal(got, summed(arrays, 1, zero))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("types", integral.TYPES)
def test_a_depthwise_convolution_is_exact(runtime, types):
    program = depthwise(*types.split("_"), 7, 8, 5)
    module = compiled(program, {"winograd": "2x2"})
    for arrays in (drawn(program), *extremes(program)):
        np.testing.assert_array_equal(result(runtime, module, arrays), summed(arrays))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("types", integral.TYPES)
def test_a_convolution_of_one_dimension_is_exact(runtime, types):
    program = line(*types.split("_"), 13, 2 * integral.strips(f"integral_line_2_3_{types}"), 3)
    module = compiled(program, {"winograd": "2", "inputs": "stored"})
    for arrays in (drawn(program), *extremes(program)):
        np.testing.assert_array_equal(result(runtime, module, arrays), summed(arrays))


def test_four_times_the_sum_may_be_as_large_as_an_i32(runtime):
    """Of products of u8 less 128 and i8, the sums fit for 3640 channels, but not for 3641."""
    assert 4 * 9 * 128 * 128 * 3640 < 2**31 < 4 * 9 * 128 * 128 * 3641
    program = convolution("u8", "i8", 4, 4, 3640, 1, pad=0)
    assert words(program) == {"2x2"}
    module = compiled(program, {"winograd": "2x2", "inputs": "stored"})
    for arrays in extremes(program):
        np.testing.assert_array_equal(result(runtime, module, arrays), summed(arrays))
    assert words(convolution("u8", "i8", 4, 4, 3641, 1, pad=0)) == set()


def test_strips_are_as_long_as_is_exact():
    """A strip has 28 of 56 channels, and 15 of 30; 29 channels have no strip."""
    for channels, strip in ((56, 28), (30, 15), (7, 7)):
        source = compiled(
            convolution("u8", "i8", 4, 4, channels, 2), {"winograd": "2x2", "inputs": "stored"}
        ).source
        assert f"< {strip};" in source
    assert words(convolution("u8", "i8", 4, 4, 29, 2)) == set()
    assert words(convolution("u8", "u8", 4, 4, 17, 2)) == set()  # at most 14 channels


def test_a_limit_on_the_error_keeps_the_forms():
    """They have no error."""
    program = convolution("u8", "i8", 6, 6, 8, 4)
    space = lp.space(program, fixed={"winograd": "2x2"}, max_error=0)
    assert space.sample(3, seed=1)


def test_other_sums_of_integers_have_no_form():
    """A difference, and numbers of 16 bits: f32 holds no product of their transformed values."""
    program = convolution("u8", "i8", 5, 5, 8, 2)
    text = lp.show(program)
    for changed in (
        text.replace("i32(v) * i32(u)", "i32(v) - i32(u)"),
        text.replace("]i8", "]i16"),
    ):
        assert changed != text
        assert words(lp.parse(changed)) == set()
