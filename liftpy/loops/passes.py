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
from liftpy.loops.common import without_common
from liftpy.loops.hoisting import hoisted
from liftpy.loops.in_place import in_place
from liftpy.loops.lower import LoopKernel, lowered
from liftpy.loops.merge_stores import merge_stores
from liftpy.loops.nest import MOST_STATEMENTS, Nest, too_long
from liftpy.loops.silent_stores import without_silent_stores
from liftpy.loops.storing import stored
from liftpy.loops.tree import Block, statements_in
from liftpy.loops.unroll import unrolled
from liftpy.loops.unswitch import unswitched
from liftpy.loops.verify import verify

ON_NESTS: Mapping[str, Callable[[Nest], Nest]] = MappingProxyType(
    {"unroll": unrolled, "update in place": in_place}
)
SHORTEST = "common subexpressions"
"""The pass after which a kernel is at its shortest: those after it make versions of loops."""

PASSES: Mapping[str, Callable[[LoopKernel], Block]] = MappingProxyType(
    {
        "hoisting": lambda code: hoisted(code.block),
        "common subexpressions": lambda code: without_common(code.block),
        "barriers": lambda code: with_needed_barriers(code.block, code.local_size),
        "merge stores": lambda code: merge_stores(code.block),
        "unswitch": lambda code: unswitched(code.block),
        "silent stores": lambda code: without_silent_stores(code.block),
    }
)


def nests(kernel: Kernel, names: dict[str, str]) -> Iterator[tuple[str, LoopKernel]]:
    """The loop IR of a kernel's nest as it is lowered, and after each pass, with the pass's name.

    `names` has those of the buffers. TypeRefused for code that would be too long, and for private
    memory that work-items would share.
    """
    code, nest = lowered(kernel, names)
    yield "nest", replace(code, block=stored(nest), rolled=True)
    for name, change in ON_NESTS.items():
        nest = change(nest)
        yield name, replace(code, block=stored(nest), rolled=True)


def in_loop_ir(kernel: Kernel, names: dict[str, str]) -> LoopKernel:
    """A kernel in the loop IR, of its nest after all passes on it."""
    code, nest = lowered(kernel, names)
    for change in ON_NESTS.values():
        nest = change(nest)
    return replace(code, block=stored(nest))


def after_each_pass(code: LoopKernel) -> Iterator[tuple[str, LoopKernel]]:
    """The kernel after each pass, with the pass's name. InternalError if one breaks it.

    TypeRefused if it is too long before loops get versions.
    """
    verify(code, "lowering")
    for name, change in PASSES.items():
        block = change(code)
        if block != code.block:
            code = replace(code, block=block)
            verify(code, name)
        if name == SHORTEST and length_of(code) > MOST_STATEMENTS:
            raise too_long(code.name)
        yield name, code


def length_of(code: LoopKernel) -> int:
    """How many statements a kernel has."""
    return sum(1 for _ in statements_in(code.block))


def optimized(code: LoopKernel) -> LoopKernel:
    """The kernel after all passes."""
    *_, (_, last) = after_each_pass(code)
    return last
