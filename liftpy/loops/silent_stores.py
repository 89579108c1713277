"""Remove silent stores: those that store the value that their place already holds.

A store has a list of tests, each of which makes it change nothing if it fails
(`liftpy.loops.silent`). So a loop becomes

    if (tests) { the loop, where they hold }

because its other iterations would do nothing. If a loop has a version for when one or two tests
hold, the versions for when one fails leave out the stores that the failed test makes silent: at a
border that crosses a block of accumulators, the stores to those that read padding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from liftpy.loops.merge_stores import strongest
from liftpy.loops.silent import Tests, of_all
from liftpy.loops.together import has_broadcast, is_same
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Fetch,
    For,
    If,
    Let,
    Simple,
    Statement,
    Store,
    Update,
    statements_in,
    with_blocks,
)
from liftpy.loops.unswitch import Given, counters_of, declared_in
from liftpy.loops.values import (
    All,
    RangeTest,
)


def without_silent_stores(block: Block) -> Block:
    """A block without the stores that tests in front of loops show to change nothing."""
    return block.each(_without)


def _without(s: Statement) -> list[Statement]:
    match s:
        case For(body=body):
            own = counters_of(s).keys() | declared_in(s)
            silent = [t for t in _silent(body) or () if own.isdisjoint(t.index.names())]
            if silent and has_broadcast(body):  # which all work-items of a subgroup reach
                silent = [t for t in silent if is_same(t, frozenset())]
            inside = replace(s, body=without_silent_stores(Given(frozenset(silent)).block(body)))
            return [If(All(strongest(silent)), Block((inside,)))] if silent else [inside]
        case If(All(tests), then, otherwise):
            return [
                _where_some_fail(
                    tests, without_silent_stores(then), without_silent_stores(otherwise)
                )
            ]
        case _:
            return [s]


def _where_some_fail(tests: tuple[RangeTest, ...], then: Block, otherwise: Block) -> If:
    """A branch, with a version of `otherwise` for each way in which one or two tests fail."""

    def failing(*some: RangeTest) -> Block:
        holding = frozenset(tests) - set(some)
        return _doing(Given(holding, frozenset(some)).block(otherwise))

    nowhere = _silent(otherwise)
    if nowhere is None or nowhere.keys() >= set(tests):
        return If(All(tests), then)
    stores = (s for s in statements_in(otherwise) if isinstance(s, Store))
    if all(set(tests).isdisjoint(s.silent) for s in stores):
        return If(All(tests), then, otherwise)
    match tests:
        case (only,):
            otherwise = failing(only)
        case (first, second):  # more tests fail in too many ways, each of which adds code
            not_first = failing(first)
            if _may_both_fail(first, second):
                not_first = Block((If(All((second,)), not_first, failing(first, second)),))
            otherwise = Block((If(All((first,)), failing(second), not_first),))
        case _:
            pass
    return If(All(tests), then, otherwise)


def _may_both_fail(first: RangeTest, second: RangeTest) -> bool:
    """Whether two tests may fail together: the room of each is below 0 then."""
    least = (first.room + second.room).bounds[0]
    return least is None or least <= -2


def _doing(block: Block) -> Block:
    """A block without variables that are never read, and without empty loops and branches."""
    kept: list[Statement] = []
    read: set[str] = set()
    for s in reversed(block.statements):
        done = with_blocks(s, _doing)
        match done:
            case For(body=Block(())) | If(_, Block(()), Block(())):
                continue
            case Let(name) if name not in read:
                continue
            case _:
                pass
        read.update(names_in(done))
        kept.append(done)
    return Block(tuple(kept[::-1]))


def names_in(s: Statement) -> Iterator[str]:
    """The names that a statement mentions."""
    for part in statements_in(Block((s,))):
        if isinstance(part, Simple):
            yield from part.names
        if isinstance(part, If):
            for test in part.condition.tests:
                yield from test.index.names()


def _silent(block: Block) -> Tests | None:
    """The tests whose failure makes a block change nothing; None if it never changes anything.

    Declarations and hints have no visible effect.
    """
    found: Tests | None = None
    for s in block:
        match s:
            case Let() | Fetch() | Assume():
                continue
            case Store(silent=silent):
                here: Tests | None = dict.fromkeys(silent)
            case For(body=body):
                here = _silent(body)
            case If(All(tests), then, otherwise):
                here = _silent(then)
                here = None if here is None else dict.fromkeys(tests) | here
                here = of_all(here, _silent(otherwise))
            case If() | Barrier() | Update():
                here = {}
        found = of_all(found, here)
    return found
