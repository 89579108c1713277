"""The worker that builds kernels ahead while another one measures; it launches nothing."""

from __future__ import annotations

from liftpy.errors import BuildFailed as BuildRefused
from liftpy.errors import InternalError, LiftError
from liftpy.explore.measure.messages import Answer, Build, Built, Request, Setup, WorkerPhase
from liftpy.explore.measure.outcome import BuildFailed, Refused
from liftpy.explore.measure.serving import Tell, serve
from liftpy.opencl.session import Session


class KernelBuilder:
    """A device of which only the driver's compiler is used."""

    def __init__(self, setup: Setup, tell: Tell = lambda _: None) -> None:
        self.tell = tell
        self.session = Session(setup.device)

    def answer(self, request: Request) -> Answer:
        """The binary that the driver builds from a module, or the outcome if it fails."""
        if not isinstance(request, Build):
            raise InternalError(f"a builder was asked for {request!r}")
        self.tell(WorkerPhase("building it", request.build_seconds, "--build-limit"))
        try:
            return Built(self.session.binary(request.module))
        except BuildRefused as failure:
            return BuildFailed(str(failure))
        except LiftError as refusal:
            return Refused(str(refusal))

    def close(self) -> None:
        """Closes the session."""
        self.session.close()


def work() -> None:
    """Runs the builder in this process."""
    serve(KernelBuilder)
