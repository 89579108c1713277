"""The passes over a kernel in the loop IR, in their order.

Each is a function from tree to tree in a file of its own, which states when it keeps the meaning.
What each makes of a tree is verified, if it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from liftpy.loops.lower import LoopKernel
from liftpy.loops.skip import skipping
from liftpy.loops.together import stored_together
from liftpy.loops.tree import Block
from liftpy.loops.unswitch import unswitched
from liftpy.loops.verify import verify

PASSES: Mapping[str, Callable[[Block], Block]] = MappingProxyType(
    {"join stores": stored_together, "unswitch": unswitched, "skip": skipping}
)


def after_each_pass(code: LoopKernel) -> Iterator[tuple[str, LoopKernel]]:
    """The kernel after each pass, with the pass's name. InternalError if one breaks it."""
    verify(code, "lowering")
    for name, change in PASSES.items():
        block = change(code.block)
        if block != code.block:
            code = replace(code, block=block)
            verify(code, name)
        yield name, code


def optimized(code: LoopKernel) -> LoopKernel:
    """The kernel after all passes."""
    *_, (_, last) = after_each_pass(code)
    return last
