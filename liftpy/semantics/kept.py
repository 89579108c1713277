"""Arrays that are stored when they are first read, and for which values this is worth it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive, function_of
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


def is_often(expr: Expr, param: Param) -> bool:
    """Whether a variable is mentioned more than once, or inside a function that is repeated.

    The function of a map does not count as repeated: it reads the variable once for all elements
    of a block.
    """
    mentions, waiting = 0, [expr]
    while waiting:
        part = waiting.pop()
        if param not in part.free:
            continue
        if isinstance(part, Param):
            mentions += 1
            continue
        function = function_of(part.fun) if isinstance(part, FunCall) else None
        if function is not None and param in function.free:
            if not isinstance(part, FunCall) or not isinstance(part.fun, AnyMap | Lambda):
                return True
            waiting.append(function.body)
        waiting += part.args if isinstance(part, FunCall) else children(part)
    return mentions > 1
