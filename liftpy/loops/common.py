"""Common subexpression elimination: a value that a variable holds is not computed again.

Where such a value is computed, the variable is read instead, and a variable that would hold the
same value as another one is not declared. This is value numbering: values with the same operator
and equally numbered parts have the same number, and a variable has the number of the value that it
holds. So it does not matter whether a value reads a variable or computes the same thing. This keeps
the meaning: a variable is read in its block, after its declaration. A read from memory that the
kernel writes gets a new number after each statement other than a declaration. Any other value is
the same wherever it is computed.

Variables are renumbered in the order of their declarations.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from liftpy.ir.nat import Nat
from liftpy.loops.hoisting import is_constant
from liftpy.loops.substitute import renamed
from liftpy.loops.tree import (
    Assume,
    Barrier,
    Block,
    Fetch,
    For,
    If,
    Let,
    Statement,
    Store,
    Update,
    with_blocks,
)
from liftpy.loops.values import (
    All,
    Both,
    Cell,
    Condition,
    Const,
    Fails,
    Index,
    Name,
    RangeTest,
    Select,
    SubgroupBroadcast,
    SubgroupsReduce,
    Value,
    VectorSlice,
    rebuilt,
)

Place = TypeVar("Place", Cell, RangeTest)


def without_common(block: Block) -> Block:
    """A block in which no two variables hold the same value, and none is computed again."""
    return KnownVariables().block(block)


@dataclass
class KnownVariables:
    """The variables known at the current point of the code, by the numbers of their values.

    `numbers` maps each value so far to its number; in its keys, the parts of a value are variables
    `#n`, where n is the number of the part. The next store may change the values in `passing`.
    `names` maps each variable of the old code to its variable in the new code, and `values` to the
    number of its value. `spelled` and `symbols` map it to the texts of these, for use inside
    indices.
    """

    held: dict[int, Name] = field(default_factory=dict)
    numbers: dict[Value, int] = field(default_factory=dict)
    passing: list[Value] = field(default_factory=list)
    names: dict[str, Name] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    symbols: dict[str, str] = field(default_factory=dict)
    spelled: dict[str, str] = field(default_factory=dict)
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
                number, value = self.shared(value)
                self.values[name], self.symbols[name] = number, f"#{number}"
                if isinstance(value, Name):
                    self.names[name] = value
                else:
                    new = Name(f"v{self.declared}", value.type, value.width)
                    self.declared += 1
                    self.names[name] = self.held[number] = new
                    yield Let(new.name, value)
                self.spelled[name] = self.names[name].name
            case Store(cell, value, silent, nontemporal):
                tests = tuple(place_renamed(t, self.spelled) for t in silent)
                cell = place_renamed(cell, self.spelled)
                yield Store(cell, self.shared(value)[1], tests, nontemporal)
                self.forget()
            case Update(cell, value, op):
                yield Update(place_renamed(cell, self.spelled), self.shared(value)[1], op)
                self.forget()
            case For():
                yield with_blocks(s, self.block)
            case If(condition):
                condition = condition_renamed(condition, self.spelled)
                yield with_blocks(replace(s, condition=condition), self.block)
            case Fetch(cell):
                yield Fetch(place_renamed(cell, self.spelled))
            case Assume(holding, failing, same):
                yield Assume(
                    tuple(place_renamed(t, self.spelled) for t in holding),
                    tuple(place_renamed(t, self.spelled) for t in failing),
                    tuple(
                        (place_renamed(t, self.spelled), place_renamed(simple, self.spelled))
                        for t, simple in same
                    ),
                )
            case Barrier():
                yield s
                self.forget()

    def shared(self, value: Value) -> tuple[int, Value]:
        """The number of a value, and the value reading variables in place of what they hold."""
        match value:
            case Name(name):
                return self.values[name], self.names[name]
            case VectorSlice(vector, first, width):
                key = VectorSlice(symbol(self.values[vector.name], vector), first, width)
                made = VectorSlice(self.names[vector.name], first, width)
            case SubgroupsReduce(op, cell):  # the cell names the memory: it is not loaded
                key = SubgroupsReduce(op, place_renamed(cell, self.symbols))
                made = SubgroupsReduce(op, place_renamed(cell, self.spelled))
            case _:
                parts = [(part, *self.shared(part)) for part in value.parts]
                symbols = iter([symbol(number, part) for part, number, _ in parts])
                values = iter([new for _, _, new in parts])
                key = rebuilt(value, lambda _: next(symbols))
                made = rebuilt(value, lambda _: next(values))
        number = self.number(indices_renamed(key, self.symbols))
        made = indices_renamed(made, self.spelled)
        return number, made if isinstance(value, Const) else self.held.get(number, made)

    def number(self, key: Value) -> int:
        """The number of values with this key; a new one if there is none yet."""
        if key not in self.numbers:
            self.numbers[key] = self.numbered
            self.numbered += 1
            if not is_constant(key):
                self.passing.append(key)
        return self.numbers[key]


def symbol(number: int, value: Value) -> Name:
    """The variable that stands for a value with this number in a key."""
    return Name(f"#{number}", value.type, value.width)


def indices_renamed(value: Value, names: Mapping[str, str]) -> Value:
    """A value whose indices, but not those of its parts, mention variables by other names."""
    match value:
        case Index(index, t):
            new = index_renamed(index, names)
            return value if new is index else Index(new, t)
        case Cell():
            return place_renamed(value, names)
        case SubgroupBroadcast(_, row, item):
            row, item = index_renamed(row, names), index_renamed(item, names)
            return replace(value, row=row, item=item)
        case Select():
            return replace(value, condition=condition_renamed(value.condition, names))
        case _:
            return value


def index_renamed(index: Nat, names: Mapping[str, str]) -> Nat:
    """An index that mentions variables by other names."""
    mentioned = index.names() & names.keys()
    return renamed(index, {n: names[n] for n in mentioned}) if mentioned else index


def place_renamed(place: Place, names: Mapping[str, str]) -> Place:
    """A cell, or a test, whose index mentions variables by other names."""
    index = index_renamed(place.index, names)
    return place if index is place.index else replace(place, index=index)


def condition_renamed(condition: Condition, names: Mapping[str, str]) -> Condition:
    """A condition that mentions variables by other names."""
    match condition:
        case All(tests):
            return All(tuple(place_renamed(t, names) for t in tests))
        case Fails(All(tests)):
            return Fails(All(tuple(place_renamed(t, names) for t in tests)))
        case Both(left, right):
            return Both(condition_renamed(left, names), condition_renamed(right, names))
