"""The candidates that a plan may choose for an operation: the first one, or those of campaigns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from liftpy.constraints.device import Device
from liftpy.errors import LiftError, StoreRefused
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.space.candidate import Candidate, program_text
from liftpy.explore.space.settings import Settings
from liftpy.explore.space.version import VERSION
from liftpy.ir.program import Program
from liftpy.ir.types import size_bytes
from liftpy.networks.campaigns import campaign_file
from liftpy.networks.costs import Costs
from liftpy.networks.graph import Operation
from liftpy.networks.layout import footprint
from liftpy.networks.similar import Outline, similar_candidate
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.cuts import RESULT
from liftpy.traffic.machine import hardware_of


@dataclass(frozen=True)
class Option:
    """A candidate of an operation's program: its skeleton and assignment, and its kernels.

    `time_ns` is the sum of its kernels' median times; None if it was not measured. It contains the
    time of reading constants from memory if the caches cannot hold those of the network.
    """

    skeleton: str
    assignment: Settings
    time_ns: int | None
    module: Module


Options = Callable[[Operation], Sequence[Option]]
"""From an operation with a program to its candidates, at least one."""


def firsts(device: Device) -> Options:
    """Options that are the first candidate of each program, not measured."""
    known: dict[Program, Option] = {}

    def options(operation: Operation) -> Sequence[Option]:
        program = operation.program
        if program is None:
            return []
        if program not in known:
            known[program] = unmeasured(candidate_of(program, device, {}))
        return [known[program]]

    return options


def unmeasured(candidate: Candidate) -> Option:
    """A candidate as an option without a time."""
    module = compile_candidate(candidate.skeleton, candidate.point)
    return Option(candidate.skeleton.key, candidate.assignment, None, module)


class Measured:
    """Options that are the candidates measured on a device in campaigns.

    A program without a campaign has the candidate that is most like the best one of a similar
    program, and its first one. `programs` are those that may be similar: those of the network.
    A path is a campaign's file, or a folder with campaigns of a network. `constants` are the bytes
    of the network's constants. If the caches cannot hold them, the times of options contain the
    time of reading an operation's own constants from memory, because a campaign, which runs one
    operation again and again, finds them in the caches. StoreRefused for a file of another device,
    driver or version of liftpy; in a folder, only those of this device are read.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        device: Device,
        constants: int = 0,
        programs: Iterable[Program] = (),
    ) -> None:
        paths = tuple(paths)
        self._others = [(Outline.of(p), partial(self._best, p)) for p in programs]
        self._similar: dict[Program, list[Option]] = {}
        self._device = device
        self._constants_cached = fits_in_caches(constants, device)
        self._folders = [path for path in paths if path.is_dir()]
        self._by_text: dict[str, list[Option]] = {}
        self._sought: set[str] = set()
        self._firsts = firsts(device)
        for path in paths:
            if path not in self._folders:
                self._read(path)

    def _read(self, path: Path) -> None:
        with CampaignReader.read(path) as store:
            _check(store, self._device)
            own = self._by_text.setdefault(store.identity.text, [])
            found = _measured_in(store, self._device)
            own.extend(found if self._constants_cached else map(self._from_memory, found))

    def _from_memory(self, option: Option) -> Option:
        """An option with the time of reading its constants from memory.

        A campaign has read those that the caches cannot hold from memory, too.
        """
        read = footprint(option.module, 1)
        constants = read.packed + sum(option.module.buffer(name).bytes for name in read.raw)
        if not fits_in_caches(constants, self._device):
            return option
        time_ns = (option.time_ns or 0) + reading_ns(constants, self._device)
        return replace(option, time_ns=time_ns)

    def known(self, program: Program) -> Sequence[Option]:
        """The candidates of a program that were measured; none without a campaign."""
        text = program_text(program)
        if text not in self._sought:
            self._sought.add(text)
            for folder in self._folders:
                if (path := campaign_file(folder, program, self._device)).exists():
                    self._read(path)
        return self._by_text.get(text, [])

    def __call__(self, operation: Operation) -> Sequence[Option]:
        program = operation.program
        if program is None:
            return []
        known = left_in_caches(self.known(program), program, self._device)
        return known or [*self._like_similar(program), *self._firsts(operation)]

    def _best(self, program: Program) -> Settings | None:
        """The settings of the fastest candidate of a program; None without a measured one."""
        known = [o for o in self.known(program) if o.time_ns is not None]
        return min(known, key=lambda o: o.time_ns or 0).assignment if known else None

    def _like_similar(self, program: Program) -> list[Option]:
        """The candidate that is most like the best one of a similar program, if there is one."""
        if program not in self._similar:
            found = similar_candidate(program, self._others, self._device)
            try:
                self._similar[program] = [] if found is None else [unmeasured(found)]
            except LiftError:  # a campaign would have found that it is refused
                self._similar[program] = []
        return self._similar[program]


