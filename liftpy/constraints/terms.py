"""The scalars that code reads: what they are computed from, and the variables they depend on.

As the terms of `liftpy.views.access`, for sizes that may be open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from liftpy.ir.nat import ONE, ZERO, Nat, NatLike, nat, var
from liftpy.ir.pull import ByName, Pull, Value
from liftpy.ir.types import Type

Names: TypeAlias = frozenset[str]
NOTHING: Names = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """A scalar: what it is computed from, and the variables that it depends on.

    kind: "load" of memory that is only read, "cell" of another, "choice", "lanes", "op", "number".
    """

    kind: str
    parts: tuple[Term, ...] = ()
    names: Names = NOTHING
    index: Nat = ZERO
    place: str = ""
    stable: bool = True
    held: Nat = ONE


class Reader(ByName):
    """Reads meanings as terms; equal ones are one object."""

    def __init__(self) -> None:
        self.terms: dict[object, Term] = {}

    def one(self, key: object, term: Term) -> Term:
        """The term of a key."""
        return self.terms.setdefault(key, term)

    def of(self, kind: str, what: object, parts: tuple[Term, ...], names: Names = NOTHING) -> Term:
        """A term of parts."""
        names = names.union(*(p.names for p in parts))
        stable = kind != "lanes" and all(p.stable for p in parts)
        return self.one((kind, what, parts), Term(kind, parts, names, stable=stable))

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """An operator applied."""
        return self.of("op", op, args)

    def literal(self, value: float, t: Type) -> Value:
        """A constant."""
        return self.one(("number", repr(value), t), Term("number"))

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
        return self.of("choice", condition, (then, otherwise), condition[0].names())

    def of_index(self, index: Nat | int, t: Type) -> Value:
        """A number."""
        return self.one(("index", nat(index)), Term("number", names=nat(index).names()))

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Rules are not compiled."""
        return self.of("op", function.name, args)

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


def among(term: Term, held: set[Term]) -> set[Term]:
    """A term and what it mentions beside what only terms in variables mention."""
    seen = {term}
    waiting = [term]
    while waiting:
        last = waiting.pop()
        if last not in held:
            new = set(last.parts) - seen
            seen |= new
            waiting += new
    return seen


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
