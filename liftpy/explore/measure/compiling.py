"""The worker that compiles candidates and settles a bench's doubts."""

from __future__ import annotations

import gc
import hashlib
from dataclasses import replace

from liftpy.errors import InternalError, LiftError, a_few
from liftpy.explore.measure.blame import blamed, stored
from liftpy.explore.measure.bounding import Bounding
from liftpy.explore.measure.meaning import Meaning, settled
from liftpy.explore.measure.messages import (
    Answer,
    Blame,
    Compile,
    Compiled,
    Cut,
    Request,
    Settle,
    Setup,
    Stored,
)
from liftpy.explore.measure.outcome import Defect, Outcome, Refused, WrongResult
from liftpy.explore.measure.serving import Tell, serve
from liftpy.explore.space.given_points import admit_proofs, proved
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeleton_named, skeletons
from liftpy.rewrite.skeleton import Skeleton


def source_sha(source: str) -> str:
    """The hash by which kernels are compared."""
    return hashlib.sha256(source.encode()).hexdigest()


class Compiler:
    """A program, and those of its skeletons that have been requested."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.program = parse(setup.text)
        admit_proofs(setup.proofs)
        arrays = setup.inputs.arrays()
        self.meaning = Meaning(self.program, arrays)
        self.bounding = Bounding(self.program, arrays, setup.wanted) if setup.bounded else None
        self.skeletons: dict[str, Skeleton] = {}

    def answer(self, request: Request) -> Answer:
        """The answer to a request."""
        match request:
            case Compile():
                return self.compile(request)
            case Settle():
                return self.settle(request)
            case Cut(candidate):
                return self.stored(candidate)
            case Blame():
                return self.blame(request)
            case _:
                raise InternalError(f"a compiler was asked for {request!r}")

    def close(self) -> None:
        """Does nothing: a compiler holds only memory of this process."""

    def compile(self, request: Compile) -> Compiled | Outcome:
        """The kernels of a candidate, or why there are none."""
        skeleton = self.skeleton(request.skeleton)
        if skeleton is None:
            known = a_few(s.key for s in skeletons(self.program))
            return Defect(f"the worker has no skeleton {request.skeleton}; it has: {known}")
        try:
            module = compile_candidate(skeleton, request.sizes)
        except LiftError as refusal:
            return Refused(str(refusal))
        except InternalError as defect:
            return Defect(str(defect))
        bounds = () if self.bounding is None else self.bounding.at_points(skeleton)
        return Compiled(module, source_sha(module.source), bounds)

    def skeleton(self, key: str) -> Skeleton | None:
        """The skeleton with a key, derived once; None if there is none."""
        found = self.skeletons.get(key) or skeleton_named(self.program, key, proved)
        if found is not None:
            self.skeletons[key] = found
        return found

    def stored(self, request: Compile) -> Stored:
        """The values that a candidate stores between its stages; none if they cannot be found."""
        skeleton = self.skeleton(request.skeleton)
        if skeleton is None:
            return Stored(())
        try:
            return stored(skeleton, request.sizes, self.setup, self.program)
        except (LiftError, InternalError):  # the candidate is wrong in any case
            return Stored(())

    def blame(self, request: Blame) -> WrongResult:
        """A wrong result with the stage that it comes from."""
        skeleton = self.skeleton(request.candidate.skeleton)
        if skeleton is None:
            return request.wrong
        arrays = self.setup.inputs.arrays()
        return blamed(skeleton, request.wrong, request.stored, request.found, self.program, arrays)

    def settle(self, request: Settle) -> Outcome:
        """The outcome of a candidate, after its doubtful elements are compared with the meaning."""
        doubtful, bounds = request.doubtful, None
        if self.bounding is not None:
            skeleton = self.skeleton(request.candidate.skeleton)
            bounds = None if skeleton is None else self.bounding.bounds(skeleton)
        error = settled(self.meaning, self.setup.wanted, doubtful.found, bounds)
        if isinstance(error, WrongResult):
            return error
        return replace(doubtful.measured, error=error.largest, rms=error.rms)


def started(setup: Setup, _: Tell) -> Compiler:
    """The compiler of a campaign. Its first objects stay alive, so no collection scans them."""
    compiler = Compiler(setup)
    gc.collect()
    gc.freeze()
    return compiler


def work() -> None:
    """Runs the compiler in this process."""
    serve(started)