def _measured_in(store: CampaignReader, device: Device) -> Iterator[Option]:
    """The candidates of a campaign that were measured on a device."""
    for row in store.rows():
        if row.outcome == "measured" and row.device == device.fingerprint:
            source, manifest = store.kernels(row.id)
            if source is not None and manifest is not None:
                module = Module.of_manifest(source, json.loads(manifest))
                yield Option(row.skeleton, row.assignment, row.time_ns, module)


def left_in_caches(options: Sequence[Option], program: Program, device: Device) -> Sequence[Option]:
    """The options without those whose streamed stores save less time than reading the result takes.

    A streamed result is not in the caches when the next operation reads it, which the times of a
    campaign do not show. Results that the caches cannot hold have all options.
    """
    size = int(size_bytes(program.body.body.type))
    cached = [one.time_ns for one in options if one.time_ns is not None and not streams(one)]
    if not cached or not fits_in_caches(size, device):
        return options
    most = min(cached) - reading_ns(size, device)
    return [one for one in options if not streams(one) or (one.time_ns or 0) < most]


def fits_in_caches(size: int, device: Device) -> bool:
    """Whether the caches of a device hold this number of bytes."""
    return size <= hardware_of(device).cache_sizes[-1]


def reading_ns(size: int, device: Device) -> int:
    """The time in which a device reads this number of bytes from memory."""
    return 1000 * size // hardware_of(device).memory_bandwidth


def streams(option: Option) -> bool:
    """Whether a candidate's result bypasses the caches."""
    return "streamed" in {option.assignment.get(name) for name in ("stores", f"{RESULT}.stores")}


def _check(store: CampaignReader, device: Device) -> None:
    """Refuses a campaign whose times are not those of this device and version."""
    identity = store.identity
    if identity.settings.get("modelled"):
        raise StoreRefused(
            f"{store.path} has modelled times, and a plan needs measured ones: explore on a device"
        )
    if identity.version != VERSION:
        raise StoreRefused(
            f"{store.path} has times of liftpy {identity.version}, and this is {VERSION}: explore "
            "again, or plan with that version"
        )
    if device.fingerprint not in {d.fingerprint for d in identity.devices}:
        known = ", ".join(f"{d.platform}: {d.name} ({d.driver_version})" for d in identity.devices)
        raise StoreRefused(
            f"{store.path} has times of {known}, and the plan is for {device.platform}: "
            f"{device.name} ({device.driver_version}); choose that device, or explore on this one"
        )


def undominated(options: Sequence[Option], costs: Sequence[Costs]) -> list[Option]:
    """The options that none beats; of equal ones, the first is kept."""

    def order(k: int) -> tuple[int, int, int, int]:
        return costs[k].time_ns, costs[k].scratch, len(costs[k].constants), k

    kept: list[int] = []
    for k in sorted(range(len(options)), key=order):
        if not any(costs[j].beats(costs[k]) for j in kept):
            kept.append(k)
    return [options[k] for k in kept]
