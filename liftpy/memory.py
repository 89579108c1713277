"""What cannot be held is refused with its size, before it is asked for.

A system promises memory that it does not have, and ends a process, or all of them, when it is used.
"""

from __future__ import annotations

import psutil

from liftpy.errors import MemoryRefused


def require(number: int, what: str, instead: str) -> None:
    """MemoryRefused where so many bytes are more than this machine has free.

    `what` takes them; `instead` says what would be accepted.
    """
    free = psutil.virtual_memory().available
    if number > free:
        raise MemoryRefused(
            f"{what} takes {in_units(number)}, and this machine has {in_units(free)} free: "
            f"{instead}"
        )


def in_units(number: int) -> str:
    """A number of bytes for a message, in the unit that it reaches."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} B"
