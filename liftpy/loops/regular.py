"""Regular loops over registers: their iterations differ only in constant offsets of indices.

Generated code has all iterations of a loop over registers (`liftpy.loops.unroll`). An analysis that
only counts a kernel's operations and accesses can read a regular loop once, and multiply.

Note [Regular]. The iterations of a loop become the same statements, up to offsets, if nothing that
is decided per iteration depends on the counter. Guards are decided by the ranges of their indices,
vectors are loaded whole if their lanes are adjacent, and an index that is not linear is simplified
once the counter is a constant. So a loop is regular if no guard mentions its counter, and every
index is a multiple of it plus something else. Variables for indices, places behind conditions, and
memory that is both loaded and stored are left to unrolling.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from liftpy.ir.nat import Nat, Var
from liftpy.loops.nest import (
    DATA_INDEX,
    Assign,
    Bind,
    Loop,
    Nest,
    Restore,
    Snapshot,
    Statement,
)
from liftpy.views.terms import Choice, FromIndex, Lanes, Load, OfWorkItem, Term


def without_snapshots(nest: Nest) -> Nest:
    """A nest whose reads of snapshots return present values; only copies of registers are lost."""
    return replace(nest, body=tuple(_without(nest.body)))


def _without(statements: Iterable[Statement]) -> Iterator[Statement]:
    for s in statements:
        if isinstance(s, Loop):
            yield s._replace(body=tuple(_without(s.body)))
        elif not isinstance(s, Snapshot | Restore):
            yield s


def regular(nest: Nest, over_registers: frozenset[str]) -> frozenset[str]:
    """The counters of the regular loops among those to be unrolled (Note [Regular]).

    `over_registers` are the counters that index registers. All loops in a regular one are regular.
    """
    found: set[str] = set()

    def visit(statements: Iterable[Statement]) -> None:
        for s in statements:
            if isinstance(s, Loop):
                visit(s.body)
                if is_unrolled(s, over_registers) and is_regular(s, found):
                    found.add(s.counter)

    visit(nest.body)
    return frozenset(found)


def is_unrolled(loop: Loop, over_registers: frozenset[str]) -> bool:
    """Whether a loop is to be unrolled."""
    return (loop.asked or loop.counter in over_registers) and loop.first == 0


def is_regular(loop: Loop, known: set[str]) -> bool:
    """Whether the iterations of a loop differ only in offsets; `known` are the regular loops."""
    loaded: set[str] = set()
    stored: set[str] = set()
    waiting: list[Statement] = [*loop.body]
    while waiting:
        match waiting.pop():
            case Assign(Load() as target, term):
                if not is_linear(target.index, loop.counter):
                    return False
                if target.memory.space != "private":
                    stored.add(target.memory.name)
            case Bind(name, term) if not name.startswith(DATA_INDEX):
                pass
            case Loop(counter=counter, body=body) if counter in known:
                waiting += body
                continue
            case _:
                return False
        for part in parts_of(term):
            if not differs_in_offsets(part, loop.counter):
                return False
            if isinstance(part, Load) and part.memory.space != "private":
                loaded.add(part.memory.name)
    return loaded.isdisjoint(stored)


def differs_in_offsets(term: Term, counter: str) -> bool:
    """Whether a term by itself, without its parts, is the same for each counter up to offsets."""
    match term:
        case Load(_, index) | FromIndex(index):
            return is_linear(index, counter)
        case OfWorkItem(_, row, item):
            return is_linear(row, counter) and is_linear(item, counter)
        case Choice(condition):
            return counter not in condition.index.names()
        case _:
            return True


def is_linear(index: Nat, counter: str) -> bool:
    """Whether an index is a multiple of a counter plus something without it."""
    if counter not in index.names():
        return True
    _, moving = index.parted(counter)
    match [*moving.terms]:
        case [((Var(name=name), 1),)]:
            return name == counter
        case _:
            return False


def parts_of(term: Term) -> Iterator[Term]:
    """A term and everything that it mentions, each once."""
    waiting, seen = [term], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting += part.parts
            if isinstance(part, Lanes):
                waiting.append(part.step)
