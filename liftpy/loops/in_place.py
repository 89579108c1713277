"""Accumulators are updated in place: only elements that are overwritten and then read are copied.

A step of a fold writes its accumulator, and reads its value before the step: a snapshot. If nothing
is stored to a place between the snapshot and a read of it, the place itself is read. This keeps the
meaning, because the place still holds its old value. Places that are read later are copied to a
memory of their own where the snapshot is taken.

The range of an index determines the places that it may refer to. In a loop, the stores of earlier
iterations are taken into account.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from liftpy.ir.nat import nat, var
from liftpy.loops.nest import Assign, Bind, Loop, Nest, Restore, Snapshot, Statement, old
from liftpy.loops.substitute import rebuilt
from liftpy.primitives.vector import MAX_LANES
from liftpy.views.access import AccessReader
from liftpy.views.terms import Load, Memory, Term

#: Adjacent places: the first, and their number.
Run: TypeAlias = tuple[int, int]
#: The places of a memory that are read late from a snapshot.
Late: TypeAlias = dict[tuple[int, Memory], set[Run]]


def in_place(nest: Nest) -> Nest:
    """A nest without snapshots: each read returns the value in memory when it is executed."""
    hazards = Hazards()
    hazards.block(nest.body)
    noted = set(nest.noted)
    body = Saving(nest.read, noted, hazards.late).block(nest.body)
    return replace(nest, body=body, noted=frozenset(noted))


@dataclass
class Hazards:
    """Finds the parts of snapshots that are read late, after a store to them. Times are counted."""

    late: Late = field(default_factory=dict)
    now: int = 0
    taken: dict[int, int] = field(default_factory=dict)
    stored: dict[Memory, dict[int, int]] = field(default_factory=dict)

    def block(self, statements: Iterable[Statement]) -> None:
        """Follow statements in their order."""
        for s in statements:
            match s:
                case Assign():
                    self.assign(s)
                case Bind(_, term):
                    self.read(term.snapshots)
                case Snapshot(number):
                    self.now += 1
                    self.taken[number] = self.now
                case Restore(number, memory):
                    self.restore(number, memory)
                case Loop(body=body):
                    if self.taken:
                        self.store_all(body)
                    self.block(body)
                    for ended in body:
                        if isinstance(ended, Snapshot):
                            self.taken.pop(ended.number, None)
                case _:
                    pass

    def assign(self, s: Assign) -> None:
        """A value is read, then stored, unless it stays where it is."""
        place, loads = s.target, s.term.snapshots
        if not isinstance(place, Load) or place.memory.space != "private":
            self.read(loads)
            return
        first, length = run_of(place)
        if length > s.width:  # lane by lane
            self.store(place.memory, first, length)
        late = self.read(loads) if loads else False
        if late or not stays(s):
            self.store(place.memory, first, length)

    def restore(self, number: int, memory: Memory) -> None:
        """All of a memory is read and stored, if something was stored to it since the snapshot."""
        if any(time >= self.taken[number] for time in self.stored.get(memory, {}).values()):
            self.late.setdefault((number, memory), set()).update(
                (k, 1) for k in range(memory.length)
            )
            self.store(memory, 0, memory.length)

    def read(self, loads: Iterable[Load]) -> bool:
        """Read snapshots; return whether one is read late."""
        found = False
        for load in loads:
            stored = self.stored.get(load.memory)
            taken = self.taken.get(load.snapshot)
            if stored is None or taken is None:
                continue
            first, length = run_of(load)
            if any(stored.get(k, 0) >= taken for k in range(first, first + length)):
                self.late.setdefault((load.snapshot, load.memory), set()).add((first, length))
                found = True
        return found

    def store(self, memory: Memory, first: int, length: int) -> None:
        """Note a store."""
        self.stored.setdefault(memory, {}).update(
            dict.fromkeys(range(first, first + length), self.now)
        )

    def store_all(self, statements: Iterable[Statement]) -> None:
        """Note the stores of a loop, which its later iterations see."""
        for s in statements:
            match s:
                case Assign(Load() as place) if place.memory.space == "private" and not stays(s):
                    self.store(place.memory, *run_of(place))
                case Restore(_, memory):
                    self.store(memory, 0, memory.length)
                case Loop(body=body):
                    self.store_all(body)
                case _:
                    pass


def run_of(load: Load) -> Run:
    """The places that a load may read, whatever its lanes and counters are."""
    index = load.index.constant
    if index is not None:
        return index, 1
    low, high = load.index.bounds
    first = 0 if low is None else max(low, 0)
    last = load.memory.length - 1
    return first, (last if high is None else min(high, last)) - first + 1


def stays(s: Assign) -> bool:
    """Whether a value is the present or an earlier value of its own place."""
    place, value = s.target, s.term
    return (
        isinstance(place, Load)
        and isinstance(value, Load)
        and (value.memory, value.index) == (place.memory, place.index)
    )


@dataclass
class Saving:
    """Statements with copies of the places that are read late."""

    read: AccessReader
    noted: set[Term]
    late: Late
    made: dict[int, Term] = field(default_factory=dict)

    def block(self, statements: Iterable[Statement]) -> tuple[Statement, ...]:
        """Statements without snapshots."""
        return tuple(made for s in statements for made in self.statement(s))

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement."""
        match s:
            case Snapshot(number, memories):
                for memory in memories:
                    for first, length in sorted(self.late.get((number, memory), ())):
                        yield from copies(memory, old(number, memory), first, length)
            case Restore(number, memory):
                if (number, memory) in self.late:
                    for k in range(memory.length):
                        yield from copies(old(number, memory), memory, k, 1)
            case Loop(body=body):
                yield s._replace(body=self.block(body))
            case Assign(_, term) | Bind(_, term) if self.late and term.snapshots:
                yield s._replace(term=self.term(term))
            case _:
                yield s

    def term(self, term: Term) -> Term:
        """A term that reads the copies of places that are read late."""
        if not term.snapshots:
            return term
        if isinstance(term, Load):
            late = self.late.get((term.snapshot, term.memory), ())
            return (
                Load(old(term.snapshot, term.memory), term.index) if run_of(term) in late else term
            )
        found = self.made.get(id(term))
        if found is None:
            found = self.made[id(term)] = rebuilt(self.read, term, self.term)
            if term in self.noted:
                self.noted.add(found)
        return found


def copies(source: Memory, target: Memory, first: int, length: int) -> Iterator[Assign]:
    """The copies of adjacent places: one of a vector, or one for each place."""
    if length > 1 and MAX_LANES % length == 0:
        lane = f"store{length}"
        index = first + var(lane, 0, length - 1)
        yield Assign(Load(target, index), Load(source, index), lane, length)
    else:
        for k in range(first, first + length):
            yield Assign(Load(target, nat(k)), Load(source, nat(k)))
