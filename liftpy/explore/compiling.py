"""The worker that compiles candidates, and settles what a bench is in doubt about."""

from __future__ import annotations

import gc
import hashlib
from dataclasses import replace

from liftpy.compile import compile_candidate, skeleton_named, skeletons
from liftpy.errors import InternalError, LiftError, a_few
from liftpy.explore.meaning import settled
from liftpy.explore.messages import Answer, Compile, Compiled, Request, Settle, Setup
from liftpy.explore.outcome import Defect, Outcome, Refused, WrongResult
from liftpy.explore.serving import serve
from liftpy.primitives.text import parse
from liftpy.rewrite.skeleton import Skeleton


def source_sha(source: str) -> str:
    """The hash by which kernels are compared."""
    return hashlib.sha256(source.encode()).hexdigest()


class Compiler:
    """A program, and those of its skeletons that were asked for."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.arrays = setup.inputs.arrays()
        self.program = parse(setup.text)
        self.skeletons: dict[str, Skeleton] = {}
        gc.collect()
        gc.freeze()  # what is here now stays: no collection has to look at it again

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        match request:
            case Compile():
                return self.compile(request)
            case Settle():
                return self.settle(request)
            case _:
                raise InternalError(f"a compiler was asked for {request!r}")

    def compile(self, request: Compile) -> Compiled | Outcome:
        """The kernels of a candidate, or why there are none."""
        skeleton = self.skeletons.get(request.skeleton) or skeleton_named(
            self.program, request.skeleton
        )
        if skeleton is None:
            known = a_few(s.key for s in skeletons(self.program))
            return Defect(f"the worker has no skeleton {request.skeleton}; it has: {known}")
        self.skeletons[request.skeleton] = skeleton
        try:
            module = compile_candidate(skeleton, request.sizes)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))
        return Compiled(module, source_sha(module.source))

    def settle(self, request: Settle) -> Outcome:
        """The outcome of a candidate when the meaning is known wherever its bench is in doubt."""
        doubtful = request.doubtful
        setup = self.setup
        error = settled(self.program, self.arrays, setup.wanted, doubtful.found)
        if isinstance(error, WrongResult):
            return error
        return replace(doubtful.measured, error=error.largest, rms=error.rms)


def work() -> None:
    """Serves in this process."""
    serve(lambda setup, _: Compiler(setup).answer)
