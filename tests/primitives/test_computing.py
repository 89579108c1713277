"""What computes, by hand: functions that do not commute, lengths 1, 2 and prime."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from liftpy.errors import TypeRefused
from tests.primitives.values import numbers, says

LENGTHS = (1, 2, 7)

FOLDED = "{}((a, x) => 2 * a - x, 3)"


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize(
    "word",
    [
        "map(",
        "mapSeq(",
        "mapGlb(0, ",
        "mapGlb(2, ",
        "mapWrg(1, ",
        "mapLcl(0, ",
        "mapSubgroup(8, ",
        "mapItem(",
    ],
)
def test_every_map_is_map(word, length):
    """Which loop or level does the work changes nothing in the value."""
    xs = numbers(length)
    np.testing.assert_array_equal(says(f"xs |> {word}x => x * 2 + 1)", xs), xs * 2 + 1)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("word", ["reduce", "reduceSeq", "reduceSeqUnroll", "reduceInPlace"])
def test_every_reduction_is_a_left_fold(word, length):
    xs = numbers(length)
    expected = functools.reduce(lambda a, x: 2 * a - x, xs, np.float32(3))
    assert says(f"xs |> {FOLDED.format(word)}", xs) == expected


@pytest.mark.parametrize("word", ["reduceSubgroups", "reduceItems"])
@pytest.mark.parametrize("length", LENGTHS)
def test_a_fold_by_subgroups_is_a_fold_from_the_right(length, word):
    """So that no law about the order of `reduce` holds for it without assumptions."""
    xs = numbers(length)
    expected = functools.reduce(lambda a, x: 2 * a - x, xs[::-1], np.float32(3))
    assert says(f"xs |> {FOLDED.format(word)}", xs) == expected


def test_vectors_are_mapped_and_folded_by_their_lanes():
    xs = numbers(8)
    text = "xs |> asVector(4) |> map(mapVec(x => x * 2 + 1)) |> asScalar"
    np.testing.assert_array_equal(says(text, xs), xs * 2 + 1)
    text = f"xs |> asVector(4) |> map({FOLDED.format('reduceVec')})"
    expected = [functools.reduce(lambda a, x: 2 * a - x, row, 3) for row in xs.reshape(2, 4)]
    np.testing.assert_array_equal(says(text, xs), expected)


@pytest.mark.parametrize(
    "memory", ["toGlobal", "toStreamed", "toLocal", "toLocalPadded(3)", "toPrivate", "toSubgroup"]
)
def test_a_value_is_the_same_in_every_memory(memory):
    xs = numbers(7)
    np.testing.assert_array_equal(says(f"xs |> map(x => x + 1) |> {memory}", xs), xs + 1)


def test_zip_get_and_unzip_put_together_and_take_apart():
    xs, ys = numbers(7), -numbers(7)
    for k, part in enumerate((xs, ys)):
        np.testing.assert_array_equal(says(f"zip(xs, ys) |> map(get({k}))", xs, ys), part)
        np.testing.assert_array_equal(says(f"zip(xs, ys) |> unzip |> get({k})", xs, ys), part)


REFUSED = {
    "map(x => x |> join)": "join needs an array",
    "reduce((a, x) => zip(xs, xs), 0)": "that returns f32, the accumulator's type",
    "mapVec(x => x)": "mapVec needs a vector",
    "reduceSubgroups((a, x) => a, 1i32)": "folds elements of the accumulator's type, i32",
    "reduceVec((a, x) => a, 0)": "reduceVec needs a vector",
    "unzip": "unzip needs an array of tuples",
    "get(0)": "needs a tuple",
    "asScalar": "asScalar needs an array of vectors",
    "asVector(3)": "it requires that 3 divides 16",
    "asVector(4)": "it requires that 4 divides 7",
    "split(2)": "it requires that 2 divides 7",
    "transpose": "transpose needs an array",
    "slide(8, 1)": "it requires that 8 <= 7",
    "slide(0, 1)": "it requires that 1 <= 0",
    "pad(-4, -3, 0)": "it requires that 1 <= 0",
}


@pytest.mark.parametrize("stage", REFUSED)
def test_what_makes_no_sense_is_refused(stage):
    with pytest.raises(TypeRefused) as refusal:
        says(f"xs |> {stage}", numbers(7))
    assert REFUSED[stage] in str(refusal.value)
