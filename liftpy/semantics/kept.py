"""Arrays that are stored when they are first read, and for which values this is worth it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Get, Primitive, function_of
from liftpy.ir.pull import Value
from liftpy.ir.walk import children, top_down
from liftpy.primitives import AnyMap
from liftpy.primitives.work import is_layout
from liftpy.semantics.held import Held, view


class Ranked(Protocol):
    """A reader: `rank` is the number of axes that index arrays may have."""

    rank: int


class Later:
    """A value that is stored when first read, for the elements in progress when it was made.

    The values that it needs are stored before it, in a loop: many names cause no deep recursion.
    """

    def __init__(
        self, reader: Ranked, stored: Callable[[], Value], needs: tuple[Later, ...] = ()
    ) -> None:
        self.reader = reader
        self.rank = reader.rank
        self.stored: Callable[[], Value] | None = stored
        self.needs = needs
        self.found: Value = None

    def __call__(self) -> Value:
        waiting: list[Later] = [self] if self.stored is not None else []
        while waiting:
            needs = [later for later in waiting[-1].needs if later.stored is not None]
            if needs:
                waiting.append(needs[0])
            else:
                waiting.pop().store()
        return self.found

    def store(self) -> None:
        """Store the value if it is not stored yet."""
        if self.stored is not None:
            rank, self.reader.rank = self.reader.rank, self.rank
            try:
                self.found = view(self.stored(), {})
            finally:
                self.reader.rank = rank
            self.stored, self.needs = None, ()


@dataclass(frozen=True)
class Kept(Held):
    """An array that is stored when it is first read."""

    later: Later


def keep(length: int, later: Later) -> Kept:
    """The array that `later` stores."""
    return Kept(length, lambda i: later()[i], later)


def keep_part(length: int, later: Later, k: int) -> Kept:
    """Component `k` of the tuple of arrays that `later` stores."""
    return Kept(length, lambda i: later()[k][i], later)


def laters(value: Value) -> list[Later]:
    """The values that are stored when a value is read."""
    if isinstance(value, tuple):
        return [later for part in value for later in laters(part)]
    return [value.later] if isinstance(value, Kept) else []


def moves(fun: Primitive) -> bool:
    """Whether a primitive only moves elements of its argument, and reads each once."""
    if not isinstance(fun, AnyMap):
        return is_layout(fun) and fun.function is None
    return all(
        isinstance(part, Param)
        or (
            isinstance(part, FunCall)
            and isinstance(part.fun, Primitive)
            and len(part.args) == 1
            and is_layout(part.fun)
        )
        for _, part in top_down(fun.f.body)
    )


Reads: TypeAlias = Mapping[tuple[int, ...], int]
"""How often a variable is read, by the path of the component of a tuple that is read."""


def reads_of(expr: Expr, param: Param) -> Reads:
    """How often an expression mentions each component of a variable.

    A mention inside a function that is repeated counts twice. The function of a map does not count
    as repeated: it reads the variable once for all elements of a block.
    """
    found: Counter[tuple[int, ...]] = Counter()
    waiting: list[tuple[Expr, tuple[int, ...], int]] = [(expr, (), 1)]
    while waiting:
        part, path, times = waiting.pop()
        if param not in part.free:
            continue
        if isinstance(part, Param):
            found[path] += times
            continue
        if isinstance(part, FunCall) and isinstance(part.fun, Get):
            waiting.append((part.args[0], (part.fun.index, *path), times))
            continue
        function = function_of(part.fun) if isinstance(part, FunCall) else None
        if function is not None and param in function.free:
            once = isinstance(part, FunCall) and isinstance(part.fun, AnyMap | Lambda)
            waiting.append((function.body, (), times if once else 2))
        inner = part.args if isinstance(part, FunCall) else children(part)
        waiting += ((p, (), times) for p in inner)
    return found


def count_at(reads: Reads, path: tuple[int, ...]) -> int:
    """How often the component at a path is read, alone, within another one, or in part."""
    return sum(n for p, n in reads.items() if p[: len(path)] == path or path[: len(p)] == p)
