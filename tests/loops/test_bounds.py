"""Accesses are proved inside their memory, and elements to have one writer; faults are found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import F32
from liftpy.loops import storing
from liftpy.loops.bounds import bounds, follows, guards
from liftpy.loops.lower import LoopKernel
from liftpy.loops.show import show_kernel
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Simple,
    Statement,
    Store,
)
from liftpy.loops.values import (
    Cell,
    Const,
    Operate,
    RangeTest,
    Select,
    Value,
    rebuilt,
)
from liftpy.loops.writers import shared_stores
from liftpy.pipeline import compile_program
from liftpy.views.terms import Decided
from tests.lowered import lowered

PADDED = """def p(xs: [13]f32) = xs |> pad(1, 1, 0) |> slide(3, 1)
  |> mapGlb(0, w => w |> reduceSeq(add, 0))"""
GROUPS = """def p(xss: [6][8]f32) = xss |> mapWrg(0, row =>
  row |> mapLcl(0, x => x * 2) |> toLocal |> reorder(i => 7 - i, i => 7 - i)
      |> mapLcl(0, x => x + 1))"""
SOLVED = "def p(xs: [12]f32) = xs |> reorder(i => 5*i % 12, i => 5*i % 12) |> mapGlb(0, x => x + 1)"
READ = "def p(xs: [7]f32, is: [5]i32) = is |> mapGlb(0, i => xs |> at(i))"
BINS = """def p(is: [3][5]i32) = is |> mapGlb(0, row => row |> map(i => (i, 1i32))
  |> reduceByIndexSeq(addInt, 0i32 |> repeat(7)))"""
TEXTS = {"padded": PADDED, "groups": GROUPS, "reordered": SOLVED, "read": READ, "bins": BINS}


def kernels(text: str) -> tuple[LoopKernel, ...]:
    """The kernels of a program, as they are printed."""
    return compile_program(lowered(text)).optimized


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_compiled_is_proved(name: str) -> None:
    for code in kernels(TEXTS[name]):
        found = bounds(code)
        assert {b.store for b in found} == {True, False}
        assert all(b.way for b in found), [str(b) for b in found]
        assert not shared_stores(code)


def test_each_way_is_taken() -> None:
    ways = {b.way for text in TEXTS.values() for code in kernels(text) for b in bounds(code)}
    assert ways >= {"ranges", "guard"}


def changed(block: Block, change: object) -> Block:
    """A block with every expression and every store changed."""

    def value(of: Value) -> Value:
        return change(rebuilt(of, value))  # type: ignore[operator]

    def statements() -> Iterator[Statement]:
        for s in block:
            match s:
                case For():
                    yield replace(s, body=changed(s.body, change))
                case If(condition, then, otherwise):
                    yield If(condition, changed(then, change), changed(otherwise, change))
                case Store(cell, stored):
                    target = value(cell)
                    assert isinstance(target, Cell)
                    yield replace(s, cell=target, value=value(stored))
                case Simple():
                    yield replace(s, value=value(s.value))  # type: ignore[call-arg]
                case _:
                    yield s

    return Block(tuple(statements()))


def test_an_access_without_its_guard_is_outside_and_the_message_says_where() -> None:
    (code,) = kernels(PADDED)

    def unguarded(of: Value) -> Value:
        return of.then if isinstance(of, Select) else of

    broken = replace(code, block=changed(code.block, unguarded))
    outside = [str(b) for b in bounds(broken) if b.way is None]
    assert outside
    assert any("not shown to be in 0..12: at gid0 = 0" in text for text in outside), outside


ID = var("gid0", 0, 11)
CUT = """def p(xs: [12]f32) = xs |> pad(2, 2, 0) |> split(4) |> mapGlb(0, row => row
  |> slide(2, 1) |> mapSeqUnroll(w => w |> reduceSeqUnroll(add, 0)))"""


def test_guards_that_are_left_out_are_proved() -> None:
    found = [g for text in (PADDED, CUT) for code in kernels(text) for g in guards(code)]
    by_views = {(g.decided.end, g.decided.holds) for g in found if isinstance(g.decided, Decided)}
    assert by_views >= {("low", True), ("high", True)}
    assert not any(g.fault for g in found), [str(g) for g in found]


COVERED = """def p(xs: [57]f32) = xs |> cover(4) |> mapGlb(1, chunk => chunk |> asVector(4)
  |> mapGlb(0, mapVec(x => x * 2)) |> asScalar) |> uncover(57)"""


def test_lanes_where_a_whole_vector_does_not_fit_leave_out_tests_that_are_proved() -> None:
    """Only the last vector does not fit, so the tests of its lanes are decided."""
    (code,) = kernels(COVERED)
    assert "assume" in show_kernel(code)
    assert not any(g.fault for g in guards(code)), [str(g) for g in guards(code)]


def test_lanes_that_leave_out_tests_by_a_wrong_range_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    right = storing.where_fails

    def wrong(test: RangeTest) -> dict[str, Nat]:
        ends = {name: int(n.bounds[0] or 0) for name, n in right(test).items()}
        return {name: var(name, low - 1, low - 1) for name, low in ends.items()}

    monkeypatch.setattr(storing, "where_fails", wrong)
    (code,) = kernels(COVERED)
    assert any(g.fault for g in guards(code))


def test_a_guard_that_views_left_out_by_a_wrong_range_is_found() -> None:
    (code,) = kernels(CUT)
    (count,) = (n for name, n in code.ranges.items() if name == "gid0")
    index = var("gid0", 0, count - 2)
    wrong = replace(code, decided=frozenset({Decided(index, nat(count - 1), "high", holds=True)}))
    found, *_ = guards(wrong)
    assert found.fault == f"at gid0 = {count - 1}"


@pytest.mark.parametrize(
    ("decided", "where"),
    [
        (Decided(ID - 1, nat(12), "low", holds=True), "at gid0 = 0"),
        (Decided(ID + 1, nat(12), "high", holds=True), "at gid0 = 11"),
        (Decided(ID - 11, nat(12), "low", holds=False), "at gid0 = 11"),
        (Decided(2 * ID + 11, nat(12), "high", holds=False), "at gid0 = 0"),
        (Decided(5 * ID % 12 - 1, nat(12), "low", holds=True), "at gid0 = 0"),
    ],
)
def test_a_guard_that_is_needed_is_found(decided: Decided, where: str) -> None:
    (code,) = kernels(PADDED)
    guard, *_ = guards(replace(code, decided=frozenset({decided})))
    assert guard.fault == where
    assert str(guard) == f"guard left out, not shown that {decided}: {where}"


@pytest.mark.parametrize("by", [1, -1])
@pytest.mark.parametrize("name", TEXTS)
def test_an_index_that_is_off_by_one_is_outside(name: str, by: int) -> None:
    for code in kernels(TEXTS[name]):

        def moved(of: Value) -> Value:
            return replace(of, index=of.index + by) if isinstance(of, Cell) else of

        faults = [b for b in bounds(replace(code, block=changed(code.block, moved))) if not b.way]
        assert any(b.store for b in faults)
        assert any("=" in b.outside or b.outside == "at every place" for b in faults)


def test_two_writers_are_found() -> None:
    (code,) = kernels(GROUPS)

    def together(of: Value) -> Value:
        if isinstance(of, Cell) and of.memory.writable and of.memory.space == "global":
            return replace(of, index=of.index.substitute({"lid0": var("lid0", 0, 7) // 2}))
        return of

    found = shared_stores(replace(code, block=changed(code.block, together)))
    assert [f for f in found if "is touched at lid0 = " in str(f)], found


def test_work_items_that_no_id_tells_apart_write_twice() -> None:
    (code,) = kernels(SOLVED)
    (found,) = shared_stores(replace(code, global_size=(12, 2, 1)))
    assert "more work-items than the ids tell apart" in str(found)


def loop(code: LoopKernel, first: str | int, bound: int, step: int, index: Nat) -> For:
    """A loop that stores to the result."""
    output = next(m for m in code.buffers if m.writable)
    return For("i", first, bound, step, Block((Store(Cell(output, index), Const(1.0, F32)),)))


def test_loops_over_ids_are_told_apart_by_their_steps() -> None:
    """A second loop with the same counter, which gives two work-items one element."""
    (code,) = kernels("def p(xs: [4]f32) = xs |> mapGlb(0, x => x + 1)")
    i, output = var("i", 0, 3), next(m for m in code.buffers if m.writable)
    right, wrong = loop(code, "gid0", 4, 4, i), loop(code, "gid0", 4, 3, i)
    assert output.length == 4
    assert not shared_stores(replace(code, block=Block((right,))))
    assert shared_stores(replace(code, block=Block((right, wrong))))
    assert shared_stores(replace(code, block=Block((wrong, right))))


def test_what_a_loop_in_steps_reaches_is_known() -> None:
    (code,) = kernels(SOLVED)
    inside = loop(code, 0, 12, 4, var("i", 0, 11) + 3)
    outside = loop(code, 0, 12, 4, var("i", 0, 11) + 4)
    empty = loop(code, 3, 3, 1, nat(99))
    assert all(b.way for b in bounds(replace(code, block=Block((inside, empty)))))
    (found,) = bounds(replace(code, block=Block((outside,))))
    assert found.way is None
    assert "i = 8" in found.outside


def test_ids_of_one_dimension_tell_no_other_apart() -> None:
    (code,) = kernels(GROUPS)
    output = next(m for m in code.buffers if m.writable)
    index = var("gid0", 0, 7) + 8 * var("wid0", 0, 1)
    store = Store(Cell(output, index), Const(1.0, F32))
    launch = replace(
        code,
        ids=("gid0", "wid0"),
        global_size=(8, 2, 1),
        local_size=(4, 1, 1),
        block=Block((store,)),
    )
    assert "more work-items than the ids tell apart" in str(shared_stores(launch)[0])
    assert not shared_stores(replace(launch, global_size=(8, 1, 1)))


def test_ids_and_counters_that_pass_31_bits_have_64() -> None:
    over_ids = "def p(xs: [2200000000]i8) = xs |> mapGlb(0, x => x + 1i8)"
    in_a_loop = "def p(xs: [2147483648]i8) = xs |> mapSeq(x => x + 1i8)"
    shorter = "def p(xs: [2147483647]i8) = xs |> mapSeq(x => x + 1i8)"
    assert "const long gid0 = get_global_id(0);" in compile_program(lowered(over_ids)).module.source
    assert "for (long i0 = 0;" in compile_program(lowered(in_a_loop)).module.source
    assert "for (int i0 = 0;" in compile_program(lowered(shorter)).module.source


@pytest.mark.parametrize("text", [READ, BINS])
def test_an_index_that_is_data_is_inside_because_it_is_clamped(text: str) -> None:
    def unclamped(value: Value) -> Value:
        made = rebuilt(value, unclamped)
        return made.parts[0] if isinstance(made, Operate) and made.op in {"min", "max"} else made

    (code,) = kernels(text)
    assert all(b.way == "ranges" for b in bounds(code))
    faulty = bounds(replace(code, block=changed(code.block, unclamped)))
    assert {b.cell.memory.name for b in faulty if b.way is None} <= {"xs", "output"}
    assert any(b.way is None for b in faulty)


def test_two_work_items_may_not_update_the_same_bins() -> None:
    (code,) = kernels(BINS)

    def of_all(value: Value) -> Value:
        if isinstance(value, Cell) and value.memory.writable:
            return replace(value, index=value.index.substitute({"gid0": nat(0)}))
        return rebuilt(value, of_all)

    assert not shared_stores(code)
    assert shared_stores(replace(code, block=changed(code.block, of_all)))


def test_many_guards_that_do_not_show_an_index_to_be_inside_are_soon_given_up() -> None:
    """Each of the 2^60 sets of guards leaves another goal."""
    counters = [var(f"i{k}", 0, 99) for k in range(60)]
    total = sum(counters, nat(-(10**6)))
    assert not follows(total, [i - 1 for i in counters])
    assert follows(total + 10**6 - 2, [*(i - 1 for i in counters[1:]), counters[0] - 2])
