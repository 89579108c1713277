"""`lp.choose`: the candidate with the least modelled time; no kernel runs.

`search/modelled_choice.py` searches the space.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.errors import Unsatisfiable
from liftpy.explore.search.modelled_choice import Chooser, Model
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.settings import Fixed
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.ir.program import Program
from liftpy.language.entry import entry
from liftpy.pipeline import collection_paused
from liftpy.semantics.storage import StorageLike
from liftpy.traffic.energy import EnergyProxy, energy_proxy
from liftpy.traffic.energy_costs import EnergyCosts, energy_costs
from liftpy.traffic.machine import hardware_of


@dataclass(frozen=True)
class Choice:
    """The candidate with the least modelled time, and the best of each other family or partition.

    `left` are the partitions some of whose stages take longer than the best candidate, with that
    modelled time in milliseconds; their other stages were not searched. `unlikely` are the families
    and partitions whose first few candidates are much slower than the best candidate, with the
    modelled time of the best of these few, of all or of some stages; they were not searched
    further. `drawn` candidates (of stages) were ordered by figures, and `considered` of them
    modelled. `deriving` and `choosing` are the seconds that deriving the space and choosing in it
    took.
    """

    best: Model
    others: tuple[Model, ...]
    device: Device
    left: Mapping[str, float]
    unlikely: Mapping[str, float]
    hardware: Hardware
    drawn: int
    considered: int
    deriving: float
    choosing: float

    @property
    def candidate(self) -> Candidate:
        """The chosen candidate."""
        return self.best.candidate

    @property
    def assignment(self) -> Mapping[str, str | int]:
        """Its choices and sizes, as `lp.compile` takes them."""
        return self.best.candidate.assignment

    def energy_proxy(
        self, model: Model | None = None, costs: EnergyCosts | None = None
    ) -> EnergyProxy:
        """The energy proxy of the chosen candidate, or of another one (docs/choosing.md).

        It takes as long as compiling the candidate.
        """
        candidate = (self.best if model is None else model).candidate
        lowered = candidate.skeleton.at(candidate.point)
        return energy_proxy(lowered, self.device, self.hardware, costs or energy_costs())

    def why_worse(self, other: Model) -> str:
        """The part of the modelled time in which another candidate loses most."""
        mine, theirs = self.best.modelled.parts, other.modelled.parts
        part = max(theirs, key=lambda name: theirs[name] - mine[name])
        return f"{WORDS.get(part, part)}: {theirs[part]:.3g} ms instead of {mine[part]:.3g} ms"

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON data."""
        return {
            "program": self.candidate.program.name,
            "id": self.candidate.key,
            "assignment": self.candidate.assignment,
            **self.best.modelled.to_json(),
            "others": [
                {
                    "id": other.candidate.key,
                    "assignment": other.candidate.assignment,
                    "modelled_ms": other.milliseconds,
                    "modelled_parts_ms": other.modelled.parts,
                    "why_worse": self.why_worse(other),
                }
                for other in self.others
            ],
            "left": dict(self.left),
            "unlikely": dict(self.unlikely),
            "drawn": self.drawn,
            "considered": self.considered,
            "deriving_s": self.deriving,
            "choosing_s": self.choosing,
            "hardware": self.hardware.to_json(),
        }


WORDS = {
    "operations": "operations",
    "loads": "loads from L1",
    "launches": "launches",
    "latency": "waiting for results",
    "memory": "waiting for memory",
    "L2": "waiting for L2",
    "L3": "waiting for L3",
}
"""The parts of a modelled time in words."""


@entry("lp.choose")
def choose(  # noqa: PLR0913  one argument per option
    program: Program,
    device: Device | str | None = None,
    *,
    memory_limit: int | None = None,
    max_error: float | None = None,
    winograd_points: str | Sequence[str] = (),
    sizes: Mapping[str, int] | None = None,
    where: Sequence[str] = (),
    fixed: Fixed | None = None,
    storage: StorageLike | None = None,
) -> Choice:
    """The candidate with the least modelled time on a device, without running a kernel.

    The arguments are those of `lp.space`; a profile will do as a device. The time is that of a
    model of operations and memory traffic (docs/choosing.md), which orders candidates; `lp.explore`
    finds faster ones. Raises Unsatisfiable if there is no candidate.

    >>> import liftpy as lp
    >>> choice = lp.choose(lp.workload("matmul/64x64x64"), "profile:xeon-silver-4208")
    >>> choice.best.milliseconds < 1
    True
    """
    started = time.perf_counter()
    with collection_paused(kept=True):
        space = space_of(
            program,
            device,
            memory_limit=memory_limit,
            max_error=max_error,
            winograd_points=winograd_points,
            sizes=sizes,
            where=where,
            fixed=fixed,
            storage=storage,
        )
    return chosen(space, time.perf_counter() - started, memory_limit)


def chosen(space: Space, deriving: float = 0.0, memory_limit: int | None = None) -> Choice:
    """The choice in a space that took so many seconds to derive."""
    started = time.perf_counter()
    if not space.possible:
        raise Unsatisfiable(space.why_empty(memory_limit))
    chooser = Chooser(space, hardware_of(space.device))
    with collection_paused(
        kept=True
    ):  # the collector would traverse the whole space again and again
        best, *others = sorted(chooser.models(), key=lambda model: model.milliseconds)
    return Choice(
        best,
        tuple(others),
        space.device,
        chooser.left,
        chooser.unlikely,
        chooser.hardware,
        chooser.drawn,
        chooser.considered,
        deriving,
        time.perf_counter() - started,
    )
