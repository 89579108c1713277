"""The outcome of a board's row: what the board could not judge is judged here.

That is the meaning at elements that the board does not know, and whether the time of the reference
kernel departs from its usual time, which needs all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, cast, get_args

import numpy as np

from liftpy.boards.results import Result, natural
from liftpy.explore.measure.check import Expected, differences
from liftpy.explore.measure.inputs import inputs
from liftpy.explore.measure.meaning import Meaning, expected
from liftpy.explore.measure.outcome import (
    BuildFailed,
    Crashed,
    KernelLimit,
    Measured,
    Outcome,
    Refused,
    WrongResult,
)
from liftpy.explore.measure.samples import History, farthest
from liftpy.ir.program import Program
from liftpy.ir.types import components
from liftpy.opencl.clock import Clock
from liftpy.opencl.kernel import Module


class Judgement:
    """Judges the rows of a board, in the order in which they were printed."""

    def __init__(
        self,
        program: Program,
        made: Callable[[], dict[str, Any]],
        compared: Callable[[dict[str, Any]], tuple[Expected, ...]],
    ) -> None:
        """`made` returns the inputs, `compared` the expected values for them."""
        self.program = program
        self._made = made
        self._compared = compared
        self._history = History()

    @classmethod
    def of(cls, program: Program, settings: Mapping[str, Any]) -> Judgement:
        """Judges by the settings of a campaign."""
        points, tolerance = settings["points"], settings["tolerance"]
        return cls(
            program,
            lambda: inputs(program, settings["input_seed"]),
            lambda arrays: expected(program, arrays, points=points, tolerance=tolerance),
        )

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The inputs of the bundle."""
        return self._made()

    @cached_property
    def meaning(self) -> Meaning:
        """The meaning of the program on these inputs."""
        return Meaning(self.program, self.arrays)

    @cached_property
    def wanted(self) -> tuple[Expected, ...]:
        """The expected values of the bundle."""
        return self._compared(self.arrays)

    def outcome(self, row: Result, module: Module) -> Outcome:
        """The outcome of a row. KeyError or ValueError if its detail is invalid."""
        said = dict(row.detail)
        match row.outcome:
            case "measured":
                return self.measured(row, module)
            case "wrong":
                where, meant, path = self.meant(said["component"], said["element"])
                return WrongResult(where, float(meant), float(said["got"]), path)
            case "build_failed":
                return BuildFailed(row.reason)
            case "refused" if row.detail:
                return Refused(row.reason, limit_of(said, module))
            case "refused":
                return Refused(row.reason)
            case _:
                return Crashed(row.reason)

    def measured(self, row: Result, module: Module) -> Measured | WrongResult:
        """A measured result, or a wrong one if a suspect element differs from the meaning."""
        error, departure = row.error, None
        clock: Clock = "device"
        for name, value in row.detail:
            if name == "reference":
                departure = farthest(map(self._history.take, looks(value)))
                continue
            if name == "clock":
                clock = clock_named(value)
                continue
            part, element, got = value.split(":")
            where, meant, path = self.meant(part, element)
            wanted = self.wanted[natural(part)]
            (far,) = differences(np.array([float(got)]), np.array([meant]), wanted)
            if name != "suspect":
                raise ValueError(f"unknown detail {name}")
            if far > wanted.tolerance:
                return WrongResult(where, float(meant), float(got), path)
            error = max(error, float(far))
        return Measured(
            row.times_ns,
            row.prepare_ns,
            module.memory,
            error,
            row.rms,
            row.build_seconds,
            departure=departure,
            clock=clock,
        )

    def meant(self, part: str, element: str) -> tuple[tuple[int, ...], Any, tuple[int, ...]]:
        """The index of an element of a component, its meaning, and the path of the component."""
        component = components(self.program.type)[natural(part)]
        shape = tuple(map(int, component.shape))
        where = tuple(int(i) for i in np.unravel_index(natural(element), shape or (1,)))[
            : len(shape)
        ]
        points = np.array([where], np.int64).reshape(1, len(shape))
        value = self.meaning.at(points, component.path)
        return where, value[0], component.path


def looks(text: str) -> tuple[int, int]:
    """The nanoseconds of the reference kernel before and after a candidate: `BEFORE:AFTER`."""
    before, after = map(natural, text.split(":"))
    if not before or not after:
        raise ValueError("the reference kernel took 0 ns")
    return before, after


def clock_named(text: str) -> Clock:
    """The clock that a row names; raises ValueError for any other word."""
    if text not in get_args(Clock):
        raise ValueError(f"no clock is named {text}")
    return cast("Clock", text)


def limit_of(said: Mapping[str, str], module: Module) -> KernelLimit:
    """The limit that a driver reported for a kernel. ValueError for an unknown kernel or figure."""
    if said["kernel"] not in {launch.function for launch in module.launches}:
        raise ValueError(f"no kernel is named {said['kernel']}")
    if said["figure"] not in {"group", "local"}:
        raise ValueError(f"unknown figure {said['figure']}")
    return KernelLimit(said["kernel"], said["figure"], natural(said["number"]))
