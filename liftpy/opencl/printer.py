"""Print a loop tree as OpenCL C.

Private memories do not exist in the printed code: their cells name scalars, and the printer chooses
registers once it has seen all uses. If every use is an aligned vector of one width, the registers
are vectors; otherwise they are scalars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, nat
from liftpy.ir.types import F32, FLOATS, SCALAR_BYTES
from liftpy.kernels.launch import LOCAL_ALIGNMENT
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Code,
    Fetch,
    For,
    If,
    Let,
    Simple,
    Store,
    Update,
    is_idle,
    statements_in,
)
from liftpy.loops.unswitch import tests_in
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
    every_second,
    values_in,
)
from liftpy.opencl.c import C, CallC, Infix, Prefix, Ternary, Text, text_of, vector_type
from liftpy.opencl.indices import MAX_INT, index_c, magnitude
from liftpy.opencl.scalars import ATOMIC, INFIX, literal_c, operator_c
from liftpy.opencl.storage import element_c, is_split, kept, loaded, units
from liftpy.opencl.subgroups import (
    COUNT_CALL,
    broadcast_call,
    results_call,
    subgroup_call,
)
from liftpy.opencl.texels import texels_c
from liftpy.views.terms import Memory

INDENT = "  "


def uses(block: Block) -> dict[Memory, set[tuple[int, int]]]:
    """For each private memory, the (index, width) of its uses."""
    found: dict[Memory, set[tuple[int, int]]] = {}
    values = (v for s in statements_in(block) if isinstance(s, Simple) for v in s.values)
    for cell in (part for value in values for part in values_in(value)):
        if isinstance(cell, Cell) and cell.memory.space == "private":
            found.setdefault(cell.memory, set()).add((int(cell.index), cell.width))
    return found


class Printer:
    """Prints a block; private memories as registers."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.widths: dict[Memory, int] = {}
        self.registers: dict[Memory, list[int]] = {}
        for memory, found in uses(block).items():
            vectors = {w for _, w in found if w > 1}
            width = max(vectors, default=1)
            aligned = len(vectors) == 1 and all(i % w == 0 for i, w in found)
            self.widths[memory] = width if aligned else 1
            touched = {k for i, w in found for k in range(i, i + w)}
            self.registers[memory] = sorted({k // self.widths[memory] for k in touched})

    def register(self, memory: Memory, number: int) -> str:
        """The name of one register."""
        return memory.name if memory.length == self.widths[memory] else f"{memory.name}_{number}"

    # --- statements ---

    def lines(self, indent: int = 1) -> list[str]:
        """The declarations of registers, then the statements."""
        lines: list[str] = []
        pad = INDENT * indent
        for memory in self.registers:
            names = [self.register(memory, k) for k in self.registers[memory]]
            kind = vector_type(memory.scalar.name, self.widths[memory])
            lines += [
                f"{pad}{kind} {', '.join(names[k : k + 8])};" for k in range(0, len(names), 8)
            ]
        return lines + self.statements(self.block, indent)

    def statements(self, block: Block, indent: int) -> list[str]:
        """The statements of a block."""
        pad = INDENT * indent
        lines: list[str] = []
        code = tuple(s for s in block if not isinstance(s, Assume))
        for s in self.splatted(code):
            match s:
                case Let(name, value):
                    kind = vector_type(value.type.name, value.width)
                    lines.append(f"{pad}const {kind} {name} = {self.text(value)};")
                case Store():
                    lines += [f"{pad}{line}" for line in self.store(s)]
                case Update(cell, value, op):
                    place = element(cell.memory, cell.index)
                    lines.append(f"{pad}{ATOMIC[op]}(&{place}, {self.text(value)});")
                case Fetch(cell):
                    place = element(cell.memory, cell.index)
                    lines.append(f"{pad}fetch_{element_c(cell.memory.scalar)}(&{place});")
                case Barrier(memory, witness):
                    lines.append(f"{pad}barrier(CLK_LOCAL_MEM_FENCE); // {memory}: {witness}")
                case For() | If() if is_idle(Block((s,))):
                    pass
                case For(counter, first, bound, step, body):
                    if has_known_guards(s) or is_copy(s):
                        lines.append(f"{pad}#pragma unroll")
                    advance = f"{counter}++" if step == 1 else f"{counter} += {step}"
                    kind = whole_type(bound - 1 + (step if isinstance(step, int) else LARGEST))
                    head = f"{kind} {counter} = {first}; {counter} < {bound}; {advance}"
                    lines.append(f"{pad}for ({head}) {{")
                    lines += self.statements(body, indent + 1)
                    lines.append(f"{pad}}}")
                case If(condition, then, otherwise):
                    lines.append(f"{pad}if {text_of(condition_c(condition), inside=True)} {{")
                    lines += self.statements(then, indent + 1)
                    if otherwise:
                        lines.append(f"{pad}}} else {{")
                        lines += self.statements(otherwise, indent + 1)
                    lines.append(f"{pad}}}")
        return lines

    def splatted(self, statements: Sequence[Code]) -> Iterator[Code]:
        """Statements; equal constants for each lane of a vector register become one statement."""
        k = 0
        while k < len(statements):
            s = statements[k]
            if isinstance(s, Store) and s.cell.memory.space == "private" and is_atom(s.value):
                memory, index = s.cell.memory, int(s.cell.index)
                width = self.widths[memory]
                lanes = tuple(Store(Cell(memory, nat(index + i)), s.value) for i in range(width))
                if width > 1 and index % width == 0 and statements[k : k + width] == lanes:
                    yield Store(Cell(memory, nat(index), width), Splat(s.value, width))
                    k += width
                    continue
            yield s
            k += 1

    def store(self, s: Store) -> list[str]:
        """A store; a vector in scalar registers is stored lane by lane."""
        memory, width = s.cell.memory, s.cell.width
        if memory.space != "private" and is_split(memory.scalar):
            pointer = Text(f"&{element(memory, s.cell.index)}")
            done = kept(memory.scalar, memory.space, width, self.c(s.value), pointer)
            return [f"{text_of(done)};"]
        if memory.space != "private" and width > 1:
            value, pointer = self.c(s.value), Text(f"&{element(memory, s.cell.index)}")
            if s.nontemporal:
                done = CallC(f"stream_{vector_type(memory.scalar.name, width)}", (value, pointer))
            elif is_whole(s.cell):
                return [f"{whole_element(s.cell)} = {text_of(value)};"]
            else:
                done = CallC(f"vstore{width}", (value, Text("0"), pointer))
            return [f"{text_of(done)};"]
        if width > 1 and self.widths[memory] == 1:
            kind = vector_type(memory.scalar.name, width)
            first = int(s.cell.index)
            lanes = [
                f"{self.register(memory, first + lane)} = lanes.s{lane:x};" for lane in range(width)
            ]
            return [
                f"{{ const {kind} lanes = {self.text(s.value)};",
                *(f"{INDENT}{line}" for line in lanes),
                "}",
            ]
        return [f"{self.text(s.cell)} = {self.text(s.value)};"]

    # --- expressions ---

    def text(self, value: Value) -> str:
        """An expression as text."""
        return text_of(self.c(value))

    def c(self, value: Value) -> C:
        """An expression as C."""
        match value:
            case Const(number, t):
                return literal_c(number, t)
            case Index(index, t):
                return CallC(f"({vector_type(t.name, 1)})", (Text(wide_index(index)),))
            case Name(name):
                return Text(name)
            case VectorSlice(vector, first, width):
                return Text(f"{vector.name}.s{'0123456789abcdef'[first : first + width]}")
            case Cell():
                return self.cell(value)
            case Operate():
                return self.operator(value)
            case Splat(inner, width):
                return self.splat(inner, width)
            case Pack(lanes):
                return self.pack(lanes)
            case Dot() if value.width > 1:
                return self.sum_of_dots(Const(0, value.type), value)
            case Dot((left, right)):
                whole = "" if value.type == F32 else f"_{left.type}_{right.type}"
                return CallC(f"dot{whole}", self.each(value.parts))
            case SubgroupReduce(op, inner):
                return CallC(subgroup_call(op, value.type), (self.c(inner),))
            case SubgroupsReduce(op, cell):
                given = (Text(cell.memory.name), Text(COUNT_CALL))
                return CallC(results_call(op, value.type), given)
            case SubgroupBroadcast(parts, _, i):
                return CallC(broadcast_call(value.type), (*self.each(parts), Text(wide_index(i))))
            case Select(condition, then, otherwise):
                return Ternary(condition_c(condition), self.c(then), self.c(otherwise))

    def each(self, values: tuple[Value, ...]) -> tuple[C, ...]:
        """Expressions as C."""
        return tuple(map(self.c, values))

    def pack(self, lanes: tuple[Value, ...]) -> C:
        """Scalars as a vector; two loads and a shuffle, if possible, are faster than inserts."""
        width, halves = len(lanes), every_second(lanes)
        if halves is None:
            return CallC(f"({vector_type(lanes[0].type.name, width)})", self.each(lanes))
        # Not `.even` and `.odd` of the loads: Oclgrind ends at components of what a call returns.
        places = (*range(0, width, 2), *range(width + 1, 2 * width, 2))
        kind = vector_type(PLACES[SCALAR_BYTES[lanes[0].type.name]], width)
        mask = CallC(f"({kind})", tuple(Text(str(k)) for k in places))
        return CallC("shuffle2", (*map(self.cell, halves), mask))

    def cell(self, cell: Cell) -> C:
        """The contents of a memory cell."""
        memory, width = cell.memory, cell.width
        if memory.space == "image":
            return texels_c(memory, cell.index, width)
        if memory.space != "private":
            place = element(memory, cell.index)
            if is_split(memory.scalar):
                return loaded(memory.scalar, memory.space, width, Text(f"&{place}"))
            if is_whole(cell):
                return Text(whole_element(cell))
            return (
                Text(place)
                if width == 1
                else CallC(f"vload{width}", (Text("0"), Text(f"&{place}")))
            )
        held, index = self.widths[memory], int(cell.index)
        if width == held:
            return Text(self.register(memory, index // width))
        if width == 1:
            return Text(f"{self.register(memory, index // held)}.s{index % held:x}")
        parts = ", ".join(self.register(memory, index + k) for k in range(width))
        return Text(f"({vector_type(memory.scalar.name, width)})({parts})")

    def sum_of_dots(self, total: Value, dots: Dot) -> C:
        """A vector plus a dot product for each lane, whose second vector is read in words."""
        left, right = dots.parts
        if not isinstance(right, Cell):
            message = f"a dot product for each of {dots.width} lanes of {right}"
            raise InternalError(message)
        memory, width = right.memory, dots.width
        address = f"(const __{memory.space} uint*)&{element(memory, right.index)}"
        words = CallC(f"vload{width}", (Text("0"), Text(address)))
        name = f"dots_{left.type}_{right.type}_{width}"
        return CallC(name, (self.widened(total, width), self.c(left), words))

    def splat(self, value: Value, width: int) -> C:
        """A value in all lanes."""
        return CallC(f"({vector_type(value.type.name, width)})", (self.c(value),))

    def operator(self, value: Operate) -> C:
        """An operator; if its operands are vectors, scalars are put into all lanes."""
        op, args, width = value.op, value.parts, value.width
        if op == "+" and isinstance(args[1], Dot) and args[1].width == width > 1:
            return self.sum_of_dots(args[0], args[1])
        if width == 1:
            return operator_c(op, list(self.each(args)), args)
        if op == "select" and args[0].width == 1:  # a condition that all lanes share
            then, otherwise = (self.widened(a, width) for a in args[1:])
            return Ternary(self.c(args[0]), then, otherwise)
        narrow = op in INFIX and args[-1].type in FLOATS  # C widens these itself
        widened = [self.c(a) if narrow else self.widened(a, width) for a in args]
        return operator_c(op, widened, args, width)

    def widened(self, value: Value, width: int) -> C:
        """A value in all lanes, if it is not a vector."""
        return self.c(value) if value.width == width else self.splat(value, width)


PLACES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}
"""The types of the mask of a shuffle, by the bytes of the elements."""


LARGEST = 1 << 16
"""An upper limit for the work-items and the subgroups of a group, on every known device."""


def whole_type(most: int) -> str:
    """The C type of an id or a counter that may reach a number."""
    return "int" if most <= MAX_INT else "long"


def is_atom(value: Value) -> bool:
    """Whether a value is printed as one word, or as one element of memory."""
    if isinstance(value, Cell):
        return value.memory.space != "private" and value.width == 1
    return isinstance(value, Const | Name | VectorSlice)


MOST_COPIES = 16
"""The most elements that an unrolled loop copies."""


def is_copy(s: For) -> bool:
    """Whether a loop copies a few elements to local memory.

    If it is unrolled, it loads all elements before it waits for one; otherwise it waits in each
    iteration.
    """
    return 0 < copies(s) <= MOST_COPIES


def copies(s: For) -> int:
    """The number of elements that a loop stores in local memory; 0 if it does anything else."""
    if not (isinstance(s.first, int) and isinstance(s.step, int)):
        return 0
    each = 0
    for part in s.body.statements:
        match part:
            case Store(cell) if cell.memory.space == "local":
                each += 1
            case For() if inner := copies(part):
                each += inner
            case Let() | Assume():
                pass
            case _:
                return 0
    return each * -(-(s.bound - s.first) // s.step)


def has_known_guards(s: For) -> bool:
    """Whether a loop has three or four iterations, and a guard that depends only on its counter.

    Intel's compiler (2026.2) peels the first and the last iteration off such a loop, and may crash
    on the remaining ones, in its pass `vpo-directive-cleanup`. If the loop is unrolled before this
    pass, none remain. (`loops/unswitch.py` splits most longer loops at their guards.)
    """
    own = frozenset((s.counter,))
    if not (isinstance(s.first, int) and isinstance(s.step, int)):
        return False
    if -(-(s.bound - s.first) // s.step) not in CRASHING:
        return False
    return any(test.index.names() == own for test in tests_in(s.body))


CRASHING = 3, 4
"""The numbers of iterations of loops on which the compiler crashed."""


def wide_index(index: Nat) -> str:
    """An index as C, in 64 bits if it may pass 2^31."""
    return index_c(index, wide=magnitude(index) > MAX_INT)


def element(memory: Memory, index: Nat) -> str:
    """An element of an array."""
    return f"{memory.name}[{wide_index(units(memory.scalar) * index)}]"


def is_whole(cell: Cell) -> bool:
    """Whether a vector is accessed as one element of an array of vectors.

    Its address must be known to be aligned. In local memory, arrays are aligned to 16 bytes, so a
    vector of at most 16 bytes is aligned if its length divides the index. All others, and vectors
    of 3 (which have the size of 4), are accessed by `vload` and `vstore`, which GPUs execute lane
    by lane.
    """
    memory, width = cell.memory, cell.width
    if memory.space != "local" or width in (1, 3) or is_split(memory.scalar):
        return False
    size = width * SCALAR_BYTES[memory.scalar.name]
    return size <= LOCAL_ALIGNMENT and cell.index % width == 0


def whole_element(cell: Cell) -> str:
    """An aligned vector as an element of an array of vectors."""
    memory, width = cell.memory, cell.width
    kind = vector_type(memory.scalar.name, width)
    return f"((__local {kind}*){memory.name})[{wide_index(cell.index // width)}]"


def condition_c(condition: Condition) -> C:
    """A condition as C."""
    match condition:
        case All(tests):
            return Text(f"({' && '.join(map(test_c, tests))})")
        case Fails(inner):
            return Prefix("!", condition_c(inner))
        case Both(left, right):
            return Infix("&&", condition_c(left), condition_c(right))


def test_c(test: RangeTest) -> str:
    """A range test as C."""
    index = wide_index(test.index)
    return f"{index} >= 0" if test.bound is None else f"{index} < {test.bound}"
