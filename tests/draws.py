"""Drawn candidates of programs, compiled: made once for all runtimes and all workers.

Nearly all that a test of a few draws takes is deriving all skeletons of a program and collecting
their conditions, for each device and in each worker. Here only those are derived that are drawn
from, for the first runtime; another one tries some of those that its own conditions allow.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random

from liftpy.compile import compile_candidate, skeleton_named
from liftpy.constraints.collect import collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Space
from liftpy.explore.candidate import Candidate
from liftpy.ir.expr import Program
from liftpy.opencl.kernel import Module
from liftpy.primitives.text import show
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, derived, shape_of
from liftpy.rewrite.strategy import Failure
from tests.thinned import PART

SEED = 5


@dataclass(frozen=True)
class Draw:
    """A candidate by the key of its skeleton and its sizes, with its kernels."""

    label: str
    skeleton: str
    sizes: tuple[tuple[str, int], ...]
    module: Module

    def allowed(self, program: Program, device: Device) -> bool:
        """Whether it is a point of a device's space too."""
        skeleton = skeleton_named(program, self.skeleton)
        assert skeleton is not None, self.label
        return collect(skeleton, device).holds(dict(self.sizes))


def draws(
    program: Program,
    device: Device,
    each: int,
    folder: Path,
    families: tuple[str, ...] = tuple(FAMILIES),
) -> list[Draw]:
    """Some of each family that applies, of as many skeletons as there are; kept in a folder."""
    parts = (show(program), device.fingerprint, each, families)
    file = folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()}.draws"
    if not file.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as draft:
            pickle.dump(
                [d for name in families for d in of_family(name, program, device, each)], draft
            )
        Path(draft.name).replace(file)  # whole, whoever else looks for it
    return pickle.loads(file.read_bytes())  # noqa: S301  our own


def of_family(name: str, program: Program, device: Device, each: int) -> list[Draw]:
    """Draws of a family: skeletons in random order, one point of each; further points of few."""
    family, shape = FAMILIES[name], shape_of(program)
    if not family.applies(shape):
        return []
    options = list(family.choices(shape))
    Random(f"{SEED} {program.name} {name}").shuffle(options)
    drawn: list[tuple[Skeleton, list[dict[str, int]]]] = []
    for option in options:
        skeleton = derived(family, program, option)
        if isinstance(skeleton, Failure):
            return []  # as in `skeletons_of`
        points = Space(collect(skeleton, device)).sample(each, SEED)
        drawn += [(skeleton, points)] if points else []
        if len(drawn) == each:
            break
    turns = ((s, points[k]) for k in range(each) for s, points in drawn if k < len(points))
    return [_draw(program, *turn) for turn in islice(turns, each)]


def _draw(program: Program, skeleton: Skeleton, point: dict[str, int]) -> Draw:
    candidate = Candidate(program, skeleton, tuple(point.items()))
    label = f"{program.name} {candidate}"
    return Draw(label, skeleton.key, candidate.sizes, compile_candidate(skeleton, point))


def some(many: list[Draw], program: Program, device: Device) -> list[Draw]:
    """Of as many as `thinned` tries, the first that a device allows."""
    parts = (many[start : start + PART] for start in range(0, len(many), PART))
    found = (next((d for d in part if d.allowed(program, device)), None) for part in parts)
    return [d for d in found if d is not None]
