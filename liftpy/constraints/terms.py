"""The scalars that code reads: what they are computed from, and the variables they depend on.

Like the terms of `liftpy.views.terms`, but for sizes that may be open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from liftpy.ir.nat import ONE, ZERO, Nat, NatLike, nat, var
from liftpy.ir.pull import ByName, Parts, Pull, Value
from liftpy.ir.types import Type

Names: TypeAlias = frozenset[str]
NOTHING: Names = frozenset()
CLIP = "clip "  # the start of the names that mark clamped indices
OUTSIDE = {"lanes": 1, "one of": 0}  # how many parts do not depend on the term's own variable


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """A scalar: what it is computed from, and the variables that it depends on.

    kind: "load" for memory that is only read, the kind of another memory, "choice", "lanes", "op",
    "number", or "one of" for one of `width` elements that comparisons choose. `place` is the
    memory, or the variable of the `width` lanes that are folded or elements that are chosen from.
    Terms that differ only in their indices have the same `shape`.
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
    """The side of a choice behind which a term is read, and the other alternative.

    Nested choices with the same alternative are one choice in the code.
    """

    condition: tuple[Nat, Nat]
    holds: bool
    otherwise: Term


class GuardedTerm(NamedTuple):
    """A term that is read behind guards, in the block of the loop with this counter."""

    term: Term
    guards: tuple[Guard, ...]
    block: str

    @property
    def bare(self) -> GuardedTerm:
        """The reading as if all guards were known to hold."""
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
        self.clips: dict[tuple[Nat, Nat], int] = {}
        self.hold: Callable[[Term], Term] = lambda term: term
        self.compare: Callable[[NatLike], None] = lambda _: None

    def shape(self, what: str, parts: tuple[Term, ...] = ()) -> int:
        """The shape of an operator or a memory with such parts."""
        return self.shapes.setdefault((what, *(p.shape for p in parts)), len(self.shapes) + 1)

    def one(self, key: object, make: Callable[[], Term]) -> Term:
        """The one term of a key, made when it is first needed."""
        found = self.terms.get(key)
        if found is None:
            found = self.terms[key] = make()
        return found

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        """The term of an operator."""

        def make() -> Term:
            names = NOTHING.union(*(a.names for a in args))
            stable = all(a.stable for a in args)
            return Term("op", args, names, stable=stable, shape=self.shape(op, args))

        return self.one(("op", op, args), make)

    def literal(self, value: float, t: Type) -> Value:
        """A constant."""
        text = repr(value)
        return self.one(("number", text, t), lambda: Term("number", shape=self.shape(text)))

    def inside(self, index: Nat, length: NatLike) -> Value:
        """A condition: the variables that it depends on."""
        return nat(index), nat(length)

    def clip(self, index: Nat, of: Pull) -> Nat:
        """The index, marked unless it is a number: it may differ from it where it is clamped."""
        place = nat(index)
        if place.constant is not None:
            return place
        number = self.clips.setdefault((place, nat(of.length)), len(self.clips))
        return place + var(f"{CLIP}{number}", 0)

    def choose(self, condition: Value, then: Value, otherwise: float) -> Value:
        """A guarded term."""
        return self.either(condition, then, self.literal(otherwise, None))  # pyright: ignore[reportArgumentType]

    def either(self, condition: Value, then: Value, otherwise: Value) -> Value:
        """One of two terms."""
        parts = then, otherwise
        return self.one(
            ("choice", condition, *parts),
            lambda: Term(
                "choice",
                parts,
                NOTHING.union(condition[0].names(), then.names, otherwise.names),
                stable=then.stable and otherwise.stable,
                condition=condition,
                shape=self.shape("choice", parts),
            ),
        )

    def of_index(self, index: Nat | int, t: Type) -> Value:
        """A number."""
        number = nat(index)
        return self.one(("index", number), lambda: Term("number", names=number.names()))

    @property
    def number(self) -> Term:
        """Some constant."""
        return self.one("some number", lambda: Term("number"))

    def clamped(self, index: Term) -> tuple[Term, Term]:
        """A data-dependent index clamped to its array, and whether it was inside."""
        least = self.operate("max", (index, self.number))
        clamped = self.operate("min", (least, self.number))
        return clamped, self.operate("==", (index, clamped))

    def element_at(self, xs: Pull, index: Value) -> Value:
        """The element at the clamped index, which is held in a variable, or 0."""
        clamped, inside = self.clamped(index)
        name = f"data {len(self.terms)}"
        place = sum((var(n, 0) for n in sorted(self.hold(clamped).names)), var(name, 0))
        element = xs[place]
        if any(part.kind == "private" and name in part.names for part in terms_of(element)):
            self.compare(xs.length)  # comparisons choose a register: all components share them
            element = shaped(xs[var(name, 0)], lambda term: self.one_of(term, name, xs.length))
        return shaped(element, lambda term: self.operate("select", (inside, term, self.number)))

    def one_of(self, element: Term, name: str, count: NatLike) -> Term:
        """One of `count` elements, whose indices differ in a variable; each of them is read."""
        if name not in element.names:
            return element

        def make() -> Term:
            names, shape = element.names - {name}, self.shape("one of", (element,))
            width = nat(count)
            return Term(
                "one of",
                (element,),
                names,
                place=name,
                stable=element.stable,
                width=width,
                shape=shape,
            )

        return self.one(("one of", name, element), make)

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        """Rules are not compiled."""
        return self.operate(function.name, args)

    def fold(self, length: NatLike, init: Value, step: Callable[[Any, Value], Value]) -> Value:
        """Folds are stored before they are read."""
        return step(var("fold", 0), init)

    def scan(
        self,
        length: NatLike,
        init: Value,
        step: Callable[[Any, Value], Value],
        *,
        exclusive: bool = False,
    ) -> Pull:
        """Scans are stored before they are read."""
        return Pull(length, lambda i: step(i, init))


