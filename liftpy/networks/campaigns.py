"""Campaigns over a network: each distinct operation is explored once, in a file of one folder.

A file is an ordinary campaign, so every command for campaigns takes it. Its name is derived from
the program and the device: another model with the same operation continues the same campaign.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from liftpy.constraints.device import Device
from liftpy.deadline import Deadline
from liftpy.errors import NothingMeasured, StoreRefused, Unsatisfiable, plural
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.campaign.database import saying
from liftpy.explore.campaign.forms import Spaces
from liftpy.explore.campaign.run import Progress
from liftpy.explore.exploring import SAMPLES, explore
from liftpy.explore.measure.process import IdleProcesses
from liftpy.explore.report.wording import in_time
from liftpy.explore.space.candidate import program_text
from liftpy.explore.space.settings import Settings
from liftpy.ir.program import Program
from liftpy.networks.budget import NextOperation, State, chosen, target
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.sharing import sharing
from liftpy.networks.similar import Outline, similar_candidate
from liftpy.opencl.devices import find_device
from liftpy.primitives.counting import operations

LEAST = 20.0
"""The shortest time limit in seconds of the first turn of a program, if as much time is left."""

DERIVING = 60.0
"""The seconds that a later turn may take besides its candidates.

Its workers start in it, and its space is derived if it is not kept (`Spaces`).
"""

SLOWER = 2.0
"""How many times slower than expected the candidates of a turn may be before it is interrupted."""

NAME_MOST = 48
"""The largest number of characters of a file's name that are the program's name."""

WIDE = 512
"""An alignment in bytes that suffices on nearly all devices, since the device may be absent."""

CONDITIONS = ("families", "where", "fixed", "max_error", "winograd_points")
"""Settings with which a campaign begins with its own first candidate."""

UNFINISHED = ("running", "pending")
"""The outcomes of candidates that have none yet."""


@dataclass(frozen=True)
class Work:
    """A distinct program of a network, the operations that have it, and its campaign's file."""

    program: Program
    operations: tuple[Operation, ...]
    path: Path
    bytes: int = 0
    """The bytes of the arrays that a run of the program reads and writes."""

    @cached_property
    def outline(self) -> Outline:
        """The program's outline, whose text similar programs share."""
        return Outline.of(self.program)

    @cached_property
    def flops(self) -> int:
        """The arithmetic operations of the program as written."""
        return operations(self.program)

    @property
    def count(self) -> int:
        """How often the program is computed in one run of the network."""
        return len(self.operations)


@dataclass(frozen=True)
class Explored:
    """A program with its campaign: None, and the reason, if it has no file or nothing measured."""

    work: Work
    campaign: Campaign | None = None
    reason: str = ""
    finished: bool = False
    vain: int = 0
    """How many of its last turns ended before a candidate was tried."""

    @property
    def times(self) -> tuple[float, ...]:
        """The median times of the measured candidates in ms."""
        rows = self.campaign.rows if self.campaign is not None else ()
        return tuple(row.time_ns / 1e6 for row in rows if row.time_ns is not None)

    @property
    def best(self) -> float | None:
        """The least time in ms; None if nothing is measured."""
        return min(self.times, default=None)

    def settings(self) -> Settings | None:
        """The settings of the fastest candidate; None if nothing is measured."""
        if self.campaign is None or self.best is None:
            return None
        return self.campaign.best().assignment

    @property
    def tried(self) -> int:
        """The number of candidates that have an outcome."""
        rows = self.campaign.rows if self.campaign is not None else ()
        return sum(row.outcome not in UNFINISHED for row in rows)

    @property
    def state(self) -> State:
        """What decides how many candidates it gets."""
        calls = self.campaign.calls if self.campaign is not None else ()
        seconds = sum(call.ended - call.started for call in calls if call.ended is not None)
        return State(
            self.work.count,
            self.times,
            self.tried,
            seconds,
            self.finished,
            self.vain,
            self.work.flops,
            self.work.bytes,
            self.work.outline.text,
        )


@dataclass(frozen=True)
class NetworkCampaign:
    """The campaigns of a network's distinct programs, in the order of their first operations.

    `folder` has their files. `stopped` says why the last call ended before all had their number of
    candidates; it is empty if they have it.
    """

    folder: Path
    explored: tuple[Explored, ...]
    stopped: str = ""

    @property
    def total(self) -> float:
        """The sum of the best times in ms over all operations that have one, each occurrence."""
        return sum(e.best * e.work.count for e in self.explored if e.best is not None)

    def share(self, one: Explored) -> float | None:
        """The part of `total` that the occurrences of a program take; None without a time."""
        return None if one.best is None else one.best * one.work.count / self.total

    def __iter__(self) -> Iterator[Explored]:
        return iter(self.explored)

    def to_json(self) -> dict[str, Any]:
        """The table as JSON data: times in ms."""
        return {
            "folder": str(self.folder),
            "total_ms": self.total,
            "stopped": self.stopped,
            "operations": [
                {
                    "operations": [o.name for o in one.work.operations],
                    "operator": one.work.operations[0].operator,
                    "program": one.work.program.name,
                    "file": one.work.path.name,
                    "count": one.work.count,
                    "best_ms": one.best,
                    "share": self.share(one),
                    "tried": one.tried,
                    "measured": len(one.times),
                    "reason": one.reason,
                }
                for one in self.explored
            ],
        }


