"""Which local memories need barriers: decided by z3 on the index maps of their accesses.

A barrier is needed where two work-items of a group may touch one address and one of them writes.
What the solver cannot decide counts as needed.
"""

from __future__ import annotations

from liftpy.ir.nat import Nat, var
from liftpy.opencl.reading import Access
from liftpy.semantics.smt import find_collision
from liftpy.views.access import Memory

GROUP_IDS = ("wid0", "wid1", "wid2")


def needed_barriers(accesses: list[Access], local_size: tuple[int, int, int]) -> dict[Memory, str]:
    """The local memories that two work-items of a group share, each with a witness in words."""
    ids = tuple(f"lid{d}" for d, size in enumerate(local_size) if size > 1)
    found: dict[Memory, str] = {}
    if not ids:
        return found
    for memory in dict.fromkeys(a.memory for a in accesses if a.memory.space == "local"):
        touching = list(dict.fromkeys(a for a in accesses if a.memory == memory))
        pairs = ((write, other) for write in touching if write.store for other in touching)
        for write, other in pairs:
            collision = find_collision(addresses(write), addresses(other), ids, GROUP_IDS)
            if collision is not None:
                found[memory] = str(collision)
                break
    return found


def addresses(access: Access) -> Nat:
    """The addresses of an access, each lane of a vector included."""
    return access.index if access.width == 1 else access.index + var("lane", 0, access.width - 1)
