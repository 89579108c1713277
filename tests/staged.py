"""Random candidates of a family, in any partition of a program into stages.

Only those skeletons are derived that are drawn from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from random import Random

from liftpy.constraints.collect import Around, collect, collected
from liftpy.constraints.device import Device
from liftpy.constraints.draw import Space
from liftpy.constraints.stages import around_each
from liftpy.explore.space.candidate import Candidate
from liftpy.ir.program import Program
from liftpy.rewrite.composition import Derived, composed, form_once, of_stage
from liftpy.rewrite.forms import as_declared, in_full, partitions, stored_forms
from liftpy.rewrite.partition import Partition
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import Stage
from liftpy.rewrite.strategies.families import FAMILIES, derived
from liftpy.rewrite.strategies.families.form import Form
from liftpy.rewrite.strategy import Failure


def form_of(stage: Stage, family: str) -> tuple[Form, Program] | None:
    """The form that a family finds in a stage; None if it does not make the stage."""
    if not stage.is_for(family):
        return None
    return form_once(stage.key, family, Derived(stage.canonical))


def derivations(
    partition: Partition, stage: Stage, family: str, random: Random
) -> Iterator[Skeleton]:
    """The skeletons of a family for a stage, in random order, each derived when it is asked for."""
    found = form_of(stage, family)
    if found is None:
        return
    form, program = found
    options = list(form.choices())
    random.shuffle(options)
    for choices in options:
        made = derived(family, form, program, choices)
        if isinstance(made, Failure):
            return  # as in `skeletons_of`
        yield of_stage(made, partition, stage)


def points_of(
    skeleton: Skeleton, device: Device, around: Around, count: int, random: Random
) -> list[dict[str, int]]:
    """Random points of a skeleton."""
    system = collect(skeleton, device, around=around)
    return Space(system).sample(count, random.randrange(2**31))


def by_definition(program: Program) -> Iterator[Partition]:
    """The partitions of a program that do not compute by F(m, r).

    Those that do take nine tenths of the time of deriving a convolution's space, and have tests of
    their own (tests/compile/test_correlations.py).
    """
    yield from as_declared(program)
    yield from (in_full(form, program) for form in stored_forms(program))


def candidates(
    program: Program,
    device: Device,
    family: str,
    random: Random,
    forms: Callable[[Program], Iterable[Partition]] = partitions,
) -> Iterator[Candidate]:
    """Candidates of which one stage at least is made by a family, of a random partition each."""
    cut = [*forms(program)]
    random.shuffle(cut)
    for partition in cut:
        stages = [k for k, s in enumerate(partition.stages) if form_of(s, family)]
        if not stages:
            continue
        chosen = random.choice(stages)
        names = [
            [family] if k == chosen else random.sample([*FAMILIES], len(FAMILIES))
            for k in range(len(partition.stages))
        ]
        found = of_partition(program, partition, device, names, random)
        if found is not None:
            yield found


def of_partition(
    program: Program,
    partition: Partition,
    device: Device,
    names: Sequence[Sequence[str]],
    random: Random,
) -> Candidate | None:
    """A candidate of a partition, each stage made by the first of some families that applies."""
    made: list[Skeleton] = []
    for stage, families in zip(partition.stages, names, strict=True):
        of = (s for name in families for s in derivations(partition, stage, name, random))
        found = next(of, None)
        if found is None:
            return None
        made.append(found)
    sizes: dict[str, int] = {}
    alone = [[collected(s, device)] for s in made]
    each = zip(made, around_each(partition, alone), strict=True)
    for drawn in [points_of(s, device, around, 1, random) for s, (_, around) in each]:
        if not drawn:
            return None
        sizes |= drawn[0]
    whole = composed(partition, made)
    assert collect(whole, device).holds(sizes), (whole.key, sizes)
    return Candidate(program, whole, tuple(sizes.items()))
