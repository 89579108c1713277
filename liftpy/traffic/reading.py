"""From a kernel in the loop IR to the loops, accesses and operations of one compute unit.

Work-items are loops too: those of a compute unit run one after the other, dimension 0 fastest. The
outermost dimensions are divided among the units. A branch counts for the ids and counters for which
its condition holds (`liftpy.traffic.guards`). Of a choice between two loads, both count.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple, TypeAlias

from liftpy.ir.nat import Nat, Quotient, Remainder, Var, var
from liftpy.ir.operators import OPERATORS
from liftpy.ir.polynomial import Atom
from liftpy.ir.types import F32, I8, U8, size_bytes
from liftpy.loops.lower import LoopKernel
from liftpy.loops.superwords import sum_of_dot, vectors_of
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Simple,
    Store,
    Update,
)
from liftpy.loops.values import (
    Cell,
    Condition,
    Dot,
    Operate,
    Pack,
    SubgroupBroadcast,
    SubgroupReduce,
    SubgroupsReduce,
    Value,
    every_second,
    values_in,
)
from liftpy.primitives.vector import LANES_OF_A_DOT
from liftpy.traffic.guards import share
from liftpy.traffic.nest import Access, Axis, Derived, Digit, Loop, Nest
from liftpy.traffic.subgroups import axes_of_items, step_of
from liftpy.views.terms import Memory

Names: TypeAlias = Mapping[str, tuple[Axis, ...]]
"""The digits whose sum is an id or a counter."""


class Place(NamedTuple):
    """A load or store at a cell whose index has each of `shifts` added: how often, in which loops.

    Each of them is executed `times` times.
    """

    cell: Cell
    shifts: tuple[int, ...]
    stores: bool
    loops: tuple[For, ...]
    times: float


@dataclass
class Counts:
    """What one compute unit does in a kernel: operations and loads, by the width of vectors.

    `loads` also has the stride in bytes from a work-item to the next; None if it is not constant.
    `cells` are the loads and stores by place. `executed` are the executions that the code asks for,
    by the space of the memory, whether it stores, and the width; one for equal loads of a block
    (docs/choosing.md says how they differ from what is executed).
    """

    operations: dict[int, float] = field(default_factory=dict[int, float])
    loads: dict[tuple[int, int, int | None], float] = field(
        default_factory=dict[tuple[int, int, int | None], float]
    )
    cells: list[Place] = field(default_factory=list[Place])
    executed: dict[tuple[str, bool, int], int | Fraction] = field(
        default_factory=dict[tuple[str, bool, int], "int | Fraction"]
    )

    @property
    def moved(self) -> float:
        """The bytes that the loads and stores move."""
        return sum(width * size * count for (width, size, _), count in self.loads.items())


@dataclass(frozen=True)
class Work:
    """A kernel as one compute unit runs it.

    `shares` has the axes that number the units, with their trips. `first` is the number of
    work-items of a unit in dimension 0, `private` the bytes of a work-item's private memory.
    """

    name: str
    nest: tuple[Nest, ...]
    counts: Counts
    shares: tuple[tuple[str, int], ...]
    first: int
    private: int

    @property
    def units(self) -> int:
        """The number of compute units that have work."""
        return math.prod(count for _, count in self.shares)


def work_of(code: LoopKernel, units: int) -> Work:
    """The work of a kernel on a device with this number of compute units."""
    groups = code.kernel.demand.groups
    prefixes = ("wid", "lid") if groups else ("gid",)
    sizes = {
        "gid": code.global_size,
        "lid": code.local_size,
        "wid": tuple(g // s for g, s in zip(code.global_size, code.local_size, strict=True)),
    }
    dims = [(f"{prefix}{d}", sizes[prefix][d]) for prefix in prefixes for d in (2, 1, 0)]
    own = axes_of_items(code, 1) if groups else ()
    if groups:
        dims[-1:] = [(axis.name, axis.trips) for axis in reversed(own)]
    left, trips, shares = units, dict(dims), list[tuple[str, int]]()
    names: dict[str, tuple[Axis, ...]] = {}
    for k, (name, count) in enumerate(dims):
        taken = min(left, count) if k < 3 else 1
        trips[name], left = -(-count // taken), -(-left // taken)
        unit = Axis(f"unit of {name}", taken, trips[name])
        shares += [(unit.name, taken)] if taken > 1 else []
        names[name] = (Axis(name, trips[name]), unit)
    if len(own) > 1:
        names["lid0"] = tuple(replace(names[a.name][0], stride=a.stride) for a in own)
    if groups:
        for d in range(3):
            group = (replace(a, stride=a.stride * code.local_size[d]) for a in names[f"wid{d}"])
            names[f"gid{d}"] = (*group, *names[f"lid{d}"])
    vectors = vectors_of(code.block)
    reader = Reader(dims[-1][0], code.regular, code.ranges, vectors=vectors, processor=True)
    body = reader.block(code.block, names, [(name, trips[name]) for name, _ in dims])
    for name, _ in reversed(dims):
        body = (Loop(name, trips[name], body),) if trips[name] > 1 else body
    private = max(4, int(code.kernel.demand.private))
    return Work(code.name, body, reader.counts, tuple(shares), trips[dims[-1][0]], private)


BYTE_PRODUCTS = 24
"""The operations of a dot product of bytes without an instruction: shifts, products, sums."""


@dataclass
class Straight:
    """The findings in a block: its loops, its accesses with offsets in bytes, the cells so far."""

    parts: list[Nest] = field(default_factory=list[Nest])
    accesses: dict[Access, set[int]] = field(default_factory=dict[Access, set[int]])
    seen: dict[Cell, set[int]] = field(default_factory=dict[Cell, set[int]])
    known: dict[tuple[Cell, bool, bool], Accessed] = field(
        default_factory=dict[tuple[Cell, bool, bool], "Accessed"]
    )


@dataclass(frozen=True)
class Accessed:
    """What follows from a cell that is accessed: its access, and what the counts need of it.

    `key` is its place in `Counts.loads`, `times` the iterations of the loops around it that change
    it, or of all loops for a store.
    """

    access: Access
    key: tuple[int, int, int | None]
    size: int
    times: int


@dataclass
class Reader:
    """Reads statements; `first` is the axis of work-items that are adjacent.

    `ids` has the number of values of each id, and `subgroup` is the size of subgroups. A loop whose
    counter is in `regular` stands for its iterations, one after the other
    (`liftpy.loops.regular`). A sum of dot products that these loops repeat for the registers of
    `vectors` is one statement for a whole vector (`liftpy.loops.superwords`). A `processor` has an
    instruction for those of a u8 and an i8, and computes others by products; a GPU has one for all.
    """

    first: str
    regular: frozenset[str] = frozenset()
    ids: Mapping[str, int] = field(default_factory=dict[str, int])
    subgroup: int = 1
    counts: Counts = field(default_factory=Counts)
    vectors: Mapping[Memory, int] = field(default_factory=dict[Memory, int])
    processor: bool = False
    loops: tuple[For, ...] = ()
    branches: tuple[tuple[Condition, bool], ...] = ()

    def block(
        self, block: Block, names: Names, around: Sequence[tuple[str, int]]
    ) -> tuple[Nest, ...]:
        """The loops and accesses of a block inside loops with these axes and trips."""
        made = Straight()
        self.straight(block, names, around, {}, made)
        merged = (replace(a, offsets=tuple(sorted(o))) for a, o in made.accesses.items())
        return (*made.parts, *merged)

    def straight(
        self,
        block: Block,
        names: Names,
        around: Sequence[tuple[str, int]],
        within: Mapping[str, int],
        made: Straight,
    ) -> None:
        """Adds the findings of a block in the regular loops `within`, counters with their trips."""
        part = share(self.branches, self.ids, self.loops) if self.branches else 1
        times, each = part * math.prod(trips for _, trips in around), math.prod(within.values())
        lanes = self.lanes(block, within) if within else {}
        for s in block:
            if isinstance(s, For) and s.counter in self.regular:
                self.straight(s.body, names, around, {**within, s.counter: s.bound}, made)
            elif isinstance(s, For):
                made.parts.append(self.loop(s, names, around))
            elif isinstance(s, If):
                outside = self.branches
                for inner, holds in ((s.then, True), (s.otherwise, False)):
                    self.branches = (*outside, (s.condition, holds))
                    made.parts += self.block(inner, names, around)
                self.branches = outside
            elif isinstance(s, Let | Store | Update):
                width = lanes.get(id(s), 1)
                share_of_one = Fraction(1, width) if width > 1 else 1
                self.operations(s.value, times * each * share_of_one, width)
                if isinstance(s, Update):
                    known = self.counts.operations
                    known[1] = known.get(1, 0) + float(times * each)
                for cell, stores in as_printed(s):
                    if cell.memory.space == "private":
                        continue
                    first, shifts = apart(cell, within)
                    seen = made.seen.setdefault(first, set())
                    many = each if stores else len(shifts - seen)
                    if not many:
                        continue
                    new = tuple(sorted(shifts if stores else shifts - seen))
                    if not stores:  # the code loads again what it has stored
                        seen |= shifts
                    key = cell.memory.space, stores, cell.width * width
                    known = self.counts.executed
                    known[key] = known.get(key, 0) + times * many * share_of_one
                    past = isinstance(s, Store) and s.nontemporal and stores
                    cases = first, stores, past
                    found = made.known.get(cases)  # unrolled code accesses most cells many times
                    if found is None:
                        found = made.known[cases] = self.accessed(*cases, names, around)
                    self.load(found, first, new, many * part * share_of_one)
                    offsets = made.accesses.setdefault(found.access, set())
                    offsets.update(found.size * k for k in new)

    def loop(self, s: For, names: Names, around: Sequence[tuple[str, int]]) -> Loop:
        """A loop. If its counter begins at an id, that is a digit of it."""
        begin = s.first if isinstance(s.first, int) else 0
        trips = max(1, -(-(s.bound - begin) // step_of(s)))
        axis = f"{s.counter} {len(around)}"
        mine = Axis(axis, trips, step_of(s))
        ids = () if isinstance(s.first, int) else names.get(s.first, ())
        if len(ids) == 1:  # those beyond the bound execute no iteration
            ids = (replace(ids[0], trips=min(ids[0].trips, s.bound)),)
        digits = (mine, *ids)
        inner = {**names, s.counter: digits}
        self.loops = (*self.loops, s)
        body = self.block(s.body, inner, (*around, (axis, trips)))
        self.loops = self.loops[:-1]
        return Loop(axis, trips, body)

    def lanes(self, block: Block, within: Mapping[str, int]) -> dict[int, int]:
        """The statements that are one for so many iterations of a regular loop, by their `id`.

        These are sums of dot products in the registers of a vector, and the loads of one factor, if
        the factors of successive registers are adjacent.
        """
        lets = {s.name: s for s in block if isinstance(s, Let)}
        found: dict[int, int] = {}
        for s in block:
            made = sum_of_dot(s)
            width = self.vectors.get(made[0].memory, 0) if made else 0
            for factor in made[1:] if made and width else ():
                load = lets.get(factor.name)
                if load is None or not isinstance(load.value, Cell):
                    continue
                index = load.value.index
                if any(
                    index.parted(counter)[1] == var(counter, 0, trips - 1) * LANES_OF_A_DOT
                    for counter, trips in within.items()
                ):
                    found |= {id(s): width, id(load): width}
        return found

    def operations(self, value: Value, times: int | Fraction, lanes: int = 1) -> None:
        """Counts the operations of an expression; a product that is added is part of the sum.

        One operation may be that of several `lanes`, in each of which the expression is computed.

        Each step of a fold of a subgroup halves the number of values: it exchanges values and
        applies the operator. All work-items fold the results of all subgroups. A broadcast is one
        operation.
        """
        fused: set[int] = set()
        for part in values_in(value):
            if isinstance(part, Operate) and part.op in ("+", "-"):
                products = [p for p in part.parts if isinstance(p, Operate) and p.op == "*"]
                fused |= {id(p) for p in products[:1]}
            if isinstance(part, SubgroupReduce | SubgroupsReduce):
                known = self.counts.operations
                known[1] = known.get(1, 0) + float(steps_of(part, self.subgroup) * times)
            if isinstance(part, SubgroupBroadcast):
                known = self.counts.operations
                known[1] = known.get(1, 0) + float(times)
            if isinstance(part, Operate | Dot) and id(part) not in fused:
                floats = isinstance(part, Dot) and part.type == F32
                width = part.parts[0].width if floats else max(part.width, lanes)
                slots = OPERATORS[part.op].cost if isinstance(part, Operate) else 1
                if self.processor and isinstance(part, Dot) and not floats:
                    types = {each.type for each in part.parts}
                    slots = 1 if lanes > 1 and types == {U8, I8} else BYTE_PRODUCTS
                known = self.counts.operations
                known[width] = known.get(width, 0) + float(slots * times)

    def accessed(
        self,
        cell: Cell,
        stores: bool,  # noqa: FBT001  with the others, it is a key
        past: bool,  # noqa: FBT001
        names: Names,
        around: Sequence[tuple[str, int]],
    ) -> Accessed:
        """What follows from a cell that is accessed inside loops with these axes and trips.

        Loops around it that do not change it do not count: what is loaded outside an inner loop
        stays in a register.
        """
        size = size_bytes(cell.type).value({})
        access = access_of(cell, names, size, stores=stores, past=past)
        depends = [k for k, (axis, _) in enumerate(around) if axis in access.axes]
        depth = depends[-1] + 1 if depends and not stores else 0
        inside = around if stores else around[:depth]
        times = math.prod(trips for _, trips in inside)
        return Accessed(access, (cell.width, size, stride_of(access, self.first)), size, times)

    def load(
        self, found: Accessed, cell: Cell, shifts: tuple[int, ...], many: int | Fraction
    ) -> None:
        """Counts the executions of `many` loads or stores, of the same cell up to `shifts`."""
        times = found.times * many
        self.counts.loads[found.key] = self.counts.loads.get(found.key, 0) + float(times)
        each = float(times / len(shifts))
        self.counts.cells.append(Place(cell, shifts, found.access.stores, self.loops, each))


def as_printed(s: Simple) -> Iterator[tuple[Cell, bool]]:
    """The loads and stores of a statement's code, each with whether it stores."""
    yield from ((cell, False) for cell in loaded(s.value))
    if isinstance(s, Update):
        yield s.cell, False
    if isinstance(s, Store | Update):
        yield s.cell, True


