"""Computations with known zeros are done at compile time.

Where a guard of padding is known to fail, the value is 0: in a version of code for a class of
border (`liftpy.loops.classes`), for example. Variables and registers that hold 0 are followed
through the code, and `0 + x`, `x - 0`, `0 * x` and the like become `x`, `-x` or 0.

The laws are those of real numbers, as for silent stores (`liftpy.loops.silent_stores`): if the
other factor is infinite or NaN, a result at a border may differ. A register that is stored to in a
loop or a branch is unknown in the loop, and after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from liftpy.ir.types import FLOATS
from liftpy.loops.tree import (
    Block,
    For,
    If,
    Let,
    Statement,
    Store,
    Update,
    statements_in,
)
from liftpy.loops.values import (
    Cell,
    Const,
    Name,
    Operate,
    Value,
    rebuilt,
)


def without_zeros(block: Block) -> Block:
    """A block whose computations with known zeros are done."""
    return Zeros(frozenset(), set()).block(block)


@dataclass
class Zeros:
    """The variables and the registers that hold 0 at a point of the code."""

    names: frozenset[str]
    registers: set[Cell]

    def block(self, block: Block) -> Block:
        """A block from this state on; its declarations are forgotten after it."""
        outer = self.names
        made = block.each(self.statement)
        self.names = outer
        return made

    def statement(self, s: Statement) -> Iterator[Statement]:
        """The replacement of a statement."""
        match s:
            case Let(name, value):
                found = self.value(value)
                if is_zero(found) and found.type in FLOATS:  # others may be in an index
                    self.names |= {name}
                else:
                    yield Let(name, found)
            case Store(cell, value) if cell.memory.space == "private":
                found = self.value(value)
                if not (is_zero(found) and cell in self.registers):
                    yield replace(s, value=found)
                self.registers = {r for r in self.registers if apart(r, cell)}
                if is_zero(found):
                    self.registers.add(cell)
            case Store(_, value) | Update(_, value):
                yield replace(s, value=self.value(value))
            case For(body=body):
                self.forget(body)
                if made := Zeros(self.names, {*self.registers}).block(body):
                    yield replace(s, body=made)
            case If(condition, then, otherwise):
                parts = (Zeros(self.names, {*self.registers}).block(b) for b in (then, otherwise))
                yield If(condition, *parts)
                self.forget(then)
                self.forget(otherwise)
            case _:
                yield s

    def forget(self, block: Block) -> None:
        """Forget the registers to which a block stores."""
        stored = [s.cell for s in statements_in(block) if isinstance(s, Store)]
        self.registers = {r for r in self.registers if all(apart(r, cell) for cell in stored)}

    def value(self, value: Value) -> Value:
        """An expression here."""
        if isinstance(value, Name) and value.name in self.names:
            return zero(value)
        if isinstance(value, Cell) and value in self.registers:
            return zero(value)
        made = rebuilt(value, self.value)
        return simplified(made) if isinstance(made, Operate) and made.width == 1 else made


def simplified(value: Operate) -> Value:
    """A scalar operation, simplified if an operand is 0."""
    match value:
        case Operate("+", (a, b)) if is_zero(a):
            return b
        case Operate("+" | "-", (a, b)) if is_zero(b):
            return a
        case Operate("-", (a, b)) if is_zero(a):
            return Operate("neg", (b,), value.type)
        case Operate("*", args) if any(map(is_zero, args)):
            return zero(value)
        case Operate("/", (a, Const(number))) if is_zero(a) and number:
            return zero(value)
        case Operate("neg", (a,)) if is_zero(a):
            return zero(value)
        case _:
            return value


def zero(like: Value) -> Const:
    """The 0 of the type of an expression."""
    return Const(0.0 if like.type in FLOATS else 0, like.type)


def is_zero(value: Value) -> bool:
    """Whether an expression is the number 0."""
    return isinstance(value, Const) and not isinstance(value.value, bool) and value.value == 0


def apart(one: Cell, other: Cell) -> bool:
    """Whether two cells of registers have no element in common."""
    if one.memory != other.memory:
        return True
    distance = (other.index - one.index).constant
    return distance is not None and (distance >= one.width or -distance >= other.width)
