"""What became of a candidate.

Every candidate that is drawn gets exactly one outcome, with a reason.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, get_args

from liftpy.errors import plural
from liftpy.explore.measure.samples import Interval, departs, interval_of
from liftpy.opencl.kernel import MemoryFigures

Kind = Literal[
    "measured",
    "refused",
    "build_failed",
    "wrong",
    "stray",
    "timed_out",
    "out_of_memory",
    "untimed",
    "crashed",
    "defect",
]


@dataclass(frozen=True)
class Measured:
    """Right and timed.

    times_ns: a row for each repeat, a column for each launch of the run phase. prepare_ns: the
    prepare phase, which runs once and is no part of the time. error, rms: the largest difference
    from the meaning and the root of the mean square, relative to the largest value of the meaning.
    build_seconds, build_log: of the driver's compiler. departure: how many times its usual time the
    reference kernel took around the repeats; None where nobody looked.
    """

    kind: ClassVar[Kind] = "measured"
    times_ns: tuple[tuple[int, ...], ...]
    prepare_ns: int
    memory: MemoryFigures
    error: float
    rms: float
    build_seconds: float
    build_log: str = ""
    departure: float | None = None

    @property
    def disturbed(self) -> bool:
        """Whether the reference kernel's time departed from its usual one when this was timed."""
        return self.departure is not None and departs(self.departure)

    @property
    def time_ns(self) -> int:
        """The candidate's time: the median over the repeats of the sum over the launches."""
        return round(statistics.median(map(sum, self.times_ns)))

    @property
    def span(self) -> Interval:
        """The median time in ns and its interval."""
        return interval_of([sum(row) for row in self.times_ns])

    @property
    def reason(self) -> str:
        """How far the result was from the meaning, and whether its times can be trusted."""
        error = f"right to {self.error:.1e} (rms {self.rms:.1e})"
        found = f"{error}, {plural(len(self.times_ns), 'run')}"
        if not self.disturbed:
            return found
        how = f"a fixed kernel took {self.departure:.2f} times its usual time"
        return f"{found}, disturbed: {how}"


@dataclass(frozen=True)
class KernelLimit:
    """What a driver says of a built kernel, as in `KernelRefused`: of `figure`, this `number`."""

    kernel: str
    figure: str
    number: int


@dataclass(frozen=True)
class Refused:
    """The compiler or the device refused it; `clause` is their sentence.

    `limit` is what the campaign learns from it (liftpy/explore/measure/learned.py).
    """

    kind: ClassVar[Kind] = "refused"
    clause: str
    limit: KernelLimit | None = None

    @property
    def reason(self) -> str:
        """The refusal."""
        return self.clause


@dataclass(frozen=True)
class BuildFailed:
    """The driver did not build the kernels. `log` is what it wrote."""

    kind: ClassVar[Kind] = "build_failed"
    log: str

    @property
    def reason(self) -> str:
        """The driver's log."""
        return f"the driver failed to build it: {self.log.strip() or 'no log'}"


@dataclass(frozen=True)
class WrongResult:
    """The kernels computed something else than the program means, at the index `where`.

    `component` leads to the array, where the result has tuples. `stage` is the first of several
    stages whose value is wrong, if it is known; `inside` is that value's own wrong result, unless
    the stage is the last.
    """

    kind: ClassVar[Kind] = "wrong"
    where: tuple[int, ...]
    expected: float
    got: float
    component: tuple[int, ...] = ()
    stage: str = ""
    inside: WrongResult | None = None

    @property
    def reason(self) -> str:
        """Where it is wrong, and by how much."""
        said = self.said("result")
        if not self.stage:
            return said
        how = f": {self.inside.said(self.stage)}" if self.inside is not None else ""
        return f"{said}; the first stage that is wrong is {self.stage}{how}"

    def said(self, name: str) -> str:
        """A sentence that says what is wrong, with this name for the array."""
        at = "".join([*(f".{k}" for k in self.component), *(f"[{i}]" for i in self.where)])
        note = " (an element that no work-item wrote)" if math.isnan(self.got) else ""
        return f"{name}{at} is {self.got:.9g}{note}, it should be {self.expected:.9g}"


@dataclass(frozen=True)
class Stray:
    """A kernel wrote outside of a buffer, or into one that it may only read.

    `offset` is where the first byte is that was changed, from the beginning of `buffer`.
    """

    kind: ClassVar[Kind] = "stray"
    buffer: str
    offset: int
    how: str

    @property
    def reason(self) -> str:
        """Which kernel wrote what where."""
        return self.how


@dataclass(frozen=True)
class TimedOut:
    """It took longer than a limit, in seconds; `option` says which."""

    kind: ClassVar[Kind] = "timed_out"
    limit: float
    during: str
    option: str = "--candidate-limit"

    @property
    def reason(self) -> str:
        """What was cut short."""
        return f"{self.during} did not end within {self.limit:g} s ({self.option})"


@dataclass(frozen=True)
class OutOfMemory:
    """The process that ran it held `held` bytes of the machine's memory, more than the ceiling."""

    kind: ClassVar[Kind] = "out_of_memory"
    held: int
    ceiling: int
    during: str

    @property
    def reason(self) -> str:
        """How much it held when."""
        return (
            f"{self.during}, its process held {self.held >> 20} MiB of this machine's memory; "
            f"the limit is {self.ceiling >> 20} MiB"
        )


@dataclass(frozen=True)
class Untimed:
    """Right, but the device's clock gave times that cannot be."""

    kind: ClassVar[Kind] = "untimed"
    how: str

    @property
    def reason(self) -> str:
        """What is wrong with the times."""
        return self.how


@dataclass(frozen=True)
class Crashed:
    """The process that ran it died; `how` says of what, as far as known."""

    kind: ClassVar[Kind] = "crashed"
    how: str

    @property
    def reason(self) -> str:
        """How the process died."""
        return self.how


@dataclass(frozen=True)
class Defect:
    """liftpy contradicted itself: please report it."""

    kind: ClassVar[Kind] = "defect"
    message: str

    @property
    def reason(self) -> str:
        """The contradiction."""
        return self.message


Outcome: TypeAlias = (
    Measured
    | Refused
    | BuildFailed
    | WrongResult
    | Stray
    | TimedOut
    | OutOfMemory
    | Untimed
    | Crashed
    | Defect
)

KINDS: tuple[Kind, ...] = get_args(Kind)
"""Every kind of outcome, the good one first."""


def counts(outcomes: Iterable[str]) -> dict[str, int]:
    """How often each outcome occurs, the good one first."""
    found = Counter(outcomes)
    order = (*KINDS, *sorted(found.keys() - set(KINDS)))
    return {kind: found[kind] for kind in order if found[kind]}
