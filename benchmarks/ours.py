"""liftpy's side: the campaign of a case, and its best candidates ready to run."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cases import Case
from report import Best
from turns import Figures, Timed, timed_alternately, turn

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.explore.campaign.rows import Row
from liftpy.explore.measure.measurement import run_poisoned
from liftpy.explore.one_candidate import candidate_of
from liftpy.opencl.kernel import Module
from liftpy.opencl.launching import launched
from liftpy.opencl.loaded import Loaded
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate

FINALISTS = 5
"""The number of fastest candidates of a campaign that are timed again, alternately."""

CHOOSING = 9
"""Rounds of that choice; they are no part of what is reported."""


def file_of(name: str) -> str:
    """A file name for the case of a name."""
    return name.replace("/", "_").replace(":", "_")


def searched(case: Case, device: Device, folder: Path, **settings: Any) -> lp.Campaign:
    """The campaign of a case, settings as in `explore`; what the folder has of it goes on."""
    return lp.explore(
        case.program, db=folder / f"{file_of(case.name)}.db", device=device, **settings
    )


def stored(case: Case, folder: Path) -> lp.Campaign:
    """The campaign of a case as it is stored."""
    return lp.Campaign.read(folder / f"{file_of(case.name)}.db")


def run(loaded: Loaded) -> dict[str, float]:
    """Nanoseconds of a run: device events, and on the host until the last one has ended."""
    ((events, taken),) = loaded.timed(1, 0)
    return {"wall": taken, "events": sum(events)}


@dataclass
class Ours:
    """A candidate, built, checked and ready to run again."""

    row: Row
    module: Module
    loaded: Loaded
    error: float

    def run(self) -> dict[str, float]:
        """The figures of a run."""
        return run(self.loaded)

    def together(self, session: Session, runs: int) -> Timed:
        """Runs that are enqueued together, in the session that loaded it: one run for `turn`.

        `events` is the device's time of one run, and `host` the host's, until the last kernel has
        ended; `wall` is the host's time of all runs.
        """
        memory = self.loaded.memory
        launches = [x for x in self.module.launches if x.phase == "run"]
        kernels = session.kernels(self.module, session.built(self.module), launches)
        for launch, kernel in kernels.items():
            kernel.set_args(*(memory.of(self.module.buffer(name)) for name in launch.arguments))
        once = [(kernels[x], x.global_size, x.local_size) for x in launches]

        def timed() -> Figures:
            spans, taken = launched(session.opened, once * runs, [])
            device = sum(end - start for start, end in spans())
            return {"wall": taken, "host": taken / runs, "events": device / runs}

        return timed

    def to_json(self) -> Best:
        """What a reader has to know to run it again."""
        return {
            "skeleton": self.row.skeleton,
            "assignment": self.row.assignment,
            "peak": self.module.memory.peak,
            "scratch": self.module.memory.scratch,
            "error": self.error,
        }


def best(
    case: Case,
    campaign: lp.Campaign,
    session: Session,
    count: int = FINALISTS,
    rounds: int = CHOOSING,
    figure: str = "wall",
) -> Ours:
    """The fastest candidate of a campaign, chosen anew among its finalists.

    A campaign's least time is the luckiest of many, and the machine may not have been at rest.
    `figure` is what decides, `wall` or `events`.
    """
    measured = sorted(
        (r for r in campaign.rows if r.time_ns is not None), key=lambda r: r.time_ns or 0
    )
    finalists: list[Ours] = []
    for row in measured[:count]:
        candidate = candidate_of(case.program, session.device, row.assignment)
        module = compile_candidate(candidate.skeleton, candidate.assignment)
        loaded = session.load(module)
        error = case.error(run_poisoned(loaded, case.arrays))
        finalists.append(Ours(row, module, loaded, error))
    turns = {str(k): partial(turn, f.run) for k, f in enumerate(finalists)}
    samples, _ = timed_alternately(turns, rounds)
    fastest = min(samples, key=lambda k: statistics.median(samples[k][figure]))
    chosen = finalists[int(fastest)]
    for other in finalists:
        if other is not chosen:
            other.loaded.close()
    return chosen


def has(case: Case, folder: Path) -> bool:
    """Whether a folder has a campaign of the case."""
    return (folder / f"{file_of(case.name)}.db").is_file()