def loaded(value: Value) -> Iterator[Cell]:
    """The cells that the code of an expression loads."""
    if isinstance(value, Pack) and (halves := every_second(value.parts)):
        yield from halves
        return
    if isinstance(value, Cell):
        yield value
    for part in value.parts:
        yield from loaded(part)


def steps_of(fold: SubgroupReduce | SubgroupsReduce, subgroup: int) -> int:
    """The operations of a work-item in a fold by subgroups of a size."""
    if isinstance(fold, SubgroupReduce):
        return 2 * math.ceil(math.log2(subgroup))
    return -(-fold.cell.memory.length // subgroup) - 1


def apart(cell: Cell, within: Mapping[str, int]) -> tuple[Cell, set[int]]:
    """A cell without a constant and counters of regular loops, and the offsets that these add."""
    index, shifts = cell.index, {0}
    for name, trips in within.items():
        if name in index.names():
            still, moving = index.parted(name)
            ((_, factor),) = moving.terms.items()
            index = still.recombined()
            shifts = {shift + factor * k for shift in shifts for k in range(trips)}
    if number := index.terms.get((), 0):
        shifts = {number + shift for shift in shifts}
        index = index - number
    return (cell if index is cell.index else Cell(cell.memory, index, cell.width)), shifts


def stride_of(access: Access, axis: str) -> int | None:
    """By how many bytes the address changes with an axis; None if that varies."""
    plain = [d.stride for d in access.digits if isinstance(d, Axis) and d.name == axis]
    derived = any(axis in d.trips_of for d in access.digits if isinstance(d, Derived))
    return None if derived else sum(plain)


def access_of(cell: Cell, names: Names, size: int, *, stores: bool, past: bool) -> Access:
    """An access to a cell of scalars of a size, without its constant offset."""
    digits = tuple(digits_of(cell.index, names, size))
    return Access(cell.memory.name, digits, cell.width * size, stores=stores, nontemporal=past)


def digits_of(index: Nat, names: Names, unit: int) -> Iterator[Digit]:
    """The digits of an index, whose strides are multiples of a unit."""
    for monomial, factor in index.terms.items():
        match monomial:
            case ():
                pass
            case ((Var(name=name), 1),):
                for axis in names.get(name, ()):
                    if axis.trips > 1:
                        yield Axis(axis.name, axis.trips, axis.stride * factor * unit)
            case ((single, 1),):
                yield derived(single, names, factor * unit)
            case _:
                parts = tuple(
                    d for a, _ in monomial for d in digits_of(Nat({((a, 1),): 1}), names, 1)
                )
                yield Derived("any", parts, stride=factor * unit)


def derived(atom: Atom, names: Names, stride: int) -> Digit:
    """A digit that is a quotient or a remainder; of any other atom, only its axes are known."""
    if isinstance(atom, Quotient | Remainder):
        parts = tuple(digits_of(atom.numerator, names, 1))
        divisor = atom.denominator.constant
        if divisor is not None and divisor > 0:
            kind = "quotient" if isinstance(atom, Quotient) else "remainder"
            return Derived(kind, parts, divisor, stride)
    parts = tuple(axis for name in sorted(atom.names) for axis in names.get(name, ()))
    return Derived("any", parts, stride=stride)
