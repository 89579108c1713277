"""Prefetch hints for what the next iteration of a loop reads, if requested (`mapSeqAhead`).

Processors prefetch along an array, but not past the end of a page or a row. The last inner loop
that reads a memory gets a hint for each vector that it loads, with the address in the next
iteration: late enough to find memory idle, and early enough for the data to arrive in time. A hint
changes no value, whatever its address is: in the last iteration the address may be past the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from liftpy.ir.nat import var
from liftpy.loops.tree import (
    Block,
    Fetch,
    For,
    Simple,
    Statement,
    accesses_of,
    statements_in,
    with_blocks,
)
from liftpy.loops.values import (
    Cell,
)
from liftpy.views.terms import Memory


def fetched_ahead(block: Block) -> Block:
    """A block with the hints that its loops ask for."""
    asked = any(isinstance(s, For) and s.ahead for s in statements_in(block))
    return block.each(_with_hints) if asked else block


def _with_hints(s: Statement) -> Iterator[Statement]:
    """A statement, with hints in a loop that asks for them."""
    if isinstance(s, For) and s.ahead:
        yield replace(s, body=Hints(s).block(s.body), ahead=False)
    else:
        yield with_blocks(s, fetched_ahead)


class Hints:
    """The hints for the next iteration of a loop; `done` are the memories that have hints."""

    def __init__(self, loop: For) -> None:
        self.loop = loop
        self.done: set[Memory] = set()

    def block(self, block: Block) -> Block:
        """A block inside the loop; its last statement is visited first."""
        made = [self.statement(s) for s in reversed(block.statements)]
        return Block(tuple(reversed(made)))

    def statement(self, s: Statement) -> Statement:
        """A statement inside the loop."""
        if not isinstance(s, For) or any(isinstance(inner, For) for inner in statements_in(s.body)):
            return with_blocks(s, self.block)
        cells = [c for c in dict.fromkeys(loads(s.body)) if self.is_apart(c, s)]
        self.done |= {c.memory for c in cells}
        return replace(s, body=Block((*s.body, *map(self.hint, cells))))

    def is_apart(self, cell: Cell, inner: For) -> bool:
        """Whether a vector differs in each iteration of both loops, and its array has no hints."""
        both = {self.loop.counter, inner.counter} <= cell.index.names()
        return both and cell.width > 1 and cell.memory not in self.done

    def hint(self, cell: Cell) -> Fetch:
        """The hint for the next iteration."""
        counter = var(self.loop.counter, 0, self.loop.bound - 1)
        later = cell.index.substitute({self.loop.counter: counter + int(self.loop.step)})
        return Fetch(replace(cell, index=later))


def loads(block: Block) -> Iterator[Cell]:
    """The loads of a block's statements from arrays in global memory that the kernel only reads."""
    simple = (s for s in block if isinstance(s, Simple))
    for cell, _ in (access for s in simple for access in accesses_of(s)):
        if cell.memory.space == "global" and not cell.memory.writable:
            yield cell
