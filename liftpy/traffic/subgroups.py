"""What the work-items of a subgroup load or store together: cache lines, and banks in conflict.

Each is counted from the addresses of the first subgroup of the first group, in the first iteration
of all loops. Other subgroups have the same pattern, unless an address depends on an id in another
way than by adding a multiple of it. All subgroups are assumed to have the same size, although the
last one of a group may be smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, var
from liftpy.ir.types import size_bytes
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Block,
    For,
    Let,
    Statement,
    Store,
    Update,
    statements_in,
    with_blocks,
)
from liftpy.loops.unswitch import Given, own_tests
from liftpy.loops.unused import without_unused
from liftpy.loops.values import (
    SUBGROUP_COUNT,
    SUBGROUP_ID,
    SUBGROUP_LOCAL_ID,
    SUBGROUP_SIZE,
    Cell,
    RangeTest,
    Value,
    rebuilt,
)
from liftpy.traffic.nest import Axis

WORD = 4
"""Bytes of a word of a bank of local memory."""

APART = 4099
"""The distance of indices that are data: a prime, so that remainders of it differ too."""


class WorkItem(dict[str, int]):
    """The ids and counters of a work-item; what else an index reads is data.

    Data is taken to send every work-item to a place far from those of the others.
    """

    def __init__(self, known: Mapping[str, int], number: int) -> None:
        super().__init__(known)
        self.number = number

    def __missing__(self, name: str) -> int:
        return self.number * APART


def lanes(shape: Sequence[int], many: int, prefix: str) -> Iterator[WorkItem]:
    """The ids of the first `many` work-items of a range, dimension 0 fastest.

    `prefix` is that of the ids that number them: `lid` in a group, `gid` without groups.

    >>> [*lanes((2, 3, 1), 3, "lid")][-1]["lid1"]
    1
    """
    width, height, _ = shape
    for k in range(many):
        own = (k % width, k // width % height, k // (width * height))
        at = {f"{kind}{d}": 0 for kind in ("gid", "lid", "wid") for d in range(3)}
        ids = {f"{name}{d}": own[d] for name in {prefix, "gid"} for d in range(3)}
        yield WorkItem(at | ids | {SUBGROUP_ID: 0, SUBGROUP_LOCAL_ID: k}, k)


def addresses(cell: Cell, loops: Sequence[For], items: Sequence[WorkItem]) -> list[int]:
    """The byte at which the access of each work-item begins, in the first iteration of loops.

    Work-items whose ids are beyond a loop's bound execute no iteration.
    """
    size = size_bytes(cell.type).value({})
    found: list[int] = []
    for item in items:
        at = WorkItem(item, item.number)
        for loop in loops:
            at[loop.counter] = loop.first if isinstance(loop.first, int) else at[loop.first]
        if all(at[loop.counter] < loop.bound for loop in loops):
            found.append(cell.index.value(at) * size)
    return found


def lines_of(starts: Sequence[int], width: int, line: int) -> int:
    """The distinct cache lines that accesses of `width` bytes touch together.

    >>> lines_of([0, 4, 8, 12], 4, 64), lines_of([0, 4096], 4, 64), lines_of([60], 8, 64)
    (1, 2, 2)
    """
    return len({k for a in starts for k in range(a // line, (a + width - 1) // line + 1)})


def rounds_of(starts: Sequence[int], width: int, banks: int, unit: int = WORD) -> int:
    """How many times the busiest of `banks` is read: its distinct units of `unit` bytes.

    Banks of local memory have words; sets of the first cache have lines.

    >>> rounds_of(range(0, 128, 4), 4, 32), rounds_of(range(0, 4096, 128), 4, 32)
    (1, 32)
    """
    units = {k for a in starts for k in range(a // unit, (a + width - 1) // unit + 1)}
    counts = Counter(number % banks for number in units)
    return max(counts.values(), default=0)


def with_subgroups_of(code: LoopKernel, size: int) -> LoopKernel:
    """A kernel as it runs where subgroups have this size.

    So tests on the size are decided, and steps of loops are numbers. Subgroups are assumed to
    consist of adjacent work-items, in their order.
    """
    if SUBGROUP_SIZE not in code.ids:
        return code
    group = code.local_size[0]
    size = min(size, group)
    holding, failing = set[RangeTest](), set[RangeTest]()
    for s in statements_in(code.block):
        for test in own_tests(s):
            if set(test.index.names()) == {SUBGROUP_SIZE}:
                room = test.room.substitute({SUBGROUP_SIZE: size}).value({})
                (holding if room >= 0 else failing).add(test)
    decided = Given(frozenset(holding), frozenset(failing)).block(code.block)
    steps = {SUBGROUP_SIZE: size, SUBGROUP_COUNT: -(-group // size)}
    sized = in_order(decided, var("lid0", 0, group - 1) % size, steps)
    return replace(code, block=without_unused(sized))


def in_order(block: Block, own: Nat, steps: Mapping[str, int]) -> Block:
    """A block in which the id of a work-item in its subgroup is `own`, and with these steps."""

    def value(part: Value) -> Value:
        if isinstance(part, Cell) and SUBGROUP_LOCAL_ID in part.index.names():
            return replace(part, index=part.index.substitute({SUBGROUP_LOCAL_ID: own}))
        return rebuilt(part, value)

    def statement(s: Statement) -> Iterator[Statement]:
        match s:
            case Let():
                yield replace(s, value=value(s.value))
            case Store(cell) | Update(cell):
                index = cell.index.substitute({SUBGROUP_LOCAL_ID: own})
                yield replace(s, cell=replace(cell, index=index), value=value(s.value))
            case For(step=str(step)):
                inner = in_order(s.body, own, steps)
                yield replace(s, step=steps[step], body=inner)
            case _:
                yield with_blocks(s, lambda inner: in_order(inner, own, steps))

    return block.each(statement)


def step_of(loop: For) -> int:
    """The step of a loop of a kernel whose subgroups have a known size."""
    if isinstance(loop.step, str):
        message = f"the loop over {loop.counter} has steps of {loop.step}, which is not known"
        raise InternalError(message)
    return loop.step


def axes_of_items(code: LoopKernel, subgroup: int) -> tuple[Axis, ...]:
    """The digits of the id of a work-item in its group, in dimension 0, the smallest first.

    If the kernel has loops over subgroups or their work-items, the digits are the id in a subgroup
    and the id of the subgroup.
    """
    count = code.local_size[0]
    loops = (s for s in statements_in(code.block) if isinstance(s, For))
    if all(loop.first not in {SUBGROUP_ID, SUBGROUP_LOCAL_ID} for loop in loops):
        return (Axis("lid0", count),)
    size = min(subgroup, count)
    return Axis(SUBGROUP_LOCAL_ID, size), Axis(SUBGROUP_ID, -(-count // size), size)
