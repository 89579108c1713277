"""Searches of programs of several stages, with made-up times: each stage is searched by itself."""

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.explore.search import SEARCHES, Search, Trial, named, stages
from liftpy.explore.search import local as local_search
from liftpy.explore.search.held import STARTS, Best, HeldSearch
from liftpy.explore.search.stage_search import rescaled
from liftpy.explore.search.stages import (
    BEGIN,
    BEHIND,
    HOLDING,
    StageSearches,
    by_stages,
)
from liftpy.explore.search.trial import launches_of
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawn, Member, everything, subseed
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.rewrite.composition import StagedSkeleton, prefixed
from liftpy.rewrite.skeleton import Skeleton
from liftpy.rewrite.stages import HELD, STORED, WINOGRAD
from tests.fuzz.correlations import Case

Cost: TypeAlias = Callable[[Candidate], Trial]

TWO = """def two(xs: [6][8]f32, ys: [6]f32) =
  let score = xs |> map(reduce(add, 0)) in zip(score, ys) |> map((a, b) => a * b)"""

#: Six operations, each of which reads the one before and has a space of another size.
SIX = """def six(xs: [48][32]f32, w: [36][32]f32, v: [48]f32) =
  let product = xs |> map(r => w |> map(c => zip(r, c) |> map(mul) |> reduce(add, 0))) in
  let most = product |> transpose |> map(reduce(maximum, 0)) in
  let shifted = zip(most, most) |> map((a, b) => a - 3 * b) in
  let pairs = shifted |> slide(3, 1) |> map(reduce(add, 0)) in
  let outer = v |> map(a => pairs |> map(b => a * b)) in
  outer |> map(reduce(add, 0))"""


def own(sizes: dict[str, int], words: dict[str, str], stage: str) -> int:
    """The made-up time of a stage: a valley in its sizes; what has none is slow."""
    mine = {n.rpartition(".")[2]: v for n, v in sizes.items() if n.startswith(f"{stage}.")}
    away = [abs(math.log2((v or 0.5) / (4 + k))) for k, (_, v) in enumerate(sorted(mine.items()))]
    choices = sum(len(str(w)) for n, w in words.items() if n.startswith(f"{stage}."))
    return int(1000 * (1 + sum(away or [9]))) + choices


def times(candidate: Candidate) -> dict[str, int]:
    """The made-up time of each stage of a candidate."""
    skeleton = candidate.skeleton
    names = [n for n, _ in skeleton.stages] if isinstance(skeleton, StagedSkeleton) else []
    return {name: own(candidate.point, skeleton.words, name) for name in names}


def measured(candidate: Candidate) -> Trial:
    """A trial of a candidate. Of a stage of several launches, the first takes the time."""
    if not isinstance(candidate.skeleton, StagedSkeleton):
        return Trial(candidate, 10**6, 64, (10**6,))
    spent = times(candidate)
    launches = [
        time if k == 0 else 0
        for time, count in zip(
            spent.values(), launches_of(candidate.skeleton, candidate.point), strict=True
        )
        for k in range(count)
    ]
    return Trial(candidate, sum(launches), 64, tuple(launches))


def run(search: Search, space: Space, seed: int, count: int) -> list[Trial]:
    """The trials of a search."""
    trials: list[Trial] = []
    tried = itertools.islice(search(space, seed, trials, everything), count)
    trials.extend(map(measured, tried))  # one by one, as the search goes on
    return trials


@pytest.fixture(scope="module")
def two() -> Space:
    return space_of(parse(TWO), DEFAULT_DEVICE)


@pytest.fixture(scope="module")
def six() -> Space:
    """The partition in which all is stored."""
    names = ("product", "shifted", "outer")  # the others are stored in each partition
    families = ["plain", "direct", "tiled", "local"]
    fixed = dict.fromkeys(names, STORED)
    space = space_of(parse(SIX), DEFAULT_DEVICE, fixed=fixed, families=families)
    (whole,) = space.products
    assert len(whole.partition.stages) == 6
    return Space(space.program, space.device, (), (whole,))


@pytest.fixture(params=sorted(SEARCHES))
def search(request: pytest.FixtureRequest) -> Search:
    """Each search there is."""
    return named(request.param)


