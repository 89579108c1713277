"""Data-dependent indices, on devices: every candidate gives what NumPy gives.

Indices are negative, too large, repeated and missing; lengths are prime, values distinct.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.loops.bounds import bounds
from liftpy.loops.writers import shared_stores
from liftpy.pipeline import Compilation, compile_program
from liftpy.semantics.evaluate import evaluate
from tests.batch import results
from tests.loops.interpreted import interpreted, nests_of

pytestmark = pytest.mark.usefixtures("derived_once")

RNG = np.random.default_rng(7)
IS = np.array([3, -1, 7, 0, 3, 6, 3, 2**31 - 1, -(2**31), 0, 5], np.int32)  # 1, 2, 4 are missing
JS = np.array([[3, -1, 7, 0, 3], [6, 6, 2, 2, 6], [9, 9, -9, 8, 7]], np.int32)
XS = RNG.permutation(11).astype(np.float32) + 0.5
XSS = RNG.permutation(33).reshape(11, 3).astype(np.float32) - 7
YSS = RNG.permutation(15).reshape(3, 5).astype(np.float32) - 4
TABLE = RNG.permutation(7).astype(np.float32) + 1.25
ROWS = RNG.permutation(21).reshape(7, 3).astype(np.float32) + 1


def read(table: Any, index: Any) -> Any:
    """Elements at indices; 0 outside."""
    inside = (index >= 0) & (index < len(table))
    found = table[np.where(inside, index, 0)]
    return np.where(inside.reshape(inside.shape + (1,) * (table.ndim - 1)), found, 0)


def folded(start: Any, index: Any, values: Any, f: Callable[[Any, Any], Any]) -> Any:
    """The fold of the values of each bin, in their order."""
    made = np.array(start)
    for i, x in zip(index, values, strict=True):
        if 0 <= i < len(made):
            made[i] = f(made[i], x)
    return made


def horner(a: Any, x: Any) -> Any:
    """A step that neither commutes nor associates."""
    return a * 3 - x


def window(sums: Any, index: Any) -> Any:
    """The two neighbours at an index."""
    return read(np.lib.stride_tricks.sliding_window_view(sums, 2), index)


def scanned(row: Any, index: Any) -> Any:
    """Folds over elements of two copies of a window, each from the result of the one before."""
    results, a = [], 1.0
    for w in np.lib.stride_tricks.sliding_window_view(row, 3)[::2]:
        for x in read(np.concatenate([w, w]), np.array(index)):
            a = horner(a, x)
        results.append(a)
    return results


SUMS = np.cumsum(XSS, 1)
SCANS = np.array([[functools.reduce(horner, row[: k + 1], 1) for k in range(5)] for row in YSS])
BINS = [folded(np.zeros(7), js, ys, horner)[:4] for js, ys in zip(JS, YSS, strict=True)]
MOST = 8  # candidates of a program
ZEROS = np.zeros(7, np.float32)
PROGRAMS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "rows of a table": (
        "def p(t: [7][3]f32, is: [11]i32) = is |> map(i => t |> at(i))",
        (ROWS, IS),
        read(ROWS, IS),
    ),
    "a clamped index that is also a value": (
        """def p(t: [7]f32, is: [11]i32) = is |> map(i =>
          let m = max(i, 0i32) in (t |> at(i)) * f32(m) + f32(m))""",
        (TABLE, IS),
        read(TABLE, IS) * np.maximum(IS, 0) + np.maximum(IS, 0),
    ),
    "a clamped index that is also read by a fold": (
        """def p(t: [7]f32, is: [11]i32) = is |> map(i =>
          let m = max(i, 0i32) in (t |> at(i)) * f32(m) + f32(m)) |> reduce(add, 0)""",
        (TABLE, IS),
        np.sum(read(TABLE, IS) * np.maximum(IS, 0) + np.maximum(IS, 0)),
    ),
    "bins that a function reads twice": (
        """def p(jss: [3][5]i32, yss: [3][5]f32) = zip(jss, yss)
          |> map((js, ys) => generate(4, k =>
            zip(js, ys) |> reduceByIndex((a, x) => a * 3 - x, 0 |> repeat(7)) |> at(k)))
          |> map(bins => (bins |> reduce(add, 0)) - 2 * (bins |> reduce(maximum, -999)))""",
        (JS, YSS),
        [x.sum() - 2 * x.max() for x in BINS],
    ),
    "bins that an inner function reads twice": (
        """def p(jss: [3][5]i32, yss: [3][5]f32, is: [11]i32) = is |> map(i =>
          zip(jss, yss)
            |> map((js, ys) => generate(4, k =>
              zip(js, ys) |> reduceByIndex((a, x) => a * 3 - x, 0 |> repeat(7)) |> at(k)))
            |> map(bins => (bins |> reduce(add, 0)) - 2 * (bins |> reduce(maximum, -999)))
            |> at(i))""",
        (JS, YSS, IS),
        read(np.array([x.sum() - 2 * x.max() for x in BINS]), IS),
    ),
    "named elements of scans": (
        """def p(xss: [11][3]f32, is: [11]i32) = is |> map(i =>
          let found = (xss |> map(xs =>
            let pair = (zip(xs, xs |> scan(add, 0)) |> at(i)) in pair.1))
          in found |> at(i))""",
        (XSS, IS),
        [read(np.array([read(row, i[None])[0] for row in SUMS]), i[None])[0] for i in IS],
    ),
    "pairs with an iteration in registers": (
        """def p(xss: [11][3]f32, is: [11]i32) = is |> map(i => xss
          |> map(xs => zip(xs |> iterate(1, r => r |> map(x => x * 3)), xs))
          |> map(pairs => pairs |> at(i))
          |> map(pair => pair.0 - pair.1)
          |> at(i))""",
        (XSS, IS),
        [read(np.array([read(2 * row, i[None])[0] for row in XSS]), i[None])[0] for i in IS],
    ),
    "an iteration in registers": (
        """def p(xss: [11][3]f32, is: [11]i32) = zip(xss, is) |> map((xs, i) =>
          xs |> iterate(2, r => r |> map(x => x * 3 - 1)) |> at(i))""",
        (XSS, IS),
        np.array([read(row * 9 - 4, np.array([i]))[0] for row, i in zip(XSS, IS, strict=True)]),
    ),
    "a named and reversed iteration in registers": (
        """def p(xss: [11][3]f32, is: [11]i32) = zip(xss, is) |> map((xs, i) =>
          let ys = xs |> iterate(2, r => r |> map(x => x * 3 - 1))
            |> reorder(k => 2 - k, k => 2 - k) in ys |> at(i))""",
        (XSS, IS),
        np.array(
            [read(row[::-1] * 9 - 4, np.array([i]))[0] for row, i in zip(XSS, IS, strict=True)]
        ),
    ),
    "rows of an iteration": (
        """def p(yss: [3][5]f32) = generate(5, k => generate(3, j =>
          yss |> iterate(2, r => r |> map(map(x => x * 3 - 1))) |> at(j)) |> transpose |> at(k))""",
        (YSS,),
        (YSS * 9 - 4).T,
    ),
    "twice a window of an iteration, in each step of a scan": (
        """def p(yss: [3][5]f32, is: [5]i32) = yss |> map(ys =>
          ys |> iterate(2, r => r |> map(x => x * 3 - 1)) |> slide(3, 2) |> scan((a, w) =>
            is |> map(i => concat(w, w) |> at(i)) |> reduce((b, x) => b * 3 - x, a), 1))""",
        (YSS, np.array([4, -1, 0, 5, 6], np.int32)),
        np.array([scanned(row * 9 - 4, [4, -1, 0, 5, 6]) for row in YSS]),
    ),
    "parts of rows of scans behind a border": (
        """def p(yss: [3][5]f32) = generate(5, i => yss
          |> map(ys => ys |> scan((a, x) => a * 3 - x, 1)) |> pad(2, 2, 1)
          |> at(i * 2i32 % 5i32 + 1i32)) |> splitAt(3) |> get(1) |> map(map(y => y * 2))""",
        (YSS,),
        np.array([SCANS[0], SCANS[2]]) * 2,
    ),
    "windows of a scan of what has a name": (
        """def p(xss: [11][3]f32, is: [11]i32) = zip(xss, is) |> map((xs, i) =>
          (let row = xs in row |> scan(add, 0) |> slide(2, 1)) |> at(i)
          |> reduce((a, x) => a * 3 - x, 0))""",
        (XSS, IS),
        np.array([horner(horner(0, w[0]), w[1]) for w in map(window, SUMS, IS)]),
    ),
    "folds that begin with elements of a scan": (
        """def p(xss: [11][3]f32, is: [11]i32, t: [7]f32) = zip(xss, is) |> map((xs, i) =>
          let s = xs |> scan(add, 0) in s |> map(x => t |> reduce(add, x)) |> at(i))""",
        (XSS, IS, TABLE),
        np.array([read(s + TABLE.sum(), i) for s, i in zip(SUMS, IS, strict=True)]),
    ),
    "elements of a scan and of a table": (
        """def p(xss: [11][3]f32, is: [11]i32, t: [7]f32) = zip(xss, is) |> map((xs, i) =>
          xs |> scan(add, 0) |> map(x => (x, t |> at(i))) |> at(i))""",
        (XSS, IS, TABLE),
        (
            np.array([read(s, i) for s, i in zip(SUMS, IS, strict=True)]),
            read(TABLE[:3], IS),
        ),
    ),
    "elements of a scan beside generated ones": (
        """def p(xss: [11][3]f32, is: [11]i32, t: [7]f32) = zip(xss, is) |> map((xs, i) =>
          zip(xs |> scan(add, 0), generate(3, j => t |> at(j))) |> map(both => both.0) |> at(i))""",
        (XSS, IS, TABLE),
        np.array([read(s, i) for s, i in zip(SUMS, IS, strict=True)]),
    ),
    "rows of an iteration at data indices": (
        """def p(xss: [11][3]f32) = generate(2, i => generate(7, j => xss
          |> iterate(2, rows => rows |> map(row => row |> map(x => x + x))) |> at(j * 3i32 % 7i32))
          |> transpose |> at(i + 1i32)) |> join |> map(x => x + 1)""",
        (XSS,),
        np.concatenate([4 * XSS[[3 * j % 7 for j in range(7)], k] + 1 for k in (1, 2)]),
    ),
    "sums of elements": (
        """def p(t: [7]f32, js: [3][5]i32) = js
          |> map(row => row |> map(i => t |> at(i)) |> reduce(add, 0))""",
        (TABLE, JS),
        read(TABLE, JS).sum(1),
    ),
    "behind padding, and of a padded table": (
        """def p(t: [7]f32, is: [11]i32) = is |> pad(1, 2, 3)
          |> map(i => t |> pad(2, 1, 9) |> at(i)) |> pad(2, 1, 5) |> map(x => x * 2)""",
        (TABLE, IS),
        2
        * np.pad(
            read(np.pad(TABLE, (2, 1), constant_values=9), np.pad(IS, (1, 2), constant_values=3)),
            (2, 1),
            constant_values=5,
        ),
    ),
    "of a computed array": (
        """def p(t: [7]f32, is: [11]i32) = let u = t |> map(x => x * x) in
          is |> map(i => u |> at(i))""",
        (TABLE, IS),
        read(TABLE * TABLE, IS),
    ),
    "an index from an index": (
        "def p(is: [11]i32) = is |> map(i => is |> at(is |> at(i)))",
        (IS,),
        read(IS, read(IS, IS)),
    ),
    "pairs, and an array of one": (
        "def p(xs: [1]f32, is: [11]i32) = is |> map(i => zip(xs, xs |> map(x => x > 0)) |> at(i))",
        (XS[:1], IS),
        (read(XS[:1], IS), read(XS[:1], IS) > 0),
    ),
    "windows at data": (
        """def p(xs: [11]f32, is: [5]i32) = is
          |> map(i => xs |> slide(3, 2) |> at(i) |> reduce((a, x) => a * 3 - x, 0))""",
        (XS, IS[:5]),
        np.array(
            [
                horner(horner(horner(0, w[0]), w[1]), w[2]) if w.any() else 0
                for w in read(np.lib.stride_tricks.sliding_window_view(XS, 3)[::2], IS[:5])
            ]
        ),
    ),
    "the element at the largest of keys": (
        """def p(xs: [3][5]f32, t: [5]f32) = xs |> map(row => t |> at(
          (zip(row, generate(5, i => i)) |> reduce((b, x) => (max(b.0, x.0),
            select(b.0 < x.0, x.1, b.1)), (-inf, -1i32))).1))""",
        (YSS, TABLE[:5]),
        TABLE[YSS.argmax(1)],
    ),
    "one-hot": (
        "def p(is: [11]i32) = is |> map(i => generate(5, (j: i32) => select(i == j, 1f32, 0)))",
        (IS,),
        (IS[:, None] == np.arange(5)).astype(np.float32),
    ),
    "a histogram": (
        "def p(is: [11]i32) = is |> map(i => (i, 1)) |> reduceByIndex(add, 0i32 |> repeat(7))",
        (IS,),
        folded(np.zeros(7, np.int32), IS, np.ones(11, np.int32), np.add),
    ),
    "in order, from given values": (
        """def p(z: [7]f32, is: [11]i32, xs: [11]f32) = zip(is, xs)
          |> reduceByIndex((a, x) => a * 3 - x, z)""",
        (TABLE, IS, XS),
        folded(TABLE, IS, XS, horner),
    ),
    "one bin": (
        "def p(is: [11]i32, xs: [11]f32) = zip(is, xs) |> reduceByIndex(add, 0 |> repeat(1))",
        (IS, XS),
        folded(ZEROS[:1], IS, XS, np.add),
    ),
    "the largest of each bin, in doubles": (
        """def p(is: [11]i32, xs: [11]f64) = zip(is, xs)
          |> reduceByIndex((a, x) => max(a, x), -inf |> repeat(7))""",
        (IS, XS.astype(np.float64)),
        folded(np.full(7, -np.inf), IS, XS, np.maximum),
    ),
    "bins of pairs": (
        """def p(is: [11]i32, xs: [11]f32) = zip(is, xs)
          |> reduceByIndex((a, x) => (a.1 + x, a.0 * 2), (0f32, 1f32) |> repeat(7))""",
        (IS, XS),
        tuple(
            np.array(
                [*map(list, folded([(0.0, 1.0)] * 7, IS, XS, lambda a, x: (a[1] + x, a[0] * 2)))],
                np.float32,
            ).T
        ),
    ),
    "bins of rows": (
        """def p(is: [11]i32, xss: [11][3]f32) = zip(is, xss)
          |> reduceByIndex((a, x) => zip(a, x) |> map(add), 0 |> repeat(3) |> repeat(7))""",
        (IS, XSS),
        folded(np.zeros((7, 3), np.float32), IS, XSS, np.add),
    ),
    "bins of each row": (
        """def p(js: [3][5]i32, yss: [3][5]f32) = zip(js, yss) |> map((row, ys) => zip(row, ys)
          |> reduceByIndex((a, x) => a * 3 - x, 1 |> repeat(7)) |> map(x => x + 1))""",
        (JS, YSS),
        np.array([folded(ZEROS + 1, j, y, horner) for j, y in zip(JS, YSS, strict=True)]) + 1,
    ),
    "parts of elements that are read from bins": (
        """def p(js: [3][5]i32, yss: [3][5]f32) = zip(js, yss) |> map((row, ys) =>
          generate(7, k => zip(row, ys) |> reduceByIndex((a, x) => a * 3 - x, 1 |> repeat(7))
            |> at(k)) |> splitAt(3)) |> map(t => concat(t.1, t.0))""",
        (JS, YSS),
        np.roll([folded(ZEROS + 1, j, y, horner) for j, y in zip(JS, YSS, strict=True)], 4, 1),
    ),
    "bins that are read at data, reversed and cut": (
        """def p(is: [11]i32, xs: [11]f32) = let h = zip(is, xs |> map(x => x * x))
          |> reduceByIndex(add, 0 |> repeat(7)) in
          (is |> map(i => h |> at(i)), h |> reorder(i => 6 - i, i => 6 - i) |> take(3))""",
        (IS, XS),
        (read(folded(ZEROS, IS, XS * XS, np.add), IS), folded(ZEROS, IS, XS * XS, np.add)[:3:-1]),
    ),
    "bins of sums of rows": (
        """def p(is: [11]i32, xss: [11][3]f32) = zip(is, xss |> map(reduce(add, 0)))
          |> reduceByIndex(add, 0 |> repeat(7)) |> reduce((a, x) => a * 3 - x, 0)""",
        (IS, XSS),
        folded(np.zeros(1), np.zeros(7, int), folded(ZEROS, IS, XSS.sum(1), np.add), horner)[0],
    ),
    "bins of bins": (
        """def p(is: [11]i32, js: [7]i32, xs: [11]f32) = zip(js, zip(is, xs)
          |> reduceByIndex(add, 0 |> repeat(7)))
          |> reduceByIndex((a, x) => a * 3 - x, 2 |> repeat(5))""",
        (IS, IS[3:10], XS),
        folded(ZEROS[:5] + 2, IS[3:10], folded(ZEROS, IS, XS, np.add), horner),
    ),
}


def close(found: Any, wanted: Any, what: str) -> None:
    """Results equal the expected ones up to rounding."""
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            close(one, other, what)
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-6, err_msg=what)


@pytest.mark.parametrize("name", PROGRAMS)
def test_evaluation_agrees_with_numpy(name: str) -> None:
    text, arrays, wanted = PROGRAMS[name]
    close(evaluate(parse(text), *arrays), wanted, name)


def compiled(program: Program, device: Device) -> dict[str, Compilation]:
    """Candidates of a program, by their labels."""
    space = lp.space(program, device=device)
    drawn = space.sample(min(space.count(), MOST), seed=1)
    return {c.label: compile_program(c.skeleton.at(c.point)) for c in drawn}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_agree_with_numpy_and_stay_in_bounds(name: str, runtime: Device) -> None:
    text, arrays, wanted = PROGRAMS[name]
    made = compiled(parse(text), runtime)
    for label, one in made.items():
        for kernel in one.optimized:
            assert all(b.way is not None for b in bounds(kernel)), label
            assert not shared_stores(kernel), label
    found = results(runtime, [m.module for m in made.values()], arrays)
    for label, one in zip(made, found, strict=True):
        close(one, wanted, label)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_pass_preserves_the_result(name: str, device: Device) -> None:
    text, arrays, wanted = PROGRAMS[name]
    program = parse(text)
    given = dict(zip((p.name for p in program.params), arrays, strict=True))
    for label, one in compiled(program, device).items():
        for kernels in (*nests_of(one).values(), one.loops, one.optimized):
            close(interpreted(one, kernels, given), wanted, label)
