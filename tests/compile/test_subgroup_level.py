"""The level of subgroups: maps over the subgroups of a group and over their work-items, folds."""

from __future__ import annotations

import pytest

from liftpy.constraints.device import Device
from liftpy.constraints.length import length
from liftpy.language.text.program import parse
from liftpy.loops.tree import (
    Barrier,
    statements_in,
)
from liftpy.pipeline import Compilation, compile_program
from tests.draws import unproved
from tests.fuzz.generator import inputs
from tests.loops.interpreted import interpreted, stages_of, statements
from tests.lowered import check_close, check_on, lowered
from tests.oclgrind import check_all_under_oclgrind

PROGRAMS = {
    "a row of each subgroup": """
        def p(xs: [7][37]f32) =
          xs |> split(7) |> mapWrg(0, mapSubgroup(40, row =>
            let s = row |> mapItem(x => x * x) |> reduceItems(add, 3) in
            row |> mapItem(x => x - s))) |> join""",
    "groups of several rows": """
        def p(xs: [6][5]f32) =
          xs |> split(3) |> mapWrg(0, mapSubgroup(32, row =>
            let s = row |> mapItem(x => x) |> reduceItems(maximum, -1) in
            row |> mapItem(x => x * 0.5 - s))) |> join""",
    "one value of each row": """
        def p(xs: [11][13]f32) =
          xs |> split(11) |> mapWrg(0, mapSubgroup(24, row =>
            let s = row |> mapItem(x => x) |> reduceItems(minimum, 1) in
            0.0 |> repeat(1) |> mapItem(x => x + s))) |> join |> join""",
    "folds of folds": """
        def p(xs: [5][6][7]f32) =
          xs |> split(5) |> mapWrg(0, mapSubgroup(16, rows =>
            let s = rows |> mapItem(row => row |> reduceSeq((a, x) => a * 0.5 - x, 1))
              |> reduceItems(add, 0) in
            rows |> mapItem(mapSeq(x => x * s)))) |> join""",
    "two folds": """
        def p(xs: [3][19]f32) =
          xs |> split(1) |> mapWrg(0, mapSubgroup(16, row =>
            let m = row |> mapItem(x => x) |> reduceItems(maximum, -1) in
            let s = row |> mapItem(x => x - m) |> reduceItems(add, 0) in
            row |> mapItem(x => (x - m) * s))) |> join""",
    "integers": """
        def p(xs: [4][9]i32) =
          xs |> split(4) |> mapWrg(0, mapSubgroup(8, row =>
            let s = row |> mapItem(x => x * 3) |> reduceItems(addInt, 7) in
            let m = row |> mapItem(x => x) |> reduceItems((a, x) => max(a, x), -100) in
            row |> mapItem(x => x * s - m))) |> join""",
    "shared elements in local memory": """
        def p(xs: [6][8]f32, ys: [8]f32) =
          xs |> split(3) |> mapWrg(0, rows =>
            let y = ys |> mapLcl(0, x => x * 2) |> toLocal in
            rows |> mapSubgroup(8, row =>
              let s = zip(row, y) |> mapItem((a, b) => a * b) |> reduceItems(add, 0) in
              row |> mapItem(x => x - s))) |> join""",
    "local memory that subgroups fill": """
        def p(xs: [6][5]f32) =
          xs |> split(3) |> mapWrg(0, rows =>
            let t = rows |> mapSubgroup(16, row =>
              let s = row |> mapItem(x => x) |> reduceItems(add, 0) in
              row |> mapItem(x => x - s)) |> toLocal in
            t |> transpose |> mapSubgroup(16, column =>
              let s = column |> mapItem(x => x) |> reduceItems(maximum, -9) in
              column |> mapItem(x => x * s))) |> join""",
    "a fold by subgroups, then one by each": """
        def p(xs: [4][8]f32) =
          xs |> split(2) |> mapWrg(0, rows =>
            let m = rows |> join |> split(2) |> mapLcl(0, reduceSeq(maximum, -9))
              |> reduceSubgroups(maximum, -9) in
            rows |> mapSubgroup(8, row =>
              let s = row |> mapItem(x => x - m) |> reduceItems(add, 0) in
              row |> mapItem(x => x * s))) |> join""",
    "tuples": """
        def p(xs: [4][5]f32, ys: [4][5]i32) =
          zip(xs, ys) |> split(2) |> mapWrg(0, mapSubgroup(4, p =>
            let s = p.0 |> mapItem(x => x) |> reduceItems(add, 0) in
            zip(p.0, p.1) |> mapItem((x, y) => (x - s, y * 2)))) |> join""",
    "padded windows": """
        def p(xs: [5][11]f32) =
          xs |> split(5) |> mapWrg(0, mapSubgroup(16, row =>
            row |> pad(1, 1, 0) |> slide(3, 1) |> mapItem(reduceSeq((a, x) => a * 0.5 + x, 0))))
            |> join""",
    "three dimensions of groups": """
        def p(xs: [2][3][5][7]f32) =
          xs |> mapWrg(2, mapWrg(1, rows => rows |> split(5) |> mapWrg(0, mapSubgroup(8, row =>
            let s = row |> mapItem(x => x) |> reduceItems(add, 0) in
            row |> mapItem(x => x - s))) |> join))""",
    "a group of one work-item": """
        def p(xs: [3][5]f32) =
          xs |> split(3) |> mapWrg(0, mapSubgroup(1, row =>
            let s = row |> mapItem(x => x) |> reduceItems(add, 0) in
            row |> mapItem(x => x - s))) |> join""",
    "a product by broadcasts": """
        def p(a: [5][6]f32, b: [7][6]f32) =
          a |> split(5) |> mapWrg(0, mapSubgroup(16, row =>
            let held = (row |> split(3) |> toSubgroup) in
            b |> mapItem(column => zip(held, column |> split(3)) |> reduceSeq((s, p) =>
              zip(p.0, p.1) |> reduceSeq((t, q) => t + q.0 * q.1, s), 0)))) |> join""",
    "a fold of what broadcasts make": """
        def p(a: [5][4]f32, b: [7][4]f32) =
          a |> split(5) |> mapWrg(0, mapSubgroup(16, row =>
            let held = (row |> toSubgroup) in
            let s = b |> mapItem(column => zip(held, column) |> reduceSeq((t, q) =>
              t + q.0 * q.1, 0)) |> reduceItems(maximum, -99) in
            b |> mapItem(column => zip(held, column) |> mapSeq(q => q.0 - q.1 * s)))) |> join""",
    "broadcasts of one element": """
        def p(a: [5][1]f32, b: [7]f32) =
          a |> split(5) |> mapWrg(0, mapSubgroup(16, row =>
            let held = (row |> toSubgroup) in
            b |> mapItem(x => held |> reduceSeq((t, y) => t * x - y, 1)))) |> join""",
    "broadcasts and padded windows": """
        def p(a: [5][3]f32, b: [11]f32) =
          a |> split(5) |> mapWrg(0, mapSubgroup(16, row =>
            let held = (row |> toSubgroup) in
            b |> pad(1, 1, 0) |> slide(3, 1) |> mapItem(w => zip(held, w) |> reduceSeq((s, q) =>
              s * 0.5 + q.0 * q.1, 0)))) |> join""",
    "broadcasts in a group of one work-item": """
        def p(a: [3][2]f32, w: [1]f32) =
          a |> split(3) |> mapWrg(0, mapSubgroup(1, row =>
            let held = (w |> toSubgroup) in
            row |> mapItem(x => held |> reduceSeq(add, x)))) |> join""",
    "folds in the steps of another": """
        def p(a: [6][5][7]f32) =
          a |> split(3) |> mapWrg(0, mapSubgroup(12, rows =>
            let t = rows |> reduceSeq((t, row) =>
              let s = row |> mapItem(x => x) |> reduceItems(add, 0) in t * 0.5 + s, 0) in
            let u = t |> iterateSeq(2, v => v * 0.5
              + (rows |> join |> mapItem(x => x) |> reduceItems(maximum, -9))) in
            let w = rows |> mapSeq(row => row |> mapItem(x => x) |> reduceItems(minimum, 9))
              |> toPrivate in
            rows |> transpose |> mapItem(column => zip(column, w) |> reduceSeq((b, p) =>
              b * 0.5 + p.0 - p.1, u)))) |> join""",
    "a mapLcl of more elements than the group has work-items": """
        def p(xs: [6][16]f32) =
          xs |> split(3) |> mapWrg(0, rows =>
            let t = rows |> join |> split(3) |> mapLcl(0, mapSeq(x => x * x)) |> toLocal in
            t |> join |> split(16) |> mapSubgroup(8, row =>
              let s = row |> mapItem(x => x) |> reduceItems(add, 0) in
              row |> mapItem(x => x - s))) |> join""",
    "a fold in place beside an array that subgroups hold": """
        def p(a: [5][4]f32, b: [6]f32) =
          (a |> split(5) |> mapWrg(0, mapSubgroup(8, row =>
            let held = (row |> toSubgroup) in
            b |> mapItem(x => held |> reduceSeq((s, y) => s * 0.5 + x * y, 1)))) |> join,
           a |> split(5) |> mapWrg(0, mapSubgroup(8, row =>
            let held = (row |> toSubgroup) in
            b |> split(3) |> reduceInPlace((acc, y) =>
              zip(acc, y) |> mapItem((s, x) => s * 0.5 + x), 0.0 |> repeat(3)))) |> join)""",
}
SIZES = (1, 3, 4, 8, 16, 64)


