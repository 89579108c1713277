"""The loop nest of a kernel as it is lowered: loops, variables and stores of terms.

A computed value is a term of the views (`liftpy.views.terms`): a graph, whose parts may be
mentioned often. A nest has every loop of the expression, each once. Private memory is indexed by
their counters; `liftpy.loops.unroll` changes that. What a step of a fold reads of its accumulator
is a snapshot; `liftpy.loops.in_place` removes snapshots. A part that a term mentions more than once
becomes a variable of the code later (`liftpy.loops.storing`).

A nest is immutable: a pass returns a new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from liftpy.errors import TypeRefused
from liftpy.ir.nat import Nat
from liftpy.loops.tree import (
    Barrier,
)
from liftpy.views.access import AccessReader
from liftpy.views.terms import Lanes, Load, Memory, OfWorkItem, Term

MOST_STATEMENTS = 10_000
"""The most statements of a kernel that become code: drivers take minutes for fewer."""

MOST_UNROLLED = 4 * MOST_STATEMENTS
"""The most statements that unrolling may make; later passes merge those with equal values."""

DATA_INDEX = "@"
"""The beginning of the names of variables that hold indices; `views.access` mentions them."""

LANES = "store", "lane"
"""The beginnings of the names of variables for the lanes of a vector."""


class Assign(NamedTuple):
    """A value and its place, of `width` lanes; both depend on the lane by the variable `lane`.

    All of the value is read before any of it is stored. A `nontemporal` store bypasses the caches
    if it is a whole vector at a multiple of its length.

    The place may be behind conditions, with a constant where they fail: nothing is stored there, as
    for a result that is written through `coverOnce`.

    With `op`, the place is updated atomically: the operator is applied to what it holds and to the
    value.
    """

    target: Term
    term: Term
    lane: str = ""
    width: int = 1
    nontemporal: bool = False
    op: str = ""


class Bind(NamedTuple):
    """A variable for a value that is computed here, or for all lanes of one."""

    name: str
    term: Term
    lane: str = ""
    width: int = 1


class Snapshot(NamedTuple):
    """From here on, reads of memories in this snapshot return what the memories hold now."""

    number: int
    memories: tuple[Memory, ...]


class Restore(NamedTuple):
    """A memory gets back what it held when a snapshot was taken: a step keeps its accumulator."""

    number: int
    memory: Memory


class Loop(NamedTuple):
    """Iterates a counter from `first` to below `bound` in steps of `step`.

    `first` is an id if the loop is over ids, else 0. `step` is a number, the size of the
    subgroup, or the number of subgroups. A loop is unrolled if it is `asked` to be: the program
    says so, or it fills registers. A loop prefetches (`ahead`) what its next iteration reads if the
    program says so. No two loops have the same counter.
    """

    counter: str
    first: str | int
    bound: int
    step: str | int
    body: tuple[Statement, ...]
    asked: bool = False
    ahead: bool = False


Statement: TypeAlias = Assign | Bind | Snapshot | Restore | Loop | Barrier


@dataclass(frozen=True)
class Nest:
    """The body of a kernel. `noted` are terms that are held in variables where they are read."""

    kernel: str
    body: tuple[Statement, ...]
    read: AccessReader
    noted: frozenset[Term]


def too_long(
    kernel: str, why: str = "its loops over registers are unrolled to more statements"
) -> TypeRefused:
    """The error for code that no driver compiles in reasonable time."""
    return TypeRefused(
        f"the code of kernel {kernel} is too long: {why}; the limit is {MOST_STATEMENTS} "
        "statements. Choose smaller blocks or tiles, or store with toGlobal what its loops hold in "
        "registers"
    )


def old(number: int, memory: Memory) -> Memory:
    """The memory that holds a snapshot's copy of another memory."""
    return Memory(f"old{number}_{memory.name}", "private", memory.scalar, memory.length)


def terms_in(statements: tuple[Statement, ...]) -> Iterator[Term]:
    """The terms of statements, including places."""
    for s in statements:
        match s:
            case Assign(target, term):
                yield target
                yield term
            case Bind(_, term):
                yield term
            case Loop(body=body):
                yield from terms_in(body)
            case _:
                pass


def private_loads(terms: Iterable[Term]) -> Iterator[Load]:
    """The places in private memory that terms mention."""
    for term in reached(terms):
        if isinstance(term, Load) and term.memory.space == "private":
            yield term


def private_indices(terms: Iterable[Term]) -> Iterator[Nat]:
    """The indices of private memory, and of rows in registers of a subgroup, in some terms."""
    for term in reached(terms):
        if isinstance(term, Load) and term.memory.space == "private":
            yield term.index
        elif isinstance(term, OfWorkItem):
            yield term.row


def reached(terms: Iterable[Term]) -> Iterator[Term]:
    """The given terms and those that they are computed from, each once."""
    seen: set[int] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if id(term) in seen:
            continue
        seen.add(id(term))
        yield term
        waiting += term.parts
        if isinstance(term, Lanes):
            waiting.append(term.step)
