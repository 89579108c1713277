"""Loops are made again without the guards that hold in most of their passes.

A padded array that is read where it is needed is guarded at every reading, although nearly all
readings lie inside. So a loop whose body has guards is made anew without them, for when they hold;
both versions compute the same values in the same order. Three ways, the first that fits is taken:

- *In front of the loop* (loop unswitching: F. E. Allen and J. Cocke, A Catalogue of Optimizing
  Transformations, 1971). No guard depends on the loop's counters: one test decides, in front of
  the outermost such loop.

      if (all tests hold) { the loop, nothing guarded } else { the loop as it was }

- *Passes apart* (index set splitting: U. Banerjee, 1979). What a guard needs depends on the counter
  alone, so that it holds from one number to another: three loops, the middle one without it.
- *For all passes*. What a guard needs in every pass is tested in front of the outermost loop, as
  above: the guard at the pass where its index is least, or largest. Where loops inside are made
  anew, this is done as well if it leaves no guard: most blocks lie in the middle of their array.

A loop with a barrier stays as it is: not all work-items might take the same way.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from liftpy.ir.nat import Nat, Var
from liftpy.opencl.c import (
    All,
    Assign,
    Barrier,
    Block,
    C,
    CallC,
    Declare,
    Do,
    For,
    If,
    Infix,
    Prefix,
    RangeTest,
    Simple,
    Statement,
    Ternary,
)
from liftpy.opencl.terms import at_all

#: Tests of which something is known.
Known: TypeAlias = frozenset[RangeTest]
NOTHING: Known = frozenset()


def stored_together(block: Block) -> Block:
    """A block where stores in a row, each behind tests, are made at once where all of these hold.

    if (all tests hold) { the stores } else { each behind its own }
    """
    made: list[Statement] = []
    for tested, run in itertools.groupby(block.statements, lambda s: bool(_decided_by(s))):
        statements = list(run)
        if tested and len(statements) > 1:
            stores, tests = _where_all_hold(statements)
            made.append(If(All(strongest(tests)), Block(stores), Block(statements)))
        else:
            made += map(_together_inside, statements)
    return Block(made)


def _together_inside(s: Statement) -> Statement:
    """`stored_together` in a loop."""
    if not isinstance(s, For):
        return s
    return For(s.var, s.start, s.bound, s.step, stored_together(s.body))


def _decided_by(s: Statement) -> tuple[RangeTest, ...]:
    """The tests that a statement is behind."""
    return s.condition.tests if isinstance(s, If) and isinstance(s.condition, All) else ()


def _where_all_hold(statements: list[Statement]) -> tuple[list[Statement], list[RangeTest]]:
    """What is done where all tests hold that statements are behind, and these tests."""
    done: list[Statement] = []
    tests: list[RangeTest] = []
    for s in statements:
        if isinstance(s, If) and _decided_by(s):
            then, more = _where_all_hold(s.then.statements)
            done += then
            tests += [*_decided_by(s), *more]
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


def unswitched(block: Block) -> Block:
    """A block whose loops have versions without guards."""
    return Block([made for s in block.statements for made in _versions(s, outermost=True)])


def _versions(s: Statement, *, outermost: bool) -> list[Statement]:
    """What stands for a statement."""
    if not isinstance(s, For) or _has_barrier(s.body):
        return [s]
    tests = dict.fromkeys(_tests(s.body))
    if not tests:
        return [s]
    if known := _known(s, tests):
        return [If(All(known), Block([_free(s, known)]), Block([s]))]
    counters = counters_of(s)
    needed = {t: end for t in tests if (end := _always(t, counters)) is not None}
    made = s
    if any(_splits(inner) for inner in _loops(s.body)):
        inside = [part for t in s.body.statements for part in _versions(t, outermost=False)]
        made = For(s.var, s.start, s.bound, s.step, Block(inside))
        if not outermost or len(needed) < len(tests):
            return [made]
    elif passes := _passes(s, tests):
        return _apart(s, *passes)
    if not needed:
        return [made]
    return [
        If(All(tuple(dict.fromkeys(needed.values()))), Block([_free(s, needed)]), Block([made]))
    ]


def _splits(s: For) -> bool:
    """Whether a loop, or one in it, can be split at guards that depend on its counter at most."""
    tests = dict.fromkeys(_tests(s.body))
    return bool(_known(s, tests) or _passes(s, tests)) or any(map(_splits, _loops(s.body)))


def _known(s: For, tests: Collection[RangeTest]) -> tuple[RangeTest, ...]:
    """The tests that are decided in front of a loop: all, or some if there is no loop in it."""
    counters = counters_of(s)
    known = tuple(t for t in tests if counters.keys().isdisjoint(t.index.names()))
    return known if len(known) == len(tests) or len(counters) == 1 else ()


def _free(s: For, holding: Iterable[RangeTest]) -> For:
    """A loop where some tests hold."""
    return For(s.var, s.start, s.bound, s.step, given(s.body, frozenset(holding)))


def _passes(s: For, tests: Iterable[RangeTest]) -> tuple[int, int, list[RangeTest]] | None:
    """The passes, from and to, in which what the tests need of the counter alone holds.

    With the tests that hold then: a test that depends on counters of inner loops as well holds if
    it does in all their passes.
    """
    if s.start != "0" or s.step != "1":
        return None
    inner = _inner_counters(s.body)
    own = {
        t: end for t in tests if (end := _always(t, inner)) and set(end.index.names()) == {s.var}
    }
    low, high = 0, int(s.bound)
    for test in own.values():
        line = _linear(test.room, s.var)
        if line is None or not line[1]:
            return None
        first, each = line  # it holds where first + each * i >= 0
        if each > 0:
            low = max(low, -(first // each))
        else:
            high = min(high, first // -each + 1)
    return (low, high, list(own)) if own and low < high else None


def _apart(s: For, low: int, high: int, own: list[RangeTest]) -> list[Statement]:
    """A loop in up to three: before, while, and after the tests of its counter hold."""
    free = _free(s, own)
    parts = ((s, 0, low), (free, low, high), (s, high, int(s.bound)))
    return [For(s.var, str(a), str(b), s.step, loop.body) for loop, a, b in parts if a < b]


def _linear(index: Nat, name: str) -> tuple[int, int] | None:
    """`a, b` of an index `a + b * name`; None if it is not one."""
    start = each = 0
    for monomial, coefficient in index.terms.items():
        match monomial:
            case ():
                start = coefficient
            case ((Var(name=found), 1),) if found == name:
                each += coefficient  # twice if one knows more of the counter's range than the other
            case _:
                return None
    return start, each


def _always(test: RangeTest, counters: Mapping[str, int]) -> RangeTest | None:
    """The test that this one holds in all passes; None if it has no such form, or never holds."""
    found: RangeTest | None = test
    for name in sorted(test.index.names() & counters.keys()):
        if found is not None:
            found = at_all(found, name, 0, counters[name] - 1)
    return found if found is not None and found.index.constant is None else None


def _loops(block: Block) -> Iterator[For]:
    """The loops directly in a block."""
    return (s for s in block.statements if isinstance(s, For))


def blocks_in(block: Block) -> Iterator[Block]:
    """The blocks directly inside a block."""
    for s in block.statements:
        match s:
            case For(body=body):
                yield body
            case If(_, then, otherwise):
                yield then
                yield otherwise
            case _:
                pass


def counters_of(s: For) -> dict[str, int]:
    """The counters of a loop and of all in it, each with its bound."""
    return {s.var: int(s.bound), **_inner_counters(s.body)}


def _inner_counters(block: Block) -> dict[str, int]:
    """The counters of all loops in a block, each with its bound."""
    found = {s.var: int(s.bound) for s in block.statements if isinstance(s, For)}
    for inner in blocks_in(block):
        found |= _inner_counters(inner)
    return found


def _has_barrier(block: Block) -> bool:
    here = any(isinstance(s, Barrier) for s in block.statements)
    return here or any(map(_has_barrier, blocks_in(block)))


def _tests(block: Block) -> Iterator[RangeTest]:
    """The tests of all guarded values and stores."""
    for s in block.statements:
        if isinstance(s, Simple):
            yield from s.tests
        else:
            yield from _decided_by(s)
    for inner in blocks_in(block):
        yield from _tests(inner)


def given(block: Block, holding: Known, failing: Known = NOTHING) -> Block:
    """A block where some tests hold and others fail."""

    def value(c: C) -> C:
        return _value_given(c, holding, failing)

    def inner(b: Block) -> Block:
        return given(b, holding, failing)

    def statements(s: Statement) -> Iterator[Statement]:
        match s:
            case Assign(target, stored, idle) if idle:
                if failing.isdisjoint(idle):
                    left = tuple(t for t in idle if t not in holding)
                    if s.tests:
                        target, stored = value(target), value(stored)
                    yield Assign(target, stored, left)
            case Simple(tests=()):
                yield s
            case Declare(kind, name, held):
                yield Declare(kind, name, value(held))
            case Assign(target, stored):
                yield Assign(value(target), value(stored))
            case Do(done):
                yield Do(value(done))
            case For(var, start, bound, step, body):
                yield For(var, start, bound, step, inner(body))
            case If(All(tests), then, otherwise):
                if not failing.isdisjoint(tests):
                    yield from inner(otherwise).statements
                elif left := tuple(t for t in tests if t not in holding):
                    yield If(All(left), inner(then), inner(otherwise))
                else:
                    yield from inner(then).statements
            case If(condition, then, otherwise):
                yield If(condition, inner(then), inner(otherwise))
            case Barrier():
                yield s

    return Block([made for s in block.statements for made in statements(s)])


def _value_given(c: C, holding: Known, failing: Known) -> C:
    """An expression where some tests hold and others fail."""

    def part(of: C) -> C:
        return _value_given(of, holding, failing)

    match c:
        case Ternary(All(tests), then, otherwise):
            if not failing.isdisjoint(tests):
                return part(otherwise)
            left = tuple(t for t in tests if t not in holding)
            return Ternary(All(left), part(then), part(otherwise)) if left else part(then)
        case Ternary(condition, then, otherwise):
            return Ternary(part(condition), part(then), part(otherwise))
        case Infix(op, left, right):
            return Infix(op, part(left), part(right))
        case Prefix(op, arg):
            return Prefix(op, part(arg))
        case CallC(function, args):
            return CallC(function, tuple(map(part, args)))
        case _:
            return c
