"""A compiled program in the interpreter of the loop IR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from liftpy.compile import Compilation
from liftpy.loops.interpret import interpret
from liftpy.loops.lower import LoopKernel
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.kernel import Names

Change = Callable[[LoopKernel], LoopKernel]


def interpreted(made: Compilation, arrays: Mapping[str, Any], change: Change = lambda c: c) -> Any:
    """The result of a program whose kernels, as they were lowered, are changed."""
    module = made.module
    given = by_buffer(module, tuple(arrays.values()))
    memory = {name: np.asarray(array) for name, array in given.items()}
    for code in made.loops:
        reads = {m.name: memory[m.name] for m in code.buffers if not m.writable}
        memory |= interpret(change(code), reads)
    shapes = {b.name: b.shape for b in module.buffers}

    def named(names: Names) -> Any:
        if isinstance(names, tuple):
            return tuple(map(named, names))
        return memory[names].reshape(shapes[names])

    return named(module.result)