def test_every_candidate_is_valid_and_tried_once(search, two):
    found = [t.candidate for t in run(search, two, 0, 60)]
    assert len({c.key for c in found}) == len(found) == 60
    assert [c.ordinal for c in found] == [*range(60)]
    for candidate in found:
        assert two.exactly(candidate.assignment).key == candidate.key


def test_all_of_a_small_space_is_found_once(search, two):
    small = two.narrow({"score.family": "tiled", "score.map": "glb0.seq"})
    found = [t.candidate.key for t in run(search, small, 0, small.count() + 5)]
    assert len(found) == len({*found}) == small.count()


def test_the_same_trials_lead_to_the_same_candidates(search, two):
    """Of a campaign that is resumed, the search is given what was stored."""
    first = run(search, two, 3, 40)
    trials: list[Trial] = []
    for k, candidate in enumerate(itertools.islice(search(two, 3, trials, everything), 40)):
        assert candidate == first[k].candidate
        trials.append(first[k])


def test_what_is_not_allowed_is_not_tried(search, two):
    def narrow(skeleton: Skeleton, sizes) -> bool:
        return sizes.get("score.tile0", 2) != 3

    found = [*itertools.islice(search(two, 0, [], narrow), 40)]
    assert len(found) == 40
    assert all(narrow(c.skeleton, c.point) for c in found)


@pytest.mark.parametrize("name", ["guided", "local", "random"])
def test_a_condition_across_stages_holds_for_all_that_is_tried(name):
    """Each part of the space is searched with the times that were measured in it."""
    where = ["score.tile0 <= result.tile0"]
    asked = space_of(parse(TWO), DEFAULT_DEVICE, where=where)
    found = [t.candidate for t in run(named(name), asked, 0, 60)]
    assert len({c.key for c in found}) == len(found) == 60
    both = [c.point for c in found if {"score.tile0", "result.tile0"} <= c.point.keys()]
    assert len(both) >= 10
    assert all(point["score.tile0"] <= point["result.tile0"] for point in both)
    for candidate in found:
        assert asked.exactly(candidate.assignment).key == candidate.key
    form = {"vector": "no", "map": "seq.glb0"}
    small = asked.narrow({f"{s}.{n}": w for s in ("score", "result") for n, w in form.items()})
    every = [t.candidate.key for t in run(named(name), small, 0, small.count() + 5)]
    assert len(every) == len({*every}) == small.count()


# --- each stage by itself -------------------------------------------------------------------------


def listening(into: dict[str, Sequence[Trial]]) -> Search:
    """A search that draws, and tells which trials it is given for each program."""

    def search(space: Space, seed: int, trials: Sequence[Trial], _allows) -> Iterator[Candidate]:
        into[space.program.name] = trials
        return space.draws(seed)

    return search


def test_each_stage_is_told_its_part_of_the_times(six):
    told: dict[str, Sequence[Trial]] = {}
    trials = run(by_stages(listening(told)), six, 0, 20)
    assert len(told) == 6
    for name, mine in told.items():
        stage = name.removeprefix("six_")
        right = [times(t.candidate)[stage] for t in trials[:-1]]  # the last was tried and not told
        assert [t.time_ns for t in mine] == right
        prefixed = [
            {f"{stage}.{n}": w for n, w in t.candidate.skeleton.words.items()} for t in mine
        ]
        drawn = [
            own(t.candidate.point, words, stage) for t, words in zip(mine, prefixed, strict=True)
        ]
        assert drawn == right  # of the candidate that is the stage's part of the program's


def test_a_stage_of_several_kernels_has_several_of_the_launches():
    text = """def p(xs: [48]f32) =
      let sum = xs |> reduce(add, 0) in xs |> map(x => x / sum)"""
    space = space_of(parse(text), DEFAULT_DEVICE)
    for family, counts in (("plain", (1, 1)), ("partial", (2, 1))):
        for candidate in space.narrow({"sum.family": family}).sample(10):
            assert isinstance(candidate.skeleton, StagedSkeleton)
            assert launches_of(candidate.skeleton, candidate.point) == counts


