"""Random candidates of a family, in any partition of a program into stages.

Only those skeletons are derived that are drawn from.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from liftpy.constraints.collect import Around, collect
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Space
from liftpy.constraints.stages import around_each
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.expr import Program
from liftpy.rewrite.composition import composed, of_stage
from liftpy.rewrite.partition import Partition, Stage, partitions
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.strategies.families import FAMILIES, derived, shape_of
from liftpy.rewrite.strategy import Failure


def options(stage: Stage, family: str, random: Random) -> list[tuple[tuple[str, str], ...]]:
    """The choices of a family for a stage, in random order; none if it does not apply."""
    form = FAMILIES[family].match(shape_of(family, stage.canonical))
    if isinstance(form, str) or not stage.is_for(family):
        return []
    found = list(form.choices())
    random.shuffle(found)
    return found


def derivations(
    partition: Partition, stage: Stage, family: str, random: Random
) -> Iterator[Skeleton]:
    """The skeletons of a family for a stage, in random order, each derived when it is asked for."""
    form = FAMILIES[family].match(shape_of(family, stage.canonical))
    for choices in options(stage, family, random):
        assert not isinstance(form, str)
        made = derived(family, form, stage.canonical, choices)
        if isinstance(made, Failure):
            return  # as in `skeletons_of`
        yield of_stage(made, partition, stage)


def points_of(
    skeleton: Skeleton, device: Device, around: Around, count: int, random: Random
) -> list[dict[str, int]]:
    """Random points of a skeleton."""
    system = collect(skeleton, device, around=around)
    return Space(system).sample(count, random.randrange(2**31))


def candidates(
    program: Program, device: Device, family: str, random: Random
) -> Iterator[Candidate]:
    """Candidates of which one stage at least is made by a family, of a random partition each."""
    cut = [*partitions(program)]
    random.shuffle(cut)
    for partition in cut:
        stages = [k for k, s in enumerate(partition.stages) if options(s, family, random)]
        if not stages:
            continue
        chosen = random.choice(stages)
        made: list[Skeleton] = []
        for k, stage in enumerate(partition.stages):
            names = [family] if k == chosen else random.sample([*FAMILIES], len(FAMILIES))
            of = (s for name in names for s in derivations(partition, stage, name, random))
            found = next(of, None)
            if found is None:
                break
            made.append(found)
        if len(made) < len(partition.stages):
            continue
        sizes: dict[str, int] = {}
        each = zip(made, around_each(partition, [[s] for s in made]), strict=True)
        drawn = [points_of(s, device, around, 1, random) for s, (_, around) in each]
        if all(drawn):
            for (point,) in drawn:
                sizes |= point
            whole = composed(partition, made)
            assert collect(whole, device).holds(sizes), (whole.key, sizes)
            yield Candidate(program, whole, tuple(sizes.items()))
