"""Common subexpression elimination: a value that a variable holds is not computed again.

Where such a value is computed, the variable is read instead, and a variable that would hold the
same value as another one is not declared. This is value numbering: a value has the number of its
operator and of its parts' numbers, and a variable has the number of the value that it holds, so a
value is the same whether it reads a variable or computes it. This keeps the meaning: a variable is
read in its block, after its declaration. What is read from memory that the kernel writes has
another number after each statement that is not a declaration. Any other value is the same wherever
it is computed.

Variables are renumbered in the order of their declarations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from liftpy.loops.hoisting import is_constant
from liftpy.loops.tree import (
    Barrier,
    Block,
    Const,
    Fetch,
    For,
    If,
    Index,
    Let,
    Name,
    Statement,
    Store,
    Value,
    VectorSlice,
    rebuilt,
    with_blocks,
)


def without_common(block: Block) -> Block:
    """A block in which no two variables hold the same value, and none is computed again."""
    return Sharing().block(block)


@dataclass
class Sharing:
    """The variables known at the current point of the code, by the numbers of their values.

    `numbers` has the number of each value so far; its parts are variables `#n`, for the value with
    number n. Those in `passing` may change with the next store. `names` maps each variable of the
    old code to that of the new one, `values` to the number of its value.
    """

    held: dict[int, Name] = field(default_factory=dict)
    numbers: dict[Value, int] = field(default_factory=dict)
    passing: list[Value] = field(default_factory=list)
    names: dict[str, Name] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    declared: int = 0
    numbered: int = 0

    def block(self, block: Block) -> Block:
        """A block; variables declared in it are not known outside."""
        self.forget()
        outside, self.held = self.held, dict(self.held)
        made = block.each(self.statement)
        self.held = outside
        self.forget()
        return made

    def forget(self) -> None:
        """Forget the numbers of what a store may change."""
        for value in self.passing:
            del self.numbers[value]
        self.passing = []

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement."""
        match s:
            case Let(name, value):
                number = self.values[name] = self.number(value)
                value = self.value(value)
                if isinstance(value, Name):
                    self.names[name] = value
                else:
                    new = Name(f"v{self.declared}", value.type, value.width)
                    self.declared += 1
                    self.names[name] = self.held[number] = new
                    yield Let(new.name, value)
            case Store(cell, value, silent, nontemporal):
                yield Store(cell, self.value(value), silent, nontemporal)
                self.forget()
            case For() | If():
                yield with_blocks(s, self.block)
            case Fetch():
                yield s
            case Barrier():
                yield s
                self.forget()

    def number(self, value: Value) -> int:
        """The number of a value: that of an equal one, or else a new one."""
        match value:
            case Name(name):
                return self.values[name]
            case VectorSlice(vector, first, width):
                value = VectorSlice(self.numbered_name(vector), first, width)
            case _ if value.parts:
                value = rebuilt(value, self.numbered_name)
            case _:
                pass
        if value not in self.numbers:
            self.numbers[value] = self.numbered
            self.numbered += 1
            if not is_constant(value):
                self.passing.append(value)
        return self.numbers[value]

    def numbered_name(self, value: Value) -> Name:
        """A variable that stands for all values with the number of this one."""
        return Name(f"#{self.number(value)}", value.type, value.width)

    def value(self, value: Value) -> Value:
        """An expression that reads variables in place of the values they hold."""
        match value:
            case Name(name):
                return self.names[name]
            case Const() | Index():
                return value
            case _ if (found := self.held.get(self.number(value))) is not None:
                return found
            case VectorSlice(vector, first, width):
                return VectorSlice(self.names[vector.name], first, width)
            case _:
                return rebuilt(value, self.value) if value.parts else value
