"""NSGA-II (Deb, Pratap, Agarwal and Meyarivan 2002): generations that are bred from the front.

Time and peak are both minimised. Selection, crossover and mutation are Optuna's. A genome has a
word for each structural choice and, for each size, a position within its range on a logarithmic
scale. It stands for the skeleton whose choices differ from it least, completed by the nearest valid
sizes. So every genome stands for a candidate. The first generation consists of draws.

Import it through `liftpy.explore.search`: Optuna is an extra.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution
from optuna.samplers import NSGAIISampler
from optuna.trial import Trial as Genome
from optuna.trial import TrialState

from liftpy.errors import InternalError
from liftpy.explore.search.local import distance
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, Member, subseed
from liftpy.explore.space.space import Space

POPULATION = 24
Bred: TypeAlias = tuple[Candidate, Genome]
TRIES = 16  # after this many genomes in a row whose candidates were tried before, a draw is used


def search(space: Space, seed: int, trials: Sequence[Trial], allows: Allows) -> Iterator[Candidate]:
    """Draws, then generation after generation; each candidate once."""
    genes = genes_of(space)
    study = new_study(seed)
    draws = space.draws(seed, allows)
    seen: set[str] = set()
    waiting: list[Bred] = []
    for ordinal in itertools.count():
        waiting = [one for one in waiting if not told(study, one, trials)]
        bred = ordinal >= POPULATION and genes
        found = unseen(space, study, genes, trials, allows, seen, waiting) if bred else None
        if found is None:
            drawn = next((c for c in draws if c.key not in seen), None)
            if drawn is None:  # every candidate was drawn
                return
            study.enqueue_trial(genome_of(space, genes, drawn))
            found = drawn, study.ask(genes)
        waiting.append(found)
        seen.add(found[0].key)
        yield replace(found[0], ordinal=ordinal)


def unseen(
    space: Space,
    study: optuna.Study,
    genes: dict[str, BaseDistribution],
    trials: Sequence[Trial],
    allows: Allows,
    seen: set[str],
    waiting: list[Bred],
) -> Bred | None:
    """The next bred candidate that is new; None if `TRIES` in a row were tried before.

    The genome of a known candidate gets its costs; it is `waiting` until they are known.
    """
    for _ in range(TRIES):
        genome = study.ask(genes)
        found = candidate_of(space, genome.params)
        if found.key not in seen and allows(found.skeleton, found.point):
            return found, genome
        if found.key not in seen:  # it is not allowed, so it never has costs
            study.tell(genome, state=TrialState.FAIL)
        elif not told(study, (found, genome), trials):
            waiting.append((found, genome))
    return None


def new_study(seed: int) -> optuna.Study:
    """A study of two costs that logs nothing below a warning."""
    sampler = NSGAIISampler(population_size=POPULATION, seed=subseed(seed, "nsga2") % (1 << 32))
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    finally:
        optuna.logging.set_verbosity(verbosity)


def told(study: optuna.Study, one: Bred, trials: Sequence[Trial]) -> bool:
    """Gives a genome its costs; False if they are not known yet, which happens on a cluster.

    A candidate that was not measured has failed, and nothing is bred from it.
    """
    candidate, genome = one
    trial = next((t for t in reversed(trials) if t.candidate.key == candidate.key), None)
    if trial is None:
        return False
    if trial.time_ns is None or trial.peak is None:
        study.tell(genome, state=TrialState.FAIL)
    else:
        study.tell(genome, [math.log(max(1, trial.time_ns)), float(trial.peak)])
    return True


# --- genomes --------------------------------------------------------------------------------------


def genes_of(space: Space) -> dict[str, BaseDistribution]:
    """The genes of a space: each choice with its words, each size from 0 to 1."""
    genes: dict[str, BaseDistribution] = {
        name: CategoricalDistribution(known) for name, known in space.choices.items()
    }
    return genes | {name: FloatDistribution(0.0, 1.0) for name in sorted(ranges(space))}


def ranges(space: Space) -> dict[str, tuple[int, int]]:
    """The range of each size; it covers the ranges in all skeletons."""
    found: dict[str, tuple[int, int]] = {}
    for p in (p for member in space.members for p in member.system.parameters):
        low, high = found.get(p.name, (p.low, p.high))
        found[p.name] = min(low, p.low), max(high, p.high)
    return found


def genome_of(
    space: Space, genes: Mapping[str, BaseDistribution], candidate: Candidate
) -> dict[str, Any]:
    """The genome of a candidate."""
    span = ranges(space)
    found: dict[str, Any] = dict(space.by_key[candidate.skeleton.key].words)
    for name, size in candidate.sizes:
        low, high = (scale(end) for end in span[name])
        found[name] = (scale(size) - low) / ((high - low) or 1.0)
    return {name: value for name, value in found.items() if name in genes}


def candidate_of(space: Space, genome: Mapping[str, Any]) -> Candidate:
    """The candidate nearest to a genome: the skeleton first, then size by size."""
    span = ranges(space)

    def nearest(name: str, values: Sequence[int]) -> Sequence[int]:
        low, high = (scale(end) for end in span[name])
        wanted = low + genome[name] * (high - low)
        return sorted(values, key=lambda value: (abs(scale(value) - wanted), value))

    def apart(member: Member) -> tuple[bool, int]:
        asked = {name: genome[name] for name in member.words}
        family = next(iter(asked))  # in a stage it is prefixed with the stage's name
        return asked[family] != member.family, distance(asked, member.words)

    for member in sorted(space.members, key=apart):
        sizes = member.points.completed(nearest)
        if sizes is not None:
            return Candidate(space.program, member.skeleton, tuple(sizes.items()))
    raise InternalError("a space without candidates was searched: it is refused before")


def scale(size: int) -> float:
    """The position of a size on a logarithmic scale: half is about as far away as twice."""
    return math.log2(1 + size)
