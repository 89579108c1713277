"""Parallel levels, and which may stand inside which.

The rules of Mogers et al. 2022 (section 5; numbered as in docs/design.md, Rewriting), each stated
here once: strategies look for mappings that keep them, the kernels room refuses those that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from liftpy.primitives.lowered import MapGlb, MapLcl, MapWrg

#: A parallel level: which map, in which dimension.
Level: TypeAlias = tuple[type[MapGlb | MapWrg | MapLcl], int]
PARALLEL = (MapGlb, MapWrg, MapLcl)
DIMENSIONS = (0, 1, 2)


def level_of(fun: MapGlb | MapWrg | MapLcl) -> Level:
    """The level that a parallel map stands for."""
    return type(fun), fun.dim


def word(level: Level) -> str:
    """A level as it is written."""
    return f"{level[0].name}({level[1]})"


def misplaced(level: Level, above: Sequence[Level]) -> str | None:
    """Why a level may not stand inside others; None if it may.

    Nested levels differ (3); a work-item is of a group in the same dimension (4, 5), and does not
    hold a group of it (6); global ids are not used beside groups (8).
    """
    kind, dim = level
    if kind is MapWrg and (MapLcl, dim) in above:
        return (
            f"{word(level)} is inside a mapLcl({dim}): work-groups hold work-items, not the reverse"
        )
    if level in above:
        return f"{word(level)} is inside another {word(level)}"
    if kind is MapLcl and (MapWrg, dim) not in above:
        return (
            f"{word(level)} is outside every mapWrg({dim}): put it inside one, or use mapGlb({dim})"
        )
    if any((kind is MapGlb) != (other is MapGlb) for other, _ in above):
        return (
            "mapGlb cannot be mixed with mapWrg or mapLcl in one kernel: use toGlobal between them"
        )
    return None
