"""The passes over a kernel in the loop IR, in their order.

Each is a function from tree to tree in a file of its own, which states when it keeps the meaning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from liftpy.loops.skip import skipping
from liftpy.loops.together import stored_together
from liftpy.loops.tree import Block
from liftpy.loops.unswitch import unswitched

PASSES: Mapping[str, Callable[[Block], Block]] = MappingProxyType(
    {"join stores": stored_together, "unswitch": unswitched, "skip": skipping}
)
