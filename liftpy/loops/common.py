"""Common subexpression elimination: what a variable holds is not computed again.

Where a value is computed that a variable holds, the variable is read; one that would hold what
another one does is not declared. That keeps the meaning: a variable is read in its block and after
its declaration, and its value is still the same. If it reads what the kernel writes, that is so
up to the next statement that is no declaration. Any other has one value wherever it is computed.

Variables are numbered anew, in the order of their declarations.
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
    """A block in which no variable holds what another one does, and none is computed again."""
    return Sharing().block(block)


@dataclass
class Sharing:
    """The variables that are known where code is made now, by what they hold.

    Those of `passing` hold what may be another value after the next store. `names` has, for each
    variable of the old code, that of the new one.
    """

    held: dict[Value, Name] = field(default_factory=dict)
    passing: list[Value] = field(default_factory=list)
    names: dict[str, Name] = field(default_factory=dict)
    declared: int = 0

    def block(self, block: Block) -> Block:
        """A block; what is declared in it is not known outside."""
        self.forget()
        outside, self.held = self.held, dict(self.held)
        made = block.each(self.statement)
        self.held, self.passing = outside, []
        return made

    def forget(self) -> None:
        """Something is stored."""
        for value in self.passing:
            del self.held[value]
        self.passing = []

    def statement(self, s: Statement) -> Iterator[Statement]:
        """What stands for a statement."""
        match s:
            case Let(name, value):
                value = self.value(value)
                if isinstance(value, Name):
                    self.names[name] = value
                else:
                    new = Name(f"v{self.declared}", value.type, value.width)
                    self.declared += 1
                    self.names[name] = self.held[value] = new
                    if not is_constant(value):
                        self.passing.append(value)
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

    def value(self, value: Value) -> Value:
        """An expression that reads variables for what they hold."""
        match value:
            case Name(name):
                return self.names[name]
            case VectorSlice(vector, first, width):
                return VectorSlice(self.names[vector.name], first, width)
            case Const() | Index():
                return value
            case _:
                made = rebuilt(value, self.value) if value.parts else value
                return self.held.get(made, made)
