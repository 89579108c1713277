"""Loops and stores of a kernel: how a value is copied, and which loops run over elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from liftpy.ir.nat import ZERO, Nat, var
from liftpy.ir.pull import Parts, Pull, Value
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType
from liftpy.loops.nest import Assign, Loop, Statement, reached
from liftpy.loops.tree import (
    Barrier,
)
from liftpy.loops.values import SUBGROUP_COUNT, SUBGROUP_ID
from liftpy.loops.viewing import Viewing
from liftpy.primitives import (
    MapGlb,
    MapHost,
    MapLcl,
    MapSeq,
    MapSeqAhead,
    MapSeqUnroll,
    MapSubgroup,
    MapWrg,
)
from liftpy.views.terms import Choice, Load, Memory, OfWorkItem, Term


class Vector(Pull):
    """A pull array that is a vector: its lanes are stored together."""


def vectors(t: Type, value: Value) -> Value:
    """A value with its vectors marked as such."""
    match t:
        case VectorType():
            return Vector(value.length, value.__getitem__)
        case ArrayType(element, _):
            return Pull(value.length, lambda i: vectors(element, value[i]))
        case TupleType(elements):
            return tuple(vectors(e, value[k]) for k, e in enumerate(elements))
        case _:
            return value


def memories_of(value: Value) -> list[Memory]:
    """The memories that a destination consists of."""
    match value:
        case Pull():
            return memories_of(value[ZERO])
        case Parts() | tuple():
            return [m for part in value for m in memories_of(part)]
        case _:
            return [value.memory]


def anywhere(value: Value) -> Value:
    """The element of a pull array at unknown indices."""
    depth = 0
    while isinstance(value, Pull):
        value = value[var(f"any{depth}", 0, int(value.length) - 1)]
        depth += 1
    return value


def is_private(dest: Value) -> bool:
    """Whether a destination is in the work-item's registers, with a place for every scalar."""
    match anywhere(dest):
        case Parts(pairs):
            return is_private(pairs)
        case tuple(parts):
            return all(map(is_private, parts))
        case place:  # behind a condition, not every scalar has one
            return isinstance(place, Load) and place.memory.space == "private"


