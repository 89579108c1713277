"""Each layout by hand: what it does to arrays of 1, 2, odd and prime lengths, and what it refuses.

numpy says the same in words of its own.
"""

from __future__ import annotations

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import SyntaxRefused, TypeRefused
from liftpy.ir.expr import Param
from liftpy.ir.types import F32, array
from liftpy.language.text.program import parse, parse_expression
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.reference import reference
from tests.primitives.values import numbers, says

one, two, seven, eleven = (numbers(n) for n in (1, 2, 7, 11))
rows, cube = numbers(3, 5), numbers(2, 3, 5)
thirds = np.arange(7) * 3 % 7


def cropped_pad(xs: np.ndarray, left: int, right: int, mode: str) -> np.ndarray:
    """Numpy's padding; negative amounts cut off."""
    wide = np.pad(xs, (max(0, left), max(0, right)), mode=mode)
    return wide[max(0, -left) : len(wide) - max(0, -right)]


@pytest.mark.parametrize("amounts", [(0, 0), (3, 2), (1, 0), (0, 1), (-1, 2), (2, -1), (40, 23)])
@pytest.mark.parametrize("word", ["padClamp", "padMirror", "padWrap"])
@pytest.mark.parametrize("xs", [one, two, seven, eleven], ids=len)
def test_padding_at_the_border_is_that_of_numpy(word, amounts, xs):
    left, right = amounts
    mode = {"padClamp": "edge", "padMirror": "symmetric", "padWrap": "wrap"}[word]
    text = f"xs |> {word}({left}, {right})"
    if left + len(xs) + right < 1 or (word == "padMirror" and max(amounts) > len(xs)):
        with pytest.raises(TypeRefused, match="it requires that"):
            says(text, xs)
    else:
        np.testing.assert_array_equal(says(text, xs), cropped_pad(xs, left, right, mode))


@pytest.mark.parametrize("amounts", [(-5, 4), (4, -9), (-3, -3)])
@pytest.mark.parametrize("word", ["pad", "padClamp", "padWrap"])
def test_a_crop_may_reach_past_the_other_end(word, amounts):
    """What is left lies wholly in the padding, or in the middle."""
    more = ", 9" if word == "pad" else ""
    text = f"xs |> {word}({amounts[0]}, {amounts[1]}{more})"
    assert len(says(text, seven)) == 7 + sum(amounts)
    if word != "pad":
        mode = {"padClamp": "edge", "padWrap": "wrap"}[word]
        np.testing.assert_array_equal(says(text, seven), cropped_pad(seven, *amounts, mode))


@pytest.mark.parametrize("xs", [one, seven, rows], ids=len)
def test_an_array_by_classes_is_the_array(xs):
    np.testing.assert_array_equal(says("xs |> byClasses", xs), xs)


@pytest.mark.parametrize("xs", [one, seven, rows], ids=len)
def test_an_array_as_an_image_is_the_array(xs):
    np.testing.assert_array_equal(says("xs |> asImage", xs), xs)


def test_a_scalar_is_no_image():
    with pytest.raises(TypeRefused, match="asImage needs an array"):
        parse_expression("x |> asImage", [Param("x", F32)])


def test_a_scalar_has_no_classes():
    with pytest.raises(TypeRefused, match="byClasses needs an array"):
        parse_expression("x |> byClasses", [Param("x", F32)])


def test_a_mirror_repeats_the_end_itself():
    np.testing.assert_array_equal(says("xs |> padMirror(2, 2)", numbers(3)), [2, 1, 1, 2, 3, 3, 2])


