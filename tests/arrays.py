"""Arrays for the parameters of a program."""

from __future__ import annotations

import numpy as np

from liftpy.ir.program import Program


def distinct_integers(program: Program) -> dict[str, np.ndarray]:
    """Integers of which neighbours differ, as f32; their sums are exact."""
    made = {}
    for k, p in enumerate(program.params):
        shape = tuple(map(int, p.type.lengths()))
        numbers = (np.arange(np.prod(shape, dtype=int)) * 7 + k) % 509 - 251
        made[p.name] = numbers.astype(np.float32).reshape(shape)
    return made