def test_a_stage_that_runs_once_has_no_launches():
    text = """def p(xs: [6]f32, const w: [6]f32) =
      let u = w |> map(x => x * x) in zip(xs, u) |> map((x, y) => x + y)"""
    for candidate in space_of(parse(text), DEFAULT_DEVICE).sample(20):
        assert isinstance(candidate.skeleton, StagedSkeleton)
        assert launches_of(candidate.skeleton, candidate.point) == (0, 1)


def test_a_values_length_may_be_written_otherwise(six):
    """In tiles, a stage's result has as many elements, in a longer formula."""
    tiles = six.narrow({"pairs.family": "local"})
    for candidate in tiles.sample(10):
        assert isinstance(candidate.skeleton, StagedSkeleton)
        of_stage = dict(
            zip(
                dict(candidate.skeleton.stages),
                launches_of(candidate.skeleton, candidate.point),
                strict=True,
            )
        )
        assert of_stage["pairs"] == 1
        assert all(of_stage.values())


def test_a_trial_without_the_times_of_its_launches_says_nothing_of_stages(two):
    stored = two.narrow({"score": "stored"})
    told: dict[str, Sequence[Trial]] = {}
    trials: list[Trial] = []
    tried = by_stages(listening(told))(stored, 0, trials, everything)
    trials.extend(Trial(candidate, 1000, 64) for candidate in itertools.islice(tried, 5))
    assert [t.time_ns for t in told["two_score"]] == [None] * 4


def test_the_fastest_of_each_stage_are_tried_together(six):
    trials = run(by_stages(local_search.search), six, 0, 3 * BEGIN)
    best: dict[str, int] = {}
    met = 0
    for trial in trials:
        spent = times(trial.candidate)
        met += bool(best) and spent == best
        best = {name: min(best.get(name, time), time) for name, time in spent.items()}
    assert met >= 2


def test_the_fastest_of_each_stage_meet_as_soon_as_that_promises_the_fastest(six, monkeypatch):
    """Also if no turn is set aside for it."""
    monkeypatch.setattr(stages, "TOGETHER", 10**9)
    trials: list[Trial] = []
    searches = StageSearches(six, 0, trials, everything, local_search.search)
    met = 0
    for ordinal, candidate in enumerate(itertools.islice(searches.candidates(), 3 * BEGIN)):
        due = searches.together({t.candidate.key for t in trials})
        if due is not None and ordinal > BEGIN and ordinal % HOLDING:
            met += 1
            assert candidate.key == due.key
        trials.append(measured(candidate))
    assert met


def test_what_is_refused_is_not_proposed_and_costs_other_stages_nothing(six):
    """The fastest of each stage may be refused together, and so may the next ones."""

    def allows(skeleton: Skeleton, sizes: Mapping[str, int]) -> bool:
        return zlib.crc32(repr((skeleton.key, sorted(sizes.items()))).encode()) % 2 == 0

    trials: list[Trial] = []
    tried = by_stages(local_search.search)(six, 0, trials, allows)
    for candidate in itertools.islice(tried, 3 * BEGIN):
        assert allows(candidate.skeleton, candidate.point)
        trials.append(measured(candidate))
    assert len({t.candidate.key for t in trials}) == 3 * BEGIN


def test_equal_stages_share_their_search():
    text = """def p(xs: [6][8]f32, ys: [6][8]f32) =
      let one = xs |> map(reduce(add, 0)) in let two = ys |> map(reduce(add, 0)) in
      zip(one, two) |> map((a, b) => a * b)"""
    space = space_of(parse(text), DEFAULT_DEVICE)
    (whole,) = [p for p in space.products if len(p.partition.stages) == 3]
    alone = Space(space.program, space.device, (), (whole,))
    trials: list[Trial] = []
    searches = StageSearches(alone, 0, trials, everything, local_search.search)
    (arm,) = searches.arms
    one, two, last = arm.places
    assert one.search is two.search is not last.search
    trials.extend(map(measured, itertools.islice(searches.candidates(), 10)))
    searches.learn()
    assert len(one.search.trials) == 2 * len(last.search.trials) == 20


