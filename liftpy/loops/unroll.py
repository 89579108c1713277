"""Loops over registers are unrolled: private memory has no addresses.

A loop whose counter indexes private memory, or that is marked for unrolling, becomes its iterations
one after the other, each with a number for the counter. This keeps the meaning, because a
sequential loop is its iterations in order. A variable of the body has another name in each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from liftpy.errors import TypeRefused
from liftpy.loops.nest import (
    DATA_INDEX,
    LANES,
    MOST_STATEMENTS,
    MOST_UNROLLED,
    Assign,
    Bind,
    Loop,
    Nest,
    Statement,
    private_indices,
    reached,
    terms_in,
    too_long,
)
from liftpy.loops.regular import is_unrolled, regular
from liftpy.loops.selecting import selected
from liftpy.loops.substitute import Substitution
from liftpy.primitives import ToSubgroup
from liftpy.views.terms import OfWorkItem, Term, Variable


def unrolled(nest: Nest) -> Nest:
    """A nest with its loops over registers unrolled.

    Raises TypeRefused for more statements than a kernel may have, and for private memory that
    work-items would share.
    """
    return _unrolled(nest, indexing(terms_in(nest.body)), frozenset())


def partly_unrolled(nest: Nest) -> tuple[Nest, frozenset[str]]:
    """A nest whose loops over registers are unrolled unless they are regular.

    Also returns the counters of the regular loops. Raises as `unrolled` does.
    """
    over_registers = indexing(terms_in(nest.body))
    kept = regular(nest, over_registers)
    return _unrolled(nest, over_registers, kept), kept


def _unrolled(nest: Nest, over_registers: frozenset[str], kept: frozenset[str]) -> Nest:
    noted = set(nest.noted)
    unroller = Unroller(nest.kernel, Substitution(nest.read, noted), over_registers, kept)
    body = unroller.block(nest.body)
    counted = unroller.counters | kept
    ids = indexing(terms_in(body)) - kept if over_registers - counted else frozenset[str]()
    if ids and not any(name.startswith(DATA_INDEX) for name in ids):
        by_id = selected(replace(nest, body=body, noted=frozenset(noted)), ids)
        body, noted = by_id.body, set(by_id.noted)
    if ids and (left := indexing(terms_in(body)) - kept):
        if any(name.startswith(DATA_INDEX) for name in left):
            message = (
                "a data-dependent index cannot select among values computed in registers: "
                "store the array with toGlobal before it is read"
            )
            raise TypeRefused(message)
        rows = {
            name
            for term in reached(terms_in(body))
            if isinstance(term, OfWorkItem)
            for name in term.row.names()
        }
        if left & rows:
            raise TypeRefused(
                f"kernel {nest.kernel} reads different rows of an array of {ToSubgroup.name} in "
                f"the work-items of a subgroup (by {', '.join(sorted(left & rows))}): all of them "
                "must read the same element at a time. Read the array without "
                f"{ToSubgroup.name} there"
            )
        message = (
            f"private memory cannot be indexed by {', '.join(sorted(left))}: each work-item has "
            "its own; use toLocal for what work-items share"
        )
        raise TypeRefused(message)
    return replace(nest, body=body, noted=frozenset(noted))


def indexing(terms: Iterable[Term]) -> frozenset[str]:
    """The counters and ids that index private memory in some terms."""
    found = {name for index in private_indices(terms) for name in index.names()}
    return frozenset(name for name in found if not name.startswith(LANES))


@dataclass
class Unroller:
    """The statements of a nest with its loops over registers unrolled, except the `kept` ones.

    `made` is the number of statements that unrolling these, too, would make; `times` is the number
    of iterations of the loops around.
    """

    kernel: str
    at: Substitution
    over_registers: frozenset[str]
    kept: frozenset[str]
    counters: set[str] = field(default_factory=set)
    made: int = 0
    times: int = 1

    def block(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """Statements, unrolled."""
        return tuple(made for s in statements for made in self.statement(s))

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement."""
        if isinstance(s, Loop) and is_unrolled(s, self.over_registers):
            if s.bound > MOST_STATEMENTS:
                why = f"a loop over registers would be unrolled to {s.bound} steps"
                raise too_long(self.kernel, why)
            if s.counter in self.kept:
                self.times *= s.bound
                yield s._replace(body=self.block(s.body))
                self.times //= s.bound
                return
            self.counters.add(s.counter)
            for k in range(s.bound):
                renamed: dict[str, Term] = {}
                for inner in s.body:
                    for placed in self.placed(inner, s.counter, k, renamed):
                        yield from self.statement(placed)
            return
        self.made += self.times
        if self.made > MOST_UNROLLED:
            raise too_long(self.kernel)
        yield s._replace(body=self.block(s.body)) if isinstance(s, Loop) else s

    def placed(
        self, s: Statement, counter: str, k: int, renamed: dict[str, Term]
    ) -> Iterator[Statement]:
        """A statement of an unrolled loop in one iteration; none for a value without variable."""

        def at(term: Term) -> Term:
            made = self.at.term(term, counter, k)
            for name in renamed.keys() & made.names if renamed else ():
                made = self.at.term(made, name, renamed[name])
            return made

        match s:
            case Assign(target, term):
                yield s._replace(target=at(target), term=at(term))
            case Bind(name, term):
                value = at(term)
                if s.width == 1 and not value.parts:
                    renamed[name] = value
                else:
                    variable = Variable(f"{name}.{k}", value.type, s.width)
                    renamed[name] = variable
                    yield Bind(variable.name, value, s.lane, s.width)
            case Loop(body=body):
                inner = (made for part in body for made in self.placed(part, counter, k, renamed))
                yield s._replace(body=tuple(inner))
            case _:
                yield s
