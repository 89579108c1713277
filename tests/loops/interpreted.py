"""A compiled program in the interpreter of the loop IR."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from liftpy.compile import Compilation
from liftpy.loops.interpret import interpret
from liftpy.loops.lower import LoopKernel
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.kernel import Names


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
