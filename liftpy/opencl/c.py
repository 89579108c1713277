"""The C tree of a kernel: expressions and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from liftpy.ir.lazy import lazy
from liftpy.ir.nat import Nat
from liftpy.opencl.indices import MAX_INT, index_c, magnitude
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


@dataclass(frozen=True)
class Declare(Simple):
    """A constant local variable."""

    type: str
    name: str
    value: C

    @property
    def values(self) -> tuple[C, ...]:
        return (self.value,)


@dataclass(frozen=True)
class Assign(Simple):
    """An assignment to a place, which changes nothing where one of the tests `idle` fails."""

    target: C
    value: C
    idle: tuple[RangeTest, ...] = ()

    @property
    def values(self) -> tuple[C, ...]:
        return self.target, self.value


@dataclass(frozen=True)
class Do(Simple):
    """An expression for its effect, such as `vstore4`."""

    value: C

    @property
    def values(self) -> tuple[C, ...]:
        return (self.value,)


@dataclass(eq=False, slots=True)
class Barrier:
    """All work-items of the group meet; `memory` is the local one that makes it necessary."""

    memory: str = ""
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
