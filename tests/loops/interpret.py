"""A kernel of the loop IR in numpy: what it stores, without a device.

All work-items go through the code together, a statement at a time; where some take another way they
wait. So a missing barrier does not show (`liftpy.loops.barriers` proves these), but what does show,
as an error: an access outside of its memory, a read of what nobody has written, and an element of a
buffer that two work-items store to. What nobody writes of a result is NaN, or the largest number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat
from liftpy.ir.types import INTEGERS
from liftpy.kernels.cutting import HOST_ID
from liftpy.loops.lower import LoopKernel
from liftpy.loops.show import test_text
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Fetch,
    For,
    If,
    Let,
    Store,
    Update,
)
from liftpy.loops.values import (
    All,
    Both,
    Cell,
    Condition,
    Const,
    Dot,
    Fails,
    Index,
    Name,
    Operate,
    Pack,
    RangeTest,
    Select,
    Splat,
    SubgroupBroadcast,
    SubgroupReduce,
    SubgroupsReduce,
    Value,
    VectorSlice,
)
from liftpy.semantics.operations import DTYPES, OPERATIONS, convert
from liftpy.views.terms import Memory

Array: TypeAlias = NDArray[Any]
UPDATED, NOBODY, GIVEN = -3, -2, -1  # less than each work-item
UPDATES = {
    "+": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "bitAnd": np.bitwise_and,
    "bitOr": np.bitwise_or,
    "bitXor": np.bitwise_xor,
}
"""Atomic updates by operator."""


SUBGROUP = 4
"""The size of subgroups, except of the last one of a group, unless another is given."""


def interpret(
    code: LoopKernel, given: Mapping[str, Array], subgroup: int = SUBGROUP, iteration: int = 0
) -> dict[str, Array]:
    """The buffers that a kernel writes, by name; `given` has those that it reads.

    `iteration` is that of the host's loop, if the kernel is in one.

    InternalError for an access outside of a memory, a read of what is not written, an element with
    two writers, a wrong assumption, or a fold of a subgroup that some of its work-items do not
    reach. A subgroup has work-items that are not adjacent, because a device may choose any.

    >>> from liftpy.pipeline import compile_program
    >>> from liftpy.primitives.dialects import LoweredProgram
    >>> from liftpy.language.text.program import parse
    >>> doubled = parse("def doubled(xs: [3]f32) = xs |> mapGlb(0, x => x + x)")
    >>> (kernel,) = compile_program(LoweredProgram.of(doubled)).loops
    >>> interpret(kernel, {"xs": np.array([1, 2, 3], np.float32)})
    {'output': array([2., 4., 6.], dtype=float32)}
    """
    machine = Machine(code, given, subgroup=subgroup, iteration=iteration)
    with np.errstate(all="ignore"):
        machine.block(code.block, machine.everybody)
    return {m.name: machine.memory(m).values[0] for m in code.buffers if m.writable}


def is_copy(cell: Cell, source: Cell) -> bool:
    """Whether a store copies registers to the same places of another array."""
    private = cell.memory.space == source.memory.space == "private"
    same = (cell.index, cell.width) == (source.index, source.width)
    return private and same and cell.memory.length == source.memory.length


def poison(dtype: Any) -> Any:
    """What stands where nobody has written."""
    if np.issubdtype(dtype, np.integer):
        return np.iinfo(dtype).max
    return dtype(np.nan)


@dataclass
class Cells:
    """The scalars of a memory, in as many copies as there are owners of one.

    `writers` has the work-item that stored each, `NOBODY`, or `GIVEN`; of `given` cells all are. A
    cell that work-items updated atomically has `UPDATED`.
    """

    values: Array
    writers: Array
    given: bool = False


@dataclass
class Machine:
    """The work-items of a launch: their indices, variables and memories."""

    code: LoopKernel
    given: Mapping[str, Array]
    subgroup: int = field(default=SUBGROUP, kw_only=True)
    iteration: int = field(default=0, kw_only=True)
    at: dict[str, Any] = field(init=False, default_factory=dict)
    variables: dict[str, Array] = field(init=False, default_factory=dict)
    cells: dict[Memory, Cells] = field(init=False, default_factory=dict)
    numbers: dict[int, Array] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        code = self.code
        x, y, z = code.global_size
        self.count = x * y * z
        self.item = np.arange(self.count)
        self.everybody = np.ones(self.count, bool)
        ids = np.unravel_index(self.item, (z, y, x))[::-1]
        for dim, (own, size) in enumerate(zip(ids, code.local_size, strict=True)):
            self.at |= {f"gid{dim}": own, f"wid{dim}": own // size, f"lid{dim}": own % size}
        self.at |= {HOST_ID: np.full(self.count, self.iteration)}
        groups = [g // s for g, s in zip(code.global_size, code.local_size, strict=True)]
        group = tuple(self.at[f"wid{dim}"] for dim in (2, 1, 0))
        local = np.asarray(np.ravel_multi_index(group, (groups[2], groups[1], groups[0])))
        self.group = local
        self.count_of_subgroups = -(-code.local_size[0] // self.subgroup)
        self.at |= {"sgct0": np.full(self.count, self.count_of_subgroups)}
        self.at |= {"sgid0": self.at["lid0"] % self.count_of_subgroups}
        self.at |= {"slid0": self.at["lid0"] // self.count_of_subgroups}
        beyond = code.local_size[0] - self.at["sgid0"]  # work-items from the subgroup's first on
        self.at |= {"sgsz0": -(-beyond // self.count_of_subgroups)}
        everybody = np.zeros_like(self.item)
        owners = {"private": self.item, "local": local, "global": everybody, "image": everybody}
        self.owners = {space: owner[:, None] for space, owner in owners.items()}
        for memory in code.buffers:
            if memory.name in self.given:
                values = np.array(self.given[memory.name], DTYPES[memory.scalar.name])
                if values.size != memory.length:
                    message = f"{memory.name} has {memory.length} elements, not {values.size}"
                    raise InternalError(message)
                writers = np.full((1, values.size), GIVEN)
                self.cells[memory] = Cells(values.reshape(1, -1), writers, given=True)

    # --- statements ---

    def block(self, block: Block, who: Array) -> None:
        """The statements of a block, by those who come by."""
        for s in block:
            match s:
                case Let(name, value):
                    self.variables[name] = self.value(value, who)
                    if value.type in INTEGERS and value.width == 1:  # it may be an index
                        self.at[name] = self.variables[name].astype(np.int64)
                case Store(cell, Cell() as source) if is_copy(cell, source):
                    self.copy(cell, source, who)
                case Store(cell, value):
                    self.store(cell, self.value(value, who), who)
                case Update(cell, value, op):
                    self.update(cell, self.value(value, who), op, who)
                case If(condition, then, otherwise):
                    holds = self.condition(condition)
                    for part, some in ((then, who & holds), (otherwise, who & ~holds)):
                        if part and some.any():
                            self.block(part, some)
                case For(counter, first, bound, step, body):
                    start = self.at[first] if isinstance(first, str) else np.full(self.count, first)
                    while (some := who & (start < bound)).any():
                        self.at[counter] = start
                        self.block(body, some)
                        start = start + (self.at[step] if isinstance(step, str) else step)
                case Assume(holding, failing, same):
                    self.assume(((t, self.test(t)) for t in holding), "holds", who)
                    self.assume(((t, ~self.test(t)) for t in failing), "fails", who)
                    alike = ((t, self.test(t) == self.test(other)) for t, other in same)
                    self.assume(alike, "is like a simpler one", who)
                case Barrier() | Fetch():
                    pass

    def assume(self, claims: Iterable[tuple[RangeTest, Array]], what: str, who: Array) -> None:
        """Refuses a claim about a test that is false for one of those who come by."""
        for test, true in claims:
            if (who & ~true).any():
                message = f"assumes that {test_text(test)} {what}, which it does not"
                raise InternalError(f"kernel {self.code.name} {message}")

    def condition(self, condition: Condition) -> Array:
        """Who a condition holds for."""
        match condition:
            case All(tests):
                return np.logical_and.reduce([self.test(t) for t in tests], axis=0)
            case Fails(inner):
                return ~self.condition(inner)
            case Both(left, right):
                return self.condition(left) & self.condition(right)

    def test(self, test: RangeTest) -> Array:
        """Who a test holds for."""
        index = self.index(test.index)
        return index >= 0 if test.bound is None else index < test.bound

    def index(self, index: Nat) -> Array:
        """An index, of each work-item."""
        found: Any = index.evaluate(self.at)
        if isinstance(found, np.ndarray):
            return found
        if found not in self.numbers:
            self.numbers[found] = np.full(self.count, found)
        return self.numbers[found]

    # --- memory ---

    def memory(self, memory: Memory) -> Cells:
        """The cells of a memory; nobody has written those of a new one."""
        if memory not in self.cells:
            shape = int(self.owners[memory.space].max()) + 1, memory.length
            values = np.full(shape, poison(DTYPES[memory.scalar.name]))
            self.cells[memory] = Cells(values, np.full(shape, NOBODY))
        return self.cells[memory]

    def place(self, cell: Cell, who: Array) -> tuple[Array, Array]:
        """The owner's number and the addresses of a cell's lanes, of each work-item."""
        memory = cell.memory
        owner = self.owners[memory.space]
        places = self.index(cell.index)[:, None]
        if cell.width > 1:
            places = places + np.arange(cell.width)
        if places.view(np.uint64).max() < memory.length:  # a negative one is larger still
            return owner, places
        outside = who & ((places < 0) | (places >= memory.length)).any(axis=1)
        if outside.any():
            message = (
                f"{memory.name}[{places[outside].flat[0]}], which has {memory.length} elements"
            )
            raise InternalError(f"kernel {self.code.name} accesses {message}")
        return owner, places.clip(0, memory.length - 1)  # who waits is anywhere

    def load(self, cell: Cell, who: Array) -> Array:
        """What is in memory."""
        owner, places = self.place(cell, who)
        cells = self.memory(cell.memory)
        if not cells.given and (writers := cells.writers[owner, places]).min() == NOBODY:
            unwritten = who & (writers == NOBODY).any(axis=1)
            if unwritten.any():
                place = places[unwritten].flat[0]
                message = f"{cell.memory.name}[{place}], which nobody has written"
                raise InternalError(f"kernel {self.code.name} reads {message}")
        values: Array = cells.values[owner, places]
        return values[:, 0] if cell.width == 1 else values

    def store(self, cell: Cell, value: Array, who: Array) -> None:
        """Stores a value."""
        owner, places = self.place(cell, who)
        cells = self.memory(cell.memory)
        lanes = value[:, None] if cell.width == 1 else value
        owners, there, item = owner[who], places[who], self.item[who, None]
        before = cells.writers[owners, there]
        if lanes.shape != places.shape:
            lanes = np.broadcast_to(lanes, places.shape)
        cells.values[owners, there] = lanes[who]
        cells.writers[owners, there] = item
        if cell.memory.space == "global":
            others = ((before > GIVEN) & (before != item)) | (before == UPDATED)
            others |= cells.writers[owners, there] != item  # another one at the same time
            if others.any():
                message = f"store to {cell.memory.name}[{there[others][0]}]"
                raise InternalError(f"two work-items of kernel {self.code.name} {message}")

    def update(self, cell: Cell, value: Array, op: str, who: Array) -> None:
        """Updates a cell by each work-item in turn; none of them may have stored to it."""
        owner, places = self.place(cell, who)
        cells = self.memory(cell.memory)
        where = owner[who, 0], places[who, 0]
        if not np.isin(cells.writers[where], (GIVEN, UPDATED)).all():
            message = (
                f"{cell.memory.name} is updated where it has no initial value, or was stored to"
            )
            raise InternalError(f"kernel {self.code.name}: {message}")
        UPDATES[op].at(cells.values, where, value[who])
        cells.writers[where] = UPDATED

    def copy(self, cell: Cell, source: Cell, who: Array) -> None:
        """Copies registers; of those that are not written yet, the copies are not then either."""
        owner, places = self.place(cell, who)
        cells, known = self.memory(cell.memory), self.memory(source.memory)
        where = owner[who], places[who]
        cells.values[where], cells.writers[where] = known.values[where], known.writers[where]

    # --- values ---

    def value(self, value: Value, who: Array) -> Array:
        """A value of each work-item, by lanes where it has several."""
        match value:
            case Const(number, t):
                return np.full(self.count, number, DTYPES[t.name])
            case Index(index, t):
                return convert(self.index(index), DTYPES[t.name])
            case Name(name):
                return self.variables[name]
            case VectorSlice(vector, first, width):
                lanes = self.variables[vector.name][:, first : first + width]
                return lanes[:, 0] if width == 1 else lanes
            case Cell():
                return self.load(value, who)
            case Operate():
                return self.operate(value, who)
            case Splat(inner, width):
                return np.repeat(self.value(inner, who)[:, None], width, axis=1)
            case Pack(lanes):
                return np.stack([self.value(lane, who) for lane in lanes], axis=1)
            case Dot((left, right)):
                dtype = DTYPES[value.type.name]
                parts = [np.asarray(self.value(p, who)).astype(dtype) for p in (left, right)]
                if value.width > 1:
                    rows = parts[1].reshape(len(parts[1]), value.width, left.width)
                    return (parts[0][:, None, :] * rows).sum(axis=2, dtype=dtype)
                return np.add.accumulate(parts[0] * parts[1], axis=1)[:, -1]
            case SubgroupReduce(op, inner):
                subgroups = self.group * self.count_of_subgroups + self.at["sgid0"]
                return self.together(op, self.value(inner, who), subgroups, who)
            case SubgroupsReduce(op, cell):
                first = self.at["slid0"] == 0  # of each subgroup
                return self.together(op, self.load(cell, who), self.group, who, first)
            case SubgroupBroadcast(parts, row, item):
                return self.broadcast([self.value(p, who) for p in parts], row, item, who)
            case Select(condition, then, otherwise):
                holds = self.condition(condition)
                chosen = self.value(then, who & holds), self.value(otherwise, who & ~holds)
                return np.where(holds[:, None] if value.width > 1 else holds, *chosen)

    def together(
        self, op: str, values: Array, sets: Array, who: Array, which: Array | None = None
    ) -> Array:
        """For each work-item, the fold of the values of the work-items in its set, by an operator.

        All of a set must come by. If given, `which` says whose values are folded.
        """
        found = values.copy()
        for number in np.unique(sets[who]):
            inside = sets == number
            if not who[inside].all():
                message = f"folds by {op} what only some of its work-items reach"
                raise InternalError(f"kernel {self.code.name} {message}")
            first, *others = values[inside if which is None else inside & which]
            for other in others:
                first = OPERATIONS[op](first, other)
            found[inside] = first
        return found

    def broadcast(self, rows: list[Array], row: Nat, item: Nat, who: Array) -> Array:
        """For each work-item, the value of one work-item of its subgroup: all name the same one."""
        subgroups = self.group * self.count_of_subgroups + self.at["sgid0"]
        values = np.choose(self.index(row), rows) if len(rows) > 1 else rows[0]
        found, named = values.copy(), self.index(item)
        for number in np.unique(subgroups[who]):
            inside = subgroups == number
            if not who[inside].all():
                message = "broadcasts to a subgroup what only some of its work-items reach"
                raise InternalError(f"kernel {self.code.name} {message}")
            items = np.unique(named[inside])
            source = inside & (self.at["slid0"] == items[0])
            if len(items) > 1 or not source.any():
                message = f"broadcasts from the work-items {items} of a subgroup"
                raise InternalError(f"kernel {self.code.name} {message}")
            found[inside] = values[source]
        return found

    def operate(self, value: Operate, who: Array) -> Array:
        """An operator applied."""
        op, dtype = value.op, DTYPES[value.type.name]
        args = [self.value(a, who) for a in value.parts]
        if value.width > 1:
            args = [a[:, None] if a.ndim == 1 else a for a in args]
        made = convert(args[0], DTYPES[op]) if op in DTYPES else OPERATIONS[op](*args)
        made = np.asarray(made).astype(dtype, copy=False)
        return np.broadcast_to(made, (self.count, value.width)) if value.width > 1 else made
