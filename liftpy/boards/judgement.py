"""The outcome that a row of a board says, and the meaning where the board did not know it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

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
from liftpy.ir.expr import Program
from liftpy.ir.types import components
from liftpy.opencl.kernel import Module


class Judgement:
    """What a program means, where a board could not tell."""

    def __init__(self, program: Program, settings: Mapping[str, Any]) -> None:
        self.program = program
        self.settings = settings

    @cached_property
    def arrays(self) -> dict[str, Any]:
        """The inputs of the bundle."""
        return inputs(self.program, self.settings["input_seed"])

    @cached_property
    def meaning(self) -> Meaning:
        """The meaning on them."""
        return Meaning(self.program, self.arrays)

    @cached_property
    def wanted(self) -> tuple[Expected, ...]:
        """The expected values of the bundle."""
        points, tolerance = self.settings["points"], self.settings["tolerance"]
        return expected(self.program, self.arrays, points=points, tolerance=tolerance)

    def outcome(self, row: Result, module: Module) -> Outcome:
        """The outcome that a row says. KeyError or ValueError if its detail does not fit."""
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
        """A right result, unless it is wrong where it differs from the first one of the board."""
        error = row.error
        for name, value in row.detail:
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
            row.times_ns, row.prepare_ns, module.memory, error, row.rms, row.build_seconds
        )

    def meant(self, part: str, element: str) -> tuple[tuple[int, ...], Any, tuple[int, ...]]:
        """Of an element of a component its index, its meaning, and the path of the component."""
        component = components(self.program.type)[natural(part)]
        shape = tuple(map(int, component.shape))
        where = tuple(int(i) for i in np.unravel_index(natural(element), shape or (1,)))[
            : len(shape)
        ]
        points = np.array([where], np.int64).reshape(1, len(shape))
        value = self.meaning.at(points, component.path)
        return where, value[0], component.path


def limit_of(said: Mapping[str, str], module: Module) -> KernelLimit:
    """What a driver said of a kernel. ValueError for a kernel or a figure that there is not."""
    if said["kernel"] not in {launch.function for launch in module.launches}:
        raise ValueError(f"no kernel is named {said['kernel']}")
    if said["figure"] not in {"group", "local"}:
        raise ValueError(f"unknown figure {said['figure']}")
    return KernelLimit(said["kernel"], said["figure"], natural(said["number"]))
