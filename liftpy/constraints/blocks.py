"""The blocks of a kernel whose length is computed: their reads, their stores and their loops.

See `liftpy.constraints.length`, which follows the emitter through them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from liftpy.constraints.terms import (
    GuardedTerm,
    Names,
    Term,
    TermReader,
    alike,
    counters_in,
    counters_of,
    reached,
    readings,
    repeated,
)
from liftpy.ir.nat import ONE, ZERO, Nat, var
from liftpy.ir.pull import Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType

MOST_READINGS = 1 << 16  # of a stored value; code with more is too long anyway


class Lanes(NamedTuple):
    """How a term is read: the variable and the number of lanes, and whether each lane is apart."""

    lane: str
    width: Nat
    apart: bool


@dataclass
class Frame:
    """The statements of a block: those of each iteration, and variables that are declared once.

    `counter` is the counter of the loop whose body the block is; it is empty for other blocks.
    """

    counter: str = ""
    each: Nat = ZERO
    once: dict[GuardedTerm, tuple[Names, Nat]] = field(default_factory=dict)
    indexed: set[str] = field(default_factory=set)

    def total(self) -> Nat:
        """The number of all statements."""
        return sum((count for _, count in self.once.values()), self.each)


class Blocks:
    """The open blocks, and the number of their statements."""

    def __init__(self, *, one_cell_at_no_index: bool = False) -> None:
        self.one_cell_at_no_index = one_cell_at_no_index
        self.has_one_cell = False
        self.continues = False
        self.copied = False
        self.read = TermReader()
        self.shared: set[Term] = set()
        self.shapes: set[int] = set()
        self.unrolled_counters: set[str] = set()
        self.alternatives: dict[Term, Term] = {}
        self.times_read: Counter[Term] = Counter()
        self.left_out: set[Term] = set()
        self.begin()

    def begin(self) -> None:
        """Begin a kernel; keep what an earlier pass over it found.

        These are the terms that are shared, the counters of loops that are unrolled, and the loads
        that are left out (`only_alternatives`).
        """
        self.alternatives.clear()
        self.times_read.clear()
        self.frames = [Frame()]
        self.number = 0
        self.single: set[Term] = set()
        self.single_shapes: set[int] = set()
        self.undecided: set[Names] = set()

    @property
    def has_met_later_shared(self) -> bool:
        """Whether another pass over the kernel would count differently.

        It would if a term was read before it (or another term of its shape) was shared, or if a
        choice was read before it was known that unrolled loops decide it.
        """
        return not (
            self.single.isdisjoint(self.shared)
            and self.single_shapes.isdisjoint(self.shapes)
            and not any(names <= self.unrolled_counters for names in self.undecided)
        )

    def only_alternatives(self) -> set[Term]:
        """The loads and choices that need not be counted, because a choice between two of them is.

        If nothing but one choice reads the two, the code declares a variable for the choice only.
        If the sizes decide the condition, it declares the selected one instead.
        """
        pairs = self.alternatives.items()
        return {one for one, other in pairs if self.is_read_once(one, other)}

    def is_read_once(self, *terms: Term) -> bool:
        """Whether each of some loads and choices was read once."""
        return all(self.times_read[term] == 1 for term in terms)

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
        return self.cells(t, kind, place or self.fresh(kind), ZERO)

    def cells(self, t: Type, kind: str, place: str, first: Nat) -> Value:
        """The part of a memory at `first`, counted in values of the type `t`."""
        match t:
            case ArrayType(element, length) | VectorType(element, length):
                start = first * length
                if kind == "private" and length == 1:
                    self.has_one_cell = True
                    if self.one_cell_at_no_index:
                        return Pull(length, lambda _: self.cells(element, kind, place, start))
                return Pull(length, lambda i: self.cells(element, kind, place, start + i))
            case TupleType(elements):
                return tuple(
                    self.cells(e, kind, f"{place}_{k}", first) for k, e in enumerate(elements)
                )
            case _:
                return self.one_cell(kind, place, first)

    def one_cell(self, kind: str, place: str, index: Nat) -> Term:
        """The one term for equal cells."""

        def make() -> Term:
            stable, shape = kind == "load", self.read.shape(place)
            return Term(kind, (), index.names(), index, place, stable, shape=shape)

        return self.read.one((kind, place, index), make)

    # --- reads ---

    def emit(self, term: Term, lane: str = "", width: Nat = ONE, *, apart: bool = False) -> None:
        """Count the variables through which a term is read; `apart` reads each lane separately."""
        self.share(repeated(term))
        self.share_alike(term)
        self.emit_readings(
            GuardedTerm(term, (), self.block_of(term, self.block)), Lanes(lane, width, apart), {}
        )

    def emit_readings(
        self, start: GuardedTerm, lanes: Lanes, alternatives: dict[GuardedTerm, Frame]
    ) -> None:
        """`emit` for a term behind guards; `alternatives` has what is known of decided choices."""
        lane, width, apart = lanes
        for count, reading in enumerate(readings(start, self.block_of, self.is_decided)):
            part, guards, _ = reading
            if count > MOST_READINGS:
                self.frame.each = self.frame.each + count
                return
            if self.is_decided(part):
                self.choose_by_counters(reading, lanes, alternatives)
                continue
            if part.kind == "private":
                self.frame.indexed |= part.names - {lane}
            elif part.kind == "lanes":
                self.fold_lanes(part, width if apart else ONE)
            elif part.kind == "one of":
                self.choose_one(part, width if lane in part.names else ONE)
            elif is_held(part):
                self.times_read[part] += 1
                self.note_alternatives(part, lane, apart=apart)
                if part not in self.left_out or part not in self.alternatives:
                    one = not apart and (part.kind == "choice" or is_row(part.index, lane))
                    self.declare(reading.bare, lane, ONE if one else width)
            if self.is_shared(part) and (guards or not (part.kind == "choice" and part.stable)):
                by_lane = apart or guards
                self.declare(reading, lane, width if by_lane else ONE, again=apart)

    def note_alternatives(self, choice: Term, lane: str, *, apart: bool) -> None:
        """Note the loads and choices that a choice selects and that take as many variables."""
        if choice.condition is None or not all(is_held(part) for part in choice.parts):
            return
        then, otherwise = choice.parts
        names, tested = counters_in(then.names), counters_of(choice.condition)
        if then is otherwise or counters_in(otherwise.names) != names or not tested <= names:
            return
        by_lane = {p.kind == "load" and not is_row(p.index, lane) for p in choice.parts}
        if len(by_lane) > 1 and not apart:
            return
        self.alternatives[then] = otherwise
        if apart or (
            by_lane == {False} and lane not in tested
        ):  # no more variables than the choice
            self.alternatives[otherwise] = then

    def is_decided(self, term: Term) -> bool:
        """Whether a term is a choice whose condition has a known value in each unrolled block."""
        if term.condition is None:
            return False
        names = counters_of(term.condition)
        if names <= self.unrolled_counters:
            return True
        self.undecided.add(names)
        return False

    def choose_by_counters(
        self, choice: GuardedTerm, lanes: Lanes, alternatives: dict[GuardedTerm, Frame]
    ) -> None:
        """Count a choice of which each block of an unrolled loop has one alternative only."""
        made = alternatives.get(choice)
        if made is None:
            term, guards, block = choice
            if self.is_shared(term):
                self.share([p for p in term.parts if p.parts])
            frames: list[Frame] = []
            for part in term.parts:
                self.frames.append(Frame())
                start = GuardedTerm(part, guards, block if guards else self.block_of(part, block))
                self.emit_readings(start, lanes, alternatives)
                frames.append(self.frames.pop())
            made = alternatives[choice] = self.longest(term, *frames)
        self.frame.each = self.frame.each + made.each
        self.frame.once |= made.once
        self.frame.indexed |= made.indexed

    def longest(self, choice: Term, then: Frame, otherwise: Frame) -> Frame:
        """A block of as many statements as the longer of two; variables of both are paired."""
        each = then.each if then.each == otherwise.each else then.each + otherwise.each
        made = Frame(each=each, once=then.once, indexed=then.indexed | otherwise.indexed)
        left = {key: found for key, found in then.once.items() if key not in otherwise.once}
        for key, (names, count) in otherwise.once.items():
            pair = next((k for k in left if left[k][1] == count and k[1:] == key[1:]), None)
            if key in then.once or pair is None:
                made.once[key] = names, count
                continue
            paired = self.paired(choice, pair.term, key.term)
            made.once[pair._replace(term=paired)] = names | left.pop(pair)[0], count
            del made.once[pair]
        return made

    def paired(self, choice: Term, one: Term, other: Term) -> Term:
        """A term for the variable that holds one of two terms, whichever a choice reads."""
        names = one.names | other.names
        return self.read.one(("paired", choice, one, other), lambda: Term("number", names=names))

    def share(self, terms: Iterable[Term]) -> None:
        """Hold terms in variables from now on, because they are mentioned more than once."""
        self.shared.update(terms)
        self.shapes.update(t.shape for t in terms if not t.stable)

    def share_alike(self, term: Term) -> None:
        """Hold what may be mentioned more than once in a pass of an unrolled loop in variables."""
        for part in alike(term):
            counters = counters_in(part.names)
            if not counters.isdisjoint(self.unrolled_counters):
                self.share([part])
            elif part not in self.shared and (part.stable or part.shape not in self.shapes):
                self.undecided.update(frozenset({name}) for name in counters)

    def is_shared(self, term: Term) -> bool:
        """Whether a term, which may differ in other iterations of a loop, is held in a variable."""
        if term in self.shared:
            return True
        if not term.stable and term.parts:
            if term.shape in self.shapes:
                return True
            self.single_shapes.add(term.shape)
        self.single.add(term)
        return False

    def fold_lanes(self, term: Term, times: Nat) -> None:
        """Count folds over lanes: variables for the vector or two factors, and repeated steps."""
        _, vector, step = term.parts
        self.emit(vector, term.place, term.width)
        self.emit(step, term.place, term.width, apart=True)
        whole = [vector, *vector.parts[:2]]
        made = [p.kind != "load" or not is_row(p.index, term.place) for p in whole]
        vectors = max(made[0], sum(made[1:]))
        steps = term.width if repeated(step) else ZERO
        self.frame.each = self.frame.each + times * (vectors + steps)

    def choose_one(self, term: Term, times: Nat) -> None:
        """Count the variables through which the elements are read that one is chosen from.

        What all of them mention is held in a variable.
        """
        (element,) = term.parts
        own = [p for p in (element, *reached(element)) if term.place in p.names]
        self.share([q for p in own for q in p.parts if q.parts and term.place not in q.names])
        if times == ONE:
            self.emit(element, term.place, term.width, apart=True)
        else:
            self.branch(lambda: self.emit(element, term.place, term.width, apart=True), times)

    def declare(self, reading: GuardedTerm, lane: str, count: Nat, *, again: bool = False) -> None:
        """Count variables; those of a stable term are declared once for all that it depends on.

        `count` are needed if it differs by lane; with `again`, also if it is not stable.
        """
        names = reading.names
        if reading.term.stable:
            self.frame.once[reading] = names - {lane}, count if lane in names else ONE
        else:
            self.frame.each = self.frame.each + (count if again or lane in names else ONE)

    @property
    def block(self) -> str:
        """The counter of the innermost loop."""
        return next((f.counter for f in reversed(self.frames) if f.counter), "")

    def block_of(self, term: Term, block: str) -> str:
        """The block in which a term is computed: if held, where all that it reads is known."""
        if not term.stable:
            return block
        if term not in self.shared:
            self.single.add(term)
            return block
        return next((f.counter for f in reversed(self.frames) if f.counter in term.names), "")

    def variable(self, term: Term) -> Term:
        """Hold a term in a variable, and return the variable."""
        self.share((term,))
        self.emit(term)
        name = self.fresh("variable")
        shape = self.read.shape(name)
        return self.read.one(
            name, lambda: Term("number", (), term.names, stable=term.stable, shape=shape)
        )

    def noted(self, value: Value) -> Value:
        """A value whose scalars are held in variables where they are read."""
        if isinstance(value, tuple):
            return tuple(map(self.noted, value))
        if value.parts:
            self.share((value,))
        return value

    def store(self, value: Term, dest: Term, lane: str = "", width: Nat = ONE) -> None:
        """Count the statements of a store."""
        if self.continues and value is dest:
            return
        place = next(p for p in (dest, *reached(dest)) if not p.parts and p.kind != "number")
        if place.kind == "private":
            self.frame.indexed |= place.names - {lane}
        apart = bool(lane) and not is_row(place.index, lane)
        # a vector whose lanes are stored apart is computed in a variable
        stores = width + (1 if value.parts else 0) if apart else ONE
        if dest.kind != "choice":
            self.emit(value, lane, width, apart=apart)
            self.frame.each = self.frame.each + stores
            return
        tests = sum(1 for p in (dest, *reached(dest)) if p.kind == "choice")
        self.branch(lambda: self.emit(value, lane, width, apart=apart), ONE)
        self.frame.each = self.frame.each + stores + tests
        if lane:  # if not all lanes have places, each is read and stored separately
            self.branch(lambda: self.emit(value), width)
            self.frame.each = self.frame.each + width * (1 + tests)

    def branch(self, body: Callable[[], None], times: Nat) -> None:
        """Count `times` blocks that share no variables with other blocks."""
        self.frames.append(Frame())
        body()
        made = self.frames.pop()
        self.frame.indexed |= made.indexed
        self.frame.each = self.frame.each + made.total() * times

    def in_subgroup(self, xs: Pull, t: Type) -> Value:
        """An array in registers of a subgroup: a variable for each row, which is read by choices.

        The rows are registers, so the loops over them are unrolled.
        """
        held = self.memory(t, "private")
        suffices = self.read.inside(var("size", 0), ONE)
        *counts, _ = t.lengths()

        def load(rows: Pull, counts: Sequence[Nat]) -> None:
            if counts:
                self.unrolled(counts[0], lambda i: load(rows[i], counts[1:]))
            else:
                self.variable(rows[var("own", 0)])

        def read(rows: Pull, registers: Pull, depth: int) -> Pull:
            if depth:
                return Pull(rows.length, lambda i: read(rows[i], registers[i], depth - 1))
            return Pull(rows.length, lambda j: self.read.either(suffices, registers[ZERO], rows[j]))

        load(xs, counts)
        return read(xs, held, len(counts))

    # --- loops ---

    def sequential(self, length: Nat, body: Callable[[Nat], None], *, unroll: bool = False) -> None:
        """A loop of one work-item, unrolled if its counter indexes registers."""
        if length == ONE:
            body(ZERO)
        elif unroll:
            self.unrolled(length, body)
        else:
            self.open(length, body, looped=True)

    def unrolled(self, length: Nat, body: Callable[[Nat], None]) -> None:
        """The iterations of a loop, one after the other."""
        self.open(length, body, looped=True, unroll=True)

    def open(
        self,
        length: Nat,
        body: Callable[[Nat], None],
        *,
        looped: bool,
        unroll: bool = False,
        over_ids: bool = False,
    ) -> None:
        """Count a loop's body, and add it to the block around the loop.

        A loop `over_ids` is never unrolled: a work-item holds only its own elements in registers.
        """
        counter = self.fresh("i")
        self.frames.append(Frame(counter if looped else ""))
        only = length == ONE and not looped  # the code has 0 in place of the id
        last = None if length.constant is None else length.constant - 1
        body(ZERO if only else var(counter, 0, last))
        made = self.frames.pop()
        outer = self.frame
        outer.indexed |= made.indexed - {counter}
        if unroll or (counter in made.indexed and not over_ids):
            self.unrolled_counters.add(counter)
            outer.each = outer.each + made.each * length
            for reading, (names, count) in made.once.items():
                key = reading
                if reading.block == counter:
                    key = reading._replace(block=self.block)
                if counter in names:
                    outer.once[key] = names - {counter}, count * length
                else:
                    outer.once.setdefault(key, (names, count))
        else:
            outer.each = outer.each + made.total() + (1 if looped else 0)


def is_held(term: Term) -> bool:
    """Whether the code reads a term into a variable: memory that the kernel does not write."""
    return term.kind == "load" or (term.kind == "choice" and term.stable)


def is_row(index: Nat, lane: str) -> bool:
    """Whether the lanes of a vector are adjacent."""
    return index.recombined().parted(lane)[1] == var(lane, 0)
