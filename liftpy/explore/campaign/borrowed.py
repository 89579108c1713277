"""Times of stages that other campaigns have measured.

The file of another campaign has the settings of its stages. If a stage is the same expression up to
names, a candidate with these settings is compiled here. If each of its launches has the key of a
launch in the file (`same_kernel.py`), the candidate's time is the sum of the times of these
launches.

The times found are stored in the campaign's own file. So a resumed campaign continues with the same
times even if the other files have changed or are gone.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.deadline import check
from liftpy.errors import ArgumentRefused, InternalError, LiftError, StoreRefused, TimeUp, plural
from liftpy.explore.campaign.database import understanding
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.rows import Row
from liftpy.explore.campaign.same_kernel import Kernels
from liftpy.explore.campaign.schema import digest
from liftpy.explore.campaign.store import Store
from liftpy.explore.search import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.given_points import bank_in
from liftpy.explore.space.member import Member
from liftpy.explore.space.space import Space
from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param, Tuple
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import function_of
from liftpy.ir.program import Program
from liftpy.ir.walk import every_part, with_function
from liftpy.language.text.program import parse, show
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import keys_of_stages, prefixed
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import FAMILY, Skeleton
from liftpy.rewrite.stages import Stage

Words = frozenset[tuple[str, str]]
Sizes = frozenset[tuple[str, int]]


@dataclass(frozen=True)
class StageSettings:
    """The choices and sizes of a stage, with their names in a program of only this stage."""

    words: Words
    sizes: Sizes


@dataclass(frozen=True)
class Borrowed:
    """The time of a stage's candidate, and its peak as a program of its own; `origin`: the file."""

    part: StageSettings
    time_ns: int
    peak: int
    origin: str

    def to_json(self) -> dict[str, Any]:
        """This value as JSON data."""
        words, sizes = dict(sorted(self.part.words)), dict(sorted(self.part.sizes))
        figures = {"time_ns": self.time_ns, "peak": self.peak, "origin": self.origin}
        return {"words": words, "sizes": sizes, **figures}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Borrowed:
        """The value that `to_json` wrote."""
        part = StageSettings(frozenset(data["words"].items()), frozenset(data["sizes"].items()))
        return cls(part, data["time_ns"], data["peak"], data["origin"])


@dataclass(frozen=True)
class Elsewhere:
    """Another campaign: times by launch key, and the settings of its stages by their text."""

    path: Path
    times: Mapping[str, int]
    parts: Mapping[str, Sequence[StageSettings]]

    @classmethod
    def read(cls, path: Path, device: Device) -> Elsewhere:
        """Reads a campaign's file; raises StoreRefused if it has no measurements on this device."""
        samples: dict[str, list[int]] = {}
        parts: dict[str, dict[StageSettings, None]] = {}
        with CampaignReader.read(path) as there:
            if there.identity.settings.get("modelled"):
                raise StoreRefused(
                    f"{path} has modelled times: --times takes files of measured ones"
                )
            program = parse(there.identity.text)
            rows = [
                row
                for row in there.rows()
                if row.outcome == "measured"
                and row.device == device.fingerprint
                and not row.disturbed
            ]
            if not rows:
                raise StoreRefused(
                    f"{path} has no times of {device.label}, driver {device.driver_version}, on "
                    "which this campaign runs; times of another device or driver cannot be used"
                )
            for row in rows:
                check()
                for key, ns in zip(stored_keys(there, row), there.launches(row.id), strict=False):
                    samples.setdefault(key, []).append(ns)
                for text, part in stage_settings(program, row):
                    parts.setdefault(text, {})[part] = None
        times = {key: round(statistics.median(of)) for key, of in samples.items()}
        return cls(path, times, {text: [*of] for text, of in parts.items()})

    def time_of(self, keys: Sequence[str] | None) -> int | None:
        """The total time of launches; None if the time of one is unknown or `keys` is empty."""
        if not keys or not self.times.keys() >= {*keys}:
            return None
        return sum(self.times[key] for key in keys)


def stored_keys(there: CampaignReader, row: Row) -> list[str]:
    """The keys of a stored candidate's launches; none if they cannot be determined."""
    source, manifest = there.kernels(row.id)
    options = there.options(row.id)
    if source is None or manifest is None or options is None or row.device is None:
        return []
    with understanding(there.path):
        kernels = Kernels.stored(source, json.loads(manifest), options, row.device)
        return kernels.run_keys() or []


def stage_settings(program: Program, row: Row) -> Iterator[tuple[str, StageSettings]]:
    """The settings of each stage of a stored candidate, with the stage's text."""
    stages = [*keys_of_stages(row.skeleton)]
    assignment = row.assignment.items()
    for partition in partitions(program, bank_in(row.assignment)):
        if [s.name for s in partition.stages] == stages and {*partition.words} <= {*assignment}:
            yield from ((nameless(s.program), part) for s, part in split(partition, row))
            return


def split(partition: Partition, row: Row) -> Iterator[tuple[Stage, StageSettings]]:
    """The settings of each stage of a partition, without the stage's name as a prefix."""
    for stage in partition.stages:
        before = "" if partition.is_whole else prefixed(stage.name, "")
        others = dict(stage.within)
        own = {
            name.removeprefix(before): value
            for name, value in row.assignment.items()
            if name.startswith(before) and name not in others
        }
        words = frozenset((n, v) for n, v in own.items() if isinstance(v, str))
        yield (
            stage,
            StageSettings(words, frozenset((n, v) for n, v in own.items() if isinstance(v, int))),
        )


