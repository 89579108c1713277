"""Reads of registers at the ids of work-items: comparisons choose one of the registers.

Registers have no addresses. If every work-item fills all elements of a private array itself, it may
read the element at its own id: it compares the id with the indices of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from liftpy.ir.nat import Var, nat, var
from liftpy.ir.types import I32
from liftpy.loops.nest import Assign, Bind, Loop, Nest, Statement, private_loads, terms_in
from liftpy.loops.substitute import rebuilt
from liftpy.views.access import AccessReader, scalars_of
from liftpy.views.terms import FromIndex, Load, Term

MOST = 64
"""The most registers among which the ids in an index may choose."""


def selected(nest: Nest, ids: frozenset[str]) -> Nest:
    """A nest in which ids choose among registers only by comparisons.

    It is unchanged if an id is in the place where a value is stored: then an element belongs to one
    work-item, and others cannot read it.
    """
    loads = list(private_loads(terms_in(nest.body)))
    filled = {name for load in private_loads(targets(nest.body)) for name in load.index.names()}
    if not ids.isdisjoint(filled) or any(choices(load, ids) > MOST for load in loads):
        return nest
    selection = Selection(nest.read, ids, {})
    body = selection.block(nest.body)
    return replace(nest, body=body, noted=nest.noted | frozenset(map(selection.term, nest.noted)))


def targets(statements: Iterable[Statement]) -> Iterable[Term]:
    """The places where statements store."""
    for s in statements:
        if isinstance(s, Assign):
            yield s.target
        elif isinstance(s, Loop):
            yield from targets(s.body)


def choices(load: Load, ids: frozenset[str]) -> float:
    """How many registers a read would be compared with; infinite if an id has no range from 0."""
    read = (a for a in load.index.atoms() if isinstance(a, Var) and a.name in ids)
    return math.prod(math.inf if a.low != 0 or a.high is None else a.high + 1 for a in read)


@dataclass
class Selection:
    """Statements and terms in which `ids` no longer index private memory; each term once."""

    read: AccessReader
    ids: frozenset[str]
    made: dict[int, tuple[Term, Term]]

    def block(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """Statements with their values replaced."""
        return tuple(map(self.statement, statements))

    def statement(self, s: Statement) -> Statement:
        """A statement with its value replaced."""
        match s:
            case Assign(_, term) | Bind(_, term):
                return s._replace(term=self.term(term))
            case Loop(body=body):
                return s._replace(body=self.block(body))
            case _:
                return s

    def term(self, term: Term) -> Term:
        """A term whose reads of registers are at numbers."""
        if self.ids.isdisjoint(term.names):
            return term
        if id(term) not in self.made:
            self.made[id(term)] = term, self.replacement(term)
        return self.made[id(term)][1]

    def replacement(self, term: Term) -> Term:
        """A term with its parts replaced, or the choice for a read of a register."""
        if not isinstance(term, Load) or term.memory.space != "private":
            return rebuilt(self.read, term, self.term)
        found = (a for a in term.index.atoms() if isinstance(a, Var) and a.name in self.ids)
        chosen = next(found, None)
        if chosen is None or chosen.high is None:
            return term
        each = [
            self.term(replace(term, index=term.index.substitute({chosen.name: nat(k)})))
            for k in range(chosen.high + 1)
        ]
        (one,) = scalars_of(
            self.read.one_of([*each], FromIndex(var(chosen.name, chosen.low, chosen.high), I32), 0)
        )
        return one
