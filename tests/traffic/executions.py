"""How often a kernel loads and stores, by running its loop IR without values.

As it is, or with what the model takes to be true, so that what either adds can be told apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liftpy.loops.lower import LoopKernel
from liftpy.loops.tree import (
    Block,
    For,
)
from liftpy.loops.values import (
    Cell,
    Select,
    SubgroupsReduce,
    Value,
)
from liftpy.semantics.operations import DTYPES
from liftpy.traffic.subgroups import step_of
from tests.loops.interpret import Machine

Array: TypeAlias = NDArray[Any]
Executed: TypeAlias = Counter[tuple[str, bool, int]]

GUARDS = "guards of loads hold, and what stands in place of a guarded load is computed too"
SHARES = "work-items share the iterations of a loop over ids evenly, rounded up"
ONCE = "a block loads equal cells once"
ASSUMED = frozenset({GUARDS, SHARES, ONCE})
"""What the model takes to be true."""


def executions(
    code: LoopKernel, assumed: frozenset[str] = frozenset(), subgroup: int = 1
) -> Executed:
    """The loads and stores of all work-items, by space, whether they store, and width.

    An expression that the code repeats counts each time, unless `ONCE` is assumed. On a device
    without subgroups, each work-item is one.
    """
    counting = Counting(code, {}, assumed, subgroup=subgroup)
    with np.errstate(all="ignore"):
        counting.block(code.block, counting.everybody)
    return counting.executed


@dataclass
class Counting(Machine):
    """Runs a kernel and counts its accesses; what is loaded is 0."""

    assumed: frozenset[str]
    executed: Executed = field(init=False, default_factory=Counter[tuple[str, bool, int]])
    seen: set[Cell] = field(init=False, default_factory=set[Cell])

    def block(self, block: Block, who: Array) -> None:
        """The statements of a block, one after the other."""
        outside, self.seen = self.seen, set()
        for s in block:
            if SHARES in self.assumed and isinstance(s, For) and isinstance(s.first, str):
                for k in range(0, s.bound, step_of(s)):
                    self.at[s.counter] = self.at[s.first] + k
                    self.block(s.body, who)
            else:
                super().block(Block((s,)), who)
        self.seen = outside

    def value(self, value: Value, who: Array) -> Array:
        if GUARDS in self.assumed and isinstance(value, Select):
            self.value(value.otherwise, who)
            return self.value(value.then, who)
        if ONCE not in self.assumed and isinstance(value, SubgroupsReduce):
            for _ in range(1, self.count_of_subgroups):  # the code reads each result
                self.load(value.cell, who)
        return super().value(value, who)

    def load(self, cell: Cell, who: Array) -> Array:
        if not (ONCE in self.assumed and cell in self.seen):
            self.add(cell, who, stores=False)
        self.seen.add(cell)
        shape = (self.count, cell.width)
        return np.zeros(shape[: 1 + (cell.width > 1)], DTYPES[cell.memory.scalar.name])

    def store(self, cell: Cell, value: Array, who: Array) -> None:
        self.add(cell, who, stores=True)

    def copy(self, cell: Cell, source: Cell, who: Array) -> None:
        """Registers are not counted."""

    def add(self, cell: Cell, who: Array, *, stores: bool) -> None:
        """Counts an access by those who come by."""
        if cell.memory.space != "private" and who.any():
            self.executed[cell.memory.space, stores, cell.width] += int(who.sum())
