"""The worker that builds, checks and times kernels on a device.

It needs numpy and pyopencl, but not liftpy's compiler: it receives a module and sends its outcome.
"""

from __future__ import annotations

import time

from liftpy.errors import BuildFailed as BuildRefused
from liftpy.errors import ClockRefused, InternalError, KernelRefused, LiftError, StrayWrite
from liftpy.explore.measure.check import Checker
from liftpy.explore.measure.measurement import run_poisoned, timed
from liftpy.explore.measure.messages import (
    Answer,
    Doubtful,
    Inspect,
    Inspected,
    Measure,
    Request,
    Setup,
    WorkerPhase,
)
from liftpy.explore.measure.outcome import (
    BuildFailed,
    Defect,
    KernelLimit,
    Measured,
    Outcome,
    Refused,
    Stray,
    Untimed,
    WrongResult,
)
from liftpy.explore.measure.reference import Reference
from liftpy.explore.measure.samples import undisturbed
from liftpy.explore.measure.serving import Tell, serve
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session


class Bench:
    """A device, the inputs, and the expected values that results are compared with.

    It announces the phases of a measurement, because a driver may hang in each.
    """

    def __init__(self, setup: Setup, tell: Tell = lambda _: None) -> None:
        self.tell = tell
        self.session = Session(setup.device)
        self.arrays = setup.inputs.arrays()
        self.checker = Checker(setup.wanted)
        self.room = self.session.room()
        self.reference = Reference(self.session)

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        match request:
            case Measure():
                return self.measure(request)
            case Inspect():
                return self.inspect(request)
            case _:
                raise InternalError(f"a bench was asked for {request!r}")

    def close(self) -> None:
        """Frees the memory of the device."""
        self.session.close()

    def measure(self, request: Measure) -> Doubtful | Outcome:
        """The outcome of measuring a module."""
        deadline = time.monotonic() + request.seconds
        self.tell(WorkerPhase("building it", request.build_seconds, "--build-limit"))
        try:
            with self.session.load(request.module, binary=request.binary, room=self.room) as loaded:
                return self._checked(loaded, request, deadline)
        except BuildRefused as failure:
            return BuildFailed(str(failure))
        except KernelRefused as refusal:
            limit = KernelLimit(refusal.kernel, refusal.figure, refusal.number)
            return Refused(str(refusal), limit)
        except ClockRefused as anomaly:
            return Untimed(str(anomaly))
        except LiftError as refusal:
            return Refused(str(refusal))
        except StrayWrite as stray:
            return Stray(stray.buffer, stray.offset, str(stray))
        except InternalError as defect:
            return Defect(str(defect))

    def inspect(self, request: Inspect) -> Inspected | Outcome:
        """Compares the values that a module stores with their expected values."""
        self.tell(WorkerPhase("looking for the stage that is wrong"))
        try:
            with self.session.load(request.module, room=self.room) as loaded:
                loaded.watched = {value.function: value.names for value in request.values}
                run_poisoned(loaded, self.arrays)
                seen = [loaded.seen[value.function] for value in request.values]
        except (LiftError, StrayWrite, InternalError) as failure:  # the candidate is wrong anyway
            return Defect(str(failure))
        pairs = zip(request.values, seen, strict=True)
        return Inspected(tuple(Checker(value.wanted).check(found) for value, found in pairs))

    def _checked(self, loaded: Loaded, request: Measure, deadline: float) -> Doubtful | Outcome:
        module, best_ns = loaded.module, request.best_ns
        self.tell(WorkerPhase("running it for the first time"))
        result = run_poisoned(loaded, self.arrays)
        if loaded.allocated_bytes != module.memory.allocated:
            return Defect(
                f"{module.name} declares {module.memory.allocated} bytes, "
                f"and {loaded.allocated_bytes} were allocated"
            )
        found = self.checker.check(result, request.bounds)
        if isinstance(found, WrongResult):
            return found
        self.tell(WorkerPhase("timing it"))
        left = deadline - time.monotonic()
        times, departure = undisturbed(
            lambda: timed(loaded, best_ns, deadline - time.monotonic()),
            self.reference.look,
            left,
            best_ns,
        )
        measured = Measured(
            times,
            loaded.prepare_ns,
            module.memory,
            found.error.largest,
            found.error.rms,
            loaded.build_seconds,
            loaded.build_log,
            departure,
            self.session.opened.clock,
        )
        return Doubtful(measured, found) if found.doubts else measured


def work() -> None:
    """Runs the bench in this process."""
    serve(Bench)
