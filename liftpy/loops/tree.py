"""The loop IR: the typed tree of a kernel's loops, variables, loads and stores.

Its statements are here, its expressions in `values.py`. The tree contains nothing of OpenCL C:
`liftpy.opencl.printer` prints it as C.

Nodes are immutable: a pass returns a new tree, which shares the unchanged parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from liftpy.ir.lazy import lazy
from liftpy.loops.values import (
    All,
    Cell,
    Condition,
    Index,
    Name,
    RangeTest,
    Select,
    SubgroupBroadcast,
    SubgroupReduce,
    Value,
    VectorSlice,
    values_in,
)


class Simple:
    """A statement without statements inside."""

    value: Value

    @property
    def values(self) -> tuple[Value, ...]:
        """Its expressions."""
        return (self.value,)

    @lazy
    def names(self) -> frozenset[str]:
        """The variables, counters and ids that it mentions."""
        found: set[str] = set()
        for part in (part for value in self.values for part in values_in(value)):
            if isinstance(part, Index | Cell):
                found |= part.index.names()
            elif isinstance(part, SubgroupBroadcast):
                found |= part.row.names() | part.item.names()
            elif isinstance(part, Name | VectorSlice):
                found.add(part.name if isinstance(part, Name) else part.vector.name)
            elif isinstance(part, Select):
                found.update(*(test.index.names() for test in part.condition.tests))
        return frozenset(found)

    @lazy
    def is_guarded(self) -> bool:
        """Whether it selects between values."""
        return any(isinstance(v, Select) for v in values_in(self.value))

    @lazy
    def tests(self) -> tuple[RangeTest, ...]:
        """The tests of its guarded values whose condition is an `All`."""
        guarded = (v.condition for v in values_in(self.value) if isinstance(v, Select))
        return tuple(test for c in guarded if isinstance(c, All) for test in c.tests)


@dataclass(frozen=True)
class Let(Simple):
    """A constant variable, to the end of its block."""

    name: str
    value: Value


@dataclass(frozen=True)
class Store(Simple):
    """A store, which changes nothing where one of the tests `silent` fails.

    A nontemporal store bypasses the caches.
    """

    cell: Cell
    value: Value
    silent: tuple[RangeTest, ...] = ()
    nontemporal: bool = False

    @property
    def values(self) -> tuple[Value, ...]:
        return self.cell, self.value


@dataclass(frozen=True)
class Update(Simple):
    """An atomic update: stores the result of an operator on the content of a cell and a value.

    No other access to the cell comes between reading and storing. The operator is associative and
    commutative, so it does not matter in which order work-items update a cell.
    """

    cell: Cell
    value: Value
    op: str

    @property
    def values(self) -> tuple[Value, ...]:
        return self.cell, self.value


def accesses_of(s: Simple) -> Iterator[tuple[Cell, bool]]:
    """The cells that a statement loads, then those it stores to, each with whether it stores."""
    yield from ((part, False) for part in values_in(s.value) if isinstance(part, Cell))
    if isinstance(s, Update):
        yield s.cell, False
    if isinstance(s, Store | Update):
        yield s.cell, True


@dataclass(frozen=True, slots=True)
class Fetch:
    """A prefetch hint for a cell of global memory; the cell may lie outside the memory."""

    cell: Cell


@dataclass(frozen=True, slots=True)
class Assume:
    """Tests with the same outcome whenever control reaches this point: the code does not make them.

    A pass puts it before each statement from which it removes tests: those that hold, those that
    fail, and those that are the `same` as simpler ones. It generates no code, and `loops/bounds.py`
    proves it for the kernel as printed.
    """

    holding: tuple[RangeTest, ...] = ()
    failing: tuple[RangeTest, ...] = ()
    same: tuple[tuple[RangeTest, RangeTest], ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Barrier:
    """All work-items of the group wait for each other; local `memory` makes it necessary."""

    memory: str = ""
    witness: str = ""


@dataclass(frozen=True)
class Block:
    """Statements in order."""

    statements: tuple[Statement, ...] = ()

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)

    def __bool__(self) -> bool:
        return bool(self.statements)

    def each(self, change: Callable[[Statement], Iterable[Statement]]) -> Block:
        """A block with the replacements of each statement."""
        return Block(tuple(made for s in self for made in change(s)))


@dataclass(frozen=True)
class For:
    """Iterates a counter from `first` to below `bound` in steps of `step`.

    `first` is an id if the loop is over ids, else a number. `step` is a number, the size of the
    subgroup, or the number of subgroups; it is at least 1. `ahead` asks for prefetch hints for what
    the next iteration reads (`liftpy.loops.fetching`).
    """

    counter: str
    first: str | int
    bound: int
    step: str | int
    body: Block
    ahead: bool = False


@dataclass(frozen=True)
class If:
    """One of two blocks."""

    condition: Condition
    then: Block
    otherwise: Block = Block()


Code: TypeAlias = Let | Store | Update | Fetch | Barrier | For | If
Statement: TypeAlias = Code | Assume


def statements_in(block: Block) -> Iterator[Code]:
    """The statements of a block without assumptions, each before those inside it."""
    for s in block:
        if not isinstance(s, Assume):
            yield s
        if isinstance(s, For):
            yield from statements_in(s.body)
        elif isinstance(s, If):
            yield from statements_in(s.then)
            yield from statements_in(s.otherwise)


def is_idle(block: Block) -> bool:
    """Whether a block does nothing; it may contain assumptions."""
    for s in block:
        match s:
            case Assume():
                continue
            case For(body=body) if is_idle(body):
                continue
            case If(_, then, otherwise) if is_idle(then) and is_idle(otherwise):
                continue
            case _:
                return False
    return True


def is_collective(block: Block) -> bool:
    """Whether a block has a statement that work-items must reach together.

    That is a barrier, which all work-items of a group reach, or a fold of a subgroup.
    """
    return any(
        isinstance(s, Barrier) or (isinstance(s, Let) and isinstance(s.value, SubgroupReduce))
        for s in statements_in(block)
    )


def with_blocks(s: Statement, change: Callable[[Block], Block]) -> Statement:
    """A statement with its blocks changed."""
    if isinstance(s, For):
        return replace(s, body=change(s.body))
    if isinstance(s, If):
        return If(s.condition, change(s.then), change(s.otherwise))
    return s
