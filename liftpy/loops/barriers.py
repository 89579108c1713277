"""Which barriers a kernel needs: decided by z3 on the index maps of its accesses.

A barrier is needed if two work-items of a group may touch one address of local memory, one before
it and one after it, one of them writes, and no other barrier is in between. The emitter inserts a
barrier wherever it may be needed (after local memory is filled, and at the end of a loop in which
it is); those that no two accesses need are removed one after the other. A barrier for which the
solver cannot decide counts as needed.

Note [Between two accesses]. Work-items run through the same code, each at its own speed up to the
next barrier. From an access to a later one, a work-item passes the code in between. From an access
in a loop to one in a later iteration, if any work-item makes two, it passes the rest of the body
and its beginning. A work-item that passes a loop with a barrier meets the barrier, because the loop
has at least one iteration. Only a loop over groups may have none for a group, and no memory is
touched both inside and outside of such a loop (rule 7, kernels/sharing.py). Two work-items that
were not kept apart are in the same iteration of each loop around both accesses, except for the loop
in which the second is in a later iteration, and those inside that loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from liftpy.ir.constraint import Constraint
from liftpy.ir.nat import var
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.bounds import link
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Fetch,
    For,
    If,
    Simple,
    Statement,
    accesses_of,
    statements_in,
    with_blocks,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.semantics.smt import Collision, Side, Undecided, find_collision

GROUP_IDS = ("wid0", "wid1", "wid2")
LOCAL_IDS = ("lid0", "lid1", "lid2")


@dataclass(eq=False, slots=True)
class LoopBarriers:
    """A loop, and how many barriers precede its beginning and its end."""

    entered: For
    begin: int
    end: int = 0

    @property
    def own(self) -> bool:
        """Whether the iterations are divided among the work-items of a group.

        So are those of a loop whose step is the size or the number of subgroups.
        """
        return self.entered.first in LOCAL_IDS or isinstance(self.entered.step, str)

    @property
    def once(self) -> bool:
        """Whether no work-item makes a second iteration: the launch has an id for each."""
        return isinstance(self.entered.step, int) and self.entered.bound <= self.entered.step


@dataclass(frozen=True, slots=True)
class Touch:
    """An access to local memory, the number of barriers before it, and the loops around it."""

    cell: Cell
    store: bool
    place: int
    loops: tuple[LoopBarriers, ...]


@dataclass(frozen=True, slots=True)
class Way:
    """A path of a work-item from one access to another, past some barriers.

    `again` is the loop of which the work-item begins a new iteration, if any.
    """

    barriers: frozenset[int]
    again: LoopBarriers | None = None


def with_needed_barriers(block: Block, local_size: tuple[int, int, int]) -> Block:
    """A block without the barriers that no two work-items need; those that stay have a witness."""
    barriers = [s for s in statements_in(block) if isinstance(s, Barrier)]
    if not barriers:
        return block
    needed = {barriers[k]: found for k, found in needed_barriers(block, local_size).items()}

    def kept(s: Statement) -> Iterator[Statement]:
        if not isinstance(s, Barrier):
            yield with_blocks(s, lambda inner: inner.each(kept))
        elif s in needed:
            yield needed[s]

    return block.each(kept)


def needed_barriers(block: Block, local_size: tuple[int, int, int]) -> dict[int, Barrier]:
    """The barriers that are needed, by their number in the order of the code.

    Each has the memory that needs it, and a description of two work-items that collide.
    """
    group = {name: size for name, size in zip(LOCAL_IDS, local_size, strict=True) if size > 1}
    if not group:
        return {}
    touches, count = touches_of(block)
    pairs = [
        (one, two, way)
        for one in touches
        for two in touches
        if one.cell.memory == two.cell.memory and (one.store or two.store)
        for way in ways(one, two)
    ]
    kept = set(range(count))
    found: dict[int, Barrier] = {}
    for number in range(count):
        for one, two, way in pairs:
            if kept.intersection(way.barriers) == {number}:
                collision = collide(one, two, way, group)
                if collision is not None:
                    found[number] = Barrier(one.cell.memory.name, str(collision))
                    break
        else:
            kept.remove(number)
    return found


def touches_of(block: Block) -> tuple[list[Touch], int]:
    """The accesses to local memory, without duplicates, and the number of barriers."""
    touches: dict[Touch, None] = {}
    place = 0

    def follow(block: Block, loops: tuple[LoopBarriers, ...]) -> None:
        nonlocal place
        for s in block:
            match s:
                case For(body=body):
                    loop = LoopBarriers(s, place)
                    follow(body, (*loops, loop))
                    loop.end = place
                case If(_, then, otherwise):
                    follow(then, loops)
                    follow(otherwise, loops)
                case Fetch() | Assume():
                    pass
                case Barrier():
                    place += 1
                case Simple():
                    for cell, store in accesses_of(s):
                        if cell.memory.space == "local":
                            touches[Touch(cell, store, place, loops)] = None

    follow(block, ())
    return list(touches), place


def ways(one: Touch, two: Touch) -> Iterator[Way]:
    """The paths of a work-item from one access to the other (Note [Between two accesses])."""
    if one.place < two.place:
        yield Way(frozenset(range(one.place, two.place)))
    for loop in common(one, two):
        if loop.once:
            continue
        rest, beginning = range(one.place, loop.end), range(loop.begin, two.place)
        yield Way(frozenset((*rest, *beginning)), loop)


def common(one: Touch, two: Touch) -> Iterator[LoopBarriers]:
    """The loops around both accesses, the outermost first."""
    for here, there in zip(one.loops, two.loops, strict=False):
        if here is not there:
            return
        yield here


def collide(
    one: Touch, two: Touch, way: Way, group: Mapping[str, int]
) -> Collision | Undecided | None:
    """Two different work-items of a group that may touch one address on a path, if any."""
    shared: list[str] = [*GROUP_IDS, HOST_ID]
    for loop in common(one, two):
        if loop is way.again:
            break
        if not loop.own:
            shared.append(loop.entered.counter)
    later = () if way.again is None or way.again.own else (way.again.entered.counter,)
    return find_collision(side(one), side(two), group, shared, later)


def side(touch: Touch) -> Side:
    """The addresses of an access, with each lane of a vector, and which work-items make it."""
    cell = touch.cell
    index = cell.index
    if cell.width > 1:
        index = index + var("lane", 0, cell.width - 1)
    passes: list[Constraint] = []
    for k, loop in enumerate(touch.loops):
        first, step = loop.entered.first, loop.entered.step
        if loop.own and isinstance(step, int):
            passes += link(loop.entered, var(str(first), 0, step - 1), f"pass{k}")
    return Side(index, tuple(passes))
