"""What every search keeps, and that one which looks finds more than one which draws."""

import contextlib
import io
import itertools
import math
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import optuna
import pytest

from liftpy.constraints import draw
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.rng import Rng
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.explore.campaign.hypervolume import Box, Costs
from liftpy.explore.search import SEARCHES, Search, Trial, named
from liftpy.explore.search.genetic import from_values
from liftpy.explore.search.guided import RIVAL, other_forms, rivals
from liftpy.explore.search.local import FIRST, distance, neighbour
from liftpy.explore.search.narrowing import SHARED, neighbours
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import everything
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.rewrite.skeleton import Skeleton
from liftpy.workloads import Convolution, convolution

PROGRAM = convolution(Convolution(3, 16, 7, 4, (3, 3), (3, 1), (1, 1, 1, 1)), "tiny")
LAYER = convolution(Convolution(16, 82, 28, 64, (3, 3), (3, 1), (1, 1, 1, 1)), "layer")
N = 60
VALLEY = {"kappa": 16, "sigma": 14, "v": 8}
BOX = Box((1000, 1), (20000, 32))


def cost(candidate: Candidate) -> tuple[int, int] | None:
    """A made-up time and peak: a valley in the sizes; one family is refused."""
    if candidate.assignment["family"] == "plain":
        return None
    sizes = candidate.point
    away = sum(
        abs(math.log2(sizes.get(n, 1) / best))
        for n, best in (("kappa", 16), ("sigma", 14), ("v", 8))
    )
    return int(1000 * (1 + away)), sizes.get("sigma", 0)


def run(search: Search, space: Space, seed: int, known: list[Trial] | None = None) -> list[Trial]:
    """The trials of a search that is told what `cost` says."""
    trials: list[Trial] = []
    for k, candidate in enumerate(itertools.islice(search(space, seed, trials, everything), N)):
        if known is not None and k < len(known):
            assert candidate == known[k].candidate
        trials.append(Trial(candidate, *(cost(candidate) or (None, None))))
    return trials


pytestmark = pytest.mark.usefixtures("in_one_process")


@pytest.fixture(scope="module")
def space() -> Space:
    """A small space of three families."""
    return space_of(PROGRAM, DEFAULT_DEVICE)


@pytest.fixture(params=sorted(SEARCHES))
def search(request: pytest.FixtureRequest) -> Search:
    """Each search there is."""
    return named(request.param)


def test_every_candidate_is_valid_and_tried_once(search: Search, space: Space) -> None:
    found = [t.candidate for t in run(search, space, 0)]
    assert len({c.key for c in found}) == len(found) == N
    assert [c.ordinal for c in found] == list(range(N))
    for candidate in found:
        assert space.exactly(candidate.assignment).key == candidate.key


def test_the_same_trials_lead_to_the_same_candidates(search: Search, space: Space) -> None:
    first = run(search, space, 3)
    assert run(search, space, 3, first) == first


def test_all_of_a_small_space_is_found(search: Search, space: Space) -> None:
    small = space.narrow({"family": "direct", "pad": "fused", "level": "glb", "v": 1})
    found = list(itertools.islice(search(small, 0, [], everything), small.count() + 1))
    assert len(found) == small.count()


def test_what_is_not_allowed_is_not_tried(search: Search, space: Space) -> None:
    def narrow(skeleton: Skeleton, sizes: Mapping[str, int]) -> bool:
        return skeleton.family == "plain" or sizes.get("kappa", 1) % 2 == 1

    found = list(itertools.islice(search(space, 0, [], narrow), 20))
    assert len(found) == 20
    assert all(narrow(c.skeleton, c.point) for c in found)


def test_what_is_learned_late_is_kept(search: Search, space: Space) -> None:
    """Also by draws that a search has made already and not yet tried."""
    trials: list[Trial] = []
    learned: list[int] = []

    def allows(_skeleton: Skeleton, sizes: Mapping[str, int]) -> bool:
        return not learned or sizes.get("kappa", 0) <= learned[0]

    for candidate in itertools.islice(search(space, 0, trials, allows), N):
        assert allows(candidate.skeleton, candidate.point)
        trials.append(Trial(candidate, *(cost(candidate) or (None, None))))
        if len(trials) == FIRST + 2:
            learned.append(2)


