"""The memory that a process may take: of the machine, or of its container."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil

CONTAINER = Path("/sys/fs/cgroup")
"""The control group of a container, as its processes see it."""

FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)
"""The files with the limit, the bytes in use and their kinds, and the kind of files that are cached
and not in use, with those of nested groups: of cgroups 2, and of cgroups 1."""


def available() -> int:
    """The bytes that the machine has free, or its container, if these are fewer.

    Files that a container has read and no longer uses count as free.
    """
    free = psutil.virtual_memory().available
    for *names, unused_files in FILES:
        with suppress(OSError, ValueError, KeyError):  # no such group, or its limit is `max`
            limit, used, stat = ((CONTAINER / name).read_text(encoding="ascii") for name in names)
            unused = int(dict(line.split() for line in stat.splitlines())[unused_files])
            free = min(free, max(0, int(limit) - int(used) + unused))
    return free
