"""Superword-level parallelism: sums of dot products in adjacent registers become a sum of vectors.

    acc[0] = acc[0] + dot(x, w[i; 4])
    acc[1] = acc[1] + dot(x, w[i + 4; 4])   ->   acc[0; 2] = acc[0; 2] + dot(x, w[i; 8])

Some processors have an instruction for this (`liftpy.opencl.dots`). The registers must be those of
a vector that another statement accesses. This keeps the meaning: from the first of these statements
to the last one, there are only declarations and stores in registers, each of the registers is
stored once, and nothing else reads them, so the sums may be computed in the place of the last one.
Nothing in between writes the memory of `w`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from liftpy.ir.nat import nat
from liftpy.ir.types import I32
from liftpy.loops.tree import Block, Let, Simple, Statement, Store, statements_in, with_blocks
from liftpy.loops.values import Cell, Dot, Name, Operate, Value, values_in
from liftpy.primitives.vector import LANES_OF_A_DOT, LEAST_DOTS
from liftpy.views.terms import Memory


@dataclass(frozen=True)
class DotSum:
    """A statement that adds a dot product to a register: its position, and the two vectors."""

    position: int
    x: Name
    w: Cell


@dataclass
class StraightLine:
    """Successive declarations and stores in registers, with their positions in the block."""

    begin: int
    statements: list[Statement] = field(default_factory=list[Statement])

    def sums(self) -> dict[Memory, dict[int, DotSum]]:
        """The sums of dot products by register, of registers with no other store and no other read.

        What was read before these statements is left alone: its memory may have changed since.
        """
        lets = {s.name: s.value for s in self.statements if isinstance(s, Let)}
        cells = Counter[tuple[Memory, int]]()
        for s in self.statements:
            read = (part for value in values_of(s) for part in values_in(value))
            cells.update(
                (cell.memory, int(cell.index) + k)
                for cell in read
                if isinstance(cell, Cell) and cell.memory.space == "private"
                for k in range(cell.width)
            )
        found: dict[Memory, dict[int, DotSum]] = {}
        for position, s in enumerate(self.statements, self.begin):
            if (made := sum_of_dot(s)) is None:
                continue
            (cell, x, w), index = made, int(made[0].index)
            read = lets.get(w.name)
            if cells[cell.memory, index] == 2 and isinstance(read, Cell) and is_readable(read):
                found.setdefault(cell.memory, {})[index] = DotSum(position, x, read)
        return found


def values_of(s: Statement) -> tuple[Value, ...]:
    """The values of a statement, and the cell that it writes."""
    return s.values if isinstance(s, Simple) else ()


def is_readable(cell: Cell) -> bool:
    """Whether whole words can be read from a cell: four bytes at multiples of four."""
    words = all(k % LANES_OF_A_DOT == 0 for k in cell.index.terms.values())
    return words and cell.width == LANES_OF_A_DOT and cell.memory.space in {"global", "local"}


def with_superwords(block: Block) -> Block:
    """A block with sums of dot products in vectors; see the module."""
    vectors = vectors_of(block)
    return in_vectors(block, vectors) if vectors else block


def vectors_of(block: Block) -> dict[Memory, int]:
    """The private memories whose registers are vectors of one width, and enough lanes for sums."""
    widths: dict[Memory, set[int]] = {}
    for s in statements_in(block):
        for value in (part for v in values_of(s) for part in values_in(v)):
            if isinstance(value, Cell) and value.memory.space == "private" and value.width > 1:
                widths.setdefault(value.memory, set()).add(value.width)
    found = {memory: max(each) for memory, each in widths.items() if len(each) == 1}
    return {memory: width for memory, width in found.items() if width >= LEAST_DOTS}


def sum_of_dot(s: Statement) -> tuple[Cell, Name, Name] | None:
    """The register to which a statement adds a dot product of integers, and the two vectors."""
    match s:
        case Store(
            Cell(_, _, 1) as cell,
            Operate("+", (Cell() as old, Dot((Name() as x, Name() as w)))),
            (),
            False,
        ) if old == cell and cell.memory.space == "private" and cell.type == I32:
            return cell, x, w
        case _:
            return None


def in_vectors(block: Block, widths: Mapping[Memory, int]) -> Block:
    """A block in which sums are as wide as the vectors of their registers."""
    statements = [with_blocks(s, lambda b: in_vectors(b, widths)) for s in block]
    changed: dict[int, Statement | None] = {}
    for line in straight_lines(statements):
        for memory, sums in line.sums().items():
            width = widths.get(memory, 0)
            for first in sums if width else ():
                if first % width == 0:
                    changed |= dict(of_vector(memory, first, width, sums))
    kept = (changed.get(k, s) for k, s in enumerate(statements))
    return Block(tuple(s for s in kept if s is not None)) if changed else Block((*statements,))


def straight_lines(statements: list[Statement]) -> Iterator[StraightLine]:
    """The longest runs of declarations and of stores in registers."""
    line = StraightLine(0)
    for position, s in enumerate((*statements, None)):
        own = isinstance(s, Store) and s.cell.memory.space == "private"
        if s is not None and (own or isinstance(s, Let)):
            line.statements.append(s)
            continue
        if line.statements:
            yield line
        line = StraightLine(position + 1)


def of_vector(
    memory: Memory, first: int, width: int, sums: Mapping[int, DotSum]
) -> Iterator[tuple[int, Statement | None]]:
    """What takes the places of the sums of a vector: one for the last, None for the others."""
    found = [sums.get(first + k) for k in range(width)]
    together = [one for one in found if one is not None]
    if len(together) < width:
        return
    start = together[0]
    for k, one in enumerate(together):
        if (one.x, one.w) != (start.x, after(start.w, k * LANES_OF_A_DOT)):
            return
    cell = Cell(memory, nat(first), width)
    dots = Dot((start.x, replace(start.w, width=width * LANES_OF_A_DOT)))
    last = max(one.position for one in together)
    yield from ((one.position, None) for one in together if one.position != last)
    yield last, Store(cell, Operate("+", (cell, dots), I32, width))


def after(cell: Cell, elements: int) -> Cell:
    """The cell so many elements after another one."""
    return replace(cell, index=cell.index + elements)
