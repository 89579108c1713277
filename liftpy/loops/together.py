"""Where all work-items of a subgroup arrive together, and which values they have in common.

They compute a fold or a broadcast together: all of them reach it, and a broadcast names the same
work-item for all of them. So no fold and no broadcast is guarded by a condition whose outcome
differs among them, or is in a loop of which some execute more iterations than others. The ids of
groups, and the id, the size and the number of subgroups, are the same for all of them. So are the
counters of loops that begin at such an id or at a number, and variables that are computed only from
these and from buffers that the kernel only reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.ir.nat import Nat
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import Block, For, If, Let, Simple, is_collective, statements_in
from liftpy.loops.values import (
    SUBGROUP_COUNT,
    SUBGROUP_ID,
    SUBGROUP_SIZE,
    Cell,
    Const,
    Index,
    Name,
    Operate,
    RangeTest,
    Select,
    SubgroupBroadcast,
    SubgroupReduce,
    Value,
    values_in,
)

GROUP_ID = "wid"
OF_ALL = {SUBGROUP_ID, SUBGROUP_SIZE, SUBGROUP_COUNT, HOST_ID}
"""The ids that all work-items of a subgroup have in common, apart from those of groups."""


def has_broadcast(block: Block) -> bool:
    """Whether a block has a broadcast."""
    return any(
        isinstance(part, SubgroupBroadcast)
        for s in statements_in(block)
        if isinstance(s, Simple)
        for value in s.values
        for part in values_in(value)
    )


def is_same(test: RangeTest, common: frozenset[str]) -> bool:
    """Whether a test has the same outcome for all work-items of a subgroup.

    `common` are counters and variables that are the same for all of them.
    """
    return is_common_index(test.index, common)


def is_common_index(index: Nat, common: frozenset[str]) -> bool:
    """Whether an index is the same for all work-items of a subgroup."""
    return all(is_common(name, common) for name in index.names())


def is_common(name: str, common: frozenset[str]) -> bool:
    """Whether an id, a counter or a variable is the same for all work-items of a subgroup."""
    return name in common or name in OF_ALL or name.startswith(GROUP_ID)


def is_common_value(value: Value, common: frozenset[str]) -> bool:
    """Whether a value is the same for all work-items of a subgroup."""
    match value:
        case Const():
            return True
        case Index(index):
            return is_common_index(index, common)
        case Name(name):
            return name in common
        case Cell(memory, index):
            return memory.stable and is_common_index(index, common)
        case Operate(_, parts):
            return all(is_common_value(part, common) for part in parts)
        case _:
            return False


def common_counters(s: For) -> frozenset[str]:
    """The counters of a loop and of those in it that begin at one number for a whole subgroup."""
    loops = [s, *(inner for inner in statements_in(s.body) if isinstance(inner, For))]
    return frozenset(loop.counter for loop in loops if begins_together(loop))


def begins_together(s: For) -> bool:
    """Whether all work-items of a subgroup begin a loop at the same number."""
    return isinstance(s.first, int) or is_common(s.first, frozenset())


def is_even_in_subgroup(s: For, code: LoopKernel) -> bool:
    """Whether all work-items of a subgroup execute the same number of iterations of a loop.

    They do if they begin together, because a step is the same for all of them.
    """
    return begins_together(s) or is_even(s, code)


def is_even(s: For, code: LoopKernel) -> bool:
    """Whether all work-items of a group execute the same number of iterations of a loop."""
    if isinstance(s.step, str):  # subgroups differ in size and in number of elements
        return False
    if isinstance(s.first, int) or s.first.startswith(GROUP_ID):
        return True
    size = code.local_size[int(s.first[-1])]
    own = s.first.startswith("lid") and s.step == size and s.bound % size == 0
    return own or size == 1


def faults(code: LoopKernel) -> Iterator[str]:
    """What keeps the work-items of a subgroup from computing folds and broadcasts together."""
    if has_broadcast(code.block) or is_collective(code.block):
        yield from _of_block(code.block, code, frozenset(), together=True)


def _of_block(
    block: Block, code: LoopKernel, common: frozenset[str], *, together: bool
) -> Iterator[str]:
    """The faults of a block; `together` says whether all work-items of a subgroup reach it."""
    for s in block:
        match s:
            case Simple():
                for value in s.values:
                    yield from _of_value(value, common, together=together)
                if isinstance(s, Let) and is_common_value(s.value, common):
                    common |= {s.name}
            case For():
                inner = common | {s.counter} if begins_together(s) else common - {s.counter}
                yield from _of_block(
                    s.body, code, inner, together=together and is_even_in_subgroup(s, code)
                )
            case If(condition, then, otherwise):
                same = together and all(is_same(t, common) for t in condition.tests)
                for part in (then, otherwise):
                    yield from _of_block(part, code, common, together=same)
            case _:
                pass


def _of_value(value: Value, common: frozenset[str], *, together: bool) -> Iterator[str]:
    """The faults of an expression."""
    match value:
        case Select(condition):
            together = together and all(is_same(t, common) for t in condition.tests)
        case SubgroupReduce(op) if not together:
            yield f"a fold by {op} that not all work-items of a subgroup reach"
        case SubgroupBroadcast(_, row, item):
            if not together:
                yield f"a broadcast of element {item} that not all work-items of a subgroup reach"
            if not (is_common_index(row, common) and is_common_index(item, common)):
                yield f"a broadcast of element {item}, which may differ in a subgroup"
        case _:
            pass
    for part in value.parts:
        yield from _of_value(part, common, together=together)
