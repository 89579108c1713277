"""Folds by subgroups in the loop IR: their barriers, their passes, and devices of every size."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.errors import InternalError
from liftpy.loops.show import show_kernel
from liftpy.loops.tree import (
    Barrier,
    If,
    Let,
    statements_in,
)
from liftpy.loops.values import (
    SubgroupReduce,
)
from liftpy.pipeline import Compilation, compile_program
from tests.arrays import distinct_integers
from tests.draws import unproved
from tests.loops.interpret import interpret
from tests.loops.interpreted import interpreted, stages_of
from tests.lowered import lowered

ONE = """def p(a: [3][55]f32) = a |> mapWrg(0, row =>
  let s = (row |> split(5) |> mapLcl(0, part => part |> reduceSeq(add, 0))
    |> reduceSubgroups(add, 3))
  in row |> split(5) |> mapLcl(0, part => part |> mapSeq(x => x - s)))"""
LOOP = """def p(a: [3][7][11]f32) = a |> mapWrg(0, rows => rows |> mapSeq(row =>
  let s = (row |> mapLcl(0, x => x * 2) |> reduceSubgroups(maximum, 3))
  in row |> mapLcl(0, x => x - s)))"""
GROUPS = """def p(a: [3][7][11]f32) = a |> join |> mapWrg(0, row =>
  let s = (row |> mapLcl(0, x => x * 2) |> reduceSubgroups(maximum, 3))
  in row |> mapLcl(0, x => x - s))"""
SINGLE = ONE.replace("split(5)", "split(55)")
NAMES = ["one fold", "a loop of folds", "a fold in each group", "a group of one"]


def made(text: str) -> Compilation:
    return compile_program(lowered(text))


def wanted(text: str, a: np.ndarray) -> np.ndarray:
    if text in (ONE, SINGLE):
        return a - (a.sum(axis=-1, keepdims=True) + 3)
    return a - np.maximum(2 * a.max(axis=-1, keepdims=True), 3)


@pytest.mark.parametrize("text", [ONE, LOOP, GROUPS, SINGLE], ids=NAMES)
@pytest.mark.parametrize("size", [1, 2, 5, 11, 64])
def test_every_pass_keeps_the_result_for_every_size_of_subgroups(text: str, size: int) -> None:
    compiled = made(text)
    (a,) = distinct_integers(compiled.lowered).values()
    for name, kernels in stages_of(compiled):
        found = interpreted(compiled, kernels, {"a": a}, size)
        np.testing.assert_array_equal(found.reshape(a.shape), wanted(text, a), name)
    assert not unproved(compiled.optimized)


@pytest.mark.parametrize(
    ("text", "barriers"), [(ONE, 1), (LOOP, 2), (GROUPS, 1), (SINGLE, 0)], ids=NAMES
)
def test_a_fold_has_a_barrier_before_its_results_are_read_and_one_before_the_next(
    text: str, barriers: int
) -> None:
    """In a loop, the next fold stores its results where slower work-items still read."""
    (code,) = made(text).optimized
    assert sum(isinstance(s, Barrier) for s in statements_in(code.block)) == barriers


def test_code_with_guards_and_a_fold_gets_no_versions() -> None:
    """Versions are branches, and every work-item has to reach a fold."""
    text = """def p(a: [3][6]f32) = a |> mapWrg(0, row =>
      let s = (row |> pad(0, 2, 0) |> byClasses |> split(4)
        |> mapLcl(0, part => part |> reduceSeq(add, 0)) |> reduceSubgroups(add, 3))
      in row |> split(3) |> mapLcl(0, part => part |> mapSeq(x => x - s)))"""
    compiled = made(text)
    (a,) = distinct_integers(compiled.lowered).values()
    for name, kernels in stages_of(compiled):
        found = interpreted(compiled, kernels, {"a": a}, 4).reshape(a.shape)
        np.testing.assert_array_equal(found, a - (3 + a.sum(-1, keepdims=True)), name)


def test_one_work_item_of_a_subgroup_stores_its_result(golden) -> None:
    (code,) = made(ONE).optimized
    golden(show_kernel(code), "txt")


def test_the_interpreter_refuses_a_fold_that_some_work_items_do_not_reach() -> None:
    (code,) = made(ONE).loops
    statements = []
    for s in code.block:
        alone = isinstance(s, Let) and isinstance(s.value, SubgroupReduce)
        guard = next(t for t in code.block if isinstance(t, If)).condition
        statements.append(If(guard, type(code.block)((s,))) if alone else s)
    broken = type(code)(**{**vars(code), "block": type(code.block)(tuple(statements))})
    with pytest.raises(InternalError, match="only some of its work-items reach"):
        interpret(broken, {"a": np.zeros(165, np.float32)})
