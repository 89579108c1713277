"""The worker that builds, checks and times kernels on a device.

It needs numpy and pyopencl, and no compiler: a module comes in, its outcome goes out.
"""

from __future__ import annotations

import time

from liftpy.errors import BuildFailed as BuildRefused
from liftpy.errors import InternalError, KernelRefused, LiftError
from liftpy.explore.check import Checker
from liftpy.explore.measurement import run_poisoned, timed
from liftpy.explore.messages import Answer, Doubtful, Measure, Request, Setup
from liftpy.explore.outcome import (
    BuildFailed,
    Defect,
    KernelLimit,
    Measured,
    Outcome,
    Refused,
    WrongResult,
)
from liftpy.explore.process import serve
from liftpy.opencl.run import Loaded, Session


class Bench:
    """A device, inputs, and what results are compared with."""

    def __init__(self, setup: Setup) -> None:
        self.session = Session(setup.device)
        self.arrays = setup.inputs.arrays()
        self.checker = Checker(setup.wanted)

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        if not isinstance(request, Measure):
            raise InternalError(f"a bench was asked for {request!r}")
        return self.measure(request)

    def measure(self, request: Measure) -> Doubtful | Outcome:
        """The outcome of a module."""
        deadline = time.monotonic() + request.seconds
        try:
            with self.session.load(request.module) as loaded:
                return self._checked(loaded, request.best_ns, deadline)
        except BuildRefused as failure:
            return BuildFailed(str(failure))
        except KernelRefused as refusal:
            limit = KernelLimit(refusal.kernel, refusal.figure, refusal.number)
            return Refused(str(refusal), limit)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))

    def _checked(self, loaded: Loaded, best_ns: int | None, deadline: float) -> Doubtful | Outcome:
        module = loaded.module
        result = run_poisoned(loaded, self.arrays)
        if loaded.allocated_bytes != module.memory.allocated:
            return Defect(
                f"{module.name} says it allocates {module.memory.allocated} bytes, "
                f"clCreateBuffer was asked for {loaded.allocated_bytes}"
            )
        found = self.checker.check(result)
        if isinstance(found, WrongResult):
            return found
        times = timed(loaded, best_ns, deadline - time.monotonic())
        measured = Measured(
            times, loaded.prepare_ns, module.memory, found.error, loaded.build_seconds
        )
        return Doubtful(measured, found) if found.doubts else measured


if __name__ == "__main__":
    serve(lambda setup: Bench(setup).answer)
