"""Terms: the scalars that a kernel computes from cells of buffers, with the index of each cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from liftpy.ir.lazy import lazy
from liftpy.ir.nat import ZERO, Nat
from liftpy.ir.types import ScalarType

Space: TypeAlias = Literal["global", "image", "local", "private"]
"""An address space, or `image`: global memory that a kernel only reads, as texels of an image."""
NO_NAMES: frozenset[str] = frozenset()
NO_LOADS: frozenset[Load] = frozenset()


@dataclass(frozen=True, slots=True)
class Memory:
    """An array of scalars in one address space. `writable` is false if the kernel only reads it."""

    name: str
    space: Space
    scalar: ScalarType
    length: int
    writable: bool = True

    def __hash__(self) -> int:
        return hash(self.name)  # names are unique in a kernel

    @property
    def stable(self) -> bool:
        """Whether its contents do not change while the kernel runs."""
        return not self.writable and self.space in {"global", "image"}


@dataclass(frozen=True, slots=True)
class Load:
    """The scalar at an index of a memory; as a target, the location of a store.

    With a `snapshot`, the value at the time when that snapshot was taken (loops/nest.py).
    """

    memory: Memory
    index: Nat
    snapshot: int = 0
    parts: ClassVar[tuple[Term, ...]] = ()

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.memory.scalar

    @property
    def names(self) -> frozenset[str]:
        """The names of the variables in the code that the term depends on."""
        return self.index.names()

    @property
    def stable(self) -> bool:
        """Whether the term reads only memory that the kernel never writes."""
        return self.memory.stable

    @property
    def snapshots(self) -> frozenset[Load]:
        """The loads from snapshots in the term."""
        return frozenset((self,)) if self.snapshot else NO_LOADS


@dataclass(frozen=True, eq=False, slots=True)
class Constant:
    """A literal."""

    value: float | bool
    type: ScalarType
    parts: ClassVar[tuple[Term, ...]] = ()
    names: ClassVar = NO_NAMES
    snapshots: ClassVar = NO_LOADS
    stable: ClassVar = True


@dataclass(frozen=True, eq=False)
class Apply:
    """A scalar operator applied."""

    op: str
    args: tuple[Term, ...]
    type: ScalarType

    @property
    def parts(self) -> tuple[Term, ...]:
        """The terms that it is computed from."""
        return self.args

    @lazy
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return NO_NAMES.union(*(a.names for a in self.args))

    @lazy
    def snapshots(self) -> frozenset[Load]:
        """See `Load.snapshots`."""
        return NO_LOADS.union(*(a.snapshots for a in self.args))

    @lazy
    def stable(self) -> bool:
        """See `Load.stable`."""
        return all(a.stable for a in self.args)


@dataclass(frozen=True, slots=True)
class Inside:
    """The condition `0 <= index < length`; a bound that always holds is not tested."""

    index: Nat
    length: Nat
    test_low: bool
    test_high: bool


#: A condition: decided, or to be tested at run time.
Condition: TypeAlias = bool | Inside


@dataclass(frozen=True, slots=True)
class Decided:
    """What the ranges of its variables decide of `0 <= index < length`, so that no code tests it.

    `end` is the end of the range that the decision is about. If `holds`, the index is always on the
    inner side of it, otherwise always outside, and the whole condition is false.
    """

    index: Nat
    length: Nat
    end: Literal["low", "high"]
    holds: bool

    @property
    def room(self) -> Nat:
        """The distance of the index from the end, which the decision claims to be at least 0."""
        above = self.index if self.end == "low" else self.length - 1 - self.index
        return above if self.holds else -1 - above

    def __str__(self) -> str:
        limit = ("0 <= ", "") if self.end == "low" else ("", f" < {self.length}")
        return f"{limit[0]}{self.index}{limit[1]} {'always' if self.holds else 'never'} holds"


@dataclass(frozen=True, slots=True)
class FromIndex:
    """An index as a number."""

    index: Nat
    type: ScalarType
    parts: ClassVar[tuple[Term, ...]] = ()
    snapshots: ClassVar = NO_LOADS
    stable: ClassVar = True

    @property
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return self.index.names()


@dataclass(frozen=True, eq=False)
class Choice:
    """`then` if the condition holds, else `otherwise`."""

    condition: Inside
    then: Term
    otherwise: Term

    @property
    def parts(self) -> tuple[Term, ...]:
        """See `Apply.parts`."""
        return self.then, self.otherwise

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.then.type

    @lazy
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return self.condition.index.names() | self.then.names | self.otherwise.names

    @lazy
    def snapshots(self) -> frozenset[Load]:
        """See `Load.snapshots`."""
        return self.then.snapshots | self.otherwise.snapshots

    @lazy
    def stable(self) -> bool:
        """See `Load.stable`."""
        return self.then.stable and self.otherwise.stable


@dataclass(frozen=True, eq=False)
class Lanes:
    """A fold, such as a sum, over the lanes of a vector term; see `reduceVec`.

    `step` is the result of a step on the variables `total` and `element`.
    """

    init: Term
    vector: Term
    lane: str
    width: int
    total: Variable
    element: Variable
    step: Term
    type: ScalarType
    stable: ClassVar = False  # terms that may be read under a condition are not folded by lanes

    @property
    def parts(self) -> tuple[Term, ...]:
        """See `Apply.parts`."""
        return self.init, self.vector

    @lazy
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        own = {self.total.name, self.element.name}
        return self.init.names | self.vector.names | (self.step.names - own)

    @lazy
    def snapshots(self) -> frozenset[Load]:
        """See `Load.snapshots`."""
        return self.init.snapshots | self.vector.snapshots | self.step.snapshots


@dataclass(frozen=True, slots=True)
class Variable:
    """A constant variable of the code with `width` lanes, or one of its lanes."""

    name: str
    type: ScalarType
    width: int = 1
    lane: int | None = None
    parts: ClassVar[tuple[Term, ...]] = ()
    snapshots: ClassVar = NO_LOADS
    stable: ClassVar = True

    @property
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return frozenset((self.name,))


@dataclass(frozen=True, eq=False)
class OfSubgroup:
    """The fold of a value of each work-item of the subgroup, which all of them compute together."""

    op: str
    value: Term
    stable: ClassVar = False

    @property
    def parts(self) -> tuple[Term, ...]:
        """See `Apply.parts`."""
        return (self.value,)

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.value.type

    @property
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return self.value.names

    @property
    def snapshots(self) -> frozenset[Load]:
        """See `Load.snapshots`."""
        return self.value.snapshots


@dataclass(frozen=True, eq=False)
class OfSubgroups:
    """The fold of the results of all subgroups of a group.

    `result` is where a subgroup has stored its own.
    """

    op: str
    result: Load
    stable: ClassVar = False

    @property
    def parts(self) -> tuple[Term, ...]:
        """See `Apply.parts`."""
        return (self.result,)

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.result.type

    @property
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        return self.result.names

    @property
    def snapshots(self) -> frozenset[Load]:
        """See `Load.snapshots`."""
        return self.result.snapshots


@dataclass(frozen=True, slots=True)
class OfWorkItem:
    """A value of the work-item `item` of the subgroup: number `row` of its `values`.

    All work-items of the subgroup compute it together.
    """

    values: tuple[Term, ...]
    row: Nat
    item: Nat
    snapshots: ClassVar = NO_LOADS
    stable: ClassVar = True

    @property
    def parts(self) -> tuple[Term, ...]:
        """See `Apply.parts`."""
        return self.values

    @property
    def type(self) -> ScalarType:
        """The scalar type."""
        return self.values[0].type

    @property
    def names(self) -> frozenset[str]:
        """See `Load.names`."""
        own = self.row.names() | self.item.names()
        return own.union(*(value.names for value in self.values))

    @property
    def left(self) -> tuple[tuple[Term, ...], Nat, Nat]:
        """The values, the row and the item; if the row is a number, only its value is left."""
        number = self.row.constant
        if number is None:
            return self.values, self.row, self.item
        return (self.values[number],), ZERO, self.item


Term: TypeAlias = (
    Load
    | Constant
    | FromIndex
    | Apply
    | Choice
    | Lanes
    | Variable
    | OfSubgroup
    | OfSubgroups
    | OfWorkItem
)
