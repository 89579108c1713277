"""What a campaign and its workers say to each other, pickled, over sockets of their own.

This module, and all that a bench imports, can be used without z3 and lark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.constraints.device import Device
from liftpy.explore.measure.check import Expected, Right
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.outcome import Measured, Outcome, WrongResult
from liftpy.opencl.kernel import Binary, Module, Names


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: what holds for a whole campaign.

    The program travels as text: an expression's cached hash is good in one process only.
    """

    text: str
    device: Device
    inputs: Inputs
    wanted: tuple[Expected, ...]


@dataclass(frozen=True)
class Ready:
    """The worker has what it needs: skeletons, or a device.

    `note` is what its system did not let it do, and it does without.
    """

    note: str = ""


@dataclass(frozen=True)
class Unfit:
    """The worker cannot work: the sentence of a refusal."""

    message: str


# --- to the compiler ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compile:
    """Asks for the kernels of a candidate; the answer is `Compiled` or an outcome."""

    skeleton: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class Compiled:
    """The kernels, and the hash of their text."""

    module: Module
    sha: str


@dataclass(frozen=True)
class Settle:
    """Asks for the outcome of a candidate that a bench has doubts about."""

    doubtful: Doubtful


@dataclass(frozen=True)
class Cut:
    """Asks for the values that a candidate stores between its stages; the answer is `Stored`."""

    candidate: Compile


@dataclass(frozen=True)
class StoredValue:
    """The value of a stage: the buffers that have it after a kernel, and what it must be."""

    stage: str
    function: str
    names: Names
    wanted: tuple[Expected, ...]


@dataclass(frozen=True)
class Stored:
    """The values that a candidate stores, in their order; none in a program of one stage."""

    values: tuple[StoredValue, ...]


@dataclass(frozen=True)
class Blame:
    """Asks which stage a wrong result comes from; the answer is the result with that stage."""

    candidate: Compile
    wrong: WrongResult
    stored: Stored
    found: Inspected


# --- to the bench ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """Asks for the outcome of kernels, in so many seconds; the answer may be `Doubtful`.

    `best_ns` is the best time so far. `build_seconds`, if given, bound the driver's compiler alone.
    `binary` is what it made of the kernels already.
    """

    module: Module
    best_ns: int | None
    seconds: float
    build_seconds: float | None = None
    binary: Binary | None = None


@dataclass(frozen=True)
class WorkerPhase:
    """Not yet an answer: what the worker does from now on.

    `seconds`, if given, is what it may take, by the option of that name.
    """

    doing: str
    seconds: float | None = None
    option: str = ""


@dataclass(frozen=True)
class Doubtful:
    """Measured, if `found` has no error where the bench does not know the meaning."""

    measured: Measured
    found: Right


@dataclass(frozen=True)
class Inspect:
    """Asks whether the values that kernels store are right; the answer is `Inspected`."""

    module: Module
    values: tuple[StoredValue, ...]


@dataclass(frozen=True)
class Inspected:
    """The verdict on each stored value."""

    verdicts: tuple[Right | WrongResult, ...]


# --- to the builder -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Build:
    """Asks for what the driver makes of kernels; the answer is `Built` or an outcome."""

    module: Module
    build_seconds: float | None = None


@dataclass(frozen=True)
class Built:
    """What the driver made of kernels."""

    binary: Binary


Request: TypeAlias = Compile | Settle | Cut | Blame | Measure | Inspect | Build
Answer: TypeAlias = Compiled | Stored | Doubtful | Inspected | Built | Outcome
