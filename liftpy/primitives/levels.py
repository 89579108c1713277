"""Parallel levels, and which of them may be nested.

The rules are those of Mogers et al. 2022 (section 5; numbered as in docs/design.md, Rewriting).
Strategies search for mappings that obey them; `liftpy.kernels` refuses mappings that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from liftpy.ir.function import Lambda
from liftpy.ir.walk import has_call
from liftpy.primitives.lowered import MapGlb, MapLcl, MapWrg

#: A parallel level: the class of the map, and its dimension.
Level: TypeAlias = tuple[type[MapGlb | MapWrg | MapLcl], int]
PARALLEL = (MapGlb, MapWrg, MapLcl)


def level_of(fun: MapGlb | MapWrg | MapLcl) -> Level:
    """The level of a parallel map."""
    return type(fun), fun.dim


def word(level: Level) -> str:
    """A level as the text form writes it."""
    return f"{level[0].name}({level[1]})"


def misplaced(level: Level, above: Sequence[Level]) -> str | None:
    """Why a level must not be nested inside the levels `above`; None if it may be.

    Nested levels differ (3); a `mapLcl` is inside a `mapWrg` of its dimension (4, 5), not around
    one (6); `mapGlb` is not mixed with `mapWrg` or `mapLcl` (8).
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


def has_levels(f: Lambda) -> bool:
    """Whether a function contains parallel maps."""
    return has_call(f.body, *PARALLEL)
