"""What leaves its loop or branch, how far, and what stays."""

from __future__ import annotations

import pytest

from liftpy.ir.nat import Nat, nat, var
from liftpy.ir.types import F32
from liftpy.loops.hoisting import hoisted
from liftpy.loops.tree import (
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
    RangeTest,
    Select,
    Value,
)
from tests.loops.memories import HELD, OUTPUT, XS

FIRST, SECOND = var("i", 0, 3), var("j", 0, 3)
ONE = Const(1.0, F32)
V, W = Name("v", F32), Name("w", F32)


def loop(counter: str, *body: Statement) -> For:
    """A loop of four passes."""
    return For(counter, 0, 4, 1, Block(body))


def twice(value: Value) -> Value:
    """A value that is computed."""
    return Operate("+", (value, value), F32)


def after(*statements: Statement) -> tuple[Statement, ...]:
    """Statements with what is invariant hoisted."""
    return hoisted(Block(statements)).statements


def store(value: Value, index: Nat = FIRST * 4 + SECOND) -> Store:
    """A store to the result."""
    return Store(Cell(OUTPUT, index), value)


def test_a_value_goes_to_the_outermost_block_that_knows_what_it_mentions() -> None:
    known, held = Let("v", twice(ONE)), Let("w", Operate("+", (Cell(XS, FIRST), V), F32))
    inner = Let("x", Operate("+", (Cell(XS, SECOND), W), F32))
    done = store(Name("x", F32))
    assert after(loop("i", loop("j", known, held, inner, done))) == (
        known,
        loop("i", held, loop("j", inner, done)),
    )


def test_what_is_read_alone_stays_and_what_is_read_for_a_computed_value_goes_along() -> None:
    read, made = Let("v", Cell(XS, FIRST)), Let("w", twice(V))
    alone = loop("i", loop("j", read, store(V)))
    assert after(alone) == (alone,)
    assert after(loop("i", loop("j", read, made, store(W)))) == (
        loop("i", read, made, loop("j", store(W))),
    )


def test_a_guarded_value_goes_along_with_its_condition_and_else_stays() -> None:
    outside = Cell(XS, FIRST - 1)
    guarded = Let("v", Select(All((RangeTest(FIRST - 1),)), outside, ONE))
    alone = loop("i", loop("j", guarded, store(V)))
    assert after(alone) == (alone,)
    made = Let("w", twice(V))
    assert after(loop("i", loop("j", guarded, made, store(W)))) == (
        loop("i", guarded, made, loop("j", store(W))),
    )


@pytest.mark.parametrize(
    "cell",
    [
        Cell(XS, FIRST - 1),
        Cell(XS, FIRST + 5),
        Cell(XS, nat(6), 3),
        Cell(HELD, nat(0)),
        Cell(OUTPUT, FIRST),
    ],
    ids=["before its memory", "behind it", "a vector that ends behind it", "a register", "written"],
)
def test_what_may_be_outside_of_memory_or_written_stays(cell: Cell) -> None:
    """It may be inside wherever the loop comes by: the branch around it is not asked."""
    stays = loop("i", loop("j", Let("v", twice(cell)), store(V)))
    assert after(stays) == (stays,)
    branch = If(All((RangeTest(SECOND - 1),)), Block((Let("v", twice(cell)), store(V))))
    assert after(loop("i", loop("j", branch))) == (loop("i", loop("j", branch)),)


def test_a_value_leaves_both_sides_of_a_branch() -> None:
    tests = All((RangeTest(SECOND - 1),))
    first, second = Let("v", twice(Cell(XS, SECOND))), Let("w", twice(ONE))
    branch = If(tests, Block((first, store(V))), Block((second, store(W))))
    assert after(loop("j", branch)) == (
        second,
        loop("j", first, If(tests, Block((store(V),)), Block((store(W),)))),
    )


def test_what_mentions_a_variable_that_stays_does_so_too() -> None:
    stays = loop("i", loop("j", Let("v", twice(Cell(XS, SECOND))), Let("w", twice(V)), store(W)))
    assert after(stays) == (stays,)
