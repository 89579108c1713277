"""Deriving a stored candidate again, from the stored text of its program."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from liftpy.errors import StoreRefused, a_few
from liftpy.explore.campaign.reading import CampaignReader
from liftpy.explore.campaign.rows import Row
from liftpy.explore.space.candidate import Candidate, steps_text
from liftpy.explore.space.given_points import proved
from liftpy.explore.space.settings import Settings
from liftpy.ir.program import Program
from liftpy.language.text.program import parse
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import skeleton_named, skeletons
from liftpy.rewrite.strategy import replay as replay_steps

DIFFERENCE_LINES = 40


@dataclass(frozen=True)
class Replay:
    """A candidate derived again; `difference` is empty if kernels and manifest are the stored ones.

    same_derivation: whether the strategy takes the stored steps.
    """

    candidate: Candidate
    module: Module
    same_derivation: bool
    difference: str
    stored_version: str

    @property
    def identical(self) -> bool:
        """Whether kernels and manifest equal the stored ones byte for byte."""
        return not self.difference


def alike(key: str, known: Iterable[str]) -> list[str]:
    """The known skeletons, those most similar to a key first."""
    return sorted(known, key=lambda k: -difflib.SequenceMatcher(None, key, k).ratio())


def stored_candidate(store: CampaignReader, row: Row) -> Candidate:
    """The candidate of a stored row.

    Raises StoreRefused if this liftpy does not derive its skeleton.
    """
    where = f"candidate {row.id} of {store.path}"
    program = parse(store.identity.text)
    return named_candidate(program, row.skeleton, row.assignment, where, row.ordinal)


def named_candidate(
    program: Program, key: str, assignment: Settings, where: str, ordinal: int = -1
) -> Candidate:
    """The candidate of a program by the key of its skeleton and its sizes; messages say `where`.

    Raises StoreRefused if this liftpy does not derive the skeleton.
    """
    skeleton = skeleton_named(program, key, proved)
    if skeleton is None:
        known = [other.key for other in skeletons(program)]
        raise StoreRefused(
            f"{where} has the skeleton {key}, which this liftpy does not derive; it derives: "
            f"{a_few(alike(key, known))}"
        )
    sizes = {p.name: assignment.get(p.name) for p in skeleton.parameters}
    missing = [name for name, value in sizes.items() if not isinstance(value, int)]
    if missing:
        raise StoreRefused(
            f"{where} has no value for {', '.join(missing)}: another version of liftpy made it"
        )
    given = tuple((name, value) for name, value in sizes.items() if isinstance(value, int))
    return Candidate(program, skeleton, given, ordinal)


def replay(path: Path, id_: str) -> Replay:
    """Derives and compiles a stored candidate again, and compares it with the stored kernels.

    The derivation is replayed step by step. Raises StoreRefused if the candidate has no kernels.
    """
    with CampaignReader.read(path) as store:
        row = store.row(id_)
        source, manifest = store.kernels(row.id)
        if source is None or manifest is None:
            raise StoreRefused(
                f"candidate {row.id} of {path} has no kernels to compare with: {row.outcome}, "
                f"{row.reason}"
            )
        candidate = stored_candidate(store, row)
        version = store.identity.version
    derivation = candidate.skeleton.derivation
    for _ in replay_steps(derivation.start, derivation.steps):
        pass
    module = compile_candidate(candidate.skeleton, candidate.point)
    old = [*source.splitlines(), *manifest.splitlines()]
    new = [*module.source.splitlines(), *module.manifest_json().splitlines()]
    lines = list(difflib.unified_diff(old, new, "stored", "replayed", lineterm=""))
    same = row.derivation == json.loads(steps_text(candidate.skeleton))
    return Replay(candidate, module, same, "\n".join(lines[:DIFFERENCE_LINES]), version)