def test_partitions_have_their_turns(two):
    """Also the slowest, a million ns here: a turn of it counts for several."""
    trials = run(by_stages(local_search.search), two, 0, 60)
    whole = [not isinstance(t.candidate.skeleton, StagedSkeleton) for t in trials]
    assert any(whole[:2])
    assert 2 <= sum(whole[:BEGIN]) <= BEGIN // 6
    assert 1 <= sum(whole[BEGIN : 2 * BEGIN - 4]) <= BEGIN // 6


def test_the_fastest_stages_of_a_slow_partition_are_not_tried_together(two):
    """They would take as long as they took, which is known."""
    trials: list[Trial] = []
    searches = StageSearches(two, 0, trials, everything, local_search.search)
    (stored,) = [arm for arm in searches.arms if arm.product is not None and arm.stores_all]
    whole = next(arm for arm in searches.arms if arm.whole is not None)
    trials.extend(map(measured, itertools.islice(searches.candidates(), 12)))
    searches.learn()
    assert searches.behind(stored) == 1
    assert searches.behind(whole) == BEHIND


# --- as many samples as the hardest ---------------------------------------------------------------

NEAR, MOST = 1.05, 200


def needed(search: Search, space: Space, seed: int, cost: Cost, best: int) -> int:
    """The samples until a time is near the best."""
    trials: list[Trial] = []
    for k, candidate in enumerate(search(space, seed, trials, everything), 1):
        trials.append(cost(candidate))
        if k == MOST or (trials[-1].time_ns or 0) <= NEAR * best:
            return k
    raise AssertionError("the best is in the space")


def of_stage(group: Sequence[Member], stage: str) -> Cost:
    """The made-up time of a stage alone."""
    words = {member.skeleton.key: member.words for member in group}

    def cost(candidate: Candidate) -> Trial:
        return Trial(candidate, own(candidate.point, words[candidate.skeleton.key], stage), 64)

    return cost


def least_of(member: Member, stage: str) -> int:
    """The least made-up time of a stage; groups of independent sizes are minimized separately."""
    point = member.points.unrank(0)
    for part in member.points.graphs:
        alone = [point | part.unrank(k) for k in range(part.count)]
        point = min(alone, key=lambda sizes: own(sizes, member.words, stage))
    return own(point, member.words, stage)


def test_six_operations_take_at_most_twice_the_samples_of_the_hardest(six):
    """Each alone with the seed that it has among the six."""
    search = local_search.search
    space = six.narrow({"outer.vector": "yes", "outer.tail": "none"})
    (product,) = space.products
    stages = [*zip(product.partition.stages, product.groups, strict=True)]
    best: list[int] = []
    for stage, group in stages:
        best.append(min(least_of(member, stage.name) for member in group))
    hardest = together = 0
    for seed in range(3):
        alone: list[int] = []
        for (stage, group), least in zip(stages, best, strict=True):
            only = Space(stage.program, space.device, group)
            own_seed = subseed(seed, stage.text)
            alone.append(needed(search, only, own_seed, of_stage(group, stage.name), least))
        hardest += max(alone)
        together += needed(by_stages(search), space, seed, measured, sum(best))
    assert 3 * 20 < hardest < 3 * MOST  # by no luck, and it was found
    assert together <= 2 * hardest


HOLDS = """def p(xs: [8][12]f32, w: [8][12]f32, u: [4][8]f32) =
  let one = xs |> map(a => w |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0))) in
  one |> map(a => u |> map(b => zip(a, b) |> map(mul) |> reduce(add, 0)))"""


@pytest.fixture(scope="module")
def holds() -> Space:
    return Space.whole(parse(HOLDS), DEFAULT_DEVICE, families=["direct", "blocked"])


def best_stored(space: Space) -> dict[str, list[tuple[int, Drawn]]]:
    """Some candidate of each stage where all is stored."""
    stored = next(p for p in space.products if dict(p.partition.words) == {"one": STORED})
    best: dict[str, list[tuple[int, Drawn]]] = {}
    for stage, group in zip(stored.partition.stages, stored.groups, strict=True):
        member = next(m for m in group if m.skeleton.family == "direct" and len(m.words) == 3)
        sizes = {"kappa": 4, "sigma": 2, "v": 4}
        point = {prefixed(stage.name, n): s for n, s in sizes.items()}
        other = replace(member.skeleton, family="rows"), point
        best[stage.name] = [(50, other), (70, (member.skeleton, point))]
    return best


