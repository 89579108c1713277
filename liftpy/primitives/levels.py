"""Parallel levels, and which of them may be nested.

The rules are those of Mogers et al. 2022 (section 5; numbered as in docs/design.md, Rewriting).
Strategies search for mappings that obey them; `liftpy.kernels` refuses mappings that do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from liftpy.ir.function import Lambda
from liftpy.ir.walk import has_call
from liftpy.primitives.parallel import MapGlb, MapItem, MapLcl, MapSubgroup, MapWrg

#: A parallel map.
Parallel: TypeAlias = MapGlb | MapWrg | MapLcl | MapSubgroup | MapItem
#: A parallel level: the class of the map, and its dimension.
Level: TypeAlias = tuple[type[Parallel], int]
PARALLEL = (MapGlb, MapWrg, MapLcl, MapSubgroup, MapItem)
OF_SUBGROUPS = (MapSubgroup, MapItem)
"""The levels of subgroups, which are formed along dimension 0 of a group."""


def level_of(fun: Parallel) -> Level:
    """The level of a parallel map."""
    return type(fun), fun.dim


def word(level: Level) -> str:
    """A level as the text form writes it, without the size of groups."""
    kind, dim = level
    return kind.name if kind in OF_SUBGROUPS else f"{kind.name}({dim})"


def misplaced(level: Level, above: Sequence[Level]) -> str | None:
    """Why a level must not be nested inside the levels `above`; None if it may be.

    Nested levels differ (3); a `mapLcl` is inside a `mapWrg` of its dimension (4, 5), not around
    one (6); `mapGlb` is not mixed with `mapWrg` or `mapLcl` (8). A `mapSubgroup` is inside a
    `mapWrg(0)` and not inside a `mapLcl`; a `mapItem` is inside a `mapSubgroup`, and no other level
    is.
    """
    kind, dim = level
    if kind in OF_SUBGROUPS or any(other in OF_SUBGROUPS for other, _ in above):
        return misplaced_in_subgroups(level, above)
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


def misplaced_in_subgroups(level: Level, above: Sequence[Level]) -> str | None:
    """`misplaced` for a level of subgroups, or a level inside one."""
    kinds = [kind for kind, _ in above]
    around = next((other.name for other in kinds if other in OF_SUBGROUPS), "")
    kind, _ = level
    needed: Level = (MapSubgroup, 0) if kind is MapItem else (MapWrg, 0)
    if kind not in OF_SUBGROUPS:
        return (
            f"{word(level)} is inside a {around}: use mapItem for the work-items of the subgroup, "
            "or mapSeq"
        )
    if MapItem in kinds:
        return (
            f"{word(level)} is inside a {MapItem.name}: a work-item is not divided further. "
            "Use mapSeq"
        )
    if level in above:
        return f"{word(level)} is inside another {word(level)}: use mapItem or mapSeq inside one"
    if needed not in above:
        return f"{word(level)} is outside every {word(needed)}: put it inside one"
    if MapLcl in kinds:
        return f"{word(level)} is inside a mapLcl: a group has subgroups, a work-item has none"
    return None


def has_levels(f: Lambda) -> bool:
    """Whether a function contains parallel maps."""
    return has_call(f.body, *PARALLEL)