@dataclass(frozen=True)
class Turn:
    """A turn of an operation: what is explored next, and what the network takes so far in ms."""

    work: Work
    choice: NextOperation
    total: float
    programs: int

    def __str__(self) -> str:
        many = f", {self.work.count} times" if self.work.count > 1 else ""
        said = f"{self.work.operations[0].name} (1 of {plural(self.programs, 'program')}{many})"
        aim = f"to {plural(self.choice.samples, 'candidate')}"
        if self.choice.gain is None:
            return f"{said}: {aim}; {self.choice.why}"
        return (
            f"{said}: {aim}; expected gain {in_time(round(self.choice.gain * 1e6))} of "
            f"{in_time(round(self.total * 1e6))} for the network"
        )


class View(Protocol):
    """What shows the progress of one turn."""

    def __call__(self, now: Progress, /) -> None: ...

    def phase(self, doing: str, /) -> None: ...


class Unseen:
    """Shows nothing."""

    def __call__(self, now: Progress, /) -> None:
        del now

    def phase(self, doing: str, /) -> None:
        del doing


def unseen(_: Turn) -> AbstractContextManager[View]:
    """Shows nothing of a turn."""
    return nullcontext(Unseen())


# --- files ----------------------------------------------------------------------------------------


def campaign_file(folder: Path, program: Program, device: Device) -> Path:
    """The file of a program's campaign on a device: the same for equal programs of all models."""
    text = "\n".join([program_text(program), device.fingerprint])
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return folder / f"{program.name[:NAME_MOST]}-{digest}.db"


def works_of(graph: Graph, folder: Path, device: Device) -> tuple[Work, ...]:
    """The distinct programs of a graph with their operations and files.

    Operations without kernels in a plan (`sharing`) are left out.
    """
    unmoved = sharing(graph, WIDE).unmoved
    found: dict[int, list[Operation]] = {}
    for operation in graph.operations:
        if operation.program is not None and operation.name not in unmoved:
            found.setdefault(id(operation.program), []).append(operation)
    return tuple(
        Work(
            program,
            tuple(found[id(program)]),
            campaign_file(folder, program, device),
            bytes_of(graph, found[id(program)][0]),
        )
        for program in graph.programs
        if id(program) in found
    )


def bytes_of(graph: Graph, operation: Operation) -> int:
    """The bytes of the arrays that an operation reads and writes, constants included."""
    names = {*operation.inputs, *operation.outputs} & graph.tensors.keys()
    return sum(graph.tensors[name].bytes for name in names)


def stored(work: Work) -> Explored:
    """What is stored of a program: nothing if it has no file."""
    with saying(work.path):
        there = work.path.exists()
    if not there:
        return Explored(work, reason="not explored")
    campaign = Campaign.read(work.path)
    return Explored(work, campaign, "" if campaign.pareto() else "no candidate is measured")


def prepared(folder: Path) -> None:
    """Makes the folder; StoreRefused if the path is a file, such as the campaign of one program."""
    with saying(folder):
        if folder.exists() and not folder.is_dir():
            raise StoreRefused(
                f"{folder} is a file, and the campaigns of a network are a folder of files, one "
                "for each distinct program\n  give another path with --db"
            )
        folder.mkdir(parents=True, exist_ok=True)


# --- exploring ------------------------------------------------------------------------------------


