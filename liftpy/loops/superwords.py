"""Superword-level parallelism: sums of dot products in adjacent registers become a sum of vectors.

    acc[0] = acc[0] + dot(x, w[i; 4])
    ...                                      ->   acc[0; 4] = acc[0; 4] + dot(x, w[i; 16])
    acc[3] = acc[3] + dot(x, w[i + 12; 4])

Some processors have an instruction for this (`liftpy.opencl.dots`). The registers must form a
vector that another statement accesses as a whole. The sum of vectors replaces the last of the sums
of scalars. This keeps the meaning: only declarations and stores in registers lie between the first
sum and the last one, and none of them accesses these registers or writes the memory of `w`. `w` may
be the left or the right factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
    w: Name


@dataclass
class StraightLine:
    """Successive declarations and stores in registers, with their positions in the block."""

    begin: int
    statements: list[Statement] = field(default_factory=list[Statement])

    @property
    def sums(self) -> dict[Memory, dict[int, list[DotSum]]]:
        """The sums of dot products by register, in their order."""
        found: dict[Memory, dict[int, list[DotSum]]] = {}
        for position, s in enumerate(self.statements, self.begin):
            if (made := sum_of_dot(s)) is not None:
                cell, x, w = made
                of_memory = found.setdefault(cell.memory, {})
                of_memory.setdefault(int(cell.index), []).append(DotSum(position, x, w))
        return found

    @property
    def loaded(self) -> dict[str, Cell]:
        """The factors that are loaded here, by variable.

        What was loaded before these statements is left alone: its memory may have changed since.
        """
        lets = {s.name: s.value for s in self.statements if isinstance(s, Let)}
        return {n: v for n, v in lets.items() if isinstance(v, Cell) and is_readable(v)}

    def accesses(self, memory: Memory, first: int, width: int, among: range) -> int:
        """How many of the statements at some positions access registers of a vector."""
        registers = {*range(first, first + width)}
        return sum(
            any(
                cell.memory == memory
                and not registers.isdisjoint(range(int(cell.index), int(cell.index) + cell.width))
                for value in values_of(self.statements[position - self.begin])
                for cell in values_in(value)
                if isinstance(cell, Cell) and cell.memory.space == "private"
            )
            for position in among
        )


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
    """The width of the vectors in each private memory, if it is the same and enough for sums."""
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
        for memory, sums in line.sums.items():
            width = widths.get(memory, 0)
            for first in sums if width else ():
                if first % width == 0:
                    for group in together(sums, first, width):
                        changed |= of_vector(line, memory, first, group)
    kept = (changed.get(k, s) for k, s in enumerate(statements))
    return Block(tuple(s for s in kept if s is not None)) if changed else Block((*statements,))


def together(sums: Mapping[int, list[DotSum]], first: int, width: int) -> Iterator[list[DotSum]]:
    """The first sum of each register of a vector, then the second; none if the counts differ."""
    each = [sums.get(first + k, []) for k in range(width)]
    if len({len(found) for found in each}) == 1:
        yield from map(list, zip(*each, strict=True))


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
    line: StraightLine, memory: Memory, first: int, group: Sequence[DotSum]
) -> dict[int, Statement | None]:
    """What takes the places of the sums of a vector: one for the last, None for the others."""
    width, positions = len(group), [one.position for one in group]
    last = max(positions)
    if line.accesses(memory, first, width, range(min(positions), last + 1)) != width:
        return {}
    dots = dots_of(line, [(one.x, one.w) for one in group])
    dots = dots or dots_of(line, [(one.w, one.x) for one in group])
    if dots is None:
        return {}
    cell = Cell(memory, nat(first), width)
    made = Store(cell, Operate("+", (cell, dots), I32, width))
    return {**dict.fromkeys(positions), last: made}


def dots_of(line: StraightLine, pairs: Sequence[tuple[Name, Name]]) -> Dot | None:
    """The dot products of one vector with adjacent ones; None if the vectors differ from that."""
    x, start = pairs[0][0], line.loaded.get(pairs[0][1].name)
    for k, (other, w) in enumerate(pairs):
        if (
            start is None
            or other != x
            or line.loaded.get(w.name) != after(start, LANES_OF_A_DOT * k)
        ):
            return None
    return None if start is None else Dot((x, replace(start, width=start.width * len(pairs))))


def after(cell: Cell, elements: int) -> Cell:
    """The cell so many elements after another one."""
    return replace(cell, index=cell.index + elements)
