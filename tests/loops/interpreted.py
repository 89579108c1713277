"""A compiled program in the interpreter of the loop IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from liftpy.compile import Compilation
from liftpy.loops.in_place import in_place
from liftpy.loops.interpret import interpret
from liftpy.loops.lower import LoopKernel, lowered
from liftpy.loops.passes import in_loop_ir
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.generate import buffer_names
from liftpy.opencl.kernel import Names


def rolled(made: Compilation) -> tuple[LoopKernel, ...]:
    """The kernels of a program before loops are unrolled: snapshots are copies of registers."""
    names = buffer_names(made.chain)
    codes = [lowered(kernel, names) for kernel in made.chain.kernels]
    return tuple(in_loop_ir(code, in_place(code.nest), rolled=True) for code in codes)


def interpreted(made: Compilation, kernels: Iterable[LoopKernel], arrays: Mapping[str, Any]) -> Any:
    """The result of a program by kernels that stand for its own."""
    module = made.module
    given = by_buffer(module, tuple(arrays.values()))
    memory = {name: np.asarray(array) for name, array in given.items()}
    for code in kernels:
        reads = {m.name: memory[m.name] for m in code.buffers if not m.writable}
        memory |= interpret(code, reads)
    shapes = {b.name: b.shape for b in module.buffers}

    def named(names: Names) -> Any:
        if isinstance(names, tuple):
            return tuple(map(named, names))
        return memory[names].reshape(shapes[names])

    return named(module.result)
