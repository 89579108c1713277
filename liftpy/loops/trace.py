"""What a kernel does in the order of its code, as far as memory is concerned.

The events of a tree are accesses, barriers, and the beginnings and ends of loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from liftpy.ir.constraint import Constraint, equal
from liftpy.ir.nat import Nat, var
from liftpy.loops.tree import Barrier, Block, Cell, For, If, Simple, Store, Value


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store."""

    cell: Cell
    store: bool


@dataclass(frozen=True, slots=True)
class Left:
    """The innermost loop ends."""


Event: TypeAlias = Access | Barrier | For | Left
"""A loop begins with its `For`."""


def link(loop: For, start: Nat, made: str) -> Constraint:
    """A loop's counter is where it starts, and its step as often as passes were made before.

    `made` is the name of the variable for their number.
    """
    low = 0 if isinstance(loop.first, str) else loop.first
    passes = var(made, 0, (loop.bound - 1 - low) // loop.step)
    return equal(var(loop.counter, low, loop.bound - 1), start + loop.step * passes)


def events(block: Block) -> Iterator[Event]:
    """What a block does, in its order."""
    for s in block:
        match s:
            case For(body=body):
                yield s
                yield from events(body)
                yield Left()
            case If(_, then, otherwise):
                yield from events(then)
                yield from events(otherwise)
            case Barrier():
                yield s
            case Store(cell, value):
                yield from _loads(value)
                yield Access(cell, store=True)
            case Simple():
                for value in s.values:
                    yield from _loads(value)


def _loads(value: Value) -> Iterator[Access]:
    """The loads of an expression."""
    if isinstance(value, Cell):
        yield Access(value, store=False)
    for part in value.parts:
        yield from _loads(part)
