"""One run of a module in this process, timed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.device import Device
from liftpy.opencl.arguments import by_buffer
from liftpy.opencl.kernel import Module
from liftpy.opencl.run import Loaded, Session

REPEATS = 5
"""Timed runs of a candidate, at least, unless it is slow."""

WARMUP = 1
MOST_REPEATS = 25
ENOUGH_SECONDS = 0.25
"""A fast candidate is run more often, until so much time has been measured."""

SLOW = 5.0
"""A candidate that is so many times slower than the best so far is run `SLOW_REPEATS` times."""

SLOW_REPEATS = 2

Rows = tuple[tuple[int, ...], ...]
"""Nanoseconds: a row a run, a column a launch of the run phase."""


@dataclass(frozen=True)
class Run:
    """A result and its times. `kernels_ns` has the median of each launch, in their order.

    The result is an array, or a tuple of them.
    """

    device: Device
    result: Any
    time_ns: int
    prepare_ns: int
    kernels_ns: dict[str, int]


def run_once(module: Module, device: Device, arrays: Mapping[str, Any]) -> Run:
    """Loads a module, runs it on arrays in the order of its parameters, and times it."""
    with Session(device) as session, session.load(module) as loaded:
        result = run_poisoned(loaded, arrays)
        rows = timed(loaded)
        functions = [x.function for x in module.launches if x.phase == "run"]
        columns = [round(statistics.median(column)) for column in zip(*rows, strict=True)]
        total = round(statistics.median(map(sum, rows)))
        kernels = dict(zip(functions, columns, strict=True))
        return Run(device, result, total, loaded.prepare_ns, kernels)


def run_poisoned(loaded: Loaded, arrays: Mapping[str, Any]) -> Any:
    """The result of a loaded module; everything that it should write was filled with NaN before.

    The arrays are taken in the order of the program's parameters: kernels may have other names.
    """
    module = loaded.module
    given = by_buffer(module, tuple(arrays.values()))
    roles = {name: module.buffer(name).role for name in given}
    loaded.set_constants({n: a for n, a in given.items() if roles[n] == "constant"}, poison=True)
    return loaded.run({n: a for n, a in given.items() if roles[n] == "input"}, poison=True)


def timed(loaded: Loaded, best_ns: int | None = None, seconds: float = math.inf) -> Rows:
    """The times of a module that has run.

    `REPEATS` runs after a warm-up; more of a fast one; fewer of one that is `SLOW` times slower
    than the best, or whose repeats would take longer than `seconds`.
    """
    rows = loaded.profile(1, WARMUP)
    first = sum(rows[0])
    wanted = max(REPEATS, min(MOST_REPEATS, round(ENOUGH_SECONDS * 1e9 / max(first, 1))))
    if best_ns is not None and first > SLOW * best_ns:
        wanted = SLOW_REPEATS
    possible = 0.8 * seconds * 1e9 / max(first, 1)
    more = int(min(wanted - 1, possible))
    if more > 0:
        rows += loaded.profile(more, 0)
    return tuple(tuple(row) for row in rows)
