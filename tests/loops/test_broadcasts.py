"""Arrays in registers of subgroups in the loop IR: passes, versions, subgroups of any size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from liftpy.errors import InternalError
from liftpy.loops.show import show_kernel
from liftpy.loops.together import has_broadcast
from liftpy.loops.tree import (
    Block,
    If,
    statements_in,
)
from liftpy.loops.values import SUBGROUP_SIZE, All, RangeTest
from liftpy.pipeline import Compilation, compile_program
from tests.arrays import distinct_integers
from tests.draws import unproved
from tests.loops.interpret import interpret
from tests.loops.interpreted import interpreted, stages_of
from tests.lowered import lowered

ROWS = """def p(a: [6][8]f32, b: [13][8]f32) = a |> split(2) |> mapWrg(0, rows =>
  let x = (rows |> toSubgroup) in
  b |> mapLcl(0, col => x |> mapSeq(row => zip(row, col)
    |> reduceSeq((s, t) => s + t.0 * t.1, 0))))"""
UNROLLED = ROWS.replace("mapSeq(", "mapSeqUnroll(").replace("reduceSeq(", "reduceSeqUnroll(")
PADDED = ROWS.replace("(rows |> toSubgroup)", "(rows |> map(pad(1, -1, 0)) |> toSubgroup)")
LOOP = """def p(a: [6][8]f32, b: [13][8]f32) = a |> split(2) |> mapWrg(0, rows =>
  b |> split(1) |> transpose |> mapSeq(bs => let x = (rows |> toSubgroup) in
    bs |> mapLcl(0, col => x |> mapSeq(row => zip(row, col)
      |> reduceSeq((s, t) => s + t.0 * t.1, 0)))) |> join)"""
WINDOWS = """def p(a: [6][9]f32, b: [12][3]f32) = a |> split(2) |> mapWrg(0, rows =>
  let x = (rows |> toSubgroup) in
  b |> transpose |> map(pad(1, 1, 0)) |> transpose |> slide(3, 1) |> mapLcl(0, w =>
    x |> mapSeq(row => zip(row |> split(3), w) |> reduceSeq((s, p) =>
      zip(p.0, p.1) |> reduceSeq((u, q) => u + q.0 * q.1, s), 0))))"""
CASES = {
    "rows": ROWS,
    "unrolled": UNROLLED,
    "padded": PADDED,
    "a loop": LOOP,
    "padded windows": WINDOWS,
}


def made(text: str) -> Compilation:
    return compile_program(lowered(text))


def wanted(text: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    if text == PADDED:
        a = np.pad(a, ((0, 0), (1, 0)))[:, :8]
    if text == WINDOWS:
        padded = np.pad(b, ((1, 1), (0, 0)))
        b = np.stack([padded[k : k + 3].ravel() for k in range(12)])
    return np.einsum("gik,jk->gji", a.reshape(3, 2, -1), b)


@pytest.mark.parametrize("text", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("size", [1, 3, 5, 8, 64])
def test_every_pass_keeps_the_result_for_every_size_of_subgroups(text: str, size: int) -> None:
    """The last of several subgroups may be smaller than a row, and reads the array itself."""
    compiled = made(text)
    arrays = distinct_integers(compiled.lowered)
    expected = wanted(text, *arrays.values())
    for name, kernels in stages_of(compiled):
        found = interpreted(compiled, kernels, arrays, size)
        np.testing.assert_array_equal(found.reshape(expected.shape), expected, name)
    assert not unproved(compiled.optimized)


def test_a_loop_of_broadcasts_has_a_version_without_them(golden) -> None:
    (code,) = made(ROWS).optimized
    golden(show_kernel(code), "txt")


def test_guards_of_the_array_are_tested_where_it_is_loaded() -> None:
    """Work-items of a subgroup load different elements, so their guards are in no branch."""
    (code,) = made(PADDED).optimized
    branches = [s for s in statements_in(code.block) if isinstance(s, If)]
    assert any(has_broadcast(s.then) for s in branches)
    for branch in branches:
        if has_broadcast(branch.then):
            assert branch.condition == All((RangeTest(branch.condition.tests[0].index),))
            assert branch.condition.tests[0].index.names() == {SUBGROUP_SIZE}
            assert not has_broadcast(branch.otherwise)


def test_the_interpreter_refuses_a_broadcast_that_some_work_items_do_not_reach() -> None:
    (code,) = made(UNROLLED).loops
    guard = All((RangeTest(code.indices["lid0"] - 1),))
    broken = replace(code, block=Block((If(guard, code.block),)))
    arrays = distinct_integers(made(UNROLLED).lowered)
    with pytest.raises(InternalError, match="what only some of its work-items reach"):
        interpret(broken, {name: a.reshape(-1) for name, a in arrays.items()}, 16)
