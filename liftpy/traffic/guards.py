"""How often the branches of a kernel are executed: the ids and counters for which guards hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from liftpy.loops.tree import (
    For,
)
from liftpy.loops.values import (
    All,
    Both,
    Condition,
    Fails,
)
from liftpy.traffic.subgroups import step_of

IN_GROUPS = ("wid", "lid")
"""The ids that make a global one."""

MOST = 1 << 16
"""The most combinations of ids and counters for which conditions are evaluated."""


def share(
    conditions: Sequence[tuple[Condition, bool]], ids: Mapping[str, int], loops: Sequence[For]
) -> Fraction:
    """The part of the ids and the counters of `loops` for which conditions hold, or fail.

    `ids` has the number of values of each id. The part is exact for at most `MOST` combinations of
    the ids and counters that the conditions mention. It is 1 (of an `else` branch, too) for more
    combinations, for conditions on data, and for conditions on two ids of which one depends on the
    other.

    >>> from liftpy.ir.nat import var
    >>> from liftpy.loops.tree import Block, For
    >>> from liftpy.loops.values import All, RangeTest
    >>> inside = All((RangeTest(3 * var("gid0", 0, 4) + var("i", 0, 2), 13),))
    >>> share([(inside, True)], {"gid0": 5}, [For("i", 0, 3, 1, Block())])
    Fraction(13, 15)
    """
    names = sorted({n for c, _ in conditions for t in c.tests for n in t.index.names()})
    values: dict[str, Sequence[int]] = {name: range(count) for name, count in ids.items()}
    for loop in loops:
        first = loop.first if isinstance(loop.first, int) else 0
        step = step_of(loop) if isinstance(loop.first, int) else 1
        values[loop.counter] = range(first, loop.bound, step)
    begins = {loop.first for loop in loops if loop.counter in names}
    parts = {f"{part}{name[-1]}" for name in names if name.startswith("gid") for part in IN_GROUPS}
    if not (values.keys() >= set(names) and (begins | parts).isdisjoint(names)):
        return Fraction(1)
    sizes = [len(values[name]) for name in names]
    if not 0 < prod(sizes) <= MOST:
        return Fraction(1)
    grid = np.meshgrid(*(np.asarray(values[name]) for name in names), indexing="ij")
    at = dict(zip(names, grid, strict=True))
    holding = np.ones(sizes, bool)
    for condition, holds in conditions:
        holding &= evaluated(condition, at) == holds
    return Fraction(int(np.count_nonzero(holding)), prod(sizes))


def evaluated(condition: Condition, at: Mapping[str, Any]) -> Any:
    """Whether a condition holds, for arrays of ids and counters."""
    match condition:
        case All(tests):
            return np.logical_and.reduce([t.room.evaluate(at) >= 0 for t in tests])
        case Fails(inner):
            return ~evaluated(inner, at)
        case Both(left, right):
            return evaluated(left, at) & evaluated(right, at)
