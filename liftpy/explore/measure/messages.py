"""The messages between a campaign and its workers, sent pickled over a socket per worker.

This module, and everything that a bench imports, can be used without z3 and lark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from liftpy.constraints.device import Device
from liftpy.explore.measure.check import Bounds, Expected, Right
from liftpy.explore.measure.inputs import Inputs
from liftpy.explore.measure.outcome import Measured, Outcome, WrongResult
from liftpy.opencl.kernel import Binary, Module, Names


@dataclass(frozen=True)
class Setup:
    """The first message to a worker: the data that a whole campaign shares.

    The program is sent as text, because an expression's cached hash is valid in only one process.
    If `bounded`, results are also compared with the bounds of their rounding errors. `proofs` are
    rules with given points, by name, that need not be proved again, with the hashes of their laws.
    """

    text: str
    device: Device
    inputs: Inputs
    wanted: tuple[Expected, ...]
    bounded: bool = False
    proofs: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Ready:
    """The worker is ready for requests.

    `note` describes something that its system does not permit and that it does without.
    """

    note: str = ""


@dataclass(frozen=True)
class Unfit:
    """The worker cannot work; `message` is the text of the error."""

    message: str


# --- to the compiler ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Compile:
    """Asks for the kernels of a candidate; the answer is `Compiled` or an outcome."""

    skeleton: str
    sizes: dict[str, int]


@dataclass(frozen=True)
class Compiled:
    """The kernels and the hash of their text; the bounds of each component's errors, if known."""

    module: Module
    sha: str
    bounds: tuple[Bounds, ...] = ()


@dataclass(frozen=True)
class Settle:
    """Asks for the outcome of a candidate about which a bench has doubts."""

    doubtful: Doubtful
    candidate: Compile


@dataclass(frozen=True)
class Cut:
    """Asks for the values that a candidate stores between its stages; the answer is `Stored`."""

    candidate: Compile


@dataclass(frozen=True)
class StoredValue:
    """The value of a stage: the buffers that hold it after a kernel, and its expected values."""

    stage: str
    function: str
    names: Names
    wanted: tuple[Expected, ...]


@dataclass(frozen=True)
class Stored:
    """The values that a candidate stores, in order; none if its program has one stage."""

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
    """Asks for the outcome of kernels within `seconds`; the answer may be `Doubtful`.

    `best_ns` is the best time so far. `build_seconds`, if given, bounds only the driver's compiler.
    `binary` has the kernels if they were built ahead. `bounds` are as in `Compiled`.
    """

    module: Module
    best_ns: int | None
    seconds: float
    build_seconds: float | None = None
    binary: Binary | None = None
    bounds: tuple[Bounds, ...] = ()


@dataclass(frozen=True)
class WorkerPhase:
    """Announces, before an answer, what the worker does next.

    `seconds`, if given, is the limit for this phase; `option` is the option that sets it.
    """

    doing: str
    seconds: float | None = None
    option: str = ""


@dataclass(frozen=True)
class Doubtful:
    """The candidate is `measured` if the doubts in `found` turn out to be right."""

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
    """Asks the driver to build kernels; the answer is `Built` or an outcome."""

    module: Module
    build_seconds: float | None = None


@dataclass(frozen=True)
class Built:
    """The binary that the driver built from kernels."""

    binary: Binary


Request: TypeAlias = Compile | Settle | Cut | Blame | Measure | Inspect | Build
Answer: TypeAlias = Compiled | Stored | Doubtful | Inspected | Built | Outcome
