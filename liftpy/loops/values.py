"""The expressions and conditions of the loop IR (`tree.py`).

An expression has a scalar type and a width: 1, or the number of lanes of a vector. An index is a
natural over the counters of loops and the ids of the launch, each with its range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from liftpy.ir.nat import Nat
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import F32, I32, ScalarType
from liftpy.primitives.lowered import TEXEL
from liftpy.views.terms import Memory

SUBGROUP_ID, SUBGROUP_LOCAL_ID = "sgid0", "slid0"
"""The id of a subgroup in its group, and that of a work-item in its subgroup."""
SUBGROUP_SIZE, SUBGROUP_COUNT = "sgsz0", "sgct0"
"""The size of a work-item's subgroup, and the number of subgroups of its group."""
SUBGROUP_IDS = SUBGROUP_ID, SUBGROUP_LOCAL_ID, SUBGROUP_SIZE, SUBGROUP_COUNT

# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Const:
    """A literal. 0 and -0 are different literals, although the numbers are equal."""

    value: float | bool
    type: ScalarType
    width: ClassVar = 1
    parts: ClassVar[tuple[Value, ...]] = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


@dataclass(frozen=True, slots=True)
class Index:
    """An index as a number of a type."""

    index: Nat
    type: ScalarType
    width: ClassVar = 1
    parts: ClassVar[tuple[Value, ...]] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """A variable that a `Let` declares."""

    name: str
    type: ScalarType
    width: int = 1
    parts: ClassVar[tuple[Value, ...]] = ()


@dataclass(frozen=True, slots=True)
class VectorSlice:
    """`width` lanes of a vector variable, from lane `first`."""

    vector: Name
    first: int
    width: int = 1
    parts: ClassVar[tuple[Value, ...]] = ()

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.vector.type


@dataclass(frozen=True, slots=True)
class Cell:
    """`width` adjacent scalars of a memory: what is loaded, or where something is stored.

    The index of a private memory is a number, because private memory has no addresses. Of an image,
    a cell is one scalar, or a number of whole texels.
    """

    memory: Memory
    index: Nat
    width: int = 1
    parts: ClassVar[tuple[Value, ...]] = ()

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.memory.scalar


def is_in_texels(cell: Cell) -> bool:
    """Whether a cell of an image is one scalar, or whole texels at any value of its index."""
    return cell.width == 1 or not (cell.width % TEXEL or cell.index % TEXEL != 0)


@dataclass(frozen=True, slots=True)
class Operate:
    """A scalar operator applied to `parts`, lane by lane.

    An operand of one lane among wider ones applies to all lanes. `type` is that of the result.
    """

    op: str
    parts: tuple[Value, ...]
    type: ScalarType
    width: int = 1


