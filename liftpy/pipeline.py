"""The compiler: from a program and its choices to kernels, step by step."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from liftpy.errors import ConstraintRefused
from liftpy.ir.function import Lambda
from liftpy.ir.place import refusals_placed
from liftpy.kernels.chain import Chain, Kernel, chain
from liftpy.loops.barriers import with_needed_barriers
from liftpy.loops.classes import in_classes
from liftpy.loops.common import without_common
from liftpy.loops.fetching import fetched_ahead
from liftpy.loops.hoisting import hoisted
from liftpy.loops.in_place import in_place
from liftpy.loops.lower import LoopKernel
from liftpy.loops.merge_stores import merge_stores
from liftpy.loops.own_registers import with_own_registers
from liftpy.loops.passes import (
    OnNests,
    Passes,
    for_counting,
    in_loop_ir,
    optimized,
    within_length,
)
from liftpy.loops.silent_stores import without_silent_stores
from liftpy.loops.superwords import with_superwords
from liftpy.loops.unroll import unrolled
from liftpy.loops.unswitch import unswitched
from liftpy.loops.unused import without_unused
from liftpy.opencl.generate import EmittedKernel, assemble, buffer_names, check_unrolled
from liftpy.opencl.kernel import Module
from liftpy.primitives.dialects import LoweredProgram
from liftpy.rewrite.skeleton import Skeleton

BEFORE_UNROLLING: OnNests = MappingProxyType({"own registers": with_own_registers})
ON_NESTS: OnNests = MappingProxyType(
    {**BEFORE_UNROLLING, "unroll": unrolled, "update in place": in_place}
)
"""The passes on the loop nest that views produce."""

PASSES: Passes = MappingProxyType(
    {
        "hoisting": lambda code: hoisted(code.block),
        "common subexpressions": lambda code: without_common(code.block),
        "length": within_length,  # a kernel is shortest here: later passes make versions of loops
        "superwords": lambda code: with_superwords(code.block),
        "barriers": lambda code: with_needed_barriers(code.block, code.local_size),
        "merge stores": lambda code: merge_stores(code.block),
        "classes": in_classes,
        "unswitch": lambda code: unswitched(code.block),
        "unused variables": lambda code: without_unused(code.block),
        "silent stores": lambda code: without_silent_stores(code.block),
        "fetch ahead": lambda code: fetched_ahead(code.block),
    }
)
"""The passes on the loop IR."""


@dataclass(frozen=True)
class Compilation:
    """The results of all steps of the compiler (`liftpy show --stage`)."""

    lowered: LoweredProgram
    chain: Chain
    loops: tuple[LoopKernel, ...]  # as they were lowered
    optimized: tuple[LoopKernel, ...]  # after the passes
    kernels: tuple[EmittedKernel, ...]
    module: Module


@contextmanager
def collection_paused(*, kept: bool = False) -> Generator[None]:
    """Disable garbage collection: derivation and code generation make many objects and few cycles.

    The collector would traverse all of them, and all of z3, again and again, which takes 10 to 25 %
    more processor time. The cycles that the derivation of one space leaves take about 10 MB.

    With `kept`, most objects that exist at the end will exist for long, as a space does: they are
    not traversed as new ones then, which takes up to a fifth of the time of deriving them, but with
    the old ones. Objects that the process has frozen stay frozen, and the new ones are new.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if kept and not gc.get_freeze_count():
                gc.freeze()  # all objects become permanent,
                gc.unfreeze()  # and then old
            gc.enable()


def compile_program(lowered: LoweredProgram, output_view: Lambda | None = None) -> Compilation:
    """Compile a lowered program whose sizes are numbers.

    Types and size conditions were checked when the program was built, and its levels when it became
    a lowered program. The program is cut into kernels (address spaces, launches, lifetimes). Each
    kernel becomes loops through views, with barriers decided on the index maps. Then the passes
    run, C is printed, and buffers are allocated.

    With an `output_view`, a function from a larger array to the result, the kernels store the
    result in that array, as the elements that the view reads. They write no others.
    """
    with collection_paused():
        cut = chain_of(lowered, output_view)
        names = buffer_names(cut)
        loops = loops_of(cut.kernels, names)
        passed = tuple(optimized(code, PASSES) for code in loops)
        module, kernels = assemble(lowered, cut, names, passed)
    return Compilation(lowered, cut, loops, passed, kernels, module)


def chain_of(lowered: LoweredProgram, output_view: Lambda | None = None) -> Chain:
    """The kernels of a lowered program whose sizes are numbers.

    Raises TypeRefused if one would be unrolled to too many steps.
    """
    check_unrolled(lowered)
    with refusals_placed(lowered):
        return chain(lowered, output_view=output_view)


def loops_of(kernels: Iterable[Kernel], names: dict[str, str]) -> tuple[LoopKernel, ...]:
    """Kernels in the loop IR, before the passes on it; `names` has the names of the buffers."""
    return tuple(in_loop_ir(kernel, names, ON_NESTS) for kernel in kernels)


def run_code(lowered: LoweredProgram) -> tuple[LoopKernel, ...]:
    """The kernels of the run phase after all passes, as C is printed from them."""
    with collection_paused():
        cut = chain_of(lowered)
        codes = loops_of(cut.run, buffer_names(cut))
        return tuple(optimized(code, PASSES) for code in codes)


def counted_loops_of(kernels: Iterable[Kernel], names: dict[str, str]) -> tuple[LoopKernel, ...]:
    """Kernels in the loop IR with regular loops over registers not unrolled, to be counted."""
    return tuple(for_counting(kernel, names, BEFORE_UNROLLING) for kernel in kernels)


def compile_candidate(
    skeleton: Skeleton,
    assignment: Mapping[str, str | int],
    output_view: Lambda | None = None,
) -> Module:
    """The kernels of one point of a space.

    `assignment` has a number for each size of the skeleton, and may also name its structural
    choices. ConstraintRefused if it lacks a size, or if a choice differs from the skeleton's.
    With an `output_view`, the result is stored in a larger array (`compile_program`).
    """
    chosen = skeleton.words
    other = [n for n, word in assignment.items() if n in chosen and str(word) != chosen[n]]
    if other:
        message = (
            f"{skeleton.key} contradicts the assignment: it has {other[0]}="
            f"{chosen[other[0]]}, not {assignment[other[0]]}; compile the skeleton that matches it"
        )
        raise ConstraintRefused(message)
    missing = sorted({p.name for p in skeleton.parameters} - set(assignment))
    if missing:
        message = (
            f"{skeleton.key} needs a value for {', '.join(missing)}: "
            f"give it with --set {missing[0]}=..."
        )
        raise ConstraintRefused(message)
    with collection_paused():
        point = {p.name: int(assignment[p.name]) for p in skeleton.parameters}
        return compile_program(skeleton.at(point), output_view).module
