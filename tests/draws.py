"""Drawn candidates of programs, compiled: made once for all runtimes and all workers.

Nearly all that a test of a few draws takes is deriving all skeletons of a program and collecting
their conditions, for each device and in each worker. Here only those are derived that are drawn
from, for the first runtime; another one tries some of those that its own conditions allow.
"""

from __future__ import annotations

import hashlib
import pickle
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from liftpy.constraints.collect import ALONE, collect
from liftpy.constraints.device import Device
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member
from liftpy.explore.space.space import Space
from liftpy.ir.program import Program
from liftpy.language.text.program import show
from liftpy.loops.bounds import bounds, guards
from liftpy.loops.lower import LoopKernel
from liftpy.loops.writers import shared_stores
from liftpy.opencl.kernel import Module
from liftpy.pipeline import compile_program
from liftpy.rewrite.composition import STAGES, skeleton_named
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES
from tests.staged import by_definition, candidates, derivations, points_of
from tests.subsample import PART, is_first

SEED = 6


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

    def make() -> list[Draw]:
        candidates = (c for name in families for c in of_family(name, program, device, each))
        return [drawn(candidate) for candidate in candidates]

    return _kept(folder, parts, make)


def of_each_skeleton(
    program: Program, device: Device, folder: Path, fixed: tuple[tuple[str, int], ...] = ()
) -> list[Draw]:
    """One of each skeleton that has one, with these sizes where it has them; kept in a folder.

    In partitions of several stages, each skeleton of a stage is in one. Forms by F(m, r) are left
    out (tests/staged.py), here and in `draws`.
    """

    def make() -> list[Draw]:
        space = Space.whole(program, device, made=by_definition)
        wanted = dict(fixed)
        found = [
            Candidate(program, skeleton, tuple(point.items()))
            for member in space.members
            for skeleton, point in [least(member, wanted)] * (member.possible)
        ]
        for product in space.products:
            groups = [[m for m in group if m.possible] for group in product.groups]
            for k in range(max(map(len, groups)) if all(groups) else 0):
                stages = [least(group[k % len(group)], wanted) for group in groups]
                skeleton, point = product.made(stages)
                found.append(Candidate(program, skeleton, tuple(point.items())))
        return [drawn(candidate) for candidate in found]

    return _kept(folder, (show(program), device.fingerprint, fixed), make)


def least(member: Member, wanted: dict[str, int]) -> Drawn:
    """A point of a member, with these sizes where it has them."""
    sizes = {name: size for name, size in wanted.items() if name in member.system.by_name}
    found = member.first(sizes, 0) or member.first({}, 0)
    assert found is not None, member.key
    return found


def _kept(folder: Path, parts: tuple[Any, ...], make: Callable[[], list[Draw]]) -> list[Draw]:
    """What a file has that is named after the parts; made by who comes first."""
    file = folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()}.draws"
    if not file.exists():
        with tempfile.NamedTemporaryFile(dir=folder, delete=False) as draft:
            pickle.dump(make(), draft)
        Path(draft.name).replace(file)  # whole, whoever else looks for it
    return pickle.loads(file.read_bytes())  # noqa: S301  our own


def of_family(name: str, program: Program, device: Device, each: int) -> list[Candidate]:
    """Draws of a family: skeletons in random order, one point of each; further points of few.

    Of a program of several stages, also of partitions in which the family makes a stage.
    """
    random = Random(f"{SEED} {program.name} {name}")
    found: list[tuple[Skeleton, list[dict[str, int]]]] = []
    forms = [*by_definition(program)]
    whole = [partition for partition in forms if partition.is_whole]
    for partition in whole:
        for skeleton in derivations(partition, partition.stages[0], name, random):
            points = points_of(skeleton, device, ALONE, each, random)
            found += [(skeleton, points)] if points else []
            if len(found) == each:
                break
    turns = ((s, points[k]) for k in range(each) for s, points in found if k < len(points))
    made = [Candidate(program, s, tuple(point.items())) for s, point in islice(turns, each)]
    if len(whole) < len(forms):
        rounds = (candidates(program, device, name, random, by_definition) for _ in range(each))
        cut = (c for found in rounds for c in found if c.skeleton.family == STAGES)
        made += {str(c): c for c in islice(cut, each)}.values()
    return made


def drawn(candidate: Candidate) -> Draw:
    """A candidate with its kernels."""
    label = f"{candidate.program.name} {candidate}"
    made = compile_program(candidate.skeleton.at(candidate.point))
    assert not unproved(made.optimized), label
    return Draw(label, candidate.skeleton.key, candidate.sizes, made.module)


def unproved(kernels: Iterable[LoopKernel]) -> list[str]:
    """What is not proved: that accesses are inside, guards not needed, and writers alone."""
    return [
        str(fault)
        for code in kernels
        for fault in (
            *(b for b in bounds(code) if b.way is None),
            *(g for g in guards(code) if g.fault),
            *shared_stores(code),
        )
    ]


def tried(many: list[Draw], program: Program, device: Device) -> list[Draw]:
    """All on the first device; on another the first that it allows of each `PART`."""
    if is_first(device):
        return many
    parts = (many[start : start + PART] for start in range(0, len(many), PART))
    found = (next((d for d in part if d.allowed(program, device)), None) for part in parts)
    return [d for d in found if d is not None]
