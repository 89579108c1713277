"""The text of a C tree.

Private arrays do not exist in the printed code: `Private` nodes name scalars of one, and the
printer chooses registers once it has seen all uses. Where every use is an aligned vector of one
width, the registers are vectors; elsewhere they are scalars.
"""

from __future__ import annotations

from collections.abc import Iterator

from liftpy.opencl.c import (
    All,
    Assign,
    Barrier,
    Block,
    C,
    CallC,
    Declare,
    Do,
    For,
    If,
    Infix,
    Prefix,
    Private,
    Simple,
    Statement,
    Ternary,
    Text,
    vector_type,
)
from liftpy.views.access import Memory

INDENT = "  "


def uses(block: Block) -> dict[Memory, set[tuple[int, int]]]:
    """For each private memory, the (index, width) of its uses."""
    found: dict[Memory, set[tuple[int, int]]] = {}

    def visit(c: C) -> None:
        if isinstance(c, Private):
            found.setdefault(c.memory, set()).add((c.index, c.width))
        for part in c.parts:
            visit(part)

    def walk(b: Block) -> None:
        for s in b.statements:
            match s:
                case Simple():
                    for value in s.values:
                        visit(value)
                case For(body=body):
                    walk(body)
                case If(condition, then, otherwise):
                    visit(condition)
                    walk(then)
                    walk(otherwise)
                case Barrier():
                    pass

    walk(block)
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
        for s in self.splatted(block.statements):
            match s:
                case Declare(kind, name, value):
                    lines.append(f"{pad}const {kind} {name} = {self.c(value)};")
                case Assign(target, value):
                    lines += [f"{pad}{line}" for line in self.assign(target, value)]
                case Do(value):
                    lines.append(f"{pad}{self.c(value)};")
                case Barrier(memory, witness):
                    lines.append(f"{pad}barrier(CLK_LOCAL_MEM_FENCE); // {memory}: {witness}")
                case For(var, start, bound, step, body):
                    advance = f"{var}++" if step == "1" else f"{var} += {step}"
                    lines.append(f"{pad}for (int {var} = {start}; {var} < {bound}; {advance}) {{")
                    lines += self.statements(body, indent + 1)
                    lines.append(f"{pad}}}")
                case If(condition, then, otherwise):
                    lines.append(f"{pad}if {self.c(condition, inside=True)} {{")
                    lines += self.statements(then, indent + 1)
                    if otherwise.statements:
                        lines.append(f"{pad}}} else {{")
                        lines += self.statements(otherwise, indent + 1)
                    lines.append(f"{pad}}}")
        return lines

    def splatted(self, statements: list[Statement]) -> Iterator[Statement]:
        """Statements; one for all lanes of a register that get the same constant one by one."""
        k = 0
        while k < len(statements):
            s = statements[k]
            if (
                isinstance(s, Assign)
                and isinstance(s.target, Private)
                and isinstance(s.value, Text)
            ):
                memory, index, width = s.target.memory, s.target.index, self.widths[s.target.memory]
                lanes = [Assign(Private(memory, index + i, 1), s.value) for i in range(width)]
                if width > 1 and index % width == 0 and statements[k : k + width] == lanes:
                    kind = vector_type(memory.scalar.name, width)
                    yield Assign(Private(memory, index, width), CallC(f"({kind})", (s.value,)))
                    k += width
                    continue
            yield s
            k += 1

    def assign(self, target: C, value: C) -> list[str]:
        """An assignment; a vector over scalar registers goes lane by lane."""
        if isinstance(target, Private) and target.width > 1 and self.widths[target.memory] == 1:
            kind = vector_type(target.memory.scalar.name, target.width)
            lanes = [
                f"{self.register(target.memory, target.index + lane)} = lanes.s{lane:x};"
                for lane in range(target.width)
            ]
            return [
                f"{{ const {kind} lanes = {self.c(value)};",
                *(f"{INDENT}{line}" for line in lanes),
                "}",
            ]
        return [f"{self.c(target)} = {self.c(value)};"]

    def c(self, c: C, *, inside: bool = False) -> str:
        """An expression; `inside` another operator it gets parentheses."""
        match c:
            case Text(text):
                return text
            case Private(memory, index, width):
                held = self.widths[memory]
                if width == held:
                    return self.register(memory, index // width)
                if width == 1:
                    return f"{self.register(memory, index // held)}.s{index % held:x}"
                parts = ", ".join(self.register(memory, index + k) for k in range(width))
                return f"({vector_type(memory.scalar.name, width)})({parts})"
            case Infix(op, left, right):
                text = f"{self.c(left, inside=True)} {op} {self.c(right, inside=True)}"
            case Prefix(op, arg):
                text = f"{op}{self.c(arg, inside=True)}"
            case Ternary(condition, then, otherwise):
                text = " ".join(
                    [
                        self.c(condition, inside=True),
                        "?",
                        self.c(then, inside=True),
                        ":",
                        self.c(otherwise, inside=True),
                    ]
                )
            case All(tests):
                return f"({' && '.join(test.text for test in tests)})"
            case CallC(function, args):
                return f"{function}({', '.join(self.c(a) for a in args)})"
        return f"({text})" if inside else text
