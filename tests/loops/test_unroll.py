"""Loops over registers are unrolled: which, to what, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from liftpy.errors import TypeRefused
from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import F32
from liftpy.loops.nest import MOST_UNROLLED, Assign, Bind, Loop, Nest, Statement
from liftpy.loops.unroll import unrolled
from liftpy.loops.verify import verify
from liftpy.pipeline import compile_program
from liftpy.semantics.evaluate import evaluate
from liftpy.views.access import AccessReader
from liftpy.views.terms import Apply, Constant, Load, Memory, Term, Variable
from tests.loops.interpreted import interpreted, nests_of
from tests.lowered import lowered

READ = AccessReader()
XS = Memory("xs", "global", F32, 64, writable=False)
OUTPUT = Memory("output", "global", F32, 64)
HELD = Memory("held", "private", F32, 8)
ONE = READ.literal(1.0, F32)


def counter(name: str, length: int) -> Nat:
    """A counter."""
    return var(name, 0, length - 1)


def loop(name: str, length: int, *body: Statement, asked: bool = False) -> Loop:
    """A loop of one work-item."""
    return Loop(name, 0, length, 1, body, asked)


def made(*body: Statement, noted: frozenset[Term] = frozenset()) -> Nest:
    """A nest, unrolled."""
    return unrolled(Nest("k", body, READ, noted))


def loops_in(statements: tuple[Statement, ...]) -> Iterator[str]:
    """The counters of loops."""
    for s in statements:
        if isinstance(s, Loop):
            yield s.counter
            yield from loops_in(s.body)


def test_a_loop_whose_counter_indexes_registers_becomes_its_passes() -> None:
    i = counter("i0", 3)
    nest = made(loop("i0", 3, Assign(Load(HELD, 2 * i), Load(XS, i + 1))))
    assert [*nest.body] == [Assign(Load(HELD, nat(2 * k)), Load(XS, nat(k + 1))) for k in range(3)]


@pytest.mark.parametrize("written", [True, False])
def test_only_the_loops_of_counters_that_index_registers_are_unrolled(*, written: bool) -> None:
    i, j = counter("i0", 3), counter("i1", 2)
    outside, inside = Load(OUTPUT, i * 2 + j), Load(HELD, j)
    store = Assign(inside, outside) if written else Assign(outside, inside)
    nest = made(loop("i0", 3, loop("i1", 2, store)))
    assert [*loops_in(nest.body)] == ["i0"]
    (kept,) = nest.body
    assert isinstance(kept, Loop)
    assert len(kept.body) == 2


def test_what_reads_registers_in_part_of_a_term_is_found() -> None:
    i = counter("i0", 3)
    inside = READ.inside(i - 1, nat(8))
    guarded = READ.either(inside, Load(HELD, i), READ.literal(0.0, F32))
    nest = made(loop("i0", 3, Assign(Load(OUTPUT, i), READ.operate("+", (guarded, ONE)))))
    assert not [*loops_in(nest.body)]
    terms = [s.term.args[0] for s in nest.body if isinstance(s, Assign)]  # type: ignore[union-attr]
    assert [type(t) for t in terms] == [Constant, Load, Load]  # the guard is decided at numbers


def test_a_loop_that_is_asked_to_be_is_unrolled() -> None:
    store = Assign(Load(OUTPUT, counter("i0", 3)), ONE)
    assert [*loops_in(made(loop("i0", 3, store)).body)] == ["i0"]
    assert len(made(loop("i0", 3, store, asked=True)).body) == 3


def test_a_variable_has_another_name_in_each_pass() -> None:
    i, j = counter("i0", 2), counter("i1", 2)
    value = READ.operate("+", (Load(XS, 2 * i + j), ONE))
    held = Variable("#0", F32)
    twice = READ.operate("*", (held, held))
    body = Bind("#0", value), Assign(Load(OUTPUT, 2 * i + j), twice)
    nest = made(loop("i0", 2, loop("i1", 2, *body, asked=True), asked=True))
    names = [s.name for s in nest.body if isinstance(s, Bind)]
    assert len({*names}) == 4
    for name, s in zip(names, nest.body[1::2], strict=True):
        assert isinstance(s, Assign)
        assert s.term.names == {name}


def test_a_variable_that_turns_out_to_be_a_load_is_none() -> None:
    i = counter("i0", 2)
    value = READ.either(READ.inside(i - 1, nat(8)), Load(XS, i), READ.literal(0.0, F32))
    body = Bind("#0", value), Assign(Load(OUTPUT, i), Variable("#0", F32))
    nest = made(loop("i0", 2, *body, asked=True))
    assert [s.term for s in nest.body if isinstance(s, Assign)] == [
        READ.literal(0.0, F32),
        Load(XS, nat(1)),
    ]
    assert len(nest.body) == 2


def test_what_is_noted_is_so_in_each_pass() -> None:
    i = counter("i0", 2)
    value = READ.operate("+", (Load(XS, i), ONE))
    store = Assign(Load(OUTPUT, i), READ.operate("*", (value, ONE)))
    nest = made(loop("i0", 2, store, asked=True), noted=frozenset((value,)))
    for s in nest.body:
        assert isinstance(s, Assign)
        assert isinstance(s.term, Apply)
        assert s.term.args[0] in nest.noted


def test_registers_that_work_items_would_share_are_refused() -> None:
    with pytest.raises(TypeRefused, match=r"private memory cannot be indexed by gid0, lid1:"):
        made(Assign(Load(HELD, counter("gid0", 2) + counter("lid1", 2)), ONE))
    ids = Loop("i0", "gid0", 8, 4, (Assign(Load(HELD, counter("i0", 8)), ONE),))
    with pytest.raises(TypeRefused, match=r"private memory cannot be indexed by i0:"):
        made(ids)


@pytest.mark.parametrize("each", [4, 5])
def test_no_more_statements_are_made_than_unrolling_may_make(each: int) -> None:
    nest = loop("i0", 10_000, *(Assign(Load(OUTPUT, nat(k)), ONE) for k in range(each)), asked=True)
    if each * 10_000 <= MOST_UNROLLED:
        assert len(made(nest).body) == each * 10_000
    else:
        with pytest.raises(TypeRefused, match="kernel k is too long"):
            made(nest)


PROGRAMS = {
    "a block of accumulators": """xss |> mapGlb(0, row => row |> split(4)
      |> reduceSeq((a, c) => zip(a, c) |> mapSeq((x, y) => x + y * y),
           generate(4, (i: i32) => 0f32)) |> toPrivate |> mapSeq(x => x))""",
    "variables": """xss |> mapGlb(0, row => row
      |> mapSeqUnroll(x => x * 2 + 1 |> (y => y * y) |> (z => z + z * x)))""",
    "registers that are used again": """xss |> mapGlb(0, row => row |> split(4)
      |> mapSeqUnroll(c => c |> mapSeq(x => x * 3) |> toPrivate |> slide(2, 1)
           |> mapSeq(w => w |> reduceSeq(add, 0))) |> join)""",
    "windows": "xss |> mapGlb(0, row => row |> slideSeq(5, 2, w => w |> reduceSeq(add, 0)))",
    "a fold of lanes that stores": """xss |> mapGlb(0, row => row |> asVector(4)
      |> mapSeq(reduceVec((a, x) => a + (x * 2 |> toPrivate), 1)))""",
    "a fold of lanes with a variable": """xss |> mapGlb(0, row => row |> asVector(4)
      |> mapSeq(reduceVec((a, x) => a + x * x |> (y => y * y), 1)))""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_before_and_after(name: str) -> None:
    program = lowered(f"def p(xss: [5][16]f32) = {PROGRAMS[name]}")
    xss = np.arange(80, dtype=np.float32).reshape(5, 16) % 13 - 4
    code = compile_program(program)
    after = interpreted(code, code.loops, {"xss": xss})
    np.testing.assert_allclose(after, evaluate(program, xss), rtol=1e-6)
    before = nests_of(code)["nest"]
    for kernel in before:
        verify(kernel)
    np.testing.assert_array_equal(interpreted(code, before, {"xss": xss}), after)


def test_the_only_iteration_of_a_loop_over_ids_may_read_registers() -> None:
    program = lowered("""
        def p(xs: [12]f32) = xs |> split(6) |> mapWrg(0, tile =>
          tile |> mapLcl(0, x => x + 1) |> toLocal |> (t =>
            zip(t |> split(6) |> mapSeq(reduceSeq(add, 0)) |> toPrivate, t |> split(6))
              |> mapLcl(0, (sum, row) => row |> reduceSeq(add, sum)))) |> join""")
    made = compile_program(program)
    xs = np.arange(12, dtype=np.float32)
    got = interpreted(made, made.optimized, {"xs": xs})
    np.testing.assert_array_equal(got, evaluate(program, xs))
