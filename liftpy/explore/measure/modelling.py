"""The executor of a modelled campaign: no kernel runs, and times come from the model.

The device may be a profile. A candidate is compiled, so that kernels the compiler refuses are
refused here too; it is not built by a driver, and its result is not checked.
"""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.errors import InternalError, LiftError
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.measurer import Limits
from liftpy.explore.measure.messages import Compiled, Setup
from liftpy.explore.measure.outcome import ByModel, Defect, Outcome, Refused
from liftpy.explore.measure.pool import Finished, Notes
from liftpy.explore.space.candidate import Candidate
from liftpy.pipeline import compile_candidate
from liftpy.traffic.machine import hardware_of
from liftpy.traffic.model import Modelled
from liftpy.traffic.time import modelled


@dataclass(frozen=True)
class ModelExecutor:
    """A device, attached or a profile, whose times are modelled."""

    limits: Device
    lag: int = 1
    bounds: bool = False
    measures: bool = False

    @property
    def devices(self) -> tuple[Device, ...]:
        """The device."""
        return (self.limits,)

    def pool(self, setup: Setup, limits: Limits, notes: Notes) -> AbstractContextManager[ModelPool]:
        """A pool that models one candidate after another; nothing runs that has limits."""
        del setup, limits
        return nullcontext(ModelPool(self.limits, notes, hardware_of(self.limits)))


class ModelPool:
    """Models each candidate when its outcome is asked for."""

    shares_fate = False

    def __init__(self, device: Device, notes: Notes, hardware: Hardware) -> None:
        self.device, self.notes, self.hardware = device, notes, hardware
        self.waiting: deque[Candidate] = deque()

    def submit(self, candidate: Candidate) -> None:
        """Takes a candidate."""
        self.waiting.append(candidate)

    def next(self) -> Finished:
        """The modelled times of the next candidate, or why it has none."""
        candidate = self.waiting.popleft()
        self.notes.begin(candidate)
        return Finished(candidate, self.outcome(candidate))

    def halt(self) -> tuple[Finished, ...]:
        """Drops the candidates that were not modelled."""
        self.waiting.clear()
        return ()

    def outcome(self, candidate: Candidate) -> Outcome:
        """The outcome of a candidate."""
        try:
            module = compile_candidate(candidate.skeleton, candidate.point)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))
        made = Compiled(module, source_sha(module.source))
        self.notes.compiled(candidate, made, self.device)
        model = modelled(candidate.skeleton.at(candidate.point), self.device, self.hardware)
        times = tuple(max(1, round(1e6 * model.time(kernel))) for kernel in model.kernels)
        return ByModel(times, module.memory, bound(model))


def bound(model: Modelled) -> str:
    """The part of the time that takes longest: `operations`, `loads`, a level or `launches`."""
    parts = model.parts
    return max(parts, key=lambda part: parts[part])