@dataclass
class Exploring:
    """One call that explores the programs of a network."""

    works: Sequence[Work]
    samples: int
    deadline: Deadline
    settings: Mapping[str, Any]
    again: bool
    view: Callable[[Turn], AbstractContextManager[View]]
    told: Callable[[Turn], None]
    spaces: Spaces
    idle: IdleProcesses
    now: list[Explored] = field(default_factory=list[Explored])

    def run(self) -> str:
        """Takes turns until all programs have their candidates; returns why it ended earlier."""
        self.now = [stored(work) for work in self.works]
        while True:
            choice = chosen([self.state(one) for one in self.now], self.samples)
            if choice is None:
                return ""
            if self.deadline.over:
                return f"the time limit of {self.deadline.seconds:g} s (--time-limit) ended"
            self.turn(choice)

    @property
    def conditions(self) -> bool:
        """Whether the user restricts the spaces of the programs."""
        return any(map(self.settings.get, CONDITIONS))

    def state(self, one: Explored) -> State:
        """The state of an operation; with conditions, it is similar to none."""
        return replace(one.state, kind="") if self.conditions else one.state

    def turn(self, choice: NextOperation) -> None:
        """Continues the campaign of one program."""
        before = self.now[choice.index]
        total = sum(e.best * e.work.count for e in self.now if e.best is not None)
        first = self.first(before)
        if not (first or before.tried):  # nothing is like it
            choice = NextOperation(choice.index, target(0, self.samples))
        turn = Turn(before.work, choice, total, len(self.works))
        self.told(turn)
        finished, reason = False, ""
        limit = self.limit(choice)
        with self.view(turn) as view:
            try:
                campaign = explore(
                    before.work.program,
                    choice.samples,
                    db=before.work.path,
                    time_limit=limit,
                    again=self.again and choice.samples == self.samples,
                    progress=view,
                    phase=view.phase,
                    first=first,
                    spaces=self.spaces,
                    idle=self.idle,
                    **self.settings,
                )
                finished = campaign.exhausted
            except Unsatisfiable as refusal:  # the table has the reason
                finished, reason = True, str(refusal)
            except NothingMeasured as nothing:
                reason = str(nothing)
        after = stored(before.work)
        if reason and not finished and not after.tried:
            reason = "the time ended before its first candidate"
        vain = before.vain + 1 if after.tried == before.tried else 0
        # without a limit of its own, or with all the time that is left, it would be in vain again
        finished = finished or (vain > 0 and (limit is None or self.deadline.over))
        first, *_ = (reason or after.reason).splitlines() or [""]
        self.now[choice.index] = replace(after, finished=finished, vain=vain, reason=first)

    def first(self, one: Explored) -> Settings | None:
        """The settings that a new campaign begins with: those of a similar one's best candidate.

        None if there are none, or if the user's conditions may exclude that candidate.
        """
        if one.campaign is not None or self.conditions:
            return None
        others = [(other.work.outline, other.settings) for other in self.now]
        found = similar_candidate(
            one.work.program, others, self.settings["device"], self.settings.get("memory_limit")
        )
        return None if found is None else found.assignment

    def limit(self, choice: NextOperation) -> float | None:
        """The time limit of a turn in seconds; None without a limit of the call.

        It is twice as long after a turn in vain.
        """
        left = self.deadline.left
        if left == math.inf:
            return None
        one = self.now[choice.index]
        if one.tried:
            limit = DERIVING + SLOWER * (choice.samples - one.tried) * one.state.pace
        else:
            limit = max(LEAST, SLOWER * left / sum(not other.tried for other in self.now))
        return min(left, limit * 2**one.vain)


def explore_network(  # noqa: PLR0913  one argument per setting
    graph: Graph,
    samples: int = SAMPLES,
    seed: int = 0,
    db: Path | str = "network.db",
    device: Device | str | None = None,
    *,
    time_limit: float | None = None,
    began: float | None = None,
    again: bool = True,
    view: Callable[[Turn], AbstractContextManager[View]] = unseen,
    told: Callable[[Turn], None] = lambda _: None,
    spaces: Spaces | None = None,
    **settings: Any,
) -> NetworkCampaign:
    """Explores each distinct program of a graph; see `Network.explore`.

    `spaces` has the spaces that earlier calls derived, and gets those of this call.
    """
    folder = Path(db)
    prepared(folder)
    target = device if isinstance(device, Device) else find_device(device)
    works = works_of(graph, folder, target)
    if not works:
        raise NothingMeasured(f"{graph.name} has no operation with a program to explore")
    began = time.monotonic() if began is None else began
    deadline = Deadline.after(time_limit, began)
    # Tensors are parts of one buffer, of which not every driver makes images.
    own = {**settings, "seed": seed, "device": replace(target, image_texels=0)}
    kept = Spaces() if spaces is None else spaces
    with IdleProcesses() as idle:
        exploring = Exploring(works, samples, deadline, own, again, view, told, kept, idle)
        stopped = exploring.run()
    found = NetworkCampaign(folder, tuple(exploring.now), stopped)
    if not any(one.times for one in found):
        lines = [f"  {one.work.operations[0].name}: {one.reason}" for one in found]
        raise NothingMeasured("\n".join([f"no operation of {graph.name} was measured:", *lines]))
    return found


def read_network(graph: Graph, db: Path | str, device: Device | str | None) -> NetworkCampaign:
    """What a folder has of the programs of a graph on a device; nothing runs."""
    folder = Path(db)
    target = device if isinstance(device, Device) else find_device(device)
    return NetworkCampaign(folder, tuple(map(stored, works_of(graph, folder, target))))