def holding(space: Space, trials: Sequence[Trial]) -> HeldSearch:
    members = [m for m in space.members if HELD in m.skeleton.words.values()]
    return HeldSearch(members, "", trials, lambda c: (c.skeleton, c.point))


def test_what_is_best_stored_is_tried_first_where_it_is_held(holds) -> None:
    """In members that are unlike each other, with the best of the form that they have."""
    best = best_stored(holds)
    as_stored = {n: size for _, (_, (_, point)) in best.values() for n, size in point.items()}
    search = holding(holds, [])
    found = [search.next(best) for _ in range(STARTS)]
    keys = {drawn[0].key for drawn in found if drawn is not None}
    assert len(keys) == STARTS
    assert all(drawn is not None and as_stored.items() <= drawn[1].items() for drawn in found)
    rows = best | {"one": best["one"][:1]}
    assert holding(holds, []).next(rows) is None


STEP = "slide(3, 1) |> map(w => w |> reduce((a, e) => a * 0.5 + e, 0))"
MANY = f"""def p(x: [40]f32) =
  let one = (x |> padClamp(1, 1) |> {STEP}), two = (one |> padClamp(1, 1) |> {STEP}),
      three = (two |> padClamp(1, 1) |> {STEP}), four = (three |> padClamp(1, 1) |> {STEP}),
      five = (four |> padClamp(1, 1) |> {STEP})
  in five |> padClamp(1, 1) |> {STEP}"""


def test_a_common_size_of_held_values_begins_as_that_of_the_last_stored_one() -> None:
    space = Space.whole(parse(MANY), DEFAULT_DEVICE, families=["tiled", "blocked"])
    names = ("one", "two", "three", "four", "five", "result")
    member = next(
        m
        for m in space.members
        if "tiled.tile0" in m.system.by_name and {m.words.get(n, HELD) for n in names} == {HELD}
    )
    stored = next(p for p in space.products if {w for _, w in p.partition.words} == {STORED})
    best: dict[str, list[tuple[int, Drawn]]] = {}
    for k, (stage, group) in enumerate(zip(stored.partition.stages, stored.groups, strict=True)):
        tiled = next(m for m in group if m.skeleton.family == "tiled")
        best[stage.name] = [(50, (tiled.skeleton, {prefixed(stage.name, "tile0"): 2**k}))]
    search = HeldSearch([member], "", [], lambda c: (c.skeleton, c.point))
    assert search.sizes_of(member, best)["tiled.tile0"] == 2**5


def test_a_held_search_goes_from_the_fastest_to_what_is_next_to_it(holds) -> None:
    """First to other blocks of the same member, then to others with the same sizes."""
    best, trials = best_stored(holds), list[Trial]()
    search = holding(holds, trials)
    for k in range(STARTS):
        drawn = search.next(best)
        assert drawn is not None
        candidate = Candidate(holds.program, drawn[0], tuple(drawn[1].items()))
        trials.append(Trial(candidate, 100 - k, 64))
    fastest, at = trials[-1].candidate.skeleton.key, trials[-1].candidate.point
    blocks = [search.next(best) for _ in range(2)]
    assert [drawn[0].key for drawn in blocks if drawn is not None] == [fastest, fastest]
    met = {drawn[1]["block"] for drawn in blocks if drawn is not None}
    assert len(met) == 2
    assert at["block"] not in met
    other = search.next(best)
    assert other is not None
    assert other[0].key != fastest
    assert other[1] == at


def test_a_held_search_finds_a_valley_and_tries_each_candidate_once(holds) -> None:
    """The made-up time is least at a block of 8, in groups, with a kappa of 8."""
    best, trials = best_stored(holds), list[Trial]()
    search = holding(holds, trials)
    seen: set[str] = set()
    for _ in range(40):
        drawn = search.next(best)
        assert drawn is not None
        candidate = Candidate(holds.program, drawn[0], tuple(drawn[1].items()))
        assert candidate.key not in seen
        seen.add(candidate.key)
        sizes, words = candidate.point, candidate.skeleton.words
        away = abs(math.log2(sizes["block"] / 8)) + abs(math.log2(sizes["one.kappa"] / 8))
        trials.append(Trial(candidate, int(100 + 100 * away + 50 * (words["items"] == "one")), 64))
    assert min(t.time_ns or 0 for t in trials) == 100


