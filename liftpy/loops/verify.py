"""What every tree of the loop IR keeps, before and after each pass.

- *Scopes.* A variable is declared once, in front of what reads it, in that block or one around it.
  An index is over counters of the loops around it and ids of the kernel.
- *Types.* Operands have the types that their operator takes, and are of as many lanes or of one for
  all; what is stored has the type and the lanes of its place.
- *Memory spaces.* Only what is writable is stored to. Global memory is the kernel's buffers, local
  memory the work-group's; private memory is indexed by numbers, and within its length.
- *Barriers* stand where every work-item of a group comes by: in no branch, and in no loop whose
  passes the work-items share out unevenly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from liftpy.errors import InternalError
from liftpy.ir.nat import Nat
from liftpy.ir.scalars import operator_type
from liftpy.ir.types import BOOL, F32, SCALARS
from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Barrier,
    Block,
    Cell,
    Dot,
    For,
    If,
    Index,
    Let,
    Name,
    Operate,
    Pack,
    Part,
    Select,
    Splat,
    Statement,
    Store,
    Value,
    tests_in,
)

MOST_LANES_OF_A_DOT = 4


@dataclass(frozen=True)
class Scope:
    """What is known at a place: the counters and ids, the variables, whether all come by."""

    indices: frozenset[str]
    variables: Mapping[str, Name]
    uniform: bool = True


def verify(code: LoopKernel, after: str = "lowering") -> None:
    """InternalError if a kernel breaks what holds of all trees; `after` says what made it."""
    declared: set[str] = set()
    for fault in _faults(code.block, Scope(frozenset(code.ids), {}), code, declared):
        message = f"after {after}, kernel {code.name} of the loop IR is not well-formed: {fault}"
        raise InternalError(message)


def _faults(block: Block, scope: Scope, code: LoopKernel, declared: set[str]) -> Iterator[str]:
    """What is wrong in a block."""
    for s in block:
        yield from _fault_of(s, scope, code, declared)
        if isinstance(s, Let):
            if s.name in scope.variables or s.name in scope.indices:
                yield f"{s.name} is declared twice"
            held = Name(s.name, s.value.type, s.value.width)
            scope = Scope(scope.indices, {**scope.variables, s.name: held}, scope.uniform)


def _fault_of(s: Statement, scope: Scope, code: LoopKernel, declared: set[str]) -> Iterator[str]:
    match s:
        case Let(_, value):
            yield from _of_value(value, scope, code)
        case Store(cell, value):
            yield from _of_value(cell, scope, code)
            yield from _of_value(value, scope, code)
            if not cell.memory.writable:
                yield f"a store to {cell.memory.name}, which is only read"
            if (value.type, value.width) != (cell.type, cell.width):
                yield (
                    f"{cell.width} of {cell.type} in {cell.memory.name} are given "
                    f"{value.width} of {value.type}"
                )
        case For(counter, first, bound, step, body):
            if counter in scope.indices:
                yield f"{counter} is the counter of two loops inside each other"
            if isinstance(first, str) and first not in code.ids:
                yield f"a loop begins at {first}, which is no id of the kernel"
            if bound < 0 or step < 1:
                yield f"the loop over {counter} goes to {bound} in steps of {step}"
            even = not isinstance(first, str) or not first.startswith("lid") or not bound % step
            inner = Scope(scope.indices | {counter}, scope.variables, scope.uniform and even)
            yield from _faults(body, inner, code, declared)
        case If(condition, then, otherwise):
            for test in tests_in(condition):
                yield from _of_index(test.index, scope)
            inner = Scope(scope.indices, scope.variables, uniform=False)
            yield from _faults(then, inner, code, declared)
            yield from _faults(otherwise, inner, code, declared)
        case Barrier():
            if not scope.uniform:
                yield f"a barrier for {s.memory} that not every work-item comes by"


def _of_index(index: Nat, scope: Scope) -> Iterator[str]:
    names = index.names()
    if names <= scope.indices:
        return
    for name in sorted(names - scope.indices):
        yield f"the index {index} mentions {name}, which is no counter or id here"


def _of_value(value: Value, scope: Scope, code: LoopKernel) -> Iterator[str]:
    """What is wrong with an expression."""
    for part in value.parts:
        yield from _of_value(part, scope, code)
    match value:
        case Cell():
            yield from _of_cell(value, scope, code)
        case Operate():
            yield from _of_operator(value)
        case Index(index):
            yield from _of_index(index, scope)
        case Name(name) | Part(Name(name)):
            held = value if isinstance(value, Name) else value.vector
            if scope.variables.get(name) != held:
                yield f"{held} is read where {scope.variables.get(name, 'nothing')} is declared"
            if isinstance(value, Part) and value.first + value.width > held.width:
                yield f"lane {value.first + value.width - 1} of {held}"
        case Splat(inner, width):
            if inner.width != 1 or width < 2:
                yield f"{inner.width} lanes are put into {width}"
        case Pack(lanes):
            if any((lane.type, lane.width) != (lanes[0].type, 1) for lane in lanes):
                yield "lanes of several types are put together"
        case Dot(left, right):
            if not (left.type == right.type == F32 and left.width == right.width):
                yield f"a dot of {left.width} of {left.type} and {right.width} of {right.type}"
            elif left.width > MOST_LANES_OF_A_DOT:
                yield f"a dot of {left.width} lanes"
        case Select(condition, then, otherwise):
            for test in tests_in(condition):
                yield from _of_index(test.index, scope)
            if (then.type, then.width) != (otherwise.type, otherwise.width):
                yield f"a choice of {then.type} and {otherwise.type}"
        case _:
            pass


def _of_cell(cell: Cell, scope: Scope, code: LoopKernel) -> Iterator[str]:
    """What is wrong with a place in memory."""
    memory = cell.memory
    yield from _of_index(cell.index, scope)
    match memory.space:
        case "private":
            first = cell.index.constant
            if first is None or first < 0 or first + cell.width > memory.length:
                yield f"{memory.name}, which has {memory.length} registers, at {cell.index}"
        case "local":
            if memory not in code.locals:
                yield f"{memory.name} is no local memory of the kernel"
        case "global":
            if memory not in code.buffers:
                yield f"{memory.name} is no buffer of the kernel"


def _of_operator(value: Operate) -> Iterator[str]:
    """What is wrong with an operator's operands."""
    op, args = value.op, value.args
    if op in SCALARS:
        wanted = [args[0].type]
    elif op == "select":
        wanted = [BOOL, args[1].type, args[1].type]
    else:
        wanted = [args[0].type] * len(args)
    if [a.type for a in args] != wanted or operator_type(op, args[-1].type) != value.type:
        yield f"`{op}` of {', '.join(str(a.type) for a in args)} gives {value.type}"
    if any(a.width not in {1, value.width} for a in args):
        yield f"`{op}` in {value.width} lanes of {', '.join(str(a.width) for a in args)}"
