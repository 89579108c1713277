"""A compiled program in the interpreter of the loop IR."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from liftpy.kernels.chain import launch_order
from liftpy.loops.lower import LoopKernel
from liftpy.loops.passes import after_each_pass, length_of, nests
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.generate import buffer_names
from liftpy.opencl.kernel import Names
from liftpy.pipeline import ON_NESTS, PASSES, Compilation
from tests.loops.interpret import SUBGROUP, interpret


def nests_of(made: Compilation) -> dict[str, tuple[LoopKernel, ...]]:
    """The kernels of a program as nests: as they are lowered, and after each pass on them."""
    names = buffer_names(made.chain)
    stages = zip(*(nests(kernel, names, ON_NESTS) for kernel in made.chain.kernels), strict=True)
    return {stage[0][0]: tuple(code for _, code in stage) for stage in stages}


def stages_of(made: Compilation) -> Iterator[tuple[str, tuple[LoopKernel, ...]]]:
    """The kernels of a program as nests, then after each pass, on nests and on the loop IR.

    A pass runs when its result is asked for.
    """
    names = buffer_names(made.chain)
    for stage in zip(*(nests(k, names, ON_NESTS) for k in made.chain.kernels), strict=True):
        yield stage[0][0], tuple(code for _, code in stage)
    for stage in zip(*(after_each_pass(k, PASSES) for k in made.loops), strict=True):
        yield stage[0][0], tuple(code for _, code in stage)


def statements(code: LoopKernel) -> int:
    """How many statements a lowered kernel has before loops get versions."""
    shortest = next(after for name, after in after_each_pass(code, PASSES) if name == "length")
    return length_of(shortest)


def interpreted(
    made: Compilation,
    kernels: Iterable[LoopKernel],
    arrays: Mapping[str, Any],
    subgroup: int = SUBGROUP,
) -> Any:
    """The result of a program by kernels that stand for its own, with subgroups of a size."""
    module = made.module
    given = by_buffer(module, tuple(arrays.values()))
    memory = {name: np.asarray(array) for name, array in given.items()}
    codes = list(kernels)
    for number, iteration in launch_order([code.kernel for code in codes]):
        # A pass of a fold in place updates what the kernels before it have written, and an
        # iteration of the host keeps what those before it have written.
        code = codes[number]
        known = {m.name: memory[m.name] for m in code.buffers if m.name in memory}
        memory |= interpret(code, known, subgroup, iteration)
    shapes = {b.name: b.shape for b in module.buffers}

    def named(names: Names) -> Any:
        if isinstance(names, tuple):
            return tuple(map(named, names))
        return memory[names].reshape(shapes[names])

    return named(module.result)
