"""A candidate with given settings, and its result."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from liftpy.constraints.device import DEFAULT_DEVICE, Device
from liftpy.explore.one_candidate import candidate_of
from liftpy.ir.program import Program
from liftpy.opencl.kernel import Module
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate


def compiled(program: Program, settings: Mapping[str, str | int]) -> Module:
    """The kernels of the first candidate with these settings."""
    candidate = candidate_of(program, DEFAULT_DEVICE, dict(settings))
    return compile_candidate(candidate.skeleton, candidate.assignment)


def result(runtime: Device, module: Module, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """What a module computes from the arrays of its parameters, in buffers that are poisoned."""
    with Session(runtime) as session, session.load(module) as loaded:
        constants = {b.name for b in module.buffers if b.role == "constant"}
        loaded.set_constants({n: a for n, a in arrays.items() if n in constants})
        inputs = {b.name for b in module.buffers if b.role == "input"}
        return loaded.run({n: a for n, a in arrays.items() if n in inputs}, poison=True)


def launches(module: Module) -> int:
    """The number of kernels that each run starts."""
    return sum(launch.phase == "run" for launch in module.launches)
