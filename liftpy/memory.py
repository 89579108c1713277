"""Refusal of allocations that exceed the free memory, before they are made.

Operating systems overcommit memory: an allocation succeeds, and processes are killed when the
memory is used.
"""

from __future__ import annotations

import psutil

from liftpy.errors import MemoryRefused


def require(number: int, what: str, instead: str) -> None:
    """Raises MemoryRefused if `number` bytes are more than this machine has free.

    For the message, `what` names the allocation, and `instead` suggests what would be accepted.
    """
    free = psutil.virtual_memory().available
    if number > free:
        raise MemoryRefused(
            f"{what} takes {in_units(number)}, and this machine has {in_units(free)} free: "
            f"{instead}"
        )


def in_units(number: int) -> str:
    """A number of bytes for a message, in the largest unit that it reaches."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
