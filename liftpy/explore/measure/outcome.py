"""The outcomes of candidates.

Every drawn candidate gets exactly one outcome, with a reason.
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
from liftpy.opencl.clock import BY_HOST, Clock
from liftpy.opencl.kernel import MemoryFigures

Kind = Literal[
    "measured",
    "modelled",
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
    """The result is right, and the candidate was timed.

    times_ns: one row per repeat, one column per launch of the run phase. prepare_ns: the time of
    the prepare phase, which runs once and is not part of the candidate's time. error, rms: the
    largest difference from the meaning and the root mean square, relative to the largest value of
    the meaning. build_seconds, build_log: time and output of the driver's compiler. departure: the
    time of the reference kernel around the repeats, as a multiple of its usual time; None if it was
    not run. clock: the one that timed it.
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
    clock: Clock = "device"

    @property
    def disturbed(self) -> bool:
        """Whether the reference kernel's time departed from its usual time around the repeats."""
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
        """The error of the result, the number of runs, and what is unusual about their times."""
        error = f"right to {self.error:.1e} (rms {self.rms:.1e})"
        found = f"{error}, {plural(len(self.times_ns), 'run')}"
        if self.clock == "host":
            found = f"{found} {BY_HOST}"
        if not self.disturbed:
            return found
        how = f"a fixed kernel took {self.departure:.2f} times its usual time"
        return f"{found}, disturbed: {how}"


@dataclass(frozen=True)
class ByModel:
    """The candidate's times come from a model of the device; it did not run.

    `kernels_ns` has the modelled time of each launch of the run phase, and `bound` the part that
    takes longest.
    """

    kind: ClassVar[Kind] = "modelled"
    kernels_ns: tuple[int, ...]
    memory: MemoryFigures
    bound: str

    @property
    def time_ns(self) -> int:
        """The modelled time."""
        return sum(self.kernels_ns)

    @property
    def reason(self) -> str:
        """What bounds the modelled time."""
        return f"modelled, bound by {self.bound}"


@dataclass(frozen=True)
class KernelLimit:
    """A limit that a driver reports for a built kernel, as in `KernelRefused`."""

    kernel: str
    figure: str
    number: int


@dataclass(frozen=True)
class Refused:
    """The compiler or the device refused the candidate; `clause` is the text of the error.

    `limit` is what the campaign learns from this (liftpy/explore/measure/learned.py).
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
    """The driver failed to build the kernels; `log` is its output."""

    kind: ClassVar[Kind] = "build_failed"
    log: str

    @property
    def reason(self) -> str:
        """The driver's log."""
        return f"the driver failed to build it: {self.log.strip() or 'no log'}"


@dataclass(frozen=True)
class WrongResult:
    """The kernels computed a wrong value at the index `where`.

    `component` is the position of the array if the result has tuples. `stage` is the first of
    several stages whose value is wrong, if it is known; `inside` is the wrong result of that stage,
    unless it is the last stage. `bound` is the largest error that rounding explains, if the value
    is wrong only because its error is larger.
    """

    kind: ClassVar[Kind] = "wrong"
    where: tuple[int, ...]
    expected: float
    got: float
    component: tuple[int, ...] = ()
    stage: str = ""
    inside: WrongResult | None = None
    bound: float | None = None

    @property
    def reason(self) -> str:
        """Where it is wrong, and by how much."""
        said = self.said("result")
        if not self.stage:
            return said
        how = f": {self.inside.said(self.stage)}" if self.inside is not None else ""
        return f"{said}; the first stage that is wrong is {self.stage}{how}"

    def said(self, name: str) -> str:
        """A sentence about the wrong value, with `name` for the array."""
        at = "".join([*(f".{k}" for k in self.component), *(f"[{i}]" for i in self.where)])
        note = " (an element that no work-item wrote)" if math.isnan(self.got) else ""
        why = (
            f", and rounding explains a difference of at most {self.bound:.2g}"
            if self.bound is not None
            else ""
        )
        return f"{name}{at} is {self.got:.9g}{note}, it should be {self.expected:.9g}{why}"


@dataclass(frozen=True)
class Stray:
    """A kernel wrote outside a buffer, or into one that it may only read.

    `offset` is that of the first changed byte, from the beginning of `buffer`.
    """

    kind: ClassVar[Kind] = "stray"
    buffer: str
    offset: int
    how: str

    @property
    def reason(self) -> str:
        """Which kernel wrote where."""
        return self.how


@dataclass(frozen=True)
class TimedOut:
    """The candidate took longer than a limit, in seconds; `option` names the limit."""

    kind: ClassVar[Kind] = "timed_out"
    limit: float
    during: str
    option: str = "--candidate-limit"

    @property
    def reason(self) -> str:
        """What did not end in time, and the limit."""
        return f"{self.during} did not end within {self.limit:g} s ({self.option})"


@dataclass(frozen=True)
class OutOfMemory:
    """The worker process held `held` bytes of the machine's memory, more than the ceiling."""

    kind: ClassVar[Kind] = "out_of_memory"
    held: int
    ceiling: int
    during: str

    @property
    def reason(self) -> str:
        """What the process was doing, how much it held, and the limit."""
        return (
            f"{self.during}, its process held {self.held >> 20} MiB of this machine's memory; "
            f"the limit is {self.ceiling >> 20} MiB"
        )


@dataclass(frozen=True)
class Untimed:
    """The result is right, but the device's clock reported impossible times."""

    kind: ClassVar[Kind] = "untimed"
    how: str

    @property
    def reason(self) -> str:
        """What is wrong with the times."""
        return self.how


@dataclass(frozen=True)
class Crashed:
    """The worker process died; `how` describes the cause, if it is known."""

    kind: ClassVar[Kind] = "crashed"
    how: str

    @property
    def reason(self) -> str:
        """How the process died."""
        return self.how


@dataclass(frozen=True)
class Defect:
    """liftpy contradicted itself; please report it."""

    kind: ClassVar[Kind] = "defect"
    message: str

    @property
    def reason(self) -> str:
        """The contradiction."""
        return self.message


Outcome: TypeAlias = (
    Measured
    | ByModel
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
"""Every kind of outcome, `measured` first."""


TIMED: tuple[Kind, ...] = ("measured", "modelled")
"""The kinds of outcomes with times and memory figures. A campaign has at most one of the two."""


def counts(outcomes: Iterable[str]) -> dict[str, int]:
    """How often each outcome occurs, `measured` first."""
    found = Counter(outcomes)
    order = (*KINDS, *sorted(found.keys() - set(KINDS)))
    return {kind: found[kind] for kind in order if found[kind]}
