"""Importing the output of a board into a campaign: all rows are checked, then all are stored.

A row is valid only if this version of liftpy generates the same kernels for its program, skeleton
and sizes: the SHA-256 of the source that the board built must match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from liftpy.boards.judgement import Judgement
from liftpy.boards.results import AGAIN, Result, Results, refusal
from liftpy.boards.schema import CampaignFields, checked
from liftpy.errors import LiftError, a_few
from liftpy.explore.campaign.differences import device_text
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.replay import alike
from liftpy.explore.campaign.rows import Identity
from liftpy.explore.campaign.store import Store
from liftpy.explore.measure.compiling import source_sha
from liftpy.explore.measure.outcome import KINDS, Outcome, counts
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.given_points import proved
from liftpy.explore.space.version import VERSION
from liftpy.ir.open_sizes import size_ranges
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeleton_named, skeletons
from liftpy.rewrite.skeleton import Skeleton

JUDGED_BY = ("input_seed", "points", "tolerance")
"""The settings that determine how a result is judged on a board, which uses no other bounds."""


@dataclass(frozen=True)
class Taken:
    """A row to be stored."""

    candidate: Candidate
    module: Module
    outcome: Outcome
    origin: str


def import_results(path: Path, results: Results) -> dict[str, int]:
    """Stores results in a campaign, and returns the number of each outcome.

    The file is created if it does not exist. ResultsRefused if a row belongs to another campaign,
    program, device or version of liftpy, or if its candidate already has an outcome; then nothing
    is stored.
    """
    there = _campaign(path, results)
    identity = _identity(results)
    judge = Judgement.of(_program(results, identity), identity.settings)
    if there is not None:
        _check_same(path, results, there, identity)
        identity = replace(there, device=identity.device)
    named = {row.skeleton for row in results.rows}
    known = {
        key: made
        for key in named
        if (made := skeleton_named(judge.program, key, proved)) is not None
    }
    taken = [_taken(results, row, known, judge) for row in results.rows]
    with Store.open(path, identity) as store:
        taken = list(_placed(store, results, taken))
        with store.together():
            for each in taken:
                store.begin(each.candidate)
                store.compiled(each.candidate, each.module, source_sha(each.module.source))
                store.end(each.candidate.key, each.outcome, each.origin)
    return counts(each.outcome.kind for each in taken)


def _campaign(path: Path, results: Results) -> Identity | None:
    """The campaign in a file; None if the file does not exist."""
    if not results.rows:
        what = "the file has no rows to import"
        raise refusal(results.path, results.lines["device"], what)
    if not path.exists():
        return None
    with CampaignReader.read(path) as there:
        return there.identity


def _identity(results: Results) -> Identity:
    """The campaign that the results belong to, with the device that they were measured on."""
    line, data = results.lines["campaign"], results.campaign
    if data.get("version", VERSION) != VERSION:  # its campaigns may have other fields
        raise refusal(
            results.path,
            line,
            f"liftpy {data['version']!s:.100} made the bundle, this is {VERSION}, whose kernels "
            "may differ: import with that version, or export again",
        )
    try:
        checked(CampaignFields, data)
    except ValueError as error:
        what = f"the campaign is not valid ({error}). {AGAIN}"
        raise refusal(results.path, line, what) from error
    return Identity(
        program=data["program"],
        text=data["text"],
        device=results.device.to_json(),
        version=data["version"],
        seed=data["seed"],
        settings=data["settings"],
    )


def _program(results: Results, identity: Identity) -> Program:
    """The program of a campaign, with a number for every size."""
    line = results.lines["campaign"]
    try:
        program = parse(identity.text)
    except LiftError as error:
        raise refusal(results.path, line, f"the text is not a valid program: {error}") from error
    if program.name != identity.program or size_ranges(program):
        raise refusal(
            results.path,
            line,
            f"the text defines {program.name}; it must define {identity.program}, with numbers for "
            f"all sizes. {AGAIN}",
        )
    return program


def _check_same(path: Path, results: Results, there: Identity, here: Identity) -> None:
    """Raises ResultsRefused if results are of another program, device or version."""
    if there.text != here.text:
        raise refusal(
            results.path,
            results.lines["campaign"],
            f"the program is {here.program}, {path} is a campaign of "
            f"{there.program if there.program != here.program else 'another one of that name'}. "
            "Name another FILE; it is created if it does not exist",
        )
    if there.settings.get("modelled"):
        raise refusal(
            results.path,
            results.lines["campaign"],
            f"{path} is a modelled campaign, which does not take measured times. Name another "
            "FILE; it is created if it does not exist",
        )
    if (there.device["fingerprint"], there.device["ordinal"]) != (
        here.device["fingerprint"],
        here.device["ordinal"],
    ):
        raise refusal(
            results.path,
            results.lines["device"],
            f"the device is {device_text(here.device)}, "
            f"that of {path} is {device_text(there.device)}: "
            "times of two devices, or of two drivers, cannot be mixed. Name another FILE; it is "
            "created if it does not exist",
        )
    for name in JUDGED_BY:
        old, new = there.settings.get(name), here.settings.get(name)  # older files may lack it
        if old != new:
            raise refusal(
                results.path,
                results.lines["campaign"],
                f"the {name} is {new}, that of {path} is {old}: "
                "all results of a campaign are judged by the same settings. Name another FILE",
            )
    if there.version != here.version:
        raise refusal(
            results.path,
            results.lines["campaign"],
            f"liftpy {here.version} made the bundle, liftpy {there.version} made {path}: results "
            "of two versions cannot be mixed. Name another FILE",
        )


def _taken(results: Results, row: Result, known: Mapping[str, Skeleton], judge: Judgement) -> Taken:
    """Validates a row against its kernels, which are generated again."""
    skeleton = known.get(row.skeleton)
    if skeleton is None:
        near = a_few(alike(row.skeleton, (s.key for s in skeletons(judge.program))))
        raise refusal(
            results.path,
            row.line,
            f"candidate {row.candidate} has the skeleton {row.skeleton}; "
            f"{judge.program.name} has {near}",
        )
    candidate = Candidate(judge.program, skeleton, tuple(row.sizes.items()), row.ordinal)
    if candidate.key != row.candidate:
        raise refusal(
            results.path,
            row.line,
            f"the id {row.candidate} is wrong: {candidate.label} has the id {candidate.key}",
        )
    try:
        module = compile_candidate(skeleton, candidate.point)
    except LiftError as error:
        what = f"candidate {row.candidate} has no kernels: {error}"
        raise refusal(results.path, row.line, what) from error
    outcome = judged(results.path, row, module, judge)
    origin = (
        f"imported from {results.path.name}, line {row.line} (bundle {results.bundle[:12]}, "
        f"{results.started})"
    )
    return Taken(candidate, module, outcome, origin)


def judged(path: Path, row: Result, module: Module, judge: Judgement) -> Outcome:
    """The outcome of a row about these kernels; ResultsRefused if it does not fit them."""
    sha = source_sha(module.source)
    if sha != row.source:
        raise refusal(
            path,
            row.line,
            f"the board built kernels with the SHA-256 {row.source[:12]}..., those of "
            f"{row.candidate} have {sha[:12]}...: they were changed, or made by another liftpy. "
            "Export and run it again",
        )
    launches = sum(launch.phase == "run" for launch in module.launches)
    if row.times_ns and len(row.times_ns[0]) != launches:
        raise refusal(
            path,
            row.line,
            f"a run has times of {len(row.times_ns[0])} launches, {row.candidate} has {launches}",
        )
    if row.outcome == "measured" and row.allocated != module.memory.allocated:
        raise refusal(
            path,
            row.line,
            f"the board allocated {row.allocated} bytes for {row.candidate}, its kernels need "
            f"{module.memory.allocated}. If another version of liftpy exported the bundle, export "
            "it again",
        )
    try:
        outcome = judge.outcome(row, module)
    except (KeyError, ValueError, IndexError, OverflowError) as error:
        what = f"the detail of a {row.outcome} result is not valid: {error!r}"
        raise refusal(path, row.line, what) from error
    return outcome


def _placed(store: Store, results: Results, taken: list[Taken]) -> Iterator[Taken]:
    """Yields the rows in order, each with an ordinal in the campaign.

    A candidate that the campaign already has keeps its ordinal. Others get negative ordinals:
    those from 0 are reserved for the campaign's own search, which may draw the candidate later.
    """
    there = {row.id: row for row in store.rows()}
    before = min((0, *(row.ordinal for row in there.values()))) - len(taken)
    for each, row in zip(taken, results.rows, strict=True):
        candidate = each.candidate
        if candidate.key in there:
            old = there[candidate.key]
            if old.outcome in KINDS:
                raise refusal(
                    results.path,
                    row.line,
                    f"candidate {candidate.key} already has an outcome in {store.path} "
                    f"({old.outcome}: {old.reason.splitlines()[0]}). Name another FILE, such as "
                    "board.db; it is created if it does not exist",
                )
            yield replace(each, candidate=replace(candidate, ordinal=old.ordinal))
            continue
        yield replace(each, candidate=replace(candidate, ordinal=before))
        before += 1
