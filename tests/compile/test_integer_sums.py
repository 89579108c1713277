"""Sums of products of small integers, in i32 and in f32, against NumPy's int64, to the bit."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import LiftError

RNG = np.random.default_rng(5)
TYPES = {"u8": np.uint8, "i8": np.int8}


def product(t, u, rows, columns, length, start="0"):
    """A product of matrices of 8-bit integers, the second one given by columns."""
    return lp.parse(f"""
        def product_{t}_{u}_{length}(a: [{rows}][{length}]{t}, b: [{columns}][{length}]{u}) =
          a |> map(x => b |> map(y =>
            zip(x, y) |> map((v, w) => i32(v) * i32(w)) |> reduce(add, {start})))
    """)


def drawn(t, *shape):
    info = np.iinfo(TYPES[t])
    return RNG.integers(info.min, info.max + 1, shape).astype(TYPES[t])


def extreme(t, u, rows, columns, length):
    """Products of the largest magnitude, some of which are odd, so that a rounded sum shows."""
    a, b = (
        np.full((n, length), np.iinfo(TYPES[kind]).min or 255, TYPES[kind])
        for kind, n in ((t, rows), (u, columns))
    )
    for array in (a, b):
        array[:, ::7] += array[0, 0] < 0
    return a, b


CHOICE = {"family": "direct", "level": "glb", "pad": "fused"}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("t", "u", "length", "more"),
    [
        ("u8", "i8", 523, {"sums": "i32"}),
        ("u8", "i8", 509, {"sums": "f32"}),
        ("u8", "i8", 1028, {"sums": "f32", "strip": 514}),
        ("i8", "i8", 2048, {"sums": "f32", "strip": 1024}),
        ("u8", "u8", 774, {"sums": "f32", "strip": 258}),
        ("i8", "u8", 521, {"sums": "f32", "strip": 1}),
    ],
)
def test_sums_are_exact(runtime, t, u, length, more):
    """Whole sums, and the longest strips that are exact; extreme values, some of them odd."""
    program = product(t, u, 6, 32, length)
    settings = {**CHOICE, "rows": "columns", "kappa": 16, "sigma": 3, "v": 8, **more}
    with closing(lp.compile(program, settings, device=runtime)) as kernel:
        for arrays in ((drawn(t, 6, length), drawn(u, 32, length)), extreme(t, u, 6, 32, length)):
            wanted = arrays[0].astype(np.int64) @ arrays[1].astype(np.int64).T
            np.testing.assert_array_equal(kernel(*arrays), wanted)


def test_a_strip_is_as_long_as_is_exact_and_no_longer():
    """514 products of a u8 and an i8: at 515 one sum could be rounded."""
    lengths = {514: True, 515: False}
    for length, fits in lengths.items():
        space = lp.space(product("u8", "i8", 4, 16, 2 * length))
        strips = {c.assignment.get("strip") for c in space.sample(200, seed=1)}
        assert (length in strips) is fits, length


def test_the_whole_sum_is_in_f32_up_to_the_bound_only():
    assert "strip" not in settings_of(product("u8", "i8", 4, 16, 514))
    assert "strip" in settings_of(product("u8", "i8", 4, 16, 515))


def settings_of(program):
    """The names of the settings of candidates that sum in f32."""
    sampled = lp.space(program).sample(60, seed=2)
    found = {n for c in sampled if c.assignment.get("sums") == "f32" for n in c.assignment}
    assert found
    return found


def test_convolutions_are_summed_channel_by_channel(runtime):
    """3 x 3 windows of 59 channels, of which 531 products are too many for one sum in f32."""
    program = lp.parse("""
        def convolved(x: [7][9][59]u8, w: [16][3][3][59]i8, b: [16]i32) =
          x |> slide2d(3, 1) |> map(map(window => zip(w, b) |> map((kernel, bias) =>
            zip(window |> join |> join, kernel |> join |> join)
              |> map((v, u) => i32(v) * i32(u)) |> reduce(add, bias))))
    """)
    x, w = drawn("u8", 7, 9, 59), drawn("i8", 16, 3, 3, 59)
    x[:4], w[3:] = 255, -128
    b = np.arange(16, dtype=np.int32) * 1000 - 7
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (3, 3), (0, 1))
    wanted = np.einsum("yxcij,mijc->yxm", windows, w.astype(np.int64)) + b
    block = {"kappa": 16, "sigma": 7, "v": 16}
    for sums in ({"sums": "i32"}, {"sums": "f32"}):
        with closing(lp.compile(program, {**CHOICE, **block, **sums}, device=runtime)) as kernel:
            np.testing.assert_array_equal(kernel(x, w, b), wanted)


def test_other_sums_have_no_such_choice():
    for t, op in (("i32", "v * w"), ("f32", "v * w")):
        program = lp.parse(f"""
            def other_{t}(a: [4][64]{t}, b: [16][64]{t}) =
              a |> map(x => b |> map(y => zip(x, y) |> map((v, w) => {op}) |> reduce(add, 0)))
        """)
        with pytest.raises(LiftError, match="sums"):
            lp.compile(program, {**CHOICE, "sums": "f32"})