@dataclass(frozen=True, slots=True)
class Splat:
    """A scalar in each of `width` lanes."""

    value: Value
    width: int

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.value.type

    @property
    def parts(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Pack:
    """Scalars as the lanes of a vector."""

    parts: tuple[Value, ...]

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.parts[0].type

    @property
    def width(self) -> int:
        """The number of lanes."""
        return len(self.parts)


LEAST_SHUFFLED = 4
"""The fewest lanes for which two loads and a shuffle are used."""


def every_second(lanes: tuple[Value, ...]) -> tuple[Cell, Cell] | None:
    """Two vectors, of which the even lanes of the first and the odd ones of the second are `lanes`.

    The lanes are two elements apart. The second vector begins one element before the middle lane,
    so both lie between the first and the last lane. None for other lanes, for memory that is
    written, and for types that are arrays of bytes in C.
    """
    first, width = lanes[0], len(lanes)
    if width < LEAST_SHUFFLED or not isinstance(first, Cell):
        return None
    memory, index = first.memory, first.index
    if memory.space != "global" or memory.writable or not RECORDS[memory.scalar.name].is_whole:
        return None
    if any(lane != Cell(memory, index + 2 * k) for k, lane in enumerate(lanes)):
        return None
    return Cell(memory, index, width), Cell(memory, index + width - 1, width)


@dataclass(frozen=True, slots=True)
class Dot:
    """The sum of the products of the lanes of two vectors: of f32, or of 8-bit integers in i32.

    If the second vector has several times as many lanes as the first one, there is a sum for each
    part of it that is as long as the first one.
    """

    parts: tuple[Value, Value]

    @property
    def width(self) -> int:
        """The number of sums."""
        first, second = self.parts
        return second.width // first.width

    @property
    def type(self) -> ScalarType:
        """The scalar type of the sum."""
        return F32 if self.parts[0].type == F32 else I32


@dataclass(frozen=True, slots=True)
class SubgroupReduce:
    """The fold of a value of each work-item of the subgroup, by an operator that commutes.

    All work-items of the subgroup compute it together, and all get the result. It is the value of a
    `Let` that every work-item of the group reaches.
    """

    op: str
    value: Value
    width: ClassVar = 1

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.value.type

    @property
    def parts(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (self.value,)


@dataclass(frozen=True, slots=True)
class SubgroupsReduce:
    """The fold of what all subgroups of the group have stored in a memory.

    `cell` is where the subgroup of the work-item has stored its own: at its id.
    """

    op: str
    cell: Cell
    width: ClassVar = 1

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.cell.type

    @property
    def parts(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return (self.cell,)


@dataclass(frozen=True, slots=True)
class SubgroupBroadcast:
    """The value of one work-item of the subgroup, the one whose id in the subgroup is `item`.

    That work-item has several values, `parts`, of which this is number `row`; in the code that is
    printed, only one is left. All work-items of the subgroup compute it together.
    """

    parts: tuple[Value, ...]
    row: Nat
    item: Nat
    width: ClassVar = 1

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.parts[0].type


@dataclass(frozen=True, slots=True)
class Select:
    """`then` if a condition holds, else `otherwise`; only one of them is computed."""

    condition: Condition
    then: Value
    otherwise: Value

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.then.type

    @property
    def width(self) -> int:
        """The number of lanes."""
        return self.then.width

    @property
    def parts(self) -> tuple[Value, ...]:
        """What it is computed from."""
        return self.then, self.otherwise


Value: TypeAlias = (
    Const
    | Index
    | Name
    | VectorSlice
    | Cell
    | Operate
    | Splat
    | Pack
    | Dot
    | SubgroupReduce
    | SubgroupsReduce
    | SubgroupBroadcast
    | Select
)


# --- conditions -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RangeTest:
    """`index >= 0`; with a bound, `index < bound`."""

    index: Nat
    bound: int | None = None

    @property
    def room(self) -> Nat:
        """A natural that is 0 or more where the test holds."""
        return self.index if self.bound is None else self.bound - 1 - self.index


@dataclass(frozen=True, slots=True)
class All:
    """Range tests, all of which must hold."""

    tests: tuple[RangeTest, ...]


@dataclass(frozen=True, slots=True)
class Fails:
    """Holds where at least one of some range tests fails."""

    inner: All

    @property
    def tests(self) -> tuple[RangeTest, ...]:
        """The range tests that it is made of."""
        return self.inner.tests


@dataclass(frozen=True, slots=True)
class Both:
    """Holds where two conditions hold."""

    left: Condition
    right: Condition

    @property
    def tests(self) -> tuple[RangeTest, ...]:
        """The range tests that it is made of."""
        return self.left.tests + self.right.tests


Condition: TypeAlias = All | Fails | Both
"""The condition of a guard, made of range tests."""


def values_in(value: Value) -> Iterator[Value]:
    """An expression and those inside it, each before its parts."""
    yield value
    for part in value.parts:
        if part.parts:
            yield from values_in(part)
        else:
            yield part


def rebuilt(value: Value, change: Callable[[Value], Value]) -> Value:
    """An expression with its parts changed."""
    match value:
        case Operate(op, args, t, width):
            return Operate(op, tuple(map(change, args)), t, width)
        case Splat(inner, width):
            return Splat(change(inner), width)
        case Pack(lanes):
            return Pack(tuple(map(change, lanes)))
        case Dot((left, right)):
            return Dot((change(left), change(right)))
        case SubgroupReduce(op, inner):
            return SubgroupReduce(op, change(inner))
        case SubgroupBroadcast(parts, row, item):
            return SubgroupBroadcast(tuple(map(change, parts)), row, item)
        case Select(condition, then, otherwise):
            return Select(condition, change(then), change(otherwise))
        case _:
            return value
