"""Consecutive stores behind tests become one branch where all the tests hold.

if (all tests hold) { the stores } else { each behind its own }

This keeps the meaning, because the tests are about counters and ids only, which no store changes:
where all of them hold, each statement runs as it does behind its own test, and in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

from liftpy.ir.nat import Nat
from liftpy.loops.tree import (
    Assume,
    Block,
    For,
    If,
    Statement,
)
from liftpy.loops.values import (
    All,
    RangeTest,
)


def merge_stores(block: Block) -> Block:
    """A block with its stores merged; see the module."""
    made: list[Statement] = []
    for tested, run in itertools.groupby(block, lambda s: bool(decided_by(s))):
        statements = list(run)
        if tested and len(statements) > 1:
            stores, tests = _where_all_hold(statements)
            needed = strongest(tests)
            implied = tuple(t for t in dict.fromkeys(tests) if t not in needed)
            assumed = (Assume(implied),) if implied else ()
            made.append(If(All(needed), Block((*assumed, *stores)), Block(tuple(statements))))
        else:
            made += (
                replace(s, body=merge_stores(s.body)) if isinstance(s, For) else s
                for s in statements
            )
    return Block(tuple(made))


def decided_by(s: Statement) -> tuple[RangeTest, ...]:
    """The tests that decide whether a statement runs."""
    return s.condition.tests if isinstance(s, If) and isinstance(s.condition, All) else ()


def _where_all_hold(statements: Iterable[Statement]) -> tuple[list[Statement], list[RangeTest]]:
    """The statements that run where all tests around them hold, and these tests."""
    done: list[Statement] = []
    tests: list[RangeTest] = []
    for s in statements:
        if isinstance(s, If) and decided_by(s):
            then, more = _where_all_hold(s.then)
            done += then
            tests += [*decided_by(s), *more]
        else:
            done.append(s)
    return done, tests


def strongest(tests: Iterable[RangeTest]) -> tuple[RangeTest, ...]:
    """Tests without those that follow from another one that differs by a number."""
    kept: dict[Nat, tuple[int, RangeTest]] = {}
    for test in tests:
        room = test.room
        number = room.terms.get((), 0)
        if room - number not in kept or number < kept[room - number][0]:
            kept[room - number] = number, test
    return tuple(test for _, test in kept.values())
