"""The invariants of every tree of the loop IR.

For a candidate, the last tree is checked; for a test or a display, also the tree after each pass.

- *Scopes.* A variable is declared before it is read, in the same block or one around it, under a
  name that is not in use there. An index is over counters of the loops around it and ids of the
  kernel, and variables that are clamped; the range that it assumes for each includes all values
  that it may have.
- *Types.* Operands have the types that their operator takes, and all have the same number of lanes,
  or one lane that applies to all; a stored value has the type and the lanes of its place.
- *Atomic updates* are of one scalar in a buffer, of a type and by an operator for which OpenCL has
  an atomic function. So the operator is associative and commutative.
- *Memory spaces.* Only writable memory is stored to, and an image is not writable. Global memory
  and images are the kernel's buffers, local memory is the work-group's. A cell of an image is one
  scalar or whole texels; private memory is indexed by numbers within its length (except in a
  kernel with loops that are still `rolled`).
- *Barriers* are where every work-item of a group reaches them: in no branch, and in no loop whose
  iterations are divided unevenly among the work-items.
- *Folds and broadcasts of subgroups* are where all work-items of a subgroup reach them, and a
  broadcast names the same work-item for all of them (`together.py`). Each fold of a subgroup is the
  value of a variable; the fold of the results of all subgroups reads them where subgroups store
  them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat, Var
from liftpy.ir.operators import OPERATORS, operator_type
from liftpy.ir.types import BOOL, F32, FLOATS, I8, SCALARS, STORAGE, U8
from liftpy.loops import together
from liftpy.loops.bounds import Ends, ends
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Fetch,
    For,
    If,
    Let,
    Simple,
    Store,
    Update,
)
from liftpy.loops.values import (
    SUBGROUP_COUNT,
    SUBGROUP_ID,
    SUBGROUP_SIZE,
    Cell,
    Condition,
    Const,
    Dot,
    Index,
    Name,
    Operate,
    Pack,
    Select,
    Splat,
    SubgroupBroadcast,
    SubgroupReduce,
    SubgroupsReduce,
    Value,
    VectorSlice,
    is_in_texels,
    values_in,
)
from liftpy.primitives.atomics import ATOMIC_OPERATORS, ATOMIC_TYPES
from liftpy.primitives.subgroups import SUBGROUP_OPERATORS, SUBGROUP_TYPES
from liftpy.primitives.vector import LANES_OF_A_DOT
from liftpy.views.terms import Memory

STEPS = frozenset({SUBGROUP_SIZE, SUBGROUP_COUNT})
"""The ids that may be the step of a loop: all are at least 1."""
WIDTHS = frozenset({1, 2, 3, 4, 8, 16})
DOTTED = WIDTHS | {LANES_OF_A_DOT * width for width in WIDTHS}
"""The numbers of 8-bit integers that are read at once, also by dot products for several lanes."""


@dataclass(frozen=True)
class KernelPoint:
    """A point in a kernel: ranges of counters and ids, variables; `uniform` if all reach it.

    `ranges` are those of variables that hold a clamped index, and `ends` what is known of any.
    """

    code: LoopKernel
    indices: Mapping[str, tuple[int, int]]
    variables: dict[str, Name] = field(default_factory=dict)
    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    ends: dict[str, Ends] = field(default_factory=dict[str, Ends])
    uniform: bool = True


def verify(code: LoopKernel, after: str = "lowering") -> None:
    """Raise InternalError if a kernel breaks an invariant; `after` names what made the kernel."""
    for fault in _faults(code):
        message = f"after {after}, kernel {code.name} of the loop IR is not well-formed: {fault}"
        raise InternalError(message)


def is_well_formed(code: LoopKernel) -> bool:
    """Whether a kernel keeps all invariants."""
    return next(_faults(code), None) is None


def _faults(code: LoopKernel) -> Iterator[str]:
    """What is wrong in a kernel."""
    names = [m.name for m in (*code.buffers, *code.locals)]
    yield from (f"the image {m.name} is writable" for m in images_in(code) if m.writable)
    for name in names:
        if names.count(name) > 1:
            yield f"two memories are called {name}"
    ids = {name: (0, count - 1) for name, count in code.ranges.items()}
    yield from _of_block(code.block, KernelPoint(code, ids))
    yield from together.faults(code)


def images_in(code: LoopKernel) -> Iterator[Memory]:
    """The images of a kernel."""
    return (m for m in code.buffers if m.space == "image")


def _of_block(block: Block, scope: KernelPoint) -> Iterator[str]:
    """What is wrong in a block."""
    scope = replace(
        scope,
        variables=dict(scope.variables),
        ranges=dict(scope.ranges),
        ends=dict(scope.ends),
    )
    memories = {m.name for m in (*scope.code.buffers, *scope.code.locals)}
    for s in block:
        if isinstance(s, Simple):
            for value in s.values:
                for part in values_in(value):
                    yield from _of_value(part, scope)
                    if isinstance(part, SubgroupReduce):
                        yield from _of_subgroup(s, part)
        match s:
            case Let(name, value):
                if name in scope.variables or name in scope.indices or name in memories:
                    yield f"{name} is declared twice"
                if value.width not in WIDTHS:
                    yield f"{name} has {value.width} lanes"
                scope.variables[name] = Name(name, value.type, value.width)
                low, high = scope.ends[name] = ends(value, scope.ends)
                if low is not None and high is not None:
                    scope.ranges[name] = low, high
            case Store():
                yield from _of_store(s, scope)
            case Update():
                yield from _of_update(s)
            case For():
                yield from _of_loop(s, scope)
            case If(condition, then, otherwise):
                yield from _of_condition(condition, scope)
                for part in (then, otherwise):
                    yield from _of_block(part, replace(scope, uniform=False))
            case Fetch(cell):
                yield from _of_index(cell.index, scope)
                if cell.memory.space != "global":
                    yield f"a hint to fetch {cell.memory.name}, which is not in global memory"
            case Assume():
                for test in (*s.holding, *s.failing, *(t for pair in s.same for t in pair)):
                    yield from _of_index(test.index, scope)
            case Barrier():
                if not scope.uniform:
                    yield f"a barrier for {s.memory} that not every work-item reaches"


def _of_store(s: Store, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with a store, apart from its cell and its value."""
    cell, value = s.cell, s.value
    for test in s.silent:
        yield from _of_index(test.index, scope)
    if not cell.memory.writable:
        yield f"a store to {cell.memory.name}, which is only read"
    if (value.type, value.width) != (cell.type, cell.width):
        given = f"{value.width} of {value.type}"
        yield f"{cell.width} of {cell.type} in {cell.memory.name} are given {given}"