@dataclass
class Stepping(Viewing):
    """The nest of a kernel under construction, to which loops and stores are added."""

    snapshots: int = field(init=False, default=0)
    checked: dict[int, tuple[Statement, frozenset[Memory]]] = field(
        init=False, default_factory=dict
    )
    """Statements of passes in place, and the memories whose elements they update."""

    def copy(self, value: Value, dest: Value) -> None:
        """Store a value whose terms are all that has to be computed."""
        match dest:
            case Pull():
                if isinstance(value, Vector):
                    for lanes, place in by_component(value, dest):
                        self.store_vector(lanes, place)
                else:
                    self.sequential(
                        int(dest.length),
                        lambda i: self.copy(value[i], dest[i]),
                        unroll=is_private(dest),
                    )
            case tuple():
                for k, part in enumerate(dest):
                    self.copy(value[k], part)
            case _:
                self.put(Assign(dest, self.reached_by_all(value, dest)))

    def store_vector(self, value: Vector, dest: Pull) -> None:
        """Store all lanes of a vector together."""
        width = int(dest.length)
        if width == 1:
            self.put(Assign(dest[ZERO], value[ZERO]))
            return
        # What the elements store in turn has another variable, or it would take this one's lanes.
        lane = f"store{width}" + "_" * self.storing
        index = var(lane, 0, width - 1)
        self.storing += 1
        element = value[index]
        self.storing -= 1
        self.put(Assign(dest[index], element, lane, width, self.nontemporal))

    def reached_by_all(self, term: Term, dest: Term) -> Term:
        """A term, or a variable of its value if it has broadcasts and is stored under a condition.

        All work-items of a subgroup have to reach a broadcast, also those that store nothing.
        """
        guarded = self.broadcasts and isinstance(dest, Choice)
        if guarded and any(isinstance(part, OfWorkItem) for part in reached((term,))):
            return self.variable(term)
        return term

    def loop(
        self,
        fun: MapHost | MapGlb | MapWrg | MapLcl | MapSubgroup | MapSeq,
        length: int,
        body: Callable[[Nat], None],
        *,
        unroll: bool,
    ) -> None:
        """The loop of a map, over ids if it is parallel."""
        match fun:
            case MapHost():
                body(self.iteration(length))
            case MapGlb():
                self.parallel(f"gid{fun.dim}", self.global_size[fun.dim], length, body)
            case MapWrg():
                groups = self.global_size[fun.dim] // self.local_size[fun.dim]
                self.parallel(f"wid{fun.dim}", groups, length, body)
            case MapLcl():
                size = self.local_size[fun.dim]
                self.in_items += 1
                if length % size == 0:
                    self.shared(f"lid{fun.dim}", size, length, body)
                else:
                    self.uneven += 1
                    self.parallel(f"lid{fun.dim}", size, length, body)
                    self.uneven -= 1
                self.in_items -= 1
            case MapSubgroup():  # a loop even over one element: the other subgroups have none
                self.ids |= {SUBGROUP_ID, SUBGROUP_COUNT}
                self.uneven += 1
                self.read_once(self.fresh("i"), SUBGROUP_ID, length, SUBGROUP_COUNT, body)
                self.uneven -= 1
            case _:
                unroll = unroll or isinstance(fun, MapSeqUnroll)
                self.sequential(length, body, unroll=unroll, ahead=isinstance(fun, MapSeqAhead))

    def parallel(self, name: str, launched: int, length: int, body: Callable[[Nat], None]) -> None:
        """The loop over ids; none if the launch covers the extent."""
        self.ids.add(name)
        if launched == length:
            body(var(name, 0, length - 1) if length > 1 else ZERO)
        else:
            self.read_once(self.fresh("i"), name, length, launched, body)

    def shared(self, name: str, launched: int, length: int, body: Callable[[Nat], None]) -> None:
        """Make a loop over ids in which all work-items execute equally many iterations.

        Iterations are counted from 0, so that a compiler knows their number and can unroll the
        loop.
        """
        if launched in (1, length):
            self.parallel(name, launched, length, body)
            return
        self.ids.add(name)
        own = var(name, 0, launched - 1)
        self.sequential(length // launched, lambda turn: body(own + turn * launched))

    def sequential(
        self,
        length: int,
        body: Callable[[Nat], None],
        *,
        unroll: bool = False,
        ahead: bool = False,
    ) -> None:
        """A loop of one work-item."""
        if length == 1:
            body(ZERO)
        else:
            counter = self.fresh("u" if unroll else "i")  # loops that stay are numbered in a row
            self.read_once(counter, 0, length, 1, body, asked=unroll, ahead=ahead)

    def read_once(
        self,
        counter: str,
        first: str | int,
        length: int,
        step: str | int,
        body: Callable[[Nat], None],
        *,
        asked: bool = False,
        ahead: bool = False,
    ) -> None:
        """A loop; one that fills local memory ends with a barrier for its readers."""
        self.blocks.append([])
        body(var(counter, 0, length - 1) if length > 1 else ZERO)
        made = self.blocks.pop()
        if any(isinstance(s, Barrier) for s in made):
            made.append(Barrier())
        if made:
            self.put(Loop(counter, first, length, step, tuple(made), asked, ahead))


def scalar_count(value: Value) -> int:
    """The number of scalars of an array of scalars."""
    count = 1
    while isinstance(value, Pull):
        count *= int(value.length)
        value = value[ZERO]
    return count


def by_component(value: Vector, dest: Pull) -> Iterator[tuple[Vector, Pull]]:
    """A vector of tuples as vectors of its components, each with its destination."""
    first = dest[ZERO]
    if not isinstance(first, tuple):
        yield value, dest
        return
    for k in range(len(first)):
        part = Vector(value.length, lambda i, k=k: value[i][k])
        yield from by_component(part, Pull(dest.length, lambda i, k=k: dest[i][k]))
