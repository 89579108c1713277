"""Prove for the code as printed that work-items share no element of a buffer that one stores.

For any two stores to a buffer, and for a store and a load of the same buffer, two different
work-items that access one address are searched for, by the digits of addresses or by z3. Accesses
of unrolled code count as one if their addresses form rows of equal length at equal distances.

Work-items may share an element that they only update atomically, all by the same operator: this
operator is associative and commutative, and no update is lost. An atomic update and any other
access must not share an element.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from liftpy.ir.constraint import Constraint, at_most, equal
from liftpy.ir.nat import Nat, var
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.bounds import CodePlace, accesses
from liftpy.loops.lower import LoopKernel
from liftpy.loops.values import (
    SUBGROUP_IDS,
)
from liftpy.semantics.smt import Collision, Side, Undecided, find_collision
from liftpy.views.terms import Memory


@dataclass(frozen=True)
class Shared:
    """Two accesses, one a store, that are not proved to share no address between work-items."""

    memory: Memory
    first: Nat
    second: Nat
    why: str

    def __str__(self) -> str:
        name = self.memory.name
        return f"{name}[{self.first}] and {name}[{self.second}] may be one place: {self.why}"


@dataclass(frozen=True)
class AccessRows:
    """Accesses of `rows` rows of `length` addresses, `stride` apart, at one point of the code."""

    memory: Memory
    store: bool
    first: Nat
    length: int
    rows: int
    stride: int
    place: CodePlace
    op: str = ""

    def side(self) -> Side:
        """The addresses, and the conditions under which they are accessed."""
        address = self.first.substitute(self.place.ranges)
        if self.length > 1:
            address = address + var("lane", 0, self.length - 1)
        if self.rows > 1:
            address = address + self.stride * var("row", 0, self.rows - 1)
        rooms = [test.room for test in self.place.holding]
        rooms += [-1 - some.tests[0].room for some in self.place.failing if len(some.tests) == 1]
        where = (at_most(0, room.substitute(self.place.ranges)) for room in rooms)
        return Side(address, (*self.place.links, *where))


def shared_stores(code: LoopKernel) -> tuple[Shared, ...]:
    """The accesses of stored buffers for which two work-items may access one element.

    The ids of subgroups are left out: the other ids already tell all work-items apart. So is the
    iteration of the host's loop: all work-items of a launch have the same one.
    """
    left_out = {*SUBGROUP_IDS, HOST_ID}
    ids = {n: count for n, count in code.ranges.items() if count > 1 and n not in left_out}
    runs = list(runs_of(code))
    if not all(is_told_apart(code, dim) for dim in range(3)):
        why = "the launch has more work-items than the ids tell apart"
        return tuple(Shared(r.memory, r.first, r.first, why) for r in runs)
    if not ids:
        return ()
    found: list[Shared] = []
    sides = ((run, run.side()) for run in runs)
    for (one, here), (two, there) in itertools.combinations_with_replacement(sides, 2):
        if one.memory != two.memory or not (one.store or two.store):
            continue
        if one.op and one.op == two.op:
            continue
        answer = find_collision(here, there, ids, (HOST_ID,))
        if isinstance(answer, Collision):
            found.append(Shared(one.memory, one.first, two.first, str(answer)))
        elif isinstance(answer, Undecided):
            why = f"the solver gave up ({answer.reason})"
            found.append(Shared(one.memory, one.first, two.first, why))
    return tuple(found)


def is_told_apart(code: LoopKernel, dim: int) -> bool:
    """Whether the ids that a kernel uses distinguish its work-items in a dimension."""
    group = code.local_size[dim]
    whole = code.global_size[dim] == 1 or f"gid{dim}" in code.ids
    within = group == 1 or f"lid{dim}" in code.ids
    return whole or (within and (code.global_size[dim] == group or f"wid{dim}" in code.ids))


def id_links(code: LoopKernel) -> Iterator[Constraint]:
    """How the ids of a dimension are related, if a kernel uses the global one and others."""
    known = code.indices
    for dim, group in enumerate(code.local_size):
        gid, wid, lid = (f"{kind}{dim}" for kind in ("gid", "wid", "lid"))
        if gid in known and (wid in known or lid in known):
            groups = code.global_size[dim] // group
            within = known.get(lid, var(lid, 0, group - 1))
            yield equal(known[gid], known.get(wid, var(wid, 0, groups - 1)) * group + within)


def runs_of(code: LoopKernel) -> Iterator[AccessRows]:
    """The accesses of buffers that are stored to, with accesses of adjacent elements as one."""
    start = CodePlace(code.indices, links=tuple(id_links(code)))
    groups: dict[object, tuple[Memory, bool, Nat, CodePlace, str, set[int]]] = {}
    for cell, store, place, op in accesses(code.block, start):
        if not (cell.memory.writable and cell.memory.space == "global"):
            continue
        number = cell.index.terms.get((), 0)
        base = cell.index - number
        key = (cell.memory, store, base, place.key, op)
        *_, offsets = groups.setdefault(key, (cell.memory, store, base, place, op, set()))
        offsets.update(range(number, number + cell.width))
    stored = {memory for memory, store, *_ in groups.values() if store}
    for memory, store, base, place, op, offsets in groups.values():
        if memory not in stored:
            continue
        rows = [*in_a_row(sorted(offsets))]
        strides = {b - a for (a, _), (b, _) in itertools.pairwise(rows)}
        if len(strides) == 1 and len({length for _, length in rows}) == 1:
            (first, length), (stride,) = rows[0], strides
            yield AccessRows(memory, store, base + first, length, len(rows), stride, place, op)
            continue
        for first, length in rows:
            yield AccessRows(memory, store, base + first, length, 1, 0, place, op)


def in_a_row(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The first number and the length of each run of consecutive numbers."""
    for _, run in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in run]
        yield members[0], len(members)
