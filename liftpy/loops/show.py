"""The readable text of a kernel in the loop IR: `liftpy show --stage loops`."""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.loops.lower import LoopKernel
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
from liftpy.views.terms import Memory

INDENT = "  "


def show_kernel(code: LoopKernel) -> str:
    """A kernel: its memories, the ranges of its ids, its statements.

    >>> from liftpy.pipeline import compile_program
    >>> from liftpy.primitives.dialects import LoweredProgram
    >>> from liftpy.language.text.program import parse
    >>> doubled = parse("def doubled(xs: [3]f32) = xs |> mapGlb(0, x => x + x)")
    >>> print(show_kernel(compile_program(LoweredProgram.of(doubled)).loops[0]))
    kernel k0_output(xs: [3]f32) -> output: [3]f32
      gid0 in 0..2
      let v0: f32 = xs[gid0]
      output[gid0] = v0 + v0
    """
    reads = ", ".join(declared(m) for m in code.buffers if not m.writable)
    writes = ", ".join(declared(m) for m in code.buffers if m.writable)
    lines = [f"kernel {code.name}({reads}) -> {writes}"]
    lines += [f"{INDENT}{name} in 0..{count - 1}" for name, count in code.ranges.items()]
    lines += [f"{INDENT}local {declared(m)}" for m in code.locals]
    return "\n".join([*lines, *lines_of(code.block, INDENT)])


def declared(memory: Memory) -> str:
    """A memory with its type."""
    kind = "image " if memory.space == "image" else ""
    return f"{kind}{memory.name}: [{memory.length}]{memory.scalar}"


def lines_of(block: Block, pad: str) -> Iterator[str]:
    """The statements of a block."""
    for s in block:
        match s:
            case Let(name, value):
                yield f"{pad}let {name}: {typed(value)} = {show(value)}"
            case Store(cell, value):
                how = " nontemporal" if s.nontemporal else ""
                yield f"{pad}{show(cell)} ={how} {show(value)}"
            case Update(cell, value, op):
                yield f"{pad}{show(cell)} = atomic {show(Operate(op, (cell, value), cell.type))}"
            case Fetch(cell):
                yield f"{pad}fetch {show(cell)}"
            case Assume():
                yield from (f"{pad}assume {text}" for text in assumed_texts(s))
            case Barrier(memory, witness):
                yield f"{pad}barrier for {memory}: {witness}" if memory else f"{pad}barrier"
            case For(counter, first, bound, step, body, ahead):
                by = "" if step == 1 else f" by {step}"
                hints = ", fetching ahead" if ahead else ""
                yield f"{pad}for {counter} from {first} below {bound}{by}{hints}"
                yield from lines_of(body, pad + INDENT)
            case If(condition, then, otherwise):
                yield f"{pad}if {condition_text(condition)}"
                yield from lines_of(then, pad + INDENT)
                if otherwise:
                    yield f"{pad}else"
                    yield from lines_of(otherwise, pad + INDENT)


def assumed_texts(s: Assume) -> Iterator[str]:
    """What is assumed of each test."""
    yield from map(test_text, s.holding)
    yield from (f"not ({test_text(test)})" for test in s.failing)
    yield from (f"{test_text(test)} exactly where {test_text(simple)}" for test, simple in s.same)


def typed(value: Value) -> str:
    """The type of a value."""
    return str(value.type) if value.width == 1 else f"<{value.width}>{value.type}"


def condition_text(condition: Condition) -> str:
    """A condition."""
    match condition:
        case All(tests):
            return " and ".join(map(test_text, tests))
        case Fails(inner):
            return f"not ({condition_text(inner)})"
        case Both(left, right):
            return f"{condition_text(left)} and {condition_text(right)}"


def test_text(test: RangeTest) -> str:
    """A range test."""
    return f"{test.index} >= 0" if test.bound is None else f"{test.index} < {test.bound}"


def show(value: Value, *, inside: bool = False) -> str:
    """An expression; `inside` another one it gets parentheses if it needs them."""
    match value:
        case Const(number):
            return str(number)
        case Index(index, t):
            return f"{t}({index})"
        case Name(name):
            return name
        case VectorSlice(vector, first, width):
            return f"{vector.name}.{first}" if width == 1 else f"{vector.name}.{first}+{width}"
        case Cell(memory, index, width):
            return f"{memory.name}[{index}]" if width == 1 else f"{memory.name}[{index}; {width}]"
        case Splat(inner, width):
            return f"splat<{width}>({show(inner)})"
        case Pack(lanes):
            return f"({', '.join(map(show, lanes))})"
        case Dot((left, right)):
            return f"dot({show(left)}, {show(right)})"
        case SubgroupReduce(op, inner):
            return f"subgroup({op}, {show(inner)})"
        case SubgroupsReduce(op, cell):
            return f"subgroups({op}, {cell.memory.name})"
        case SubgroupBroadcast(parts, row, item):
            values = ", ".join(map(show, parts))
            which = f"({values})[{row}]" if len(parts) > 1 else values
            return f"broadcast({which}, {item})"
        case Operate(op, (left, right)) if not op[0].isalpha():
            text = f"{show(left, inside=True)} {op} {show(right, inside=True)}"
        case Operate(op, args):
            return f"{op}({', '.join(map(show, args))})"
        case Select(condition, then, otherwise):
            text = (
                f"if {condition_text(condition)} then {show(then, inside=True)} "
                f"else {show(otherwise, inside=True)}"
            )
    return f"({text})" if inside else text
