"""What a kernel does in the order of its text, as far as memory that work-items share is concerned.

A trace is a list of accesses, of places where the work-items of a group may wait for each other,
and of the loops around them. Barriers are decided on it (loops/barriers.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.ir.nat import Nat
from liftpy.loops.tree import Barrier
from liftpy.views.access import Memory


@dataclass(frozen=True, slots=True)
class Access:
    """One access to a buffer, for `--stage views` and for barriers."""

    memory: Memory
    index: Nat
    width: int
    store: bool


@dataclass(frozen=True, slots=True)
class Entered:
    """A loop begins: `counter` goes from `start` to below `length` in steps of `step`.

    `start` is the name of an id where the loop is over ids: each work-item has passes of its own.
    """

    counter: str
    start: str
    length: int
    step: int


@dataclass(frozen=True, slots=True)
class Left:
    """The innermost loop ends."""


Event: TypeAlias = Access | Barrier | Entered | Left
