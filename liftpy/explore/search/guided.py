"""Guided search: of neighbours and draws, the one that a model of the trials expects most of.

The model is a Gaussian process of the logarithm of time over settings: sizes are as far apart as
the logarithm of their ratio, structural choices as often as they differ. What is chosen has the
greatest expected improvement on the fastest (Jones, Schonlau and Welch 1998), so that a valley seen
is gone down and what is unlike all that was tried has its turn. Candidates that were not measured
count as slow as the slowest.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from liftpy.constraints.dice import Dice
from liftpy.explore.candidate import Candidate, words
from liftpy.explore.search.local import FIRST, distance, good, neighbour
from liftpy.explore.search.trial import Trial
from liftpy.explore.space import Allows, Space, subseed

NEIGHBOURS = 16  # of good candidates, among which the model chooses
DRAWS = 8  # and draws, which are kept until they are chosen
FRESH = 6  # each `FRESH`th candidate is the next draw, whatever the model says
OCTAVES = 1.5  # a size so many times twice as large is one length away
CHOICES = 1.2  # and so many choices that differ
NOISE = 0.02  # of a time, relative to the spread of the logarithms
TRIALS = 400  # the fastest and the latest so many are in the model

NORMAL = NormalDist()


def search(space: Space, seed: int, trials: Sequence[Trial], allows: Allows) -> Iterator[Candidate]:
    """Draws first; then what the model chooses of neighbours and draws, each candidate once."""
    dice = Dice(subseed(seed, "guided"))
    draws = space.draws(seed, allows)
    waiting: list[Candidate] = []
    seen: set[str] = set()
    for ordinal in itertools.count():
        waiting = [c for c in waiting if c.key not in seen and allows(c.skeleton, c.assignment)]
        fresh = (c for c in draws if c.key not in seen)
        waiting += itertools.islice(fresh, DRAWS - len(waiting))
        pool = {c.key: c for c in waiting[:1]}
        if ordinal >= FIRST and ordinal % FRESH:
            near = neighbours(space, trials, allows, dice)
            pool = {c.key: c for c in (*waiting, *near) if c.key not in seen}
        if not pool:
            return
        found = chosen(list(pool.values()), trials)
        seen.add(found.key)
        yield replace(found, ordinal=ordinal)


def neighbours(
    space: Space, trials: Sequence[Trial], allows: Allows, dice: Dice
) -> Iterator[Candidate]:
    """Neighbours of good candidates; none if nothing was measured."""
    for _ in range(NEIGHBOURS):
        parent = good(trials, dice)
        near = None if parent is None else neighbour(space, parent, allows, dice)
        if near is not None:
            yield near


def chosen(pool: list[Candidate], trials: Sequence[Trial]) -> Candidate:
    """The candidate of the greatest expected improvement; the first where nothing is known."""
    times = [t.time_ns for t in trials if t.time_ns is not None]
    if len(pool) == 1 or not times:
        return pool[0]
    slowest = max(times)
    known = sorted(trials, key=lambda t: t.time_ns or slowest)[: TRIALS // 2]
    latest = [t for t in trials[-TRIALS // 2 :] if t not in known]
    gains = improvements(pool, [*known, *latest], slowest)
    return pool[int(np.argmax(gains))]


def improvements(pool: list[Candidate], known: list[Trial], slowest: int) -> list[float]:
    """By how much each is expected to be faster than the fastest, in units of the spread."""
    logs = np.log([t.time_ns or slowest for t in known])
    spread = float(logs.std()) or 1.0
    values = (logs - logs.mean()) / spread
    tried = [t.candidate for t in known]
    among = np.array([[likeness(a, b) for b in tried] for a in tried])
    across = np.array([[likeness(a, b) for b in tried] for a in pool])
    inverse = np.linalg.inv(among + NOISE * np.eye(len(tried)))
    means = across @ inverse @ values
    variances = 1.0 - np.einsum("ij,jk,ik->i", across, inverse, across)
    best = float(values.min())
    gains: list[float] = []
    for mean, variance in zip(means.tolist(), variances.tolist(), strict=True):
        deviation = math.sqrt(max(variance, 1e-9))
        z = (best - mean) / deviation
        gains.append((best - mean) * NORMAL.cdf(z) + deviation * NORMAL.pdf(z))
    return gains


def likeness(one: Candidate, two: Candidate) -> float:
    """The correlation that the model assumes of two candidates' times."""
    if one.skeleton.family != two.skeleton.family:
        return 0.0
    apart = distance(words(one.skeleton), words(two.skeleton)) / CHOICES
    others = two.assignment
    square = apart * apart
    for name, size in one.sizes:  # in this order: a sum of floats depends on it
        if name in others:
            far = math.log2((1 + size) / (1 + others[name])) / OCTAVES
            square += far * far
    return math.exp(-0.5 * square)
