"""The scalars that code reads: what they are computed from, and the variables they depend on.

As the terms of `liftpy.views.access`, for sizes that may be open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from liftpy.ir.nat import ONE, ZERO, Nat, NatLike, nat, var
from liftpy.ir.pull import ByName, Pull, Value
from liftpy.ir.types import Type

Names: TypeAlias = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """A scalar: what it is computed from, and the variables that it depends on.

    kind: "load" of memory that is only read, the kind of another memory, "choice", "lanes", "op",
    "number". `place` is the memory, or the variable of the `width` lanes that are folded. Terms
    that differ only in their indices have one `shape`.
    """

    kind: str
    parts: tuple[Term, ...] = ()
    names: Names = NOTHING
    index: Nat = ZERO
    place: str = ""
    stable: bool = True
    condition: tuple[Nat, Nat] | None = None
    width: Nat = ONE
    shape: int = 0


class Guard(NamedTuple):
    """Behind which side of a choice something is read, and what the choice is otherwise.

    Choices in each other that have one alternative are one choice of the code.
    """

    condition: tuple[Nat, Nat]
    holds: bool
    otherwise: Term


class Reading(NamedTuple):
    """A term that is read behind guards, in the block of a loop, which its counter names."""

    term: Term
    guards: tuple[Guard, ...]
    block: str

    @property
    def bare(self) -> Reading:
        """As if all guards were known to hold."""
        return self._replace(guards=())

    @property
    def names(self) -> Names:
        """What the term and its guards depend on."""
        return self.term.names.union(*(g.condition[0].names() for g in self.guards))


class TermReader(ByName):
    """Reads meanings as terms; equal ones are one object."""

    def __init__(self) -> None:
        self.terms: dict[object, Term] = {}
        self.shapes: dict[object, int] = {}

    def shape(self, what: str, parts: tuple[Term, ...] = ()) -> int:
        """That of an operator or a memory with such parts."""
        return self.shapes.setdefault((what, *(p.shape for p in parts)), len(self.shapes) + 1)

    def one(self, key: object, term: Term) -> Term:
        """The term of a key."""
        return self.terms.setdefault(key, term)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """An operator applied."""
        names = NOTHING.union(*(a.names for a in args))
        stable = all(a.stable for a in args)
        shape = self.shape(op, args)
        return self.one(("op", op, args), Term("op", args, names, stable=stable, shape=shape))

    def literal(self, value: float, t: Type) -> Value:
        """A constant."""
        shape = self.shape(repr(value))
        return self.one(("number", repr(value), t), Term("number", shape=shape))

    def inside(self, index: Nat, length: NatLike) -> Value:
        """A condition: the variables that it depends on."""
        return nat(index), nat(length)

    def clip(self, index: Nat, of: Pull) -> Nat:
        """The index itself."""
        return index

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """A guarded term."""
        return self.either(condition, then, self.literal(otherwise, None))  # pyright: ignore[reportArgumentType]

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One of two terms."""
        names = NOTHING.union(condition[0].names(), then.names, otherwise.names)
        stable = then.stable and otherwise.stable
        parts = then, otherwise
        term = Term(
            "choice",
            parts,
            names,
            stable=stable,
            condition=condition,
            shape=self.shape("choice", parts),
        )
        return self.one(("choice", condition, *parts), term)

    def of_index(self, index: Nat | int, t: Type) -> Value:
        """A number."""
        return self.one(("index", nat(index)), Term("number", names=nat(index).names()))

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Rules are not compiled."""
        return self.operate(function.name, args)

    def fold(self, length: NatLike, init: Value, step: Callable[[Any, Value], Value]) -> Value:
        """Folds are stored before they are read."""
        return step(var("fold", 0), init)

    def scan(self, length: NatLike, init: Value, step: Callable[[Any, Value], Value]) -> Pull:
        """Scans likewise."""
        return Pull(length, lambda i: step(i, init))


def reached(term: Term) -> Iterator[Term]:
    """All that a term is computed from."""
    seen = {term}
    waiting = [term]
    while waiting:
        for part in waiting.pop().parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
                yield part


def repeated(term: Term) -> set[Term]:
    """What is computed inside a term and mentioned more than once."""
    seen: set[Term] = set()
    again: set[Term] = set()
    waiting = [term]
    while waiting:
        for part in waiting.pop().parts:
            if part.parts and part in seen:
                again.add(part)
            elif part.parts:
                seen.add(part)
                waiting.append(part)
    return again


def readings(term: Term, block: str, block_of: Callable[[Term, str], str]) -> Iterator[Reading]:
    """A term and what it is computed from, each in every way in which code reads it.

    What is read behind other guards is computed again (Note [Behind a condition] in
    `liftpy.loops.reading`). `block_of` says in which block a term is computed that is read in one.
    What lanes are folded from is not among them: that is read as a vector.
    """
    waiting = [Reading(term, (), block_of(term, block))]
    seen = set(waiting)
    while waiting:
        reading = waiting.pop()
        yield reading
        part, guards, inner = reading
        for k, p in enumerate(part.parts[:1] if part.kind == "lanes" else part.parts):
            behind = guards
            if part.condition is not None:
                behind = (*guards, Guard(part.condition, k == 0, part.parts[1]))
            found = Reading(p, behind, inner if behind else block_of(p, inner))
            if found not in seen:
                seen.add(found)
                waiting.append(found)