CASES = {
    "take 1": ("xs |> take(1)", seven, seven[:1]),
    "take all": ("xs |> take(7)", seven, seven),
    "take rows": ("xs |> take(2)", rows, rows[:2]),
    "drop none": ("xs |> drop(0)", seven, seven),
    "drop all but one": ("xs |> drop(6)", seven, seven[6:]),
    "drop inside": ("xs |> map(drop(2))", rows, rows[:, 2:]),
    "slice": ("xs |> slice(2, 3)", eleven, eleven[2:5]),
    "slice of one": ("xs |> slice(0, 1)", one, one),
    "gather backwards": ("xs |> gather(7, i => 6 - i)", seven, seven[::-1]),
    "gather few": ("xs |> gather(3, i => 2 * i + 1)", seven, seven[[1, 3, 5]]),
    "gather many": ("xs |> gather(5, i => i // 2)", seven, seven[[0, 0, 1, 1, 2]]),
    "gather the same": ("xs |> gather(4, i => 3)", seven, seven[[3] * 4]),
    "gather bounded": ("xs |> gather(9, i => min(i, 6))", seven, seven[[*range(7), 6, 6]]),
    "reorder": (
        "xs |> reorder(i => 3 * i % 7, i => 5 * i % 7)",
        seven,
        seven[np.arange(7) * 3 % 7],
    ),
    "scatter": (
        "xs |> scatter(i => 5 * i % 7, i => 3 * i % 7)",
        seven,
        seven[np.arange(7) * 3 % 7],
    ),
    "transpose": ("xs |> transpose", rows, rows.T),
    "permute 2": ("xs |> permute(1, 0)", rows, rows.T),
    "permute nothing": ("xs |> permute(0, 1, 2)", cube, cube),
    "permute 201": ("xs |> permute(2, 0, 1)", cube, cube.transpose(2, 0, 1)),
    "permute 120": ("xs |> permute(1, 2, 0)", cube, cube.transpose(1, 2, 0)),
    "permute 210": ("xs |> permute(2, 1, 0)", cube, cube.transpose(2, 1, 0)),
    "permute the outer two": ("xs |> permute(1, 0)", cube, cube.transpose(1, 0, 2)),
    "slide": ("xs |> slide(3, 2)", numbers(8), [[1, 2, 3], [3, 4, 5], [5, 6, 7]]),
    "slideStrict": ("xs |> slideStrict(3, 2)", seven, [[1, 2, 3], [3, 4, 5], [5, 6, 7]]),
    "slideStrict whole": ("xs |> slideStrict(7, 5)", seven, [seven]),
    "slideStrict with gaps": ("xs |> slideStrict(1, 3)", seven, [[1], [4], [7]]),
    "unslide one": ("xs |> unslide(5, 2)", numbers(1, 5), numbers(5)),
    "unslide apart": ("xs |> unslide(5, 5)", rows, rows.reshape(-1)),
    "unslide": (
        "xs |> unslide(3, 2)",
        np.float32([[1, 2, 3], [30, 4, 5], [50, 6, 7]]),
        [1, 2, 30, 4, 50, 6, 7],
    ),
    "unslide by 1": (
        "xs |> unslide(3, 1)",
        np.float32([[1, 2, 3], [20, 30, 4], [300, 40, 5]]),
        [1, 20, 300, 40, 5],
    ),
    "cover": ("xs |> cover(3)", seven, [[1, 2, 3], [4, 5, 6], [5, 6, 7]]),
    "cover evenly": ("xs |> cover(2)", numbers(4), [[1, 2], [3, 4]]),
    "cover one by one": ("xs |> cover(1)", two, [[1], [2]]),
    "cover whole": ("xs |> cover(7)", seven, [seven]),
    "coverOnce": ("xs |> coverOnce(3, -1)", seven, [[1, 2, 3], [4, 5, 6], [-1, -1, 7]]),
    "uncover": (
        "xs |> uncover(7)",
        np.float32([[1, 2, 3], [4, 5, 6], [50, 60, 7]]),
        numbers(7),
    ),
    "slideCopies": (
        "xs |> slideCopies(3, 2)",
        numbers(5, 2),
        [[1, 3, 6], [5, 7, 10]],
    ),
    "slideCopies by 1": (
        "xs |> slideCopies(2, 1)",
        numbers(4, 2),
        [[1, 4], [3, 6], [5, 8]],
    ),
    "slideCopies apart": ("xs |> slideCopies(2, 2)", numbers(5, 1), [[1, 2], [3, 4]]),
    "slideCopies with gaps": ("xs |> slideCopies(1, 3)", numbers(5, 1), [[1], [4]]),
    "slideCopies whole": ("xs |> slideCopies(3, 5)", numbers(3, 1), [[1, 2, 3]]),
    "overlaps": (
        "xs |> overlaps(5, 2, -1)",
        numbers(2, 3),
        [[1, -1], [2, -1], [4, 3], [5, -1], [-1, 6]],
    ),
    "overlaps by 1": (
        "xs |> overlaps(4, 1, 0)",
        numbers(3, 2),
        [[1, 0], [3, 2], [5, 4], [0, 6]],
    ),
    "overlaps apart": (
        "xs |> overlaps(5, 2, 9)",
        numbers(2, 2),
        [[1], [2], [3], [4], [9]],
    ),
    "overlaps with gaps": ("xs |> overlaps(5, 3, 9)", numbers(2, 1), [[1], [9], [9], [2], [9]]),
    "overlaps of one": ("xs |> overlaps(1, 1, 7)", numbers(1, 1), [[1]]),
    "repeat": ("xs |> repeat(3)", two, [two] * 3),
    "repeat inside": ("xs |> map(repeat(2))", two, [[1, 1], [2, 2]]),
    "split": ("xs |> split(5)", numbers(15), rows),
    "join": ("xs |> join", rows, numbers(15)),
    "pad": ("xs |> pad(2, 1, -1)", two, [-1, -1, 1, 2, -1]),
    "asVector": ("xs |> asVector(2) |> map(mapVec(x => -x)) |> asScalar", numbers(6), -numbers(6)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_moves_its_elements_as_numpy_does(name):
    text, xs, expected = CASES[name]
    np.testing.assert_array_equal(says(text, xs), expected)


@pytest.mark.parametrize("word", ["concat(xs, ys)", "concat(ys, xs)"])
@pytest.mark.parametrize("shape", [(1,), (4,), (3, 2)])
def test_concat_is_that_of_numpy(word, shape):
    xs, ys = numbers(*shape), -numbers(2, *shape[1:])
    both = (xs, ys) if word == "concat(xs, ys)" else (ys, xs)
    np.testing.assert_array_equal(says(word, xs, ys), np.concatenate(both))


def test_concat_of_more_is_nested():
    got = says("concat(xs, concat(ys, xs |> drop(1)))", seven, two)
    np.testing.assert_array_equal(got, [*seven, *two, *seven[1:]])


@pytest.mark.parametrize("first", [1, 3, 6])
def test_split_at_gives_the_first_elements_and_the_others(first):
    got = says(f"xs |> splitAt({first})", seven)
    np.testing.assert_array_equal(got[0], seven[:first])
    np.testing.assert_array_equal(got[1], seven[first:])


def test_tuples_of_arrays_may_be_parts():
    text = "concat(zip(xs, xs), zip(ys, ys)) |> unzip"
    for part in says(text, seven, two):
        np.testing.assert_array_equal(part, [*seven, *two])
    for part in says("zip(xs, ys) |> padMirror(1, 1) |> unzip", two, two):
        np.testing.assert_array_equal(part, [1, 1, 2, 2])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
@pytest.mark.parametrize("xs", [seven, eleven], ids=len)
def test_unslide_of_slide_is_what_the_windows_covered(xs, size, step):
    text = f"xs |> slide({size}, {step}) |> unslide({size}, {step})"
    if step > size:
        with pytest.raises(TypeRefused, match=f"it requires that {step} <= {size}"):
            says(text, xs)
    else:
        covered = (len(xs) - size) // step * step + size
        np.testing.assert_array_equal(says(text, xs), xs[:covered])


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("step", [1, 2, 3, 7])
@pytest.mark.parametrize("xs", [seven, eleven], ids=len)
def test_overlaps_of_slide_has_each_element_once_for_each_window_with_it(xs, size, step):
    got = says(f"xs |> slide({size}, {step}) |> overlaps({len(xs)}, {step}, 0)", xs)
    starts = range(0, len(xs) - size + 1, step)
    counts = [sum(start <= i < start + size for start in starts) for i in range(len(xs))]
    np.testing.assert_array_equal((got > 0).sum(1), counts)
    assert all(set(row) <= {0, x} for row, x in zip(got.tolist(), xs.tolist(), strict=True))


@pytest.mark.parametrize(("size", "step"), [(3, 1), (3, 2), (5, 3), (2, 4)])
def test_slide_copies_of_overlaps_is_the_windows(size, step):
    count = (11 - size) // step + 1
    windows = numbers(count, size)
    text = f"xs |> overlaps(11, {step}, -1) |> slideCopies({size}, {step})"
    np.testing.assert_array_equal(says(text, windows), windows)


def test_overlaps_puts_its_value_into_every_scalar_of_an_element():
    got = says("xs |> overlaps(3, 1, 8)", numbers(2, 2, 2))
    np.testing.assert_array_equal(got[0], [[1, 2], [8, 8]])


REFUSED = {
    "take(0)": "1 <= 0",
    "slideCopies(3, 1)": "slideCopies needs an array of arrays, got",
    "split(1) |> slideCopies(3, 2)": "1 = 2",
    "split(1) |> slideCopies(8, 8)": "8 <= 7",
    "split(1) |> slideCopies(0, 1)": "1 <= 0",
    "split(1) |> slideCopies(1, 0)": "1 <= 0",
    "overlaps(7, 1, 0)": "overlaps needs an array of arrays, got",
    "slide(3, 1) |> overlaps(8, 1, 0)": "5 = 6",
    "slide(3, 1) |> overlaps(2, 1, 0)": "3 <= 2",
    "slide(3, 1) |> overlaps(7, 0, 0)": "1 <= 0",
    "take(-1)": "1 <= -1",
    "take(8)": "8 <= 7",
    "drop(-1)": "0 <= -1",
    "drop(7)": "7 <= 6",
    "splitAt(0)": "1 <= 0",
    "splitAt(7)": "7 <= 6",
    "slice(5, 3)": "3 <= 2",
    "gather(4, i => 2 * i + 1)": "i -> 2*i + 1 is in 0 .. 6 for i in 0 .. 3; at 3 it is 7",
    "gather(4, i => i - 1)": "i -> i - 1 is in 0 .. 6 for i in 0 .. 3; at 0 it is -1",
    "gather(0, i => i)": "1 <= 0",
    "scatter(i => i, i => 6 - i)": "are inverse to each other below 7",
    "slideStrict(3, 3)": "3 divides 4",
    "slideStrict(8, 1)": "8 <= 7",
    "padMirror(8, 0)": "8 <= 7",
    "padMirror(0, 8)": "8 <= 7",
    "padClamp(-4, -3)": "1 <= 0",
    "padWrap(-4, -3)": "1 <= 0",
    "cover(0)": "1 <= 0",
    "cover(8)": "8 <= 7",
    "split(7) |> uncover(6)": "7 <= 6",
    "split(7) |> uncover(8)": "1 = 2",
    "repeat(0)": "1 <= 0",
    "unslide(3, 1)": "unslide needs an array of arrays, got",
    "split(7) |> unslide(6, 1)": "7 = 6",
    "split(7) |> unslide(7, 8)": "8 <= 7",
    "split(7) |> unslide(7, 0)": "1 <= 0",
}


@pytest.mark.parametrize("stage", REFUSED)
def test_what_makes_no_sense_is_refused_with_the_values(stage):
    with pytest.raises(TypeRefused) as refusal:
        says(f"xs |> {stage}", seven)
    assert REFUSED[stage] in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "refusal", "why"),
    [
        ("concat(xs)", SyntaxRefused, r"`concat` takes 2 arguments, not 1"),
        ("concat(xs, xs, xs)", SyntaxRefused, r"write `concat\(xs, ys\)`"),
        ("xs |> concat(xs)", SyntaxRefused, "`concat` is not a pipeline step"),
        ("concat(xs, yss)", TypeRefused, r"f32 and \[4\]f32 are different types"),
        ("concat(yss, yss |> map(take(3)))", TypeRefused, "it requires that 4 = 3"),
    ],
)
def test_concat_takes_two_arrays_of_one_kind(text, refusal, why):
    params = Param("xs", array(F32, 7)), Param("yss", array(F32, 3, 4))
    with pytest.raises(refusal, match=why):
        parse_expression(text, params)


def test_the_embedded_word_takes_two_arrays():
    xs = Param("xs", array(F32, 7))
    assert lp.concat(xs, xs) == parse_expression("concat(xs, xs)", [xs])
    with pytest.raises(TypeRefused, match=r"'ys'\n  write lp.concat\(xs, ys\)"):
        lp.concat(xs)


@pytest.mark.parametrize("axes", ["0", "1, 1", "0, 2", "1, 2", "2, 1, 0, 0", ""])
def test_what_is_no_permutation_of_dimensions_is_refused(axes):
    with pytest.raises(TypeRefused, match=r"give each of 0 \.\. \d once"):
        says(f"xs |> permute({axes})", cube)


def test_more_dimensions_than_there_are_are_refused():
    with pytest.raises(TypeRefused, match="transpose needs an array"):
        says("xs |> permute(2, 0, 1)", rows)


def test_the_reference_of_a_border_is_of_the_elements_type():
    """A whole number divided by one is rounded, which a float that looks like it would not be."""
    p = parse("def p(xs: [2]i32) = xs |> pad(1, 1, 2) |> map(x => x / -3)")
    xs = np.array([7, -7], np.int32)
    assert reference(p, xs) == evaluate(p, xs).tolist() == [0, -2, 2, 0]
