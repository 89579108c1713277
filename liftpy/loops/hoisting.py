"""Loop-invariant code motion: values equal in all iterations are computed before the loop.

A variable is declared in the outermost block that knows what its value mentions. This keeps the
meaning if the value can be computed at any time, even where control does not reach it: it reads
nothing that the kernel writes, and, except for parts behind a condition in it, it is inside memory
whatever the counters and ids are, as their ranges show. So it may leave a branch too.

Results of operators are moved, together with what is read for them. Values that are only read stay
where they are: moving them would take a register in all iterations, to save a load that a cache
serves.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from liftpy.loops.bounds import is_natural
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Statement,
)
from liftpy.loops.values import (
    Cell,
    Select,
    SubgroupReduce,
    Value,
)


def hoisted(block: Block) -> Block:
    """A block in which invariant values are computed outside of loops and branches."""
    return Block(tuple(_inside(block)))


def _inside(block: Block) -> list[Statement]:
    """The statements of a block; what leaves a loop or a branch comes in front of it."""
    made: list[Statement] = []
    for s in block:
        match s:
            case For(counter, body=body):
                left, body = _parted(_inside(body), counter)
                made += [*left, replace(s, body=body)]
            case If(condition, then, otherwise):
                left, then = _parted(_inside(then))
                more, otherwise = _parted(_inside(otherwise))
                made += [*left, *more, If(condition, then, otherwise)]
            case _:
                made.append(s)
    return made


def _parted(statements: Iterable[Statement], *own: str) -> tuple[list[Let], Block]:
    """The declarations that leave a block, and what stays; `own` is known only in the block."""
    here, free = set(own), dict[str, Let]()
    statements = list(statements)
    for s in statements:
        if isinstance(s, Let):
            if here.isdisjoint(s.names) and is_invariant(s.value):
                free[s.name] = s
            else:
                here.add(s.name)
    moved: dict[str, Let] = {}
    needed: set[str] = set()
    for let in reversed(free.values()):
        if let.name in needed or not isinstance(let.value, Cell | Select):
            moved[let.name] = let
            needed |= let.names
    if not moved:
        return [], Block(tuple(statements))
    stay = (s for s in statements if not (isinstance(s, Let) and s.name in moved))
    return [*reversed(moved.values())], Block(tuple(stay))


def is_invariant(value: Value) -> bool:
    """Whether a value can be computed at any time, wherever the names in it are known."""
    if isinstance(value, Cell):
        last = value.memory.length - value.width
        inside = is_natural(value.index) and is_natural(last - value.index)
        return inside and is_constant(value)
    if isinstance(value, Select):
        return is_constant(value)
    if isinstance(value, SubgroupReduce):  # it stays where every work-item reaches it
        return False
    return all(map(is_invariant, value.parts))


def is_constant(value: Value) -> bool:
    """Whether a value reads nothing that the kernel writes."""
    if isinstance(value, Cell):
        return value.memory.stable
    return all(map(is_constant, value.parts))
