"""Which variables are one, and where a variable is read for what it holds."""

from __future__ import annotations

import pytest

from liftpy.ir.nat import nat, var
from liftpy.ir.types import F32
from liftpy.loops.common import without_common
from liftpy.loops.tree import (
    Barrier,
    Block,
    For,
    If,
    Let,
    Statement,
    Store,
)
from liftpy.loops.values import (
    All,
    Cell,
    Const,
    Name,
    Operate,
    Pack,
    RangeTest,
    Select,
    Value,
    VectorSlice,
)
from liftpy.views.terms import Memory
from tests.loops.memories import HELD, OUTPUT, XS

LOCAL = Memory("l", "local", F32, 8)
COUNTER = var("i", 0, 3)
ONE = Const(1.0, F32)
V, W = Name("v", F32), Name("w", F32)
V0, V1 = Name("v0", F32), Name("v1", F32)


def plus(left: Value, right: Value) -> Value:
    """A sum."""
    return Operate("+", (left, right), F32)


def store(value: Value, place: int = 0) -> Store:
    """A store to the result."""
    return Store(Cell(OUTPUT, nat(place)), value)


def after(*statements: Statement) -> tuple[Statement, ...]:
    """Statements without common subexpressions."""
    return without_common(Block(statements)).statements


X = Cell(XS, nat(0))


def test_a_variable_that_holds_what_another_one_does_is_not_declared() -> None:
    assert after(
        Let("v", X), store(V), Let("w", X), Let("x", plus(W, ONE)), store(Name("x", F32), 1)
    ) == (Let("v0", X), store(V0), Let("v1", plus(V0, ONE)), store(V1, 1))


def test_what_a_variable_holds_is_read_wherever_it_is_computed() -> None:
    behind = Select(All((RangeTest(COUNTER - 1),)), plus(X, ONE), ONE)
    assert after(Let("v", X), Let("w", plus(V, ONE)), store(plus(plus(X, ONE), behind))) == (
        Let("v0", X),
        Let("v1", plus(V0, ONE)),
        store(plus(V1, Select(All((RangeTest(COUNTER - 1),)), V1, ONE))),
    )


def test_a_value_is_the_same_whether_it_reads_a_variable_or_computes_it() -> None:
    """The sum of the sum is held before the sum inside it is."""
    inner = plus(X, ONE)
    whole = (Let("v", plus(inner, ONE)), Let("w", inner), Let("x", plus(W, ONE)))
    x = Name("x", F32)
    assert after(*whole, store(plus(inner, ONE)), store(x, 1)) == (
        Let("v0", plus(plus(X, ONE), ONE)),
        Let("v1", plus(X, ONE)),
        store(V0),
        store(V0, 1),
    )


def test_lanes_are_those_of_the_variable_that_is_left() -> None:
    vector, lanes = Cell(XS, nat(0), 4), Name("w", F32, 4)
    assert after(Let("v", vector), Let("w", vector), store(VectorSlice(lanes, 2))) == (
        Let("v0", vector),
        store(VectorSlice(Name("v0", F32, 4), 2)),
    )


def test_a_variable_serves_in_its_block_and_those_inside() -> None:
    tests, then, inner = All((RangeTest(COUNTER - 1),)), Let("w", X), Let("v", X)
    loop = For("i", 0, 4, 1, Block((If(tests, Block((then, store(W)))),)))
    assert after(inner, loop) == (
        Let("v0", X),
        For("i", 0, 4, 1, Block((If(tests, Block((store(V0),))),))),
    )
    assert after(loop, inner, store(V, 1)) == (
        For("i", 0, 4, 1, Block((If(tests, Block((Let("v0", X), store(V0)))),))),
        Let("v1", X),
        store(V1, 1),
    )


@pytest.mark.parametrize(
    "between",
    [
        Store(Cell(HELD, nat(0)), ONE),
        Barrier(),
        For("i", 0, 4, 1, Block((Store(Cell(HELD, nat(0)), ONE),))),
        If(All((RangeTest(COUNTER - 1),)), Block((Store(Cell(HELD, nat(0)), ONE),))),
    ],
    ids=["a store", "a barrier", "a loop", "a branch"],
)
@pytest.mark.parametrize("memory", [HELD, LOCAL], ids=["registers", "local memory"])
def test_what_the_kernel_writes_is_held_up_to_the_next_statement(
    memory: Memory, between: Statement
) -> None:
    value = plus(Cell(memory, nat(0)), ONE)
    assert after(Let("v", value), Let("w", value), store(plus(V, W))) == (
        Let("v0", value),
        store(plus(V0, V0)),
    )
    computed = Let("v", value), between, Let("w", value), store(plus(V, W))
    assert after(*computed) == (Let("v0", value), between, Let("v1", value), store(plus(V0, V1)))


def test_what_is_computed_in_a_loop_from_registers_is_so_in_each_pass() -> None:
    value = plus(Cell(HELD, nat(0)), ONE)
    body = Let("w", value), Store(Cell(HELD, nat(0)), W)
    assert after(Let("v", value), For("i", 0, 4, 1, Block(body)), store(V)) == (
        Let("v0", value),
        For("i", 0, 4, 1, Block((Let("v1", value), Store(Cell(HELD, nat(0)), V1)))),
        store(V0),
    )


def test_zeros_of_both_signs_are_two_values() -> None:
    first, second = plus(X, Const(0.0, F32)), plus(X, Const(-0.0, F32))
    packed = Pack((V, W))
    assert after(Let("v", first), Let("w", second), store(packed)) == (
        Let("v0", first),
        Let("v1", second),
        store(Pack((V0, V1))),
    )
    assert Const(0.0, F32) != Const(-0.0, F32)
