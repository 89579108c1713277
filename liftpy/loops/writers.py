"""Prove for the code as printed that work-items share no element of a buffer that one stores.

For any two stores to a buffer, and for a store and a load of the same buffer, two different
work-items that access one address are searched for, by the digits of addresses or by z3. Accesses
of unrolled code count as one if their addresses form rows of equal length at equal distances.

Where subgroups divide one array and the work-items of a subgroup another, two elements take the
place of a work-item's id: that of its subgroup (`SUBGROUP_ELEMENT`) and its own (`ITEM_ELEMENT`).
Two work-items of a group differ in at least one of them. For a loop from the id of a subgroup, in
steps of the number of subgroups, takes no value of its counter in two subgroups; nor does a loop
over the work-items of a subgroup in two work-items. If the counter `k` of such a loop begins at 0,
the element is `k` plus the id in the subgroup.

Work-items may share an element that they only update atomically, all by the same operator: this
operator is associative and commutative, and no update is lost. An atomic update and any other
access must not share an element.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.ir.constraint import Constraint, at_most, equal
from liftpy.ir.nat import Nat, var
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.bounds import CodePlace, accesses
from liftpy.loops.lower import LoopKernel
from liftpy.loops.together import GROUP_ID
from liftpy.loops.tree import For, statements_in
from liftpy.loops.values import (
    SUBGROUP_COUNT,
    SUBGROUP_ID,
    SUBGROUP_IDS,
    SUBGROUP_LOCAL_ID,
)
from liftpy.semantics.smt import Collision, Side, Undecided, find_collision
from liftpy.views.terms import Memory

SUBGROUP_ELEMENT, ITEM_ELEMENT = "element of the subgroup", "element of the item"
ELEMENTS: tuple[str, str] = SUBGROUP_ELEMENT, ITEM_ELEMENT
"""What tells the work-items of a group apart where subgroups and their work-items divide arrays."""


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

    @property
    def own(self) -> frozenset[str]:
        """The names of the elements that tell the work-items of a group apart, if not their ids."""
        ranges = self.place.ranges.values()
        if any(SUBGROUP_ELEMENT in index.names() for index in ranges):
            names = self.first.substitute(self.place.ranges).names()
            if not any(name.startswith(("lid", "gid")) for name in names):
                return frozenset(ELEMENTS)
        return frozenset()

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

    The ids of subgroups are left out: local ids, or the elements that subgroups and their
    work-items take, tell the work-items of a group apart. So is the iteration of the host's loop:
    all work-items of a launch have the same one.
    """
    left_out = {*SUBGROUP_IDS, HOST_ID}
    every = {n: count for n, count in code.ranges.items() if count > 1 and n not in left_out}
    elements = ElementsOf(code)
    if elements.counters:
        every |= {"lid0": code.local_size[0]}
    runs = list(runs_of(code, elements))
    if not all(is_told_apart(code, dim) for dim in range(3)):
        why = "the launch has more work-items than the ids tell apart"
        return tuple(Shared(r.memory, r.first, r.first, why) for r in runs)
    if not every:
        return ()
    found: list[Shared] = []
    sides = ((run, run.side()) for run in runs)
    for (one, here), (two, there) in itertools.combinations_with_replacement(sides, 2):
        if one.memory != two.memory or not (one.store or two.store):
            continue
        if one.op and one.op == two.op:
            continue
        ids = {} if one.own and two.own else every
        if one.own or two.own:
            groups = {n: count for n, count in every.items() if n.startswith(GROUP_ID)}
            ids = {**ids, **groups, **elements.counts}
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
    by_subgroups = dim == 0 and {SUBGROUP_ID, SUBGROUP_LOCAL_ID} <= set(code.ids)
    within = group == 1 or f"lid{dim}" in code.ids or by_subgroups
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


class ElementsOf:
    """The elements that subgroups and their work-items take in the loops that divide arrays.

    `counters` has the loops by their counters, and `counts` the number of values of each element.
    """

    def __init__(self, code: LoopKernel) -> None:
        loops = [s for s in statements_in(code.block) if isinstance(s, For)]
        self.counters = {s.counter: s for s in loops if isinstance(s.step, str)}
        self.group = code.local_size[0]
        beyond = self.group  # at least as many as work-items without an element in the last turn
        self.counts: dict[str, int] = dict.fromkeys(ELEMENTS, 1)
        for s in self.counters.values():
            name = self.of(s)
            self.counts[name] = max(self.counts[name], s.bound + beyond)

    @staticmethod
    def of(loop: For) -> str:
        """The element that a loop's iteration determines."""
        return SUBGROUP_ELEMENT if loop.step == SUBGROUP_COUNT else ITEM_ELEMENT

    def at(self, place: CodePlace) -> CodePlace:
        """A place with elements instead of the counters and ids of subgroups."""
        ranges, links = dict(place.ranges), list(place.links)
        for counter, loop in self.counters.items():
            if counter not in place.ranges:
                continue
            name = self.of(loop)
            element = var(name, 0, self.counts[name] - 1)
            if isinstance(loop.first, int):
                own = ranges[SUBGROUP_LOCAL_ID] = element - place.ranges[counter]
                links += at_most(0, own), at_most(own, self.group - 1)
            else:
                ranges[counter] = element
                _, last = place.ranges[counter].bounds
                links.append(at_most(element, 0 if last is None else last))
        return replace(place, ranges=ranges, links=tuple(links))


def runs_of(code: LoopKernel, elements: ElementsOf) -> Iterator[AccessRows]:
    """The accesses of buffers that are stored to, with accesses of adjacent elements as one."""
    start = CodePlace(code.indices, links=tuple(id_links(code)))
    groups: dict[object, tuple[Memory, bool, Nat, CodePlace, str, set[int]]] = {}
    for cell, store, found, op in accesses(code.block, start):
        if not (cell.memory.writable and cell.memory.space == "global"):
            continue
        place = elements.at(found)
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
