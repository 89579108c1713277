"""Guided search: the most promising of neighbours and draws, according to a model of the trials.

The model is a Gaussian process for the logarithm of time as a function of the settings. Its mean is
a trend in figures that are known before anything is built (cost_model.py). The distance of two
sizes is the logarithm of their ratio; that of structural choices is how many differ. Until a
candidate has been measured, only the trend orders the draws. Then the search chooses the candidate
with the greatest expected improvement on the fastest (Jones, Schonlau and Welch 1998). So it
descends into known valleys, and also tries candidates unlike all earlier ones. Candidates that were
not measured count as slow as the slowest.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from liftpy.constraints.rng import Rng
from liftpy.errors import LiftError, TimeUp
from liftpy.explore.search.cost_model import Trend
from liftpy.explore.search.local import distance, neighbour, parent, parents, with_sizes
from liftpy.explore.search.modelled_choice import least_modelled
from liftpy.explore.search.trial import Trial
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Allows, subseed
from liftpy.explore.space.space import Space

MANY = 200  # in a space of more points, the one with the least modelled time is tried first
BEGIN = 8  # candidates in the order of the trend, before the model is used
NEIGHBOURS = 16  # neighbours of good candidates that the model may choose
FORMS = 8  # other skeletons of the fastest candidate's family, tried with its sizes
FIRST = 96  # draws among which the trend chooses the first candidates
DRAWS = 24  # draws that it may choose; they are kept until they are chosen
FRESH = 6  # every `FRESH`th candidate is the next draw, whatever the model expects
RIVAL = 3.0  # a family's fastest has neighbours if at most this many times slower than the best
OCTAVES = 1.5  # this many doublings of a size are one correlation length
CHOICES = 1.2  # this many differing choices are one correlation length
UNLIKE = 1e-9  # smaller correlations become 0: numbers near 0 slow arithmetic down a hundredfold
NOISE = 0.02  # the variance of a time's noise, relative to that of deviations from the trend
TRIALS = 128  # trials in the model: half are the fastest, half the latest

APPROACH = ("family", "products", "products.family")  # the choices by which forms differ on GPUs

NORMAL = NormalDist()
Words: TypeAlias = tuple[tuple[str, str], ...]  # the family first
Matrix: TypeAlias = npt.NDArray[np.float64]


def search(space: Space, seed: int, trials: Sequence[Trial], allows: Allows) -> Iterator[Candidate]:
    """Draws first, then neighbours and draws that the model chooses; each candidate once.

    In a space of many points, the first candidate is the one that `lp.choose` would choose.
    """
    rng = Rng(subseed(seed, "guided"))
    draws = space.draws(seed, allows)
    waiting: list[Candidate] = []
    seen: set[str] = set()
    trend = Trend(space.device)
    begun = 0
    if space.sampler == "uniform" and space.count() > MANY:  # the other one counts nothing
        best = space.once(promising)
        if best is not None and allows(best.skeleton, best.point):
            begun = 1
            seen.add(best.key)
            yield replace(best, ordinal=0)
    for ordinal in itertools.count(begun):
        waiting = [c for c in waiting if c.key not in seen and allows(c.skeleton, c.point)]
        fresh = (c for c in draws if c.key not in seen)
        room = FIRST if ordinal < BEGIN else DRAWS
        waiting += itertools.islice(fresh, max(0, room - len(waiting)))
        is_fresh = ordinal % FRESH == (FRESH - 1 if space.device.type == "GPU" else 0)
        proposals = {c.key: c for c in (waiting[:1] if is_fresh else waiting)}
        if ordinal >= BEGIN and not is_fresh:
            near = neighbours(space, trials, allows, rng)
            others = other_forms(space, trials, allows, rng)
            proposals |= {c.key: c for c in (*near, *others) if c.key not in seen}
        if not proposals:
            return
        found = chosen(list(proposals.values()), trials, trend)
        seen.add(found.key)
        yield replace(found, ordinal=ordinal)


def promising(space: Space) -> Candidate | None:
    """The candidate with the least modelled time; None if a candidate cannot be modelled.

    Such a candidate is refused when it is compiled, which does not end a campaign either.
    """
    try:
        return least_modelled(space)
    except TimeUp:
        raise
    except LiftError:
        return None


def neighbours(
    space: Space, trials: Sequence[Trial], allows: Allows, rng: Rng
) -> Iterator[Candidate]:
    """Neighbours of the front and of rivals; none if nothing was measured."""
    best = [*parents(trials), *rivals(trials)]
    for _ in range(NEIGHBOURS if best else 0):
        near = neighbour(space, parent(best, rng), allows, rng)
        if near is not None:
            yield near


def other_forms(
    space: Space, trials: Sequence[Trial], allows: Allows, rng: Rng
) -> Iterator[Candidate]:
    """Other skeletons of the fastest candidate's family, with its sizes.

    A neighbour differs in one structural choice; a faster skeleton may differ in several.
    """
    for fastest in parents(trials)[:1]:
        skeleton = fastest.skeleton
        family = [m for m in space.members if m.family == skeleton.family]
        others = [m for m in family if m.skeleton.key != skeleton.key]
        rng.shuffle(others)
        for member in others[:FORMS]:
            found = with_sizes(space, member, fastest, 0, allows, rng)
            if found is not None:
                yield found


def rivals(trials: Sequence[Trial]) -> list[Candidate]:
    """The fastest of each family that is not far behind: with other sizes it may be faster."""
    fastest: dict[str, tuple[int, Candidate]] = {}
    for trial in trials:
        family, time = trial.candidate.skeleton.family, trial.time_ns
        if time is not None and (family not in fastest or time < fastest[family][0]):
            fastest[family] = time, trial.candidate
    least = min((time for time, _ in fastest.values()), default=0)
    return [candidate for time, candidate in fastest.values() if least < time <= RIVAL * least]


def chosen(proposals: list[Candidate], trials: Sequence[Trial], trend: Trend) -> Candidate:
    """The candidate with the greatest expected improvement; at first, the least expected time."""
    times = [t.time_ns for t in trials if t.time_ns is not None]
    if len(proposals) == 1:
        return proposals[0]
    if len(trials) < BEGIN or not times:
        return first(proposals, trials, trend)
    slowest = max(1, *times)  # a stage of constants takes no time in a run
    by_time = sorted(range(len(trials)), key=lambda k: trials[k].time_ns or slowest)
    latest = range(max(0, len(trials) - TRIALS // 2), len(trials))
    known = [trials[k] for k in dict.fromkeys((*by_time[: TRIALS // 2], *latest))]
    gains = improvements(proposals, known, slowest, trend)
    return proposals[int(np.argmax(gains))]


def first(proposals: list[Candidate], trials: Sequence[Trial], trend: Trend) -> Candidate:
    """The proposal with the least expected time; on GPUs, of the approaches tried least often.

    The guess with which the trend begins compares sizes better than approaches.
    """
    expected = trend.expected(proposals)
    if trend.device.type != "GPU":
        return proposals[int(np.argmin(expected))]
    tried = Counter(approach_of(t.candidate) for t in trials)
    return min(
        zip(proposals, expected, strict=True), key=lambda p: (tried[approach_of(p[0])], p[1])
    )[0]


def approach_of(candidate: Candidate) -> tuple[str | int, ...]:
    """The family of a candidate, and how it makes products of transformed tiles, if it does."""
    return tuple(candidate.assignment.get(name, "") for name in APPROACH)


def improvements(
    proposals: list[Candidate], known: list[Trial], slowest: int, trend: Trend
) -> list[float]:
    """The expected improvement of each candidate on the fastest, in units of the spread."""
    logs = np.log([t.time_ns or slowest for t in known])
    tried = [t.candidate for t in known]
    trend.fit(known, slowest)
    expected = trend.expected(tried)
    apart_from = logs - expected
    level, spread = apart_from.mean(), float(apart_from.std()) or 1.0
    values = (apart_from - level) / spread
    among, across = likeness(tried, tried), likeness(proposals, tried)
    both = np.column_stack([values, across.T])
    solved = np.linalg.solve(among + NOISE * np.eye(len(tried)), both)
    means = across @ solved[:, 0] + (trend.expected(proposals) + level) / spread
    variances = 1.0 - np.einsum("ij,ji->i", across, solved[:, 1:])
    best = float(logs.min()) / spread
    gains: list[float] = []
    for mean, variance in zip(means.tolist(), variances.tolist(), strict=True):
        deviation = math.sqrt(max(variance, 1e-9))
        z = (best - mean) / deviation
        gains.append((best - mean) * NORMAL.cdf(z) + deviation * NORMAL.pdf(z))
    return gains


def likeness(some: list[Candidate], others: list[Candidate]) -> Matrix:
    """The correlations that the model assumes between the times of two lists of candidates."""
    names = sorted({name for c in (*some, *others) for name, _ in c.sizes})
    kinds = {c.skeleton.key: tuple(c.skeleton.words.items()) for c in (*some, *others)}
    number = {key: k for k, key in enumerate(kinds)}
    square = np.array([[apart(a, b) for b in kinds.values()] for a in kinds.values()]) ** 2
    rows, columns = ([number[c.skeleton.key] for c in many] for many in (some, others))
    one, two = sizes_of(some, names), sizes_of(others, names)
    far = (one[:, None, :] - two[None, :, :]) / OCTAVES
    found = np.exp(-0.5 * (square[np.ix_(rows, columns)] + np.nansum(far * far, axis=2)))
    return np.where(found < UNLIKE, 0.0, found)


def sizes_of(candidates: list[Candidate], names: list[str]) -> Matrix:
    """The logarithms of sizes, one row per candidate; NaN for a size that a candidate lacks."""
    rows = [[math.log2(1 + c.point.get(n, math.nan)) for n in names] for c in candidates]
    return np.array(rows).reshape(len(candidates), len(names))


@lru_cache(maxsize=1 << 16)
def apart(one: Words, two: Words) -> float:
    """The distance of two lists of choices; infinite (no correlation) if the families differ."""
    if one[0] != two[0]:
        return math.inf
    return distance(dict(one), dict(two)) / CHOICES
