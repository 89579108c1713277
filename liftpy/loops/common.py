"""Common subexpression elimination: a value that a variable holds is not computed again.

Where such a value is computed, the variable is read instead, and a variable that would hold the
same value as another one is not declared. This keeps the meaning: a variable is read in its block,
after its declaration, and while its value is still the same. A value that reads memory that the
kernel writes is the same up to the next statement that is not a declaration. Any other value is the
same wherever it is computed.

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
    """The variables known at the current point of the code, by the value that they hold.

    The values in `passing` may change with the next store. `names` maps each variable of the old
    code to that of the new one.
    """

    held: dict[Value, Name] = field(default_factory=dict)
    passing: list[Value] = field(default_factory=list)
    names: dict[str, Name] = field(default_factory=dict)
    declared: int = 0

    def block(self, block: Block) -> Block:
        """A block; variables declared in it are not known outside."""
        self.forget()
        outside, self.held = self.held, dict(self.held)
        made = block.each(self.statement)
        self.held, self.passing = outside, []
        return made

    def forget(self) -> None:
        """Forget the values that a store may change."""
        for value in self.passing:
            del self.held[value]
        self.passing = []

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement."""
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
        """An expression that reads variables in place of the values they hold."""
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
