"""Arrays in registers whose elements are divided among the work-items of a group.

A fold whose step has parallel maps has an accumulator of which each work-item computes its own
elements: one digit of an element's index is a local id of the work-item. If this holds for all
accesses to a private memory, a work-item needs only its own elements, and the digit is left out of
all indices. This keeps the meaning, because no work-item touches an element of another one.

A memory of another kind is left as it is; `liftpy.loops.unroll` refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from liftpy.ir.nat import Nat, Var
from liftpy.loops.nest import (
    Assign,
    Bind,
    Loop,
    Nest,
    Restore,
    Snapshot,
    Statement,
    private_loads,
    terms_in,
)
from liftpy.loops.substitute import rebuilt
from liftpy.views.access import AccessReader
from liftpy.views.terms import Load, Memory, Term

LOCAL_ID = "lid"


@dataclass(frozen=True)
class Digit:
    """The digit `index // place % count` of an index, which is the id `own` of the work-item."""

    own: Nat
    place: int
    count: int

    def is_in(self, index: Nat) -> bool:
        """Whether an index has this digit, whatever the values of its counters are."""
        return index // self.place % self.count == self.own

    def without(self, index: Nat) -> Nat:
        """An index that has this digit without it."""
        return index // (self.place * self.count) * self.place + index % self.place


def with_own_registers(nest: Nest) -> Nest:
    """A nest in which each work-item has only its own elements of private memory."""
    indices: dict[Memory, set[Nat]] = {}
    for load in private_loads(terms_in(nest.body)):
        indices.setdefault(load.memory, set()).add(load.index)
    owned = {m: found for m, every in indices.items() if (found := digits(m, every))}
    if not owned:
        return nest
    noted = set(nest.noted)
    body = Dividing(nest.read, noted, owned).block(nest.body)
    return replace(nest, body=body, noted=frozenset(noted))


def digits(memory: Memory, indices: Iterable[Nat]) -> tuple[Digit, ...]:
    """The digits that all accesses to a memory have, the one with the highest place first."""
    left, found, length = set(indices), list[Digit](), memory.length
    ids = {a for index in left for a in index.atoms() if isinstance(a, Var) and is_local(a)}
    candidates = {d for index in left for own in ids if (d := digit_of(own, index))}
    for digit in sorted(candidates, key=lambda d: -d.place):
        if length % (digit.place * digit.count) == 0 and all(map(digit.is_in, left)):
            left = set(map(digit.without, left))
            length //= digit.count
            found.append(digit)
    return tuple(found)


def is_local(variable: Var) -> bool:
    """Whether a variable is an id in the work-group."""
    return variable.name.startswith(LOCAL_ID)


def digit_of(own: Var, index: Nat) -> Digit | None:
    """The digit of an index that may be a local id."""
    place = index.terms.get(((own, 1),), 0)
    if own.high is None or place < 1:
        return None
    return Digit(Nat({((own, 1),): 1}), place, own.high + 1)


@dataclass
class Dividing:
    """Statements with the digits of the work-item left out of the indices of some memories."""

    read: AccessReader
    noted: set[Term]
    owned: Mapping[Memory, tuple[Digit, ...]]
    made: dict[int, tuple[Term, Term]] = field(default_factory=dict)

    def block(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """The statements."""
        return tuple(map(self.statement, statements))

    def statement(self, s: Statement) -> Statement:
        """A statement."""
        match s:
            case Assign(target, term):
                return s._replace(target=self.term(target), term=self.term(term))
            case Bind(_, term):
                return s._replace(term=self.term(term))
            case Snapshot(_, memories):
                return s._replace(memories=tuple(map(self.memory, memories)))
            case Restore(_, memory):
                return s._replace(memory=self.memory(memory))
            case Loop(body=body):
                return s._replace(body=self.block(body))
            case _:
                return s

    def memory(self, memory: Memory) -> Memory:
        """A memory with the elements of one work-item."""
        length = memory.length
        for digit in self.owned.get(memory, ()):
            length //= digit.count
        return memory if length == memory.length else replace(memory, length=length)

    def term(self, term: Term) -> Term:
        """A term; terms of the same parts are one term."""
        found = self.made.get(id(term))
        if found is None:
            found = self.made[id(term)] = term, self.divided(term)
            if term in self.noted:
                self.noted.add(found[1])
        return found[1]

    def divided(self, term: Term) -> Term:
        """`term` for a term that is visited first."""
        if not isinstance(term, Load):
            return rebuilt(self.read, term, self.term)
        index = term.index
        for digit in self.owned.get(term.memory, ()):
            index = digit.without(index)
        return Load(self.memory(term.memory), index, term.snapshot)
