"""Running and timing a module in this process."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.device import Device
from liftpy.explore.measure.reference import Reference
from liftpy.explore.measure.samples import departs, sample, undisturbed
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.clock import Clock
from liftpy.opencl.kernel import Module, by_kernel
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session

AGAIN_SECONDS = 5.0
"""The seconds within which disturbed runs are repeated."""

Rows = tuple[tuple[int, ...], ...]
"""Nanoseconds: one row per run, one column per launch of the run phase."""


@dataclass(frozen=True)
class TimedRun:
    """A result and its times; `kernels_ns` has the time of each kernel, over all its launches.

    The result is an array or a tuple of arrays. `departure` is the time of a fixed kernel around
    the runs, as a multiple of its usual time (`liftpy.explore.measure.reference`). `clock` is the
    one that timed the runs.
    """

    device: Device
    result: Any
    time_ns: int
    prepare_ns: int
    kernels_ns: dict[str, int]
    departure: float = 1.0
    clock: Clock = "device"

    @property
    def disturbed(self) -> bool:
        """Whether the device was slower or faster than usual during the runs."""
        return departs(self.departure)


def run_once(module: Module, device: Device, arrays: Mapping[str, Any]) -> TimedRun:
    """Loads a module, runs it on arrays in the order of its parameters, and times it."""
    with Session(device) as session, session.load(module) as loaded:
        reference = Reference(session)
        result = run_poisoned(loaded, arrays)
        rows, departure = undisturbed(lambda: timed(loaded), reference.look, AGAIN_SECONDS)
        columns = [round(statistics.median(column)) for column in zip(*rows, strict=True)]
        total = round(statistics.median(map(sum, rows)))
        kernels = by_kernel(module, columns)
        clock = session.opened.clock
        return TimedRun(device, result, total, loaded.prepare_ns, kernels, departure, clock)


def run_poisoned(loaded: Loaded, arrays: Mapping[str, Any]) -> Any:
    """The result of a loaded module; the memory that it should write is first filled with poison.

    The arrays are passed in the order of the program's parameters, since kernels may have other
    names for them.
    """
    module = loaded.module
    given = by_buffer(module, tuple(arrays.values()))
    roles = {name: module.buffer(name).role for name in given}
    loaded.set_constants({n: a for n, a in given.items() if roles[n] == "constant"}, poison=True)
    return loaded.run({n: a for n, a in given.items() if roles[n] == "input"}, poison=True)


def timed(loaded: Loaded, best_ns: int | None = None, seconds: float = math.inf) -> Rows:
    """The times of a module that has run once (liftpy/explore/measure/samples.py).

    `best_ns` is the best candidate's time; `seconds` bounds the duration of this call.
    """
    return sample(lambda: loaded.profile(1, 0)[0], best_ns, 0.8 * seconds, checked=loaded.run_ns)