@lru_cache(maxsize=1024)
def nameless(program: Program) -> str:
    """The text of a program, independent of its names and of the order of its parameters.

    Two programs with the same text are the same expression up to names.
    """
    numbers = itertools.count()

    def numbered(expr: Expr, by: Mapping[Param, Param]) -> Expr:
        match expr:
            case Param():
                return by.get(expr, expr)
            case Tuple(elements):
                return Tuple(tuple(numbered(e, by) for e in elements))
            case FunCall(fun, args):
                parts = tuple(numbered(a, by) for a in args)
                function = function_of(fun)
                if function is not None:
                    own = {p: Param(f"x{next(numbers)}", p.type) for p in function.params}
                    body = numbered(function.body, {**by, **own})
                    fun = with_function(fun, Lambda(tuple(own.values()), body))
                return FunCall(fun, parts)
            case _:
                return expr

    mentioned = (e for e in every_part(program.body.body) if isinstance(e, Param))
    params = [p for p in dict.fromkeys((*mentioned, *program.params)) if p in program.params]
    own = {p: Param(f"p{k}", p.type) for k, p in enumerate(params)}
    constants = frozenset(own[p].name for p in params if p.name in program.constants)
    body = numbered(program.body.body, own)
    return show(Program("stage", Lambda(tuple(own.values()), body), constants), canonical=True)


def words_of(skeleton: Skeleton) -> Words:
    """The choices of a stage's skeleton, without those of the partition."""
    return frozenset({FAMILY: skeleton.family, **dict(skeleton.choices[skeleton.cuts :])}.items())


class StageMembers:
    """The members of a stage's space by their choices and the names of their sizes."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.members: dict[tuple[Words, frozenset[str]], Member] = {}
        for member in space.members:
            names = frozenset(self.own(member, p.name) for p in member.skeleton.parameters)
            self.members[words_of(member.skeleton), names] = member

    @staticmethod
    def own(member: Member, name: str) -> str:
        """The name of a size without the stage's name as a prefix."""
        return name.removeprefix(prefixed(member.stage, "")) if member.stage else name

    def candidate(self, part: StageSettings) -> Candidate | None:
        """The candidate of the stage that has these settings, if there is one."""
        sizes = dict(part.sizes)
        member = self.members.get((part.words, frozenset(sizes)))
        if member is None:
            return None
        point = {p.name: sizes[self.own(member, p.name)] for p in member.system.parameters}
        if not member.system.holds(point):
            return None
        return Candidate(self.space.program, member.skeleton, tuple(point.items()))


class Times:
    """The times of a campaign's stages in the files of other campaigns.

    It is a `Prior` of searches: called with the space of a stage, it returns trials of that stage.
    A new campaign reads the files at the start; a resumed one reads them only for stages that it
    has not looked up yet.
    """

    def __init__(self, paths: Sequence[Path], device: Device, *, begun: bool) -> None:
        self.paths = paths
        self.device = device
        self.store: Store | None = None
        self.found: dict[str, int] = {}
        if not begun:
            _ = self.files

    @cached_property
    def files(self) -> list[Elsewhere]:
        """The other campaigns."""
        return [Elsewhere.read(path, self.device) for path in self.paths]

    def __call__(self, space: Space) -> list[Trial]:
        """The trials of a stage from other campaigns."""
        if self.store is None:
            raise InternalError("there is no store for the times of other campaigns")
        stages, stage = (
            StageMembers(space),
            digest(nameless(space.program), *(m.key for m in space.members)),
        )
        stored = self.store.borrowed(stage)
        if stored is None:
            known = [*self.looked_up(stages)]
            self.store.borrow(stage, [one.to_json() for one in known])
        else:
            with understanding(self.store.path):
                known = [Borrowed.from_json(data) for data in stored]
        trials: list[Trial] = []
        for one in known:
            candidate = stages.candidate(one.part)
            if candidate is not None:
                trials.append(Trial(candidate, one.time_ns, one.peak))
                self.found[one.origin] = self.found.get(one.origin, 0) + 1
        return trials

    def looked_up(self, stages: StageMembers) -> Iterator[Borrowed]:
        """The times of a stage's candidates in other files; the first file with a time is used."""
        seen: set[StageSettings] = set()
        for there in self.files:
            for part in there.parts.get(nameless(stages.space.program), ()):
                candidate = None if part in seen else stages.candidate(part)
                if candidate is None:
                    continue
                check()
                try:
                    module = compile_candidate(candidate.skeleton, candidate.point)
                except TimeUp:
                    raise
                except (LiftError, InternalError):  # reported as its outcome when it is tried
                    continue
                keys = Kernels.of(module, self.device).run_keys()
                time_ns = there.time_of(keys)
                if time_ns is not None:
                    seen.add(part)
                    yield Borrowed(part, time_ns, module.memory.peak, str(there.path))

    def said(self) -> Iterator[str]:
        """For each file, a sentence that states how many times it provided."""
        for path in map(str, self.paths):
            count = self.found.get(path, 0)
            if count:
                yield f"the search begins with {plural(count, 'time')} of stages from {path}"
            else:
                yield f"{path} has no time of a stage of this program"


def times_of(
    files: Sequence[Path | str], own: Path, device: Device, several: int, *, begun: bool
) -> Times | None:
    """The times that a campaign begins with; None if no files are given.

    Raises ArgumentRefused if one is the campaign's own file, or if the campaign has several
    devices.
    """
    paths = [Path(path) for path in dict.fromkeys(map(str, files))]
    if not paths:
        return None
    if several > 1:
        raise ArgumentRefused(
            "a campaign of several devices cannot begin with times of other campaigns: leave out "
            "--times, or run a campaign for each device"
        )
    if any(path.resolve() == own.resolve() for path in paths):
        raise ArgumentRefused(
            f"{own} is the file of this campaign, whose times are used anyway: name files of "
            "other campaigns with --times"
        )
    return Times(paths, device, begun=begun)
