"""Which level serves each access: the smallest cache that holds what lies between two uses.

Between two uses of a line, a loop touches the data of one of its iterations. If a cache has room
for these, it still has the line when it is used again. So the lines that an array fetches into a
cache in all iterations of a loop are the distinct ones if that data fits; otherwise they are those
of one iteration, times the number of iterations.

Note [Between two uses]. If the loops inside a loop do not change the address, each of their
iterations touches the same data of the array. The last use in one iteration of the outer loop and
the first use in the next are then an iteration of the innermost of these loops apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

from liftpy.constraints.hardware import Hardware
from liftpy.traffic.nest import Access, Axes, Loop, Nest, accesses_in


@dataclass
class Reuse:
    """The lines that each array of a nest fetches into a cache, for caches of any size.

    If lines have sectors, of `sector` bytes, a cache fetches only the sectors that are touched, and
    sectors are counted instead of lines; a line takes room for all of its sectors. `around` are the
    axes of compute units that share the cache and run the nest side by side: they vary in each of
    its steps.
    """

    nest: tuple[Nest, ...]
    line: int
    around: frozenset[str] = frozenset()
    sector: int = 0
    _sizes: dict[int, int] = field(default_factory=dict[int, int])

    def fetched(self, room: int) -> dict[str, int]:
        """For each array, the lines that are fetched into a cache with room for so many bytes.

        If lines have sectors, sectors are counted instead.
        """
        arrays = dict.fromkeys(access.array for access in accesses_in(self.nest))
        return {array: self._in_body(self.nest, array, room, frozenset()) for array in arrays}

    def distinct(self, accesses: Sequence[Access], varying: Axes) -> int:
        """The distinct sectors of accesses to one array; equal addresses are counted once."""
        return self._distinct(accesses, varying, self.sector or self.line)

    def _distinct(self, accesses: Sequence[Access], varying: Axes, unit: int) -> int:
        varying = varying | self.around
        return max((access.lines(varying, unit) for access in accesses), default=0)

    def size(self, loop: Loop) -> int:
        """The bytes that one iteration of a loop touches."""
        if id(loop) not in self._sizes:
            self._sizes[id(loop)] = self._bytes(loop.accesses, loop.inner)
        return self._sizes[id(loop)]

    def _bytes(self, accesses: Sequence[Access], varying: Axes) -> int:
        by_array: dict[str, list[Access]] = {}
        for access in accesses:
            by_array.setdefault(access.array, []).append(access)
        lines = (self._distinct(mine, varying, self.line) for mine in by_array.values())
        return self.line * sum(lines)

    def _in_loop(self, loop: Loop, array: str, room: int) -> int:
        if self._between(loop, array) <= room:
            mine = [access for access in loop.accesses if access.array == array]
            return self.distinct(mine, loop.inner | {loop.axis})
        return loop.trips * self._in_body(loop.body, array, room, loop.inner)

    def _between(self, loop: Loop, array: str) -> int:
        """The bytes that are touched between two uses: see Note [Between two uses]."""
        while True:
            mine = [
                part
                for part in loop.body
                if array in (part.arrays if isinstance(part, Loop) else {part.array})
            ]
            match mine:
                case [Loop() as only] if only.trips == 1 or all(
                    only.axis not in access.axes
                    for access in only.accesses
                    if access.array == array
                ):
                    loop = only
                case _:
                    return self.size(loop)

    def _in_body(self, body: tuple[Nest, ...], array: str, room: int, varying: Axes) -> int:
        parts = [p for p in body if array in (p.arrays if isinstance(p, Loop) else {p.array})]
        everything = [*accesses_in(body)]
        mine = [access for access in everything if access.array == array]
        if len(parts) > 1 and self._bytes(everything, varying) <= room:
            return self.distinct(mine, varying)
        loops = sum(self._in_loop(part, array, room) for part in parts if isinstance(part, Loop))
        direct = [part for part in parts if isinstance(part, Access)]
        return loops + self.distinct(direct, frozenset())


@dataclass(frozen=True)
class Traffic:
    """The sectors that each level serves to a nest: one number for each cache after the first.

    The last is memory's. `stored` are the sectors that are written back to memory. A line without
    sectors counts as one.
    """

    served: tuple[int, ...]
    stored: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        pairs = zip(self.served, other.served, strict=True)
        return Traffic(tuple(a + b for a, b in pairs), self.stored + other.stored)


def by_array(
    nest: tuple[Nest, ...], hardware: Hardware, units: Sequence[tuple[str, int]] = ()
) -> Mapping[str, Traffic]:
    """The traffic of each array of a nest, on all compute units that run it side by side.

    `units` has the axes that number these units, with their trips. What a store changes is written
    back. A line of an array that is only stored past the caches is not fetched.
    """
    many = math.prod(count for _, count in units)
    axes = frozenset(axis for axis, _ in units)
    line, sector = hardware.cache_line, hardware.sector
    alone, together = (Reuse(nest, line, around, sector) for around in (frozenset(), axes))
    fetched: list[dict[str, int]] = []
    for k, sharing in enumerate(hardware.cache_units):
        room = hardware.room(k)
        if sharing >= many:
            fetched.append(together.fetched(room))
        else:
            own = alone.fetched(room // sharing)
            fetched.append({array: many * count for array, count in own.items()})
    found: dict[str, Traffic] = {}
    for array in fetched[0]:
        counts = [*accumulate((each[array] for each in fetched), min)]  # larger caches fetch less
        served = [near - far for near, far in pairwise(counts)]
        mine = [access for access in accesses_in(nest) if access.array == array]
        stored = counts[-1] if any(access.stores for access in mine) else 0
        if all(access.nontemporal for access in mine):
            found[array] = Traffic((*(0 for _ in served), 0), stored)
        else:
            found[array] = Traffic((*served, counts[-1]), stored)
    return found


def warm(traffic: Traffic, held: int, hardware: Hardware, units: int) -> Traffic:
    """The traffic in one of many runs of a kernel that reads and writes `held` bytes.

    A cache with room for all of them has them from the run before, or from the kernel that wrote
    them: times are measured in repeated runs. Only caches that all units share are taken into
    account. What is stored past the caches is written to memory in each run.
    """
    for level, sharing in enumerate(hardware.cache_units):
        if level and sharing >= units and hardware.room(level) >= held:
            kept = traffic.served[: level - 1]
            here = sum(traffic.served[level - 1 :])
            past = not any(traffic.served)
            rest = (0,) * (len(traffic.served) - level)
            return Traffic((*kept, here, *rest), traffic.stored if past else 0)
    return traffic
