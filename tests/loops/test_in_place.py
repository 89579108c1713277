"""Accumulators are updated in place, and what is read after it was overwritten is saved before."""

from __future__ import annotations

import numpy as np
import pytest

from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import F32
from liftpy.loops.in_place import in_place
from liftpy.loops.nest import Assign, Bind, Loop, Nest, Restore, Snapshot, Statement
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.views.access import AccessReader
from liftpy.views.terms import Load, Memory, Term
from tests.loops.interpreted import interpreted, nests_of
from tests.lowered import lowered

READ = AccessReader()
HELD = Memory("held", "private", F32, 8)
OUTPUT = Memory("output", "global", F32, 8)
ONE = READ.literal(1.0, F32)


def made(*body: Statement) -> tuple[Statement, ...]:
    """The statements of a nest without snapshots."""
    return in_place(Nest("k", body, READ, frozenset())).body


def now(index: int | Nat) -> Load:
    """A place."""
    return Load(HELD, nat(index))


def was(index: int | Nat, number: int = 1) -> Load:
    """What it was."""
    return Load(HELD, nat(index), number)


def plus(*terms: Term) -> Term:
    """A sum."""
    return READ.operate("+", terms)


TAKEN = Snapshot(1, (HELD,))


def saves(body: tuple[Statement, ...]) -> list[int]:
    """The places that are saved, one by one."""
    return [
        int(s.term.index)
        for s in body
        if isinstance(s, Assign) and isinstance(s.term, Load) and s.term.memory == HELD
    ]


def test_a_place_that_is_read_before_it_is_overwritten_is_not_saved() -> None:
    body = made(TAKEN, *(Assign(now(k), plus(was(k), was(k + 1))) for k in range(4)))
    assert len(body) == 4


def test_a_place_that_is_read_after_it_is_overwritten_is_saved() -> None:
    first, second = Assign(now(0), plus(was(1), ONE)), Assign(now(1), plus(was(0), ONE))
    body = made(TAKEN, first, second)
    assert saves(body) == [0]
    saved, _, last = body
    assert isinstance(saved, Assign)
    assert isinstance(saved.target, Load)
    assert isinstance(last, Assign)
    assert plus(Load(saved.target.memory, nat(0)), ONE) is last.term


def test_a_variable_reads_too() -> None:
    assert saves(made(TAKEN, Assign(now(0), ONE), Bind("#0", plus(was(0), ONE)))) == [0]


def test_what_was_stored_before_the_snapshot_does_not_count() -> None:
    assert saves(made(Assign(now(0), ONE), TAKEN, Assign(now(1), plus(was(0), ONE)))) == []


def test_what_a_pass_before_has_stored_counts() -> None:
    i = var("i0", 0, 7)
    step = Assign(Load(OUTPUT, i), plus(was(0), ONE)), Assign(now(0), ONE)
    assert len(made(TAKEN, *step)) == 2
    around = made(TAKEN, Loop("i0", 0, 8, 1, step))
    assert saves(around) == [0]
    inside = made(Loop("i0", 0, 8, 1, (TAKEN, *step)))  # another snapshot in each pass
    (loop,) = inside
    assert isinstance(loop, Loop)
    assert loop.body == step


def test_a_vector_is_read_before_it_is_stored() -> None:
    lane = var("store4", 0, 3)
    turned = Assign(now(lane), plus(was(3 - lane), ONE), "store4", 4)
    assert len(made(TAKEN, turned)) == 1
    again = Assign(now(4 + lane), plus(was(lane), ONE), "store4", 4)
    saved, *rest = made(TAKEN, turned, again)
    assert isinstance(saved, Assign)
    assert saved.width == 4
    assert len(rest) == 2


def test_lanes_that_are_not_in_a_row_are_stored_one_by_one() -> None:
    lane = var("store2", 0, 1)
    spread = Assign(now(2 * lane), plus(was(2 - 2 * lane), ONE), "store2", 2)
    assert saves(made(TAKEN, spread)) == [0, 1, 2]


def test_a_memory_that_holds_what_it_held_is_not_restored() -> None:
    assert made(TAKEN, Restore(1, HELD)) == ()
    body = made(TAKEN, Assign(now(3), ONE), Restore(1, HELD))
    assert len(body) == 2 * HELD.length + 1


def test_a_value_that_stays_where_it_is_overwrites_nothing() -> None:
    body = made(TAKEN, Assign(now(0), was(0)), Assign(now(1), plus(was(0), ONE)))
    assert len(body) == 2


PERMUTED = "a |> split(2) |> transpose |> join"
START = "generate(4, (i: i32) => f32(i))"
PROGRAMS = {
    "a pair that goes round": """xs |> reduceSeq((a, x) => (a.1, a.0 + x), (0, 1))
      |> (t => generate(1, (i: i32) => t.0 * 10 + t.1)) |> mapSeq(x => x)""",
    "a permutation": f"""xs |> reduceSeq((a, x) => {PERMUTED} |> mapSeq(y => y + x), {START})
      |> toPrivate |> mapSeq(x => x)""",
    "a fold that is unrolled": f"""xs
      |> reduceSeqUnroll((a, x) => {PERMUTED} |> mapSeq(y => y + x), {START})
      |> toPrivate |> mapSeq(x => x)""",
    "an accumulator that is kept": f"""xs |> reduceSeq((a, x) => a, {START})
      |> toPrivate |> mapSeq(x => x)""",
    "a fold that keeps the accumulator of another": f"""xs |> reduceSeq((a, x) =>
      xs |> reduceSeq((b, y) => a, a |> mapSeq(z => z + x)), {START})
      |> toPrivate |> mapSeq(x => x)""",
    "a fold that reads the accumulator of another": f"""xs |> reduceSeq((a, x) =>
      xs |> reduceSeq((b, y) => zip(a, b) |> mapSeq((p, q) => p - q * y), a), {START})
      |> toPrivate |> mapSeq(x => x)""",
    "folds that begin at elements of the accumulator": f"""xs |> reduceSeq((a, x) => a
      |> mapSeq(s => xs |> reduceSeq((t, y) => t + y * x, s)), {START})
      |> toPrivate |> mapSeq(x => x)""",
    "an iteration": """xs |> split(4) |> mapSeq(r => r |> iterateSeq(3, a => """
    f"""{PERMUTED} |> mapSeq(y => y * 2)))""",
    "a scan": """xs |> scanSeq((a, x) => (a.1, a.0 + x), (0, 1)) |> toPrivate
      |> mapSeq(t => t.0 + t.1)""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_before_and_after(name: str) -> None:
    program = lowered(f"def p(xs: [8]f32) = {PROGRAMS[name]}")
    xs = np.arange(8, dtype=np.float32) % 5 - 1
    code = compile_program(program)
    after = interpreted(code, code.loops, {"xs": xs})
    np.testing.assert_allclose(after, evaluate(program, xs), rtol=1e-6)
    before = interpreted(code, nests_of(code)["nest"], {"xs": xs})
    np.testing.assert_array_equal(before, after)
