"""A cache that evicts the line that was used longest ago."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable

Line = tuple[str, int]
"""An array, and the number of a line in it."""


def fetched(lines: Iterable[Line], room: int, line: int) -> dict[str, int]:
    """The lines that each array fetches into a cache of `room` bytes, for accesses in order."""
    held: OrderedDict[Line, None] = OrderedDict()
    found: Counter[str] = Counter()
    for where in lines:
        if where in held:
            held.move_to_end(where)
            continue
        found[where[0]] += 1
        held[where] = None
        if len(held) * line > room:
            held.popitem(last=False)
    return dict(found)
