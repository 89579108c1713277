"""The variables of a kernel's code: what is held in one, and in which block it is declared.

What is mentioned more than once is computed once, into a constant variable. A term that reads only
what the kernel never writes has one value wherever it is computed: it is declared in the outermost
open block that knows its loop variables. Any other is declared where it is first needed, and that
variable serves until the block ends or something is stored.

Note [Behind a condition]. What only a guarded value mentions may read out of bounds where the guard
does not hold. It is held in a variable that is computed under the same conditions, and is zero
where they fail: `const float v1 = (i >= 1) ? a[i - 1] * 2.0f : 0.0f;`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from liftpy.loops.terms import condition_of, repeated
from liftpy.loops.tree import (
    Block,
    Both,
    Condition,
    Const,
    Fails,
    Let,
    Name,
    Select,
    Statement,
    Value,
)
from liftpy.views.access import Inside, Term


@dataclass(slots=True)
class Open:
    """A block that is being made. `loads` has what is held in which of its variables."""

    statements: list[Statement] = field(default_factory=list)
    loads: dict[object, Value] = field(default_factory=dict)

    def closed(self) -> Block:
        """The block as it is now."""
        return Block(tuple(self.statements))


@dataclass
class Scopes:
    """The open blocks, and the variables that are declared in them."""

    emitted: int = field(init=False, default=0)
    declared: int = field(init=False, default=0)
    blocks: list[Open] = field(init=False, default_factory=lambda: [Open()])
    depths: dict[str, int] = field(init=False, default_factory=dict)
    shared: set[Term] = field(init=False, default_factory=set)
    guard: tuple[Condition, ...] = field(init=False, default=())
    stores: int = field(init=False, default=0)

    @property
    def block(self) -> Open:
        """The innermost open block."""
        return self.blocks[-1]

    def put(self, statement: Statement) -> None:
        """Append a statement."""
        self.emitted += 1
        self.block.statements.append(statement)

    def open(self, counter: str) -> None:
        """Begin the block of a loop."""
        self.depths[counter] = len(self.blocks)
        self.blocks.append(Open())

    def close(self) -> Block:
        """End the innermost block."""
        return self.blocks.pop().closed()

    @contextmanager
    def branch(self) -> Generator[Open]:
        """The block of a branch: what is declared in it is not known outside."""
        block = Open()
        self.blocks.append(block)
        yield block
        self.close()

    # --- variables ---

    def declare(self, value: Value) -> Name:
        """A new variable, in the innermost block."""
        name = f"v{self.declared}"
        self.declared += 1
        self.depths[name] = len(self.blocks) - 1
        self.put(Let(name, value))
        return Name(name, value.type, value.width)

    def find(self, key: object) -> Value | None:
        """The variable that already holds a value, if there is one."""
        for block in reversed(self.blocks):
            found = block.loads.get(key)
            if found is not None:
                return found
        return None

    def named(self, key: object, compute: Callable[[], Value]) -> Value:
        """The variable that holds a value, declared at its first use."""
        found = self.find(key)
        if found is None:
            found = self.block.loads[key] = self.declare(compute())
        return found

    def share(self, term: Term) -> None:
        """Note what of a term is to be held in variables: what it mentions more than once."""
        self.shared |= repeated(term)

    def held(self, term: Term, width: int, compute: Callable[[], Value]) -> Value:
        """A term's value, or the variable that holds it; of `width` lanes."""
        if term not in self.shared:
            return compute()
        if not term.stable:
            key = (term, width, self.stores)
            if key not in self.block.loads:
                self.block.loads[key] = self.declare(compute())
            return self.block.loads[key]
        key = term if width == 1 else (term, width)
        found = self.find(key)
        if found is None:
            with self.at(max((self.depths.get(n, 0) for n in term.names), default=0)):
                found = self.named(key, compute)
        return found

    @contextmanager
    def at(self, depth: int) -> Generator[None]:
        """In an outer block."""
        inner = self.blocks[depth + 1 :]
        del self.blocks[depth + 1 :]
        yield
        self.blocks += inner

    # --- conditions ---

    @contextmanager
    def behind(self, conditions: list[Inside], *, holds: bool) -> Generator[None]:
        """Where conditions hold, or where not all of them do."""
        before, condition = self.guard, condition_of(conditions)
        self.guard = (*before, condition if holds else Fails(condition))
        yield
        self.guard = before

    def held_behind(self, term: Term, compute: Callable[[], Value]) -> Value:
        """`held`, a scalar, where the conditions of now hold (Note [Behind a condition])."""
        if term not in self.shared or not self.guard:
            return compute()
        found = self.find(term)
        if found is not None:
            return found
        condition = functools.reduce(Both, self.guard)
        key = (term, self.guard, None if term.stable else self.stores)
        if key not in self.block.loads:
            value = Select(condition, compute(), Const(0, term.type))
            self.block.loads[key] = self.declare(value)
        return self.block.loads[key]
