"""Runs the passes over a kernel: those on its loop nest, and those in the loop IR.

Each pass is a function from tree to tree in a file of its own, which states when it keeps the
meaning; `liftpy.pipeline` lists the passes in order. The last tree of the loop IR is verified, and
the trees before it only if it has a fault or is to be shown after each pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

from liftpy.errors import TypeRefused
from liftpy.kernels.chain import Kernel
from liftpy.loops import together
from liftpy.loops.lower import LoopKernel, lowered
from liftpy.loops.nest import MOST_STATEMENTS, Nest, too_long
from liftpy.loops.regular import without_snapshots
from liftpy.loops.storing import stored
from liftpy.loops.tree import (
    Block,
    statements_in,
)
from liftpy.loops.unroll import partly_unrolled
from liftpy.loops.verify import is_well_formed, verify
from liftpy.primitives import ToSubgroup

#: Passes by name, in order.
OnNests: TypeAlias = Mapping[str, Callable[[Nest], Nest]]
Passes: TypeAlias = Mapping[str, Callable[[LoopKernel], Block]]


def nests(
    kernel: Kernel, names: dict[str, str], passes: OnNests
) -> Iterator[tuple[str, LoopKernel]]:
    """The loop IR of a kernel's nest as it is lowered, and after each pass, with the pass's name.

    `names` has the names of the buffers. Raises TypeRefused for code that would be too long, and
    for private memory that work-items would share.
    """
    code, nest = lowered(kernel, names)
    yield "nest", replace(code, block=stored(nest), rolled=True)
    for name, change in passes.items():
        nest = change(nest)
        yield name, replace(code, block=stored(nest), rolled=True)


def in_loop_ir(kernel: Kernel, names: dict[str, str], passes: OnNests) -> LoopKernel:
    """A kernel in the loop IR, from its nest after all passes on nests.

    Raises TypeRefused if the work-items of a subgroup read different elements of an array that the
    subgroup holds.
    """
    code, nest = lowered(kernel, names)
    for change in passes.values():
        nest = change(nest)
    made = replace(code, block=stored(nest), decided=frozenset(nest.read.decided))
    for fault in together.faults(made) if together.has_broadcast(made.block) else ():
        raise TypeRefused(
            f"kernel {code.name} has {fault}: all work-items of a subgroup must read the same "
            f"element of an array of {ToSubgroup.name} at a time, outside of branches that only "
            "some of them take. Use toLocal"
        )
    return made


def for_counting(kernel: Kernel, names: dict[str, str], passes: OnNests) -> LoopKernel:
    """A kernel in the loop IR, with regular loops over registers left as loops.

    It has the operations and accesses of the kernel's code, but copies between registers may be in
    a wrong order: it is only read, and never becomes code. `passes` come before unrolling.
    """
    code, nest = lowered(kernel, names)
    for change in passes.values():
        nest = change(nest)
    nest, kept = partly_unrolled(without_snapshots(nest))
    return replace(code, block=stored(nest), rolled=True, regular=kept)


def after_each_pass(code: LoopKernel, passes: Passes) -> Iterator[tuple[str, LoopKernel]]:
    """The kernel after each pass, with the pass's name. Raises InternalError if one breaks it."""
    verify(code, "lowering")
    for name, change in passes.items():
        block = change(code)
        if block != code.block:
            code = replace(code, block=block)
            verify(code, name)
        yield name, code


def within_length(code: LoopKernel) -> Block:
    """The kernel unchanged; TypeRefused if it is too long, before loops get several versions."""
    if length_of(code) > MOST_STATEMENTS:
        raise too_long(code.name)
    return code.block


def length_of(code: LoopKernel) -> int:
    """The number of statements of a kernel."""
    return sum(1 for _ in statements_in(code.block))


def optimized(code: LoopKernel, passes: Passes) -> LoopKernel:
    """The kernel after all passes. Raises InternalError if it is not well-formed.

    Only the last tree is verified, because verifying every tree takes more than a tenth of the time
    of compiling a candidate. If the last tree has a fault, the passes run again with a check after
    each, so that the error names the pass.
    """
    last = code
    for change in passes.values():
        last = replace(last, block=change(last))
    if not is_well_formed(last):
        *_, (_, last) = after_each_pass(code, passes)
        verify(last, "all passes")
    return last
