"""The blocks of a kernel whose length is wanted: what is read and stored in them, and loops.

See `liftpy.constraints.length`, which follows the emitter through them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from liftpy.constraints.terms import Names, Reader, Term, among, reached, repeated
from liftpy.ir.nat import ONE, ZERO, Nat, nat, var
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType


@dataclass
class Frame:
    """The statements of a block: those of each step, and variables that are declared once.

    `counter` is that of the loop whose body it is; a block of another kind has none.
    """

    counter: str = ""
    each: Nat = ZERO
    once: dict[object, tuple[Names, Nat]] = field(default_factory=dict)
    indexed: set[str] = field(default_factory=set)
    here: set[Term] = field(default_factory=set)  # loaded in it
    outside: set[Term] = field(default_factory=set)  # loaded for a variable outside of its loop

    def total(self) -> Nat:
        """All of them."""
        return sum((count for _, count in self.once.values()), self.each)


class Blocks:
    """The open blocks, and how many statements they have."""

    def __init__(self) -> None:
        self.read = Reader()
        self.frames = [Frame()]
        self.number = 0
        self.shared: set[Term] = set()

    @property
    def frame(self) -> Frame:
        """The innermost block."""
        return self.frames[-1]

    def fresh(self, stem: str) -> str:
        """A new name."""
        self.number += 1
        return f"{stem}{self.number}"

    # --- memory ---

    def memory(self, t: Type, kind: str, place: str = "") -> Value:
        """A value in a memory of its own."""
        return self.cells(t, kind, place or self.fresh(kind), ())

    def cells(self, t: Type, kind: str, place: str, at: tuple[tuple[Nat, Nat], ...]) -> Value:
        """The part of a memory at indices, each with the length that it is of."""
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                return Pull(
                    length, lambda i: self.cells(element, kind, place, (*at, (nat(i), nat(length))))
                )
            case TupleType(elements):
                return tuple(
                    self.cells(e, kind, f"{place}_{k}", at) for k, e in enumerate(elements)
                )
            case _:
                index = ZERO
                for i, length in at:
                    index = index * length + i
                term = Term(
                    kind, (), index.names(), index, place, stable=kind in {"load", "number"}
                )
                return self.one_cell(term)

    def one_cell(self, term: Term) -> Term:
        """Equal cells are one term."""
        return self.read.one((term.kind, term.place, term.index), term)

    # --- what is read ---

    def emit(self, term: Term, lane: str = "", width: Nat = ONE) -> None:
        """The variables that a term is read through."""
        again = repeated(term)

        def is_held(part: Term) -> bool:
            return part.kind == "lanes" or bool(
                part.parts and (part in again or part in self.shared or part.kind == "choice")
            )

        within = {term, *reached(term)}
        outside = {p for p in within if is_held(p) and self.is_outside(p)}
        for part in within:
            if part.kind == "private":
                self.frame.indexed |= part.names - {lane}
            elif part.kind == "load":
                count = ONE
                if lane in part.names and part.index.parted(lane)[1] != var(lane, 0):
                    count = width
                self.declare(part, count, lane)
            elif is_held(part):
                self.declare(part, part.held, lane)
        self.twice(among(term, outside), outside.union(*map(reached, outside)), lane)

    def twice(self, here: set[Term], outside: set[Term], lane: str) -> None:
        """What is loaded in a loop may have to be loaded again for a variable outside of it."""
        frame = self.frame
        frame.here |= {p for p in here if p.kind == "load" and p.stable}
        frame.outside |= {p for p in outside if p.kind == "load"}
        for part in frame.here & frame.outside:
            frame.once[part, lane, "outside"] = part.names - {lane}, ONE

    def is_outside(self, term: Term) -> bool:
        """Whether a variable for a term is declared outside of the innermost loop."""
        return term.stable and bool(self.frame.counter) and self.frame.counter not in term.names

    def declare(self, term: Term, count: Nat, lane: str = "") -> None:
        """A variable: a stable term's is there once for all that it depends on."""
        if term.stable:
            self.frame.once[term, lane] = term.names - {lane}, count
        else:
            self.frame.each = self.frame.each + count

    def variable(self, term: Term) -> Term:
        """A term in a variable, from now on."""
        self.emit(term)
        if term.kind != "choice" and term not in self.shared:
            self.declare(term, ONE)
        return Term("number", names=term.names, stable=term.stable)

    def noted(self, value: Value) -> Value:
        """A value whose scalars are held in variables where they are read."""
        if isinstance(value, tuple):
            return tuple(map(self.noted, value))
        if value.parts:
            self.shared.add(value)
        return value

    def store(self, value: Term, dest: Term, lane: str = "", width: Nat = ONE) -> None:
        """The statements of a store."""
        self.emit(value, lane, width)
        count = ONE
        if dest.kind == "choice":
            conditions = sum(1 for p in (dest, *reached(dest)) if p.kind == "choice")
            count = nat(1 + conditions)
            if lane:  # where not all lanes have places, each is read and stored by itself
                self.frames.append(Frame())
                self.emit(value)
                count = count + width * (self.frames.pop().total() + 1 + conditions)
            dest = next(p for p in reached(dest) if not p.parts and p.kind != "number")
        elif lane and dest.index.parted(lane)[1] != var(lane, 0):
            count = width
        if dest.kind == "private":
            self.frame.indexed |= dest.names - {lane}
        self.frame.each = self.frame.each + count

    # --- loops ---

    def sequential(self, length: Nat, body: Callable[[Nat], None], *, unroll: bool = False) -> None:
        """A loop of one work-item: unrolled where its counter indexes registers."""
        if length == ONE:
            body(ZERO)
        elif unroll:
            self.unrolled(length, body)
        else:
            self.open(length, body, looped=True)

    def unrolled(self, length: Nat, body: Callable[[Nat], None]) -> None:
        """The steps of a loop one after the other."""
        self.open(length, body, looped=True, unroll=True)

    def open(
        self, length: Nat, body: Callable[[Nat], None], *, looped: bool, unroll: bool = False
    ) -> None:
        """A loop's body, and what becomes of it in the block around."""
        counter = self.fresh("i")
        self.frames.append(Frame(counter if looped else ""))
        body(var(counter, 0, None if length.constant is None else length.constant - 1))
        made = self.frames.pop()
        outer = self.frame
        outer.indexed |= made.indexed - {counter}
        if unroll or counter in made.indexed:
            outer.each = outer.each + made.each * length
            for key, (names, count) in made.once.items():
                if counter in names:
                    outer.once[key] = names - {counter}, count * length
                else:
                    outer.once.setdefault(key, (names, count))
        else:
            outer.each = outer.each + made.total() + (1 if looped else 0)