def compiled(name: str) -> Compilation:
    """The program of this name."""
    return compile_program(lowered(PROGRAMS[name]))


@pytest.mark.covering(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_right(runtime: Device, name: str) -> None:
    check_on(runtime, PROGRAMS[name])


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_access_is_proved_inside_and_each_element_has_one_writer(name: str) -> None:
    assert unproved(compiled(name).optimized) == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_size_of_subgroups_does_not_change_the_result(name: str) -> None:
    """After each pass; the last subgroup of a group may be smaller than the others."""
    made, program = compiled(name), parse(PROGRAMS[name])
    arrays = inputs(program)
    for number, (after, codes) in enumerate(stages_of(made)):
        for size in SIZES if number == 0 else (SIZES[number % len(SIZES)],):
            check_close(interpreted(made, codes, arrays, size), program, arrays, after)
    for size in SIZES:
        check_close(interpreted(made, made.optimized, arrays, size), program, arrays)


@pytest.mark.oclgrind
def test_no_launch_has_a_race_or_a_stray_access() -> None:
    jobs = [(compiled(name).module, inputs(parse(text))) for name, text in PROGRAMS.items()]
    assert [complaints for _, complaints in check_all_under_oclgrind(jobs)] == [[]] * len(jobs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_length_of_kernels_has_a_bound(name: str) -> None:
    made = compiled(name)
    for kernel, code in zip(made.chain.kernels, made.loops, strict=True):
        assert int(length(kernel)) >= statements(code)


def test_subgroups_need_no_barrier_and_no_local_memory() -> None:
    (code,) = compiled("two folds").optimized
    assert code.locals == ()
    assert not any(isinstance(s, Barrier) for s in statements_in(code.block))