def test_a_search_holds_what_it_has_measured_stored(holds) -> None:
    """Once each stage has a time, a third of the candidates hold what is best stored."""
    trials: list[Trial] = []
    tried = by_stages(local_search.search)(holds, 0, trials, everything)
    held = 0
    for candidate in itertools.islice(tried, BEGIN + 30):
        trials.append(measured(candidate))
        held += len(trials) > BEGIN and candidate.skeleton.words.get("one") == HELD
    assert held >= 10


def test_known_times_are_scaled_by_the_median_ratio_into_a_new_list():
    candidates = space_of(parse(TWO), DEFAULT_DEVICE).sample(4, 0)
    known = [Trial(c, 100 * (k + 1), 64) for k, c in enumerate(candidates)]
    again = [Trial(c, t, 32) for c, t in zip(candidates, (50, 60, 240), strict=False)]
    own = {trial.candidate.key: trial for trial in again}  # ratios 0.5, 0.3 and 0.8
    assert rescaled(known, {}) == known
    assert rescaled(known, own) == [replace(known[3], time_ns=200), *again]
    assert [trial.time_ns for trial in known] == [100, 200, 300, 400]


@pytest.fixture(scope="module")
def correlation() -> Space:
    """Forms by F(m, r) of a program, whose stages have the same names for each m."""
    program = Case((13,), 2, 2, (3,), 0).program
    families = ["small", "direct", "blocked"]
    return Space.whole(program, DEFAULT_DEVICE, fixed={WINOGRAD: ["4", "6"]}, families=families)


def test_what_is_best_for_one_algorithm_is_tried_for_the_others(correlation) -> None:
    """What holds the products may be faster still: it has no stage of this name."""
    searches = StageSearches(correlation, 0, [], everything, local_search.search)
    for arm in searches.arms:
        held = arm.algorithm == "6" and not arm.stores_all
        time = 1 if held else 10 if arm.algorithm == "6" else 1000
        for place in arm.places:
            member = place.search.group[-1]
            tried = Candidate(place.search.program, member.skeleton, settings(member))
            place.search.learn(Trial(tried, time, 64))
    stored = {arm.algorithm: arm for arm in searches.arms if arm.stores_all}
    places = {
        word: next(p for p in arm.places if p.stage.name == "products")
        for word, arm in stored.items()
    }
    fastest = places["6"].search.best
    assert fastest is not None
    found = searches.next_at(stored["4"], places["4"])
    assert found is not None
    words = fastest.candidate.skeleton.words | {WINOGRAD: "4"}
    assert (found.skeleton.words, found.point.keys()) == (words, fastest.candidate.point.keys())
    again = [searches.next_at(stored["4"], places["4"]) for _ in range(30)]
    assert found.key not in {c.key for c in again if c is not None}, "each once"


def settings(member: Member) -> tuple[tuple[str, int], ...]:
    """The last point of a member."""
    return tuple(list(member.points.draws(0))[-1].items())


def test_what_is_held_begins_with_what_is_best_for_its_algorithm(monkeypatch, correlation) -> None:
    """And not with what is best for another m."""
    space = correlation
    met: set[tuple[str, str]] = set()
    proposed = HeldSearch.next

    def listening(search: HeldSearch, best: Best) -> Drawn | None:
        (own,) = {m.skeleton.words[WINOGRAD] for m in search._members.values()}
        met.update((own, drawn[0].words[WINOGRAD]) for _, drawn in best["products"])
        return proposed(search, best)

    monkeypatch.setattr(HeldSearch, "next", listening)
    trials = run(by_stages(local_search.search), space, 0, BEGIN + 12)
    words = [t.candidate.skeleton.words for t in trials[BEGIN:]]
    assert sum(own.get("inputs") == HELD for own in words) >= 4
    assert met == {(word, word) for word in ("4", "6")}