def _of_update(s: Update) -> Iterator[str]:
    """What is wrong with an atomic update, apart from its cell and its value."""
    cell, value = s.cell, s.value
    if cell.memory.space != "global" or not cell.memory.writable:
        yield f"an atomic update of {cell.memory.name}, which is not a buffer that may be written"
    if s.op not in ATOMIC_OPERATORS or cell.type not in ATOMIC_TYPES:
        yield f"no atomic update of {cell.type} by {s.op}"
    if (cell.type, cell.width) != (value.type, value.width) or cell.width != 1:
        yield f"{cell.memory.name} is updated by {value.width} of {value.type}"


def _of_subgroup(s: Simple, value: SubgroupReduce) -> Iterator[str]:
    """What is wrong with a fold of a subgroup in a statement."""
    if not isinstance(s, Let) or s.value is not value:
        yield f"a fold of subgroups by {value.op} is not the value of a variable"
    if value.op not in SUBGROUP_OPERATORS or value.type not in SUBGROUP_TYPES:
        yield f"no subgroup folds {value.type} by {value.op}"


def _of_loop(s: For, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with a loop."""
    if s.counter in scope.indices or s.counter in scope.variables:
        yield f"{s.counter} is the counter of two loops inside each other, or a variable"
    low, uniform = s.first, scope.uniform
    if isinstance(low, str):
        if low not in scope.code.ids:
            yield f"a loop begins at {low}, which is no id of the kernel"
            return
        low = 0
    if isinstance(s.step, str) and s.step not in STEPS.intersection(scope.code.ids):
        yield f"a loop has steps of {s.step}, which is no size or number of subgroups of the kernel"
    uniform = uniform and together.is_even(s, scope.code)
    if s.bound < 0 or (isinstance(s.step, int) and s.step < 1):
        yield f"the loop over {s.counter} goes to {s.bound} in steps of {s.step}"
    elif s.bound > low:  # the body of an empty loop is never reached
        indices = {**scope.indices, s.counter: (low, s.bound - 1)}
        yield from _of_block(s.body, replace(scope, indices=indices, uniform=uniform))


def _of_condition(condition: Condition, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with a condition."""
    if not condition.tests:
        yield "a condition without tests"
    for test in condition.tests:
        yield from _of_index(test.index, scope)


def _of_index(index: Nat, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with an index: the range of each variable must include all its values."""
    for a in index.atoms():
        if not isinstance(a, Var):
            continue
        known = scope.indices.get(a.name) or scope.ranges.get(a.name)
        if known is None:
            yield f"the index {index} mentions {a.name}, which is no counter or id here"
        elif (a.low is not None and a.low > known[0]) or (a.high is not None and a.high < known[1]):
            yield (
                f"{a.name} is from {known[0]} to {known[1]}, and the index {index} takes it to be "
                f"from {a.low} to {a.high}"
            )


def _of_value(value: Value, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with an expression, apart from its parts."""
    match value:
        case Cell():
            yield from _of_cell(value, scope)
        case Operate():
            yield from _of_operator(value)
        case Index(index):
            yield from _of_index(index, scope)
        case Name(name) | VectorSlice(Name(name)):
            held = value if isinstance(value, Name) else value.vector
            if scope.variables.get(name) != held:
                yield f"{held} is read where {scope.variables.get(name, 'nothing')} is declared"
            if isinstance(value, VectorSlice) and not 0 <= value.first <= held.width - value.width:
                yield f"lane {value.first + value.width - 1} of {held}"
        case Splat(inner, width):
            if inner.width != 1 or width not in WIDTHS - {1}:
                yield f"{inner.width} lanes are put into {width}"
        case Pack(lanes):
            if len(lanes) not in WIDTHS - {1}:
                yield f"{len(lanes)} lanes are put together"
            elif any((lane.type, lane.width) != (lanes[0].type, 1) for lane in lanes):
                yield "lanes of several types are put together"
        case Dot():
            yield from _of_dot(value)
        case SubgroupReduce(_, inner):
            if inner.width != 1:
                yield f"a fold of subgroups of {inner.width} lanes"
        case SubgroupBroadcast(parts, row, item):
            yield from _of_index(item, scope)
            yield from _of_index(row, scope)
            if len(parts) > 1 and not scope.code.rolled:
                yield f"a broadcast of one of {len(parts)} values"
            if any((part.type, part.width) != (value.type, 1) for part in parts):
                yield f"a broadcast of several lanes or types: {', '.join(map(str, parts))}"
            if value.type not in SUBGROUP_TYPES:
                yield f"no subgroup broadcasts {value.type}"
        case SubgroupsReduce(op, cell):
            if cell.memory.space != "local" or not cell.index.names() <= {SUBGROUP_ID}:
                yield f"the results of subgroups are folded by {op} from {cell.memory.name}"
        case Select(condition, then, otherwise):
            yield from _of_condition(condition, scope)
            if (then.type, then.width) != (otherwise.type, otherwise.width):
                yield f"a choice of {then.type} and {otherwise.type}"
        case Const(number, t):
            if t not in {*FLOATS, *STORAGE} and number != int(number):
                yield f"{number} as {t}"


def _of_dot(value: Dot) -> Iterator[str]:
    """What is wrong with the vectors of a dot product."""
    left, right = value.parts
    floats = left.type == right.type == F32
    several = not floats and isinstance(right, Cell) and right.width % left.width == 0
    if not (left.width == right.width or several) or not (
        floats or {left.type, right.type} <= {I8, U8}
    ):
        yield f"a dot of {left.width} of {left.type} and {right.width} of {right.type}"
    elif left.width > LANES_OF_A_DOT or not (floats or left.width == LANES_OF_A_DOT):
        yield f"a dot of {left.width} lanes"


def _of_cell(cell: Cell, scope: KernelPoint) -> Iterator[str]:
    """What is wrong with a memory cell."""
    memory, code = cell.memory, scope.code
    yield from _of_index(cell.index, scope)
    if cell.width not in (DOTTED if memory.scalar in {I8, U8} else WIDTHS):
        yield f"{cell.width} lanes of {memory.name}"
    if memory.space == "image" and not is_in_texels(cell):
        yield f"{cell.width} scalars of the image {memory.name} at {cell.index}, in parts of texels"
    if memory.space == "private":
        first = cell.index.constant
        if first is None and code.rolled:
            return
        if first is None or first < 0 or first + cell.width > memory.length:
            yield f"{memory.name}, which has {memory.length} registers, at {cell.index}"
    elif memory.space == "local" and memory not in code.locals:
        yield f"{memory.name} is no local memory of the kernel"
    elif memory.space in {"global", "image"} and memory not in code.buffers:
        yield f"{memory.name} is no buffer of the kernel"


def _of_operator(value: Operate) -> Iterator[str]:
    """What is wrong with an operator's operands."""
    op, args = value.op, value.parts
    if op not in OPERATORS or len(args) != OPERATORS[op].arity:
        yield f"`{op}` of {len(args)} operands"
        return
    if op in SCALARS:
        wanted = [args[0].type]
    elif op == "select":
        wanted = [BOOL, args[1].type, args[1].type]
    else:
        wanted = [args[0].type] * len(args)
    if [a.type for a in args] != wanted or operator_type(op, args[-1].type) != value.type:
        yield f"`{op}` of {', '.join(str(a.type) for a in args)} gives {value.type}"
    widths = {a.width for a in args}
    if not widths <= {1, value.width} or value.width not in widths:
        yield f"`{op}` in {value.width} lanes of {', '.join(str(a.width) for a in args)}"
