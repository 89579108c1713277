"""What a campaign and its worker say to each other, pickled, over a socket of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from liftpy.constraints.device import Device
from liftpy.explore.check import INPUT_SEED, Expected
from liftpy.explore.outcome import Outcome
from liftpy.opencl.kernel import Module


@dataclass(frozen=True)
class Setup:
    """The first message: what holds for a whole campaign.

    The program travels as text, and the worker derives its skeletons itself: an expression's cached
    hash is good in one process only.
    """

    text: str
    device: Device
    wanted: tuple[Expected, ...]
    input_seed: int = INPUT_SEED


@dataclass(frozen=True)
class Ready:
    """The worker has a device, inputs and skeletons."""


@dataclass(frozen=True)
class Unfit:
    """The worker cannot work: the sentence of a refusal."""

    message: str


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
class Measure:
    """Asks for the outcome of the candidate compiled last, in so many seconds.

    `best_ns` is the best time so far.
    """

    best_ns: int | None
    seconds: float


Request: TypeAlias = Compile | Measure
Answer: TypeAlias = Ready | Unfit | Compiled | Outcome
