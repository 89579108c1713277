"""The passes over a kernel, in their order: those on its loop nest, and those in the loop IR.

Each is a function from tree to tree in a file of its own, which states when it keeps the meaning.
What each makes of a tree in the loop IR is verified, if it is another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from liftpy.kernels.chain import Kernel
from liftpy.loops.barriers import with_needed_barriers
from liftpy.loops.in_place import in_place
from liftpy.loops.lower import LoopKernel, NestKernel, lowered
from liftpy.loops.merge_stores import merge_stores
from liftpy.loops.nest import Nest
from liftpy.loops.silent_stores import without_silent_stores
from liftpy.loops.storing import with_variables
from liftpy.loops.tree import Block
from liftpy.loops.unroll import unrolled
from liftpy.loops.unswitch import unswitched
from liftpy.loops.verify import verify

ON_NESTS: Mapping[str, Callable[[Nest], Nest]] = MappingProxyType(
    {"unroll": unrolled, "update in place": in_place}
)
PASSES: Mapping[str, Callable[[Block], Block]] = MappingProxyType(
    {"merge stores": merge_stores, "unswitch": unswitched, "silent stores": without_silent_stores}
)


def lowered_to_loops(kernel: Kernel, names: dict[str, str]) -> LoopKernel:
    """A kernel in the loop IR; `names` has those of the buffers.

    TypeRefused for code that would be too long, and for private memory that work-items would share.
    """
    code = lowered(kernel, names)
    nest = code.nest
    for change in ON_NESTS.values():
        nest = change(nest)
    return in_loop_ir(code, nest)


def in_loop_ir(code: NestKernel, nest: Nest, *, rolled: bool = False) -> LoopKernel:
    """A kernel whose nest has become this one, in the loop IR, with the barriers that it needs."""
    block = with_needed_barriers(with_variables(nest), code.local_size)
    return code.with_block(block, rolled=rolled)


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