def counters_of(condition: tuple[Nat, Nat]) -> Names:
    """The variables that a condition depends on."""
    return counters_in(condition[0].names())


def counters_in(names: Names) -> Names:
    """The names that are variables: without those that mark clamped indices."""
    return frozenset(n for n in names if not n.startswith(CLIP))


def terms_of(value: Value) -> Iterator[Term]:
    """The terms that one element of each array in a value is computed from."""
    match value:
        case Pull():
            yield from terms_of(value[ZERO])
        case Parts(pairs):
            yield from terms_of(pairs)
        case tuple():
            for part in value:
                yield from terms_of(part)
        case _:
            yield value
            yield from reached(value)


def shaped(value: Value, change: Callable[[Term], Term]) -> Value:
    """A value with each of its terms changed."""
    match value:
        case Pull():
            return Pull(value.length, lambda i: shaped(value[i], change))
        case Parts():
            return Parts(shaped(value.pairs, change))
        case tuple():
            return tuple(shaped(part, change) for part in value)
        case _:
            return change(value)


def reached(term: Term) -> Iterator[Term]:
    """Yield all terms that a term is computed from."""
    seen = {term}
    waiting = [term]
    while waiting:
        for part in waiting.pop().parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
                yield part


def repeated(term: Term) -> set[Term]:
    """The computed terms inside a term that are mentioned more than once."""
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


def alike(term: Term) -> set[Term]:
    """The computed terms inside a term that differ from others only in their indices.

    They may be the same in a pass of an unrolled loop, in which its counter has a number: of an
    array and its reverse, the elements in the middle are the same.
    """
    of_shape: dict[int, set[Term]] = {}
    for part in reached(term):
        if part.parts and part.names:
            of_shape.setdefault(part.shape, set()).add(part)
    return {part for same in of_shape.values() if len(same) > 1 for part in same}


def readings(
    start: GuardedTerm, block_of: Callable[[Term, str], str], decided: Callable[[Term], bool]
) -> Iterator[GuardedTerm]:
    """Yield a reading and those it is computed from, once for each way in which code reads them.

    A term that is read behind other guards is computed again (Note [Behind a condition] in
    `liftpy.loops.reading`). `block_of` gives the block in which a term that is read in a block is
    computed. The lanes of a fold, the elements that one is chosen from, and the alternatives of a
    `decided` choice are not included: they are read in ways of their own.
    """
    waiting = [start]
    seen = set(waiting)
    while waiting:
        reading = waiting.pop()
        yield reading
        part, guards, inner = reading
        if decided(part):
            continue
        for k, p in enumerate(part.parts[: OUTSIDE.get(part.kind)]):
            behind = guards
            if part.condition is not None:
                behind = (*guards, Guard(part.condition, k == 0, part.parts[1]))
            found = GuardedTerm(p, behind, inner if behind else block_of(p, inner))
            if found not in seen:
                seen.add(found)
                waiting.append(found)
