"""`at` and `reduceByIndex`: values worked out by hand, in both forms of the language."""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import TypeRefused
from liftpy.language.text.program import parse, show
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference

XS = np.array([5, 2, 7, 3, 11], np.float32)
IS = np.array([4, -1, 5, 1, 1, 2**31 - 1, -(2**31)], np.int32)

#: A pipeline on `xs: [5]f32` and `is: [7]i32`, and what it gives.
CASES = {
    "is |> map(i => xs |> at(i))": [11, 0, 0, 2, 2, 0, 0],
    "is |> take(1) |> map(i => xs |> take(1) |> at(i))": [0],
    "is |> map(i => xs |> map(x => x > 4) |> at(i))": [
        True,
        False,
        False,
        False,
        False,
        False,
        False,
    ],
    "is |> drop(3) |> take(1) |> map(i => xs |> slide(2, 1) |> at(i))": [[2, 7]],
    "zip(is |> drop(2), xs) |> reduceByIndex((a, x) => a * 2 - x, 1 |> repeat(3))": [1, -7, 1],
    "zip(is |> drop(2), xs) |> reduceByIndexSeq((a, x) => a * 2 - x, 1 |> repeat(3))": [1, -7, 1],
    "zip(is |> drop(2), xs) |> reduceByIndexAtomic((a, x) => a * 2 - x, 1 |> repeat(3))": [
        1,
        -12,  # the last value comes first
        1,
    ],
    "is |> map(i => (i, 1i32)) |> reduceByIndex(addInt, 0i32 |> repeat(6))": [0, 2, 0, 0, 1, 1],
    "is |> map(i => (i, i)) |> reduceByIndex((a, i) => max(a, i), 0i32 |> repeat(1))": [0],
    "zip(is |> take(5), xs) |> reduceByIndex((a, x) => (a.1, x), (7f32, 8f32) |> repeat(2))": (
        [7, 3],
        [8, 11],
    ),
}


@pytest.mark.parametrize("body", CASES)
def test_value(body: str) -> None:
    program = parse(f"def f(xs: [5]f32, is: [7]i32) = {body}")
    assert parse(show(program)) == program
    wanted = CASES[body]
    for got in (evaluate(program, XS, IS), reference(program, XS, IS)):
        if isinstance(wanted, tuple):
            pairs = got if isinstance(got, tuple) else tuple(zip(*got, strict=True))
            np.testing.assert_array_equal(pairs, wanted)
        else:
            np.testing.assert_array_equal(got, wanted)


def test_the_embedded_words_build_the_same() -> None:
    @lp.program
    def f(xs: lp.array(lp.f32, 5), js: lp.array(lp.i32, 5)):
        bins = lp.zip(js, xs) >> lp.reduce_by_index(lp.add, 0, bins=4)
        return js >> lp.map(lambda j: bins >> lp.at(j)), xs >> lp.at(2)

    text = """def f(xs: [5]f32, js: [5]i32) = let bins = zip(js, xs)
      |> reduceByIndex(add, 0 |> repeat(4)) in (js |> map(j => bins |> at(j)), xs |> at(2i32))"""
    js = IS[:5] - 1
    for one, other in zip(f(XS, js), parse(text)(XS, js), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(f(XS, js)[0], [5, 0, 0, 14, 14])


def test_atomic_updates_are_written_over_a_parallel_map() -> None:
    @lp.program
    def f(js: lp.array(lp.i32, 5)):
        pairs = js >> lp.map_glb(0, lambda j: (j, 1))
        return pairs >> lp.reduce_by_index_atomic(lp.add, 0, bins=4)

    text = """def f(js: [5]i32) = js |> mapGlb(0, j => (j, 1i32))
      |> reduceByIndexAtomic(addInt, 0i32 |> repeat(4))"""
    js = IS[:5] - 1
    for program in (f, parse(text)):
        np.testing.assert_array_equal(program(js), [2, 0, 0, 1])


def test_initial_values_may_be_an_array() -> None:
    @lp.program
    def f(z: lp.array(lp.f32, 2), js: lp.array(lp.i32, 5)):
        pairs = js >> lp.map(lambda j: (j, lp.convert(j, lp.f32)))
        return pairs >> lp.reduce_by_index_seq(lambda a, x: a * 2 - x, z)

    np.testing.assert_array_equal(f(XS[:2], IS[:5]), [5, 5])


def test_sizes_may_be_open() -> None:
    text = """size n: 1..
    size m: 1..
    def f(is: [n]i32, z: [m]f32) = is |> map(i => (i, z |> at(i))) |> reduceByIndex(add, z)"""
    program = parse(text)
    np.testing.assert_array_equal(program(IS, XS), [5, 6, 7, 3, 22])


def test_a_number_may_be_an_index() -> None:
    text = """def f(xs: [5]f32) =
      (xs |> at(2), xs |> map(x => (3, x)) |> reduceByIndex(add, 0 |> repeat(4)))"""
    element, bins = parse(text)(XS)
    assert element == 7
    np.testing.assert_array_equal(bins, [0, 0, 0, 28])


def test_an_array_must_have_an_element_to_read() -> None:
    with pytest.raises(TypeRefused, match="requires that 1 <= n"):
        parse("size n: 0..0\ndef f(xs: [n]f32, i: i32) = xs |> at(i)")