def test_outcomes_that_come_late_are_bred_from(
    space: Space, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a cluster, where several candidates are under way."""
    lag, told, tell = 8, list[Any](), optuna.Study.tell

    def noted(study: Any, genome: Any, values: Any = None, **more: Any) -> Any:
        told.append(values)
        return tell(study, genome, values, **more)

    monkeypatch.setattr(optuna.Study, "tell", noted)
    trials: list[Trial] = []
    found: list[Candidate] = []
    for candidate in itertools.islice(named("nsga2")(space, 0, trials, everything), N):
        found.append(candidate)
        if len(found) > lag:
            trials.append(Trial(found[-lag - 1], *(cost(found[-lag - 1]) or (None, None))))
    known = [[math.log(time), float(peak)] for time, peak in measured(trials[:-1])]
    assert known
    assert all(costs in told for costs in known)


def test_likeness_is_the_same_in_every_process() -> None:
    """Python orders a set of names otherwise in each; a sum of floats depends on the order."""
    code = """
import random
from types import SimpleNamespace as Some
from liftpy.explore.search.guided import likeness
rng, names = random.Random(0), ("kappa", "sigma", "theta", "omega", "rho", "v")
def one():
    sizes = tuple((n, rng.randrange(1, 99)) for n in names)
    return Some(skeleton=Some(key="f", words={"family": "f"}), sizes=sizes, point=dict(sizes))
print(likeness([one() for _ in range(50)], [one() for _ in range(50)]).tolist())
"""
    other = "0" if os.environ.get("PYTHONHASHSEED") != "0" else "1"
    said = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": other},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    with contextlib.redirect_stdout(io.StringIO()) as here:
        exec(code, {})  # noqa: S102  our own text
    assert said == here.getvalue()
    assert len(said) > 1000


@cache
def volume(name: str) -> float:
    """The mean hypervolume that a search finds with some seeds: one alone is a matter of luck."""
    space = space_of(LAYER, DEFAULT_DEVICE, families=["plain", "direct"])
    return sum(BOX.volume(measured(run(named(name), space, seed))) for seed in range(2)) / 2


@pytest.mark.parametrize("better", ["local", "guided", "genetic", "narrowing", "nsga2"])
def test_a_search_that_looks_finds_a_larger_front(better: str) -> None:
    assert volume(better) > 1.05 * volume("random")


def measured(trials: list[Trial]) -> list[Costs]:
    return [(t.time_ns, t.peak) for t in trials if t.time_ns is not None and t.peak is not None]


def test_a_neighbour_keeps_most_settings(space: Space) -> None:
    rng = Rng(0)
    space = replace(space, products=())  # the search of a stage asks for neighbours in it
    parents = [t.candidate for t in run(named("random"), space, 0)]
    for parent in parents:
        for _ in range(4):
            near = neighbour(space, parent, everything, rng)
            assert near is not None
            shared = parent.assignment.items() & near.assignment.items()
            assert len(shared) >= len(parent.assignment) - 2 or parent.skeleton != near.skeleton
            assert near.skeleton.family == parent.skeleton.family


def test_genetic_selection_draws_values_that_occur_in_the_fastest(space: Space) -> None:
    space = replace(space, products=())
    best = [t.candidate for t in run(named("random"), space, 0)][:3]
    propose, rng = from_values(space, everything), Rng(0)
    found = [c for k in range(40) if (c := propose(best, k, rng)) is not None]
    assert len({c.key for c in found}) > len(best)  # the values occur in other combinations
    kept = {pair for parent in best for pair in parent.assignment.items()}
    assert all(c.assignment.items() <= kept for c in found)


def test_narrowing_search_draws_neighbours_of_each_of_the_fastest(space: Space) -> None:
    space = replace(space, products=())
    best = [t.candidate for t in run(named("random"), space, 0)][:3]
    propose, rng = neighbours(space, everything), Rng(0)
    for k in range(30):
        found, parent = propose(best, k, rng), best[k % 3].assignment
        if found is not None:
            assert len(found.assignment.items() & parent.items()) >= SHARED * len(parent)


def test_other_skeletons_of_the_fastest_ones_family_are_tried_with_its_sizes() -> None:
    """They may differ in several choices, which no neighbour does."""
    space = space_of(LAYER, DEFAULT_DEVICE, families=["plain", "direct", "staged"])
    fastest = next(c for c in space.sample(200) if c.skeleton.family == "direct" and c.sizes)
    found = [*other_forms(space, [Trial(fastest, 100, 64)], everything, Rng(0))]
    assert {c.skeleton.family for c in found} == {"direct"}
    assert fastest.skeleton.key not in {c.skeleton.key for c in found}
    assert any(c.point == fastest.point for c in found)
    apart = [distance(fastest.skeleton.words, c.skeleton.words) for c in found]
    assert max(apart) >= 2
    assert not [*other_forms(space, [], everything, Rng(0))]


def test_the_fastest_of_a_family_that_is_not_far_behind_has_neighbours(space: Space) -> None:
    """The fastest of all may have no sizes, so that there is little to find around it."""
    by_family = {c.skeleton.family: c for c in space.sample(200)}
    (first, near, far) = list(by_family.values())[:3]
    times = [(first, 100), (near, int(100 * RIVAL)), (far, int(100 * RIVAL) + 1)]
    assert rivals([Trial(c, time, 64) for c, time in times]) == [near]
    assert rivals([Trial(first, None, None)]) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["random", "local", "guided", "genetic", "narrowing", "nsga2"])
def test_the_published_sampler_counts_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the one for spaces that are too tangled to count."""
    monkeypatch.setattr(draw, "NODE_LIMIT", 0)
    monkeypatch.setattr(draw, "KNOWN", {})  # another test has counted points of equal conditions
    device = replace(DEFAULT_DEVICE, name="not counted")  # spaces of a device are derived once
    space = replace(space_of(PROGRAM, device), sampler="incremental")
    with pytest.raises(ConstraintRefused, match="cannot be counted"):
        space.count()
    found = [t.candidate for t in run(named(name), space, 0)]
    assert len({c.key for c in found}) == N


def test_a_family_named_twice_is_one(space: Space) -> None:
    twice = space_of(PROGRAM, DEFAULT_DEVICE, families=["direct", "direct"])
    assert twice.counts() == space.narrow({"family": "direct"}).counts()
    assert twice.count() == sum(twice.counts().values())
    with pytest.raises(ConstraintRefused, match="families is empty: give at least one of plain"):
        space_of(PROGRAM, DEFAULT_DEVICE, families=[])


def test_an_unknown_search_is_named() -> None:
    with pytest.raises(
        UnknownName, match="no search is named 'clever'; choose one of random, local"
    ):
        named("clever")
