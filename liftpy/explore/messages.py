"""What a campaign and its workers say to each other, pickled, over sockets of their own.

This module, and all that a bench imports, can be used without z3 and lark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.constraints.device import Device
from liftpy.explore.check import Expected, Right
from liftpy.explore.inputs import Inputs
from liftpy.explore.outcome import Measured, Outcome
from liftpy.opencl.kernel import Binary, Module


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
class Stage:
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


Request: TypeAlias = Compile | Settle | Measure | Build
Answer: TypeAlias = Compiled | Doubtful | Built | Outcome
