"""The C tree of a kernel, and its printer.

Private arrays do not exist in the printed code: `Private` nodes name scalars of one, and the
printer chooses registers once it has seen all uses. Where every use is an aligned vector of one
width, the registers are vectors; elsewhere they are scalars.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar, TypeAlias

from liftpy.errors import InternalError
from liftpy.ir.lazy import lazy
from liftpy.ir.nat import Atom, Extreme, Nat, Quotient, Remainder, Var
from liftpy.views.access import Memory

C_TYPES = {
    "f16": "half",
    "f32": "float",
    "f64": "double",
    "i8": "char",
    "i32": "int",
    "i64": "long",
    "bool": "uchar",
}
INDENT = "  "
MAX_INT = 2**31 - 1
UNBOUNDED = 2**63
WORDS = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class Text:
    """An atomic C expression."""

    text: str
    parts: ClassVar[tuple[C, ...]] = ()


@dataclass(frozen=True, slots=True)
class Private:
    """`width` scalars of a private memory, from `index`."""

    memory: Memory
    index: int
    width: int
    parts: ClassVar[tuple[C, ...]] = ()


@dataclass(frozen=True, slots=True)
class Infix:
    """`left op right`."""

    op: str
    left: C
    right: C

    @property
    def parts(self) -> tuple[C, ...]:
        """The expressions that an expression is made of."""
        return self.left, self.right


@dataclass(frozen=True, slots=True)
class Prefix:
    """`-a`."""

    op: str
    arg: C

    @property
    def parts(self) -> tuple[C, ...]:
        """As of an infix."""
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Ternary:
    """`condition ? then : otherwise`."""

    condition: C
    then: C
    otherwise: C

    @property
    def parts(self) -> tuple[C, ...]:
        """As of an infix."""
        return self.condition, self.then, self.otherwise


@dataclass(frozen=True, slots=True)
class RangeTest:
    """`index >= 0`; with a bound, `index < bound`."""

    index: Nat
    bound: int | None = None

    @property
    def room(self) -> Nat:
        """What is 0 or more where the test holds."""
        return self.index if self.bound is None else self.bound - 1 - self.index

    @property
    def text(self) -> str:
        """The test as C."""
        index = index_c(self.index, wide=magnitude(self.index) > MAX_INT)
        return f"{index} >= 0" if self.bound is None else f"{index} < {self.bound}"


@dataclass(frozen=True, slots=True)
class All:
    """Range tests, all of which must hold."""

    tests: tuple[RangeTest, ...]
    parts: ClassVar[tuple[C, ...]] = ()


@dataclass(frozen=True, slots=True)
class CallC:
    """`function(args)`; also a vector literal `(float4)(args)`."""

    function: str
    args: tuple[C, ...]

    @property
    def parts(self) -> tuple[C, ...]:
        """As of an infix."""
        return self.args


C: TypeAlias = Text | Private | Infix | Prefix | Ternary | All | CallC


def names_of(c: C) -> Iterator[str]:
    """The names that an expression mentions."""
    match c:
        case Text(text):
            yield from WORDS.findall(text)
        case All(tests):
            for t in tests:
                yield from t.index.names()
        case _:
            for part in c.parts:
                yield from names_of(part)


def guards(c: C) -> Iterator[RangeTest]:
    """The tests of all guarded values in an expression."""
    if isinstance(c, Ternary) and isinstance(c.condition, All):
        yield from c.condition.tests
    for part in c.parts:
        if part.parts:
            yield from guards(part)


class Simple:
    """A statement without statements inside. It is never changed: versions of code share it."""

    @property
    def values(self) -> tuple[C, ...]:
        """Its expressions."""
        raise NotImplementedError

    @lazy
    def names(self) -> frozenset[str]:
        """The names that it mentions."""
        return frozenset(name for value in self.values for name in names_of(value))

    @lazy
    def tests(self) -> tuple[RangeTest, ...]:
        """The tests of its guarded values."""
        return tuple(test for value in self.values if value.parts for test in guards(value))


@dataclass
class Declare(Simple):
    """A constant local variable."""

    type: str
    name: str
    value: C

    @property
    def values(self) -> tuple[C, ...]:
        return (self.value,)


@dataclass
class Assign(Simple):
    """An assignment to a place, which changes nothing where one of the tests `idle` fails."""

    target: C
    value: C
    idle: tuple[RangeTest, ...] = ()

    @property
    def values(self) -> tuple[C, ...]:
        return self.target, self.value


@dataclass
class Do(Simple):
    """An expression for its effect, such as `vstore4`."""

    value: C

    @property
    def values(self) -> tuple[C, ...]:
        return (self.value,)


@dataclass(slots=True)
class Barrier:
    """All work-items of the group meet; `memory` is what makes it necessary."""

    memory: Memory
    witness: str = ""


@dataclass(slots=True)
class Block:
    """Statements in order. `loads` remembers what was loaded into which variable."""

    statements: list[Statement] = field(default_factory=list)
    loads: dict[object, C] = field(default_factory=dict)


@dataclass(slots=True)
class For:
    """`for (int var = start; var < bound; var += step)`."""

    var: str
    start: str
    bound: str
    step: str
    body: Block


@dataclass(slots=True)
class If:
    """`if (condition) then else otherwise`."""

    condition: C
    then: Block
    otherwise: Block


Statement: TypeAlias = Declare | Assign | Do | Barrier | For | If


# --- printing ------------------------------------------------------------------------------------


def vector_type(scalar: str, width: int) -> str:
    """`float`, or `float4`."""
    return C_TYPES[scalar] if width == 1 else f"{C_TYPES[scalar]}{width}"


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
                    flag = (
                        "CLK_LOCAL_MEM_FENCE" if memory.space == "local" else "CLK_GLOBAL_MEM_FENCE"
                    )
                    note = f" // {memory.name}: {witness}" if witness else ""
                    lines.append(f"{pad}barrier({flag});{note}")
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


def index_c(n: Nat, *, wide: bool = False) -> str:
    """An index as C, in 64 bits where `wide`. `/` is printed only for dividends of 0 and above."""
    if not n.terms:
        return "0"
    parts: list[str] = []
    ordered = sorted(
        n.terms.items(), key=lambda t: (not t[0], t[1] < 0, tuple((a.key, e) for a, e in t[0]))
    )
    for monomial, coefficient in ordered:
        if any(exponent < 0 for _, exponent in monomial):
            message = f"an index still has a size without a value: {n}"
            raise InternalError(message)
        factors = [text for a, e in monomial for text in [atom_c(a, wide=wide)] * e]
        number = abs(coefficient)
        if number != 1 or not factors:
            factors.append(f"{number}L" if wide and number > MAX_INT else str(number))
        text = " * ".join(factors)
        sign = "-" if coefficient < 0 else "+"
        first = f"-{text}" if sign == "-" else text
        parts.append(f"{sign} {text}" if parts else first)
    return " ".join(parts)


@lru_cache(maxsize=1 << 12)
def atom_c(a: Atom, *, wide: bool) -> str:
    """A factor of an index as C. The indices of one kernel share theirs."""
    match a:
        case Var():
            return f"(long){a.name}" if wide else a.name
        case Quotient() | Remainder():
            over, under = index_c(a.numerator, wide=wide), index_c(a.denominator, wide=wide)
            low = a.numerator.bounds[0]
            if low is not None and low >= 0:
                over = over if over.isidentifier() else f"({over})"
                under = under if under.isalnum() else f"({under})"
                return f"({over} {'/' if isinstance(a, Quotient) else '%'} {under})"
            return f"{'floor_div' if isinstance(a, Quotient) else 'floor_mod'}({over}, {under})"
        case Extreme():
            kind = "long" if wide else "int"  # the two must be of one type
            parts = ", ".join(f"({kind})({index_c(part, wide=wide)})" for part in a.parts())
            return f"{'max' if a.largest else 'min'}({parts})"
        case _:
            message = f"no C for {a.key}"
            raise InternalError(message)


def magnitude(n: Nat) -> int:
    """A bound on every partial result of an index as it is printed; 2^63 where there is none."""
    total = 0
    for monomial, coefficient in n.terms.items():
        term = abs(coefficient)
        for a, e in monomial:
            most, inside = atom_magnitude(a)
            if most == UNBOUNDED:
                return UNBOUNDED
            term *= most**e
            total = max(total, inside)
        total += term
    return total


@lru_cache(maxsize=1 << 12)
def atom_magnitude(a: Atom) -> tuple[int, int]:
    """A bound on a factor, and one on the partial results inside it."""
    low, high = a.bounds
    if low is None or high is None:
        return UNBOUNDED, UNBOUNDED
    return max(abs(low), abs(high), 1), max(map(magnitude, a.parts()), default=0)


#: Floor division and its remainder for dividends that may be negative, and positive divisors.
HELPERS = """\
inline long floor_div(long a, long b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
inline long floor_mod(long a, long b) { return a - b * floor_div(a, b); }
"""
