"""Reductions by index with a copy of the bins for each chunk of the pairs.

Lengths are odd, indices negative, too large, repeated and missing; some bins get no value, or all.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.loops.bounds import bounds
from liftpy.loops.writers import shared_stores
from liftpy.pipeline import Compilation, compile_program
from tests.batch import results
from tests.compile.test_data_indices import IS, JS, XS, XSS, YSS, folded, horner
from tests.loops.interpreted import interpreted, nests_of
from tests.oclgrind import check_all_under_oclgrind

pytestmark = pytest.mark.usefixtures("derived_once")

LATEST = "fun latest(x: f32, y: f32) = select(y == 0, x, y) laws associative, neutral 0\n"
"""The last value that is not 0: the function does not commute."""


def latest(a: Any, x: Any) -> Any:
    """`LATEST` in NumPy."""
    return a if x == 0 else x


RNG = np.random.default_rng(5)
STARTS = RNG.permutation(7).astype(np.float32) + 0.25
WHOLE = RNG.permutation(11).astype(np.int32) - 4
NOTHING = np.full(7, -np.inf, np.float32)
PROGRAMS: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "a histogram": (
        "def p(is: [11]i32) = is |> map(i => (i, 1)) |> reduceByIndex(addInt, 0i32 |> repeat(7))",
        (IS,),
        folded(np.zeros(7, np.int32), IS, np.ones(11, np.int32), np.add),
    ),
    "a scatter-add onto given values": (
        "def p(z: [7]f32, is: [11]i32, xs: [11]f32) = zip(is, xs) |> reduceByIndex(add, z)",
        (STARTS, IS, XS),
        folded(STARTS, IS, XS, np.add),
    ),
    "all pairs in one of the bins": (
        "def p(is: [11]i32, xs: [11]i32) = zip(is, xs) |> reduceByIndex(addInt, 3i32 |> repeat(7))",
        (np.full(11, 5, np.int32), WHOLE),
        np.array([3, 3, 3, 3, 3, 3 + WHOLE.sum(), 3]),
    ),
    "no pair in any bin": (
        "def p(z: [7]f32, is: [11]i32, xs: [11]f32) = zip(is, xs) |> reduceByIndex(add, z)",
        (STARTS, np.where(IS % 2 == 0, -1 - np.abs(IS // 2), 7 + np.abs(IS // 2)), XS),
        STARTS,
    ),
    "the largest value": (
        """def p(is: [11]i32, xs: [11]f32) = zip(is, xs)
          |> reduceByIndex(maximum, -inf |> repeat(7))""",
        (IS, XS),
        folded(NOTHING, IS, XS, np.maximum),
    ),
    "the last value, whose function does not commute": (
        LATEST + "def p(z: [7]f32, is: [11]i32, xs: [11]f32) = zip(is, xs)\n"
        "  |> reduceByIndex(latest, z)",
        (STARTS, IS % 3, np.where(WHOLE > 0, XS, 0)),
        folded(STARTS, IS % 3, np.where(WHOLE > 0, XS, 0), latest),
    ),
    "rows of values": (
        """def p(is: [11]i32, xss: [11][3]f32) = zip(is, xss)
          |> reduceByIndex((a, x) => zip(a, x) |> map(add), 0 |> repeat(3) |> repeat(7))""",
        (IS, XSS),
        folded(np.zeros((7, 3), np.float32), IS, XSS, np.add),
    ),
    "bins of each row": (
        """def p(js: [3][5]i32, yss: [3][5]f32) = zip(js, yss) |> map((row, ys) => zip(row, ys)
          |> reduceByIndex(add, 1 |> repeat(7)) |> map(x => x + 1))""",
        (JS, YSS),
        np.array([folded(STARTS * 0 + 1, j, y, np.add) for j, y in zip(JS, YSS, strict=True)]) + 1,
    ),
    "sums of rows, and a fold of the bins": (
        """def p(is: [11]i32, xss: [11][3]f32) = zip(is, xss |> map(reduce(add, 0)))
          |> reduceByIndex(add, 0 |> repeat(7)) |> reduce((a, x) => a * 3 - x, 0)""",
        (IS, XSS),
        functools.reduce(horner, folded(STARTS * 0, IS, XSS.sum(1), np.add), 0),
    ),
    "padded pairs": (
        """def p(is: [11]i32, xs: [11]f32) = zip(is |> pad(1, 2, 3), xs |> pad(1, 2, 9))
          |> reduceByIndex(add, 0 |> repeat(7))""",
        (IS, XS),
        folded(
            STARTS * 0,
            np.pad(IS, (1, 2), constant_values=3),
            np.pad(XS, (1, 2), constant_values=9),
            np.add,
        ),
    ),
    "bins of bins": (
        """def p(is: [11]i32, js: [7]i32, xs: [11]f32) = zip(js, zip(is, xs)
          |> reduceByIndex(add, 0 |> repeat(7))) |> reduceByIndex(add, 2 |> repeat(5))""",
        (IS, IS[3:10], XS),
        folded(STARTS[:5] * 0 + 2, IS[3:10], folded(STARTS * 0, IS, XS, np.add), np.add),
    ),
}


def candidates(program: Program, device: Device) -> list[Candidate]:
    """The candidates whose bins are privatized."""
    space = lp.space(program, device=device)
    drawn = space.sample(space.count(), seed=0)
    return [c for c in drawn if "privatized" in c.assignment.values()]


def compiled(program: Program, device: Device, most: int) -> dict[str, Compilation]:
    """At most `most` of the `candidates`, compiled, by their labels."""
    drawn = candidates(program, device)
    some = drawn[:: -(-len(drawn) // most)]
    return {c.label: compile_program(c.skeleton.at(c.point)) for c in some}


@pytest.mark.parametrize("name", PROGRAMS)
def test_candidates_agree_with_numpy_and_stay_in_bounds(name: str, runtime: Device) -> None:
    text, arrays, wanted = PROGRAMS[name]
    made = compiled(parse(text), runtime, most=8)
    assert made
    for label, one in made.items():
        for kernel in one.optimized:
            assert all(b.way is not None for b in bounds(kernel)), label
            assert not shared_stores(kernel), label
    for label, found in zip(
        made, results(runtime, [m.module for m in made.values()], arrays), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=2e-6, err_msg=label)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_pass_preserves_the_result(name: str) -> None:
    text, arrays, wanted = PROGRAMS[name]
    program = parse(text)
    given = dict(zip((p.name for p in program.params), arrays, strict=True))
    for label, one in compiled(program, DEFAULT_DEVICE, most=2).items():
        for kernels in (*nests_of(one).values(), one.loops, one.optimized):
            found = interpreted(one, kernels, given)
            np.testing.assert_allclose(found, wanted, rtol=2e-6, err_msg=label)


@pytest.mark.oclgrind
def test_oclgrind_finds_no_race() -> None:
    jobs = []
    for text, arrays, _ in PROGRAMS.values():
        program = parse(text)
        (one, *_) = compiled(program, DEFAULT_DEVICE, most=2).values()
        given = dict(zip((p.name for p in program.params), arrays, strict=True))
        jobs.append((one.module, given))
    for name, (found, complaints) in zip(PROGRAMS, check_all_under_oclgrind(jobs), strict=True):
        assert complaints == [], name
        np.testing.assert_allclose(found, PROGRAMS[name][2], rtol=2e-6, err_msg=name)


def test_the_chunk_divides_the_pairs_and_those_added_to_them() -> None:
    chunks = {
        c.point["chunk"] for c in candidates(parse(PROGRAMS["a histogram"][0]), DEFAULT_DEVICE)
    }
    assert chunks == {1, 2, 3, 4, 6, 12}


def test_copies_count_in_the_peak() -> None:
    text = """def p(is: [64]i32, xs: [64]f32) = zip(is, xs) |> reduceByIndex(add, 0 |> repeat(7))"""
    for one in candidates(parse(text), DEFAULT_DEVICE):
        made = compile_program(one.skeleton.at(one.point)).module
        copies = 64 // one.point["chunk"]
        assert made.memory.scratch == copies * 7 * 4


def test_no_copies_without_the_laws() -> None:
    for step in ("(a, x) => a * 3 - x", "(a, x) => max(a, x)"):
        text = (
            f"def p(is: [8]i32, xs: [8]f32) = zip(is, xs) |> reduceByIndex({step}, 0 |> repeat(7))"
        )
        assert not candidates(parse(text), DEFAULT_DEVICE)
