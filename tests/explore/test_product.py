"""Spaces of programs of several stages: products that are counted, drawn and explained."""

import itertools
import math
import re
from collections import Counter
from dataclasses import replace

import pytest

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.user import wishes
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.explore.space import across
from liftpy.explore.space.candidate import Candidate
from liftpy.explore.space.member import Drawing
from liftpy.explore.space.plainest import plainest
from liftpy.explore.space.product import diagonal
from liftpy.explore.space.space import Space
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.pipeline import compile_candidate
from liftpy.rewrite.composition import STAGES
from liftpy.workloads import Convolution, convolution

TWO = parse("""def two(xs: [6][8]f32, ys: [6]f32) =
  let score = xs |> map(reduce(add, 0)) in zip(score, ys) |> map((a, b) => a * b)""")
THREE = parse("""def three(xs: [4][4]f32, const w: [4]f32) =
  let one = xs |> map(reduce(add, 0)) in
  let u = w |> map(x => x * x) in
  let two = zip(one, u) |> map((x, y) => x + y) in
  two |> map(t => xs |> map(row => row |> map(x => x * t)))""")


@pytest.fixture(scope="module")
def two() -> Space:
    return space_of(TWO, DEFAULT_DEVICE)


@pytest.fixture(scope="module")
def three() -> Space:
    return space_of(THREE, DEFAULT_DEVICE)


@pytest.fixture(scope="module")
def stored(two: Space) -> Space:
    return two.narrow({"score": "stored"})


def every(space: Space) -> list[str]:
    """All draws of a space, each once, as many as were counted."""
    drawn = [c.key for c in space.draws(1)]
    assert len(drawn) == len({*drawn}) == space.count()
    return sorted(drawn)


# --- counting -------------------------------------------------------------------------------------


def test_the_count_is_the_product_of_the_stages_counts(two):
    (product,) = two.products
    each = [sum(m.count() for m in group) for group in product.groups]
    assert product.count() == math.prod(each)
    assert min(each) > 1
    assert two.count() == sum(m.count() for m in two.members) + product.count()
    assert two.counts()["stages(score=stored)"] == product.count()


def test_the_count_is_that_of_all_assignments_that_hold(two):
    """Tried one by one, against the conditions that all stages together have."""
    (product,) = two.products
    found = 0
    for made in itertools.product(*product.groups):
        whole, _ = product.made([(m.skeleton, {}) for m in made])
        system = collect(whole, DEFAULT_DEVICE)
        ranges = [range(p.low, p.high + 1) for p in system.parameters]
        names = [p.name for p in system.parameters]
        points = (dict(zip(names, values, strict=True)) for values in itertools.product(*ranges))
        found += sum(map(system.holds, points))
    assert found == product.count()


def test_no_list_is_as_long_as_the_product(two):
    (product,) = two.products
    skeletons = math.prod(map(len, product.groups))
    assert len(two.every) == len(two.members) + sum(map(len, product.groups)) < skeletons


# --- drawing --------------------------------------------------------------------------------------


def test_a_draw_composes_no_program(two, monkeypatch):
    """What its stages make together is composed when it is read, once."""
    asked = []
    monkeypatch.setattr(
        "liftpy.rewrite.composition.in_global", lambda _: asked.append("stage") or False
    )
    (drawn,) = two.narrow({"score": "stored"}).sample(1)
    assert drawn.label.startswith("score=")
    assert not asked
    skeleton = drawn.skeleton
    assert skeleton.derivation.result is skeleton.program.body.body
    assert asked == ["stage"]


def test_all_candidates_are_drawn_once(two):
    every(two)


@pytest.mark.parametrize("counts", [(1,), (3,), (1, 1), (2, 3), (3, 2), (4, 6, 9), (5, 1, 5)])
def test_stages_go_through_their_candidates_side_by_side(counts):
    """Each place of the product once; of the first n, as many of each stage as it has."""
    places = [diagonal(k, counts) for k in range(math.prod(counts))]
    assert len({*places}) == len(places)
    assert all(0 <= p < n for place in places for p, n in zip(place, counts, strict=True))
    for k, count in enumerate(counts):
        assert len({place[k] for place in places[:count]}) == count


def test_a_sample_has_as_many_candidates_of_each_stage(stored):
    drawn = stored.sample(20, seed=3)
    for stage in ("score", "result"):
        mine = {
            tuple((n, v) for n, v in c.assignment.items() if n.startswith(f"{stage}."))
            for c in drawn
        }
        (product,) = stored.products
        names = [s.name for s in product.partition.stages]
        there = sum(m.count() for m in product.groups[names.index(stage)])
        assert len(mine) == min(20, there)


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_a_longer_sample_begins_with_a_shorter_one(two, n):
    longer = two.sample(60, seed=4)
    assert [c.key for c in two.sample(n, seed=4)] == [c.key for c in longer[:n]]
    assert [c.key for c in two.sample(9, seed=4, start=n)] == [c.key for c in longer[n : n + 9]]


def test_the_seed_decides(two):
    keys = [[c.key for c in two.sample(20, seed=s)] for s in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]


def test_partitions_and_skeletons_of_the_whole_take_turns(two):
    families = Counter(c.skeleton.family for c in two.sample(12, seed=0))
    assert families.keys() == {"plain", "tiled", STAGES}


def test_every_draw_satisfies_what_all_stages_together_must(three):
    for candidate in three.sample(5, seed=2):
        assert collect(candidate.skeleton, DEFAULT_DEVICE).holds(candidate.point), candidate.label


# --- choosing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"score": "stored"},
        {"score.family": "tiled"},
        {"score.tile0": 2},
        {"score.tile0": 2, "result.family": "plain"},
        {"score.tile0": 2, "result.tile0": 3},
        {"score.v": 2, "score.tile0": 3},
        {"family": "stages", "score.map": "glb0"},
        {"tile0": 2},
    ],
)
def test_settings_narrow_to_those_that_have_them(two, settings):
    narrowed = two.narrow(settings)
    wanted = [c for c in two.draws(0) if settings.items() <= c.assignment.items()]
    assert every(narrowed) == sorted(c.key for c in wanted)
    if wanted:
        assert settings.items() <= two.candidate(settings).assignment.items()
        assert two.explain(settings).count == len(wanted)


def test_the_whole_assignment_is_one_candidate(two):
    for candidate in two.sample(30, seed=5):
        assert two.exactly(candidate.assignment).key == candidate.key
        answer = two.explain(candidate.assignment)
        assert (answer.valid, answer.count) == (True, 1)


def test_part_of_an_assignment_is_several_candidates(two):
    assignment = two.narrow({"score.family": "tiled"}).sample(1)[0].assignment
    del assignment["score.tile0"]
    with pytest.raises(ConstraintRefused, match=r"fits several candidates.*score\.tile0"):
        two.exactly(assignment)


def test_an_explanation_names_the_stage(two):
    answer = two.explain({"score.tile0": 5})
    assert not answer.valid
    assert "score=tiled(" in answer.text
    assert "score.tile0" in answer.text
    assert "result" not in answer.text
    with pytest.raises(ConstraintRefused, match=r"5 does not divide 6"):
        two.candidate({"score.tile0": 5})


def test_settings_of_two_partitions_exclude_each_other(two):
    with pytest.raises(ConstraintRefused, match="no skeleton of two has"):
        two.narrow({"tile0": 2, "score.tile0": 2})
    with pytest.raises(ConstraintRefused, match="no skeleton of two has"):
        two.narrow({"score": "fused", "score.family": "plain"})


def test_a_name_without_its_stage_is_refused_with_all_names(stored):
    with pytest.raises(UnknownName, match=r"no parameter 'v'.*score\.v"):
        stored.narrow({"v": 1})


def test_a_condition_on_a_size_of_a_stage_bounds_that_stage(two):
    asked = space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 <= 2"])
    wanted = [c for c in two.draws(0) if c.point.get("score.tile0", 0) <= 2]
    assert every(asked) == sorted(c.key for c in wanted)
    assert 0 < len(wanted) < two.count()


def holds(where: str, point: dict[str, int]) -> bool:
    """Whether a candidate satisfies a condition, or lacks a size of it."""
    if " and " in where:
        return all(holds(part, point) for part in where.split(" and "))
    names = set(re.findall(r"[a-z]+\.[a-z0-9]+", where))
    values = {name.replace(".", "_"): point[name] for name in names & point.keys()}
    if len(values) < len(names):
        return True
    return bool(eval(where.replace(".", "_"), {}, values))  # noqa: S307  our own texts


ACROSS = [
    "score.tile0 == result.tile0",
    "score.tile0 <= result.tile0",
    "score.tile0 != result.v",
    "score.tile0 * score.v < result.tile0",
    "result.tile0 % score.tile0 == 0",
    "score.tile0 + result.tile0 == 5 and score.v <= result.v",
    "(score.tile0 - 1) * (result.tile0 - 1) <= 2",  # at 1 nothing is left of it
]


@pytest.fixture(scope="module")
def drawn(two) -> list[Candidate]:
    """All candidates."""
    return [*two.draws(0)]


@pytest.mark.parametrize("where", ACROSS)
def test_a_condition_may_join_the_sizes_of_two_stages(two, drawn, where):
    """It is counted exactly; each candidate that satisfies it is drawn, and drawn once."""
    asked = space_of(TWO, DEFAULT_DEVICE, where=[where])
    wanted = [c for c in drawn if holds(where, c.point)]
    assert 0 < len(wanted) < two.count()
    assert asked.count() == len(wanted)
    found = [c.key for c in asked.draws(3)]
    assert len({*found}) == len(found)
    assert sorted(found) == sorted(c.key for c in wanted)
    assert [c.key for c in asked.sample(9, seed=3)] == found[:9]
    assert [c.key for c in asked.sample(9, seed=3, start=5)] == found[5:14]
    assert plainest(asked).key in found


def test_a_condition_may_join_three_stages():
    program = parse("""def three(xs: [4][6]f32, ys: [4]f32) =
      let one = xs |> map(reduce(add, 0)) in
      let two = zip(one, one) |> map((a, b) => a * b) in
      let all = two |> reduce(add, 0) in
      zip(two, ys) |> map((t, y) => t * y + all)""")
    whole = space_of(program, DEFAULT_DEVICE)
    form = {"family": "tiled", "vector": "no", "map": "glb0.seq"}
    settings = {f"{stage}.{n}": w for stage in ("one", "two", "result") for n, w in form.items()}
    where = "one.tile0 * two.tile0 <= result.tile0"
    wanted = [c for c in whole.narrow(settings).draws(0) if holds(where, c.point)]
    asked = space_of(program, DEFAULT_DEVICE, where=[where]).narrow(settings)
    assert 0 < len(wanted) < whole.narrow(settings).count()
    assert sorted(c.key for c in asked.draws(1)) == sorted(c.key for c in wanted)


def test_draws_under_a_condition_across_are_uniform(stored):
    """Of an inequality, whose parts are of different sizes, each candidate is first as often."""
    (product,) = stored.narrow({"score.family": "tiled", "result.family": "tiled"}).products
    names = {p.name for m in product.members for p in m.system.parameters}
    (wish,) = wishes(["score.tile0 <= result.tile0"], {}, names)
    asked = product.asking([wish])
    sizes = Counter(len(part.members) for part in asked.summands)
    assert len(asked.summands) > 2, sizes
    seeds = 800
    firsts = Counter(next(asked.draws(Drawing(seed)))[1]["score.tile0"] for seed in range(seeds))
    counts = Counter(point["score.tile0"] for _, point in asked.draws(Drawing(0)))
    for value, count in counts.items():
        share = count / counts.total()
        assert abs(firsts[value] / seeds - share) < 4 * math.sqrt(share * (1 - share) / seeds)


def test_settings_narrow_what_is_joined(drawn):
    where = "score.tile0 == result.tile0"
    asked = space_of(TWO, DEFAULT_DEVICE, where=[where])
    for settings in ({"score.tile0": 3}, {"result.v": 2}, {"score": "stored", "result.tile0": 2}):
        wanted = [
            c for c in drawn if settings.items() <= c.assignment.items() and holds(where, c.point)
        ]
        assert every(asked.narrow(settings)) == sorted(c.key for c in wanted)
        assert asked.explain(settings).count == len(wanted)
        assert settings.items() <= asked.candidate(settings).assignment.items()
    (one, *_) = asked.narrow({"score.tile0": 3, "result.tile0": 3}).sample(1)
    assert asked.exactly(one.assignment).key == one.key


def test_a_clash_across_stages_is_explained(two):
    asked = space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 == result.tile0"])
    settings = {"score.tile0": 2, "result.tile0": 3}
    answer = asked.explain(settings)
    assert not answer.valid
    assert 'user --where "score.tile0 == result.tile0"' in answer.text
    assert "result.tile0: 2 would work with the others kept" in answer.text
    with pytest.raises(ConstraintRefused, match=r"result\.tile0"):
        asked.candidate(settings)
    assert not asked.narrow(settings).possible
    (told,) = [c for c in asked.constraints if "user" in c["asked_by"]]
    assert told["skeletons"] == ["stages(score=stored)"]


def test_what_a_size_takes_under_a_condition_across_is_told(two):
    asked = space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 == 2 * result.tile0"])
    having = {"score.family": "tiled", "result.family": "tiled"}
    reached = asked.narrow(having).reached
    found = [c.point for c in asked.narrow(having).draws(0)]
    for name in ("score.tile0", "result.tile0"):
        assert reached[name] == sorted({point[name] for point in found})


def test_the_skeletons_that_lack_a_size_of_a_condition_across_are_counted(two):
    asked = space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 == result.tile0"])
    lacking = [
        m for m in two.every if not {"score.tile0", "result.tile0"} & m.system.by_name.keys()
    ]
    assert asked.unbound == {asked.wished[0].text: len(lacking)}


def test_a_condition_across_stages_that_cannot_hold_is_refused():
    with pytest.raises(ConstraintRefused, match="no sizes satisfy this condition"):
        space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 > 99 + result.tile0"])


def test_a_condition_over_stages_of_no_one_partition_is_refused():
    with pytest.raises(ConstraintRefused, match="no partition has stages with all of these"):
        space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 <= tile0"])


def test_a_condition_with_too_many_combinations_is_refused(monkeypatch):
    monkeypatch.setattr(across, "MOST", 3)
    asked = space_of(TWO, DEFAULT_DEVICE, where=["score.tile0 <= result.tile0"])
    with pytest.raises(ConstraintRefused, match=r"more than 3 combinations .* fix some with --set"):
        asked.count()


def test_fixed_values_of_a_stage_are_all_that_is_left(two):
    asked = space_of(TWO, DEFAULT_DEVICE, fixed={"score.tile0": [2, 3], "result.family": "plain"})
    wanted = [
        c
        for c in two.draws(0)
        if c.assignment.get("score.tile0") in (2, 3)
        and c.assignment.get("result.family") == "plain"
    ]
    assert every(asked) == sorted(c.key for c in wanted)
    assert wanted


def test_families_are_those_of_all_stages(two):
    only = space_of(TWO, DEFAULT_DEVICE, families=["plain"])
    wanted = [
        c
        for c in two.draws(0)
        if {str(w) for n, w in c.assignment.items() if n.endswith("family")} <= {"plain", STAGES}
    ]
    assert every(only) == sorted(c.key for c in wanted)
    assert {c.skeleton.family for c in wanted} == {"plain", STAGES}


# --- a memory limit -------------------------------------------------------------------------------


def peak(candidate) -> int:
    """The bytes that the allocator counts."""
    return compile_candidate(candidate.skeleton, candidate.point).memory.peak


def test_a_memory_limit_bounds_the_peak_of_all_stages_together(three):
    peaks = [peak(c) for c in three.sample(20, seed=1)]
    limit = min(peaks)
    assert max(peaks) > limit
    limited = space_of(THREE, DEFAULT_DEVICE, memory_limit=limit)
    assert 0 < limited.count() < three.count()
    within = [peak(c) for c in limited.sample(20, seed=1)]
    assert max(within) <= limit


def test_a_memory_limit_admits_each_candidate_whose_peak_it_is(three):
    """Constants that several stages read count once, those of the prepare phase not at all."""
    peaks = {peak(c) for c in three.sample(200, seed=1)}
    for limit in peaks:
        within = space_of(THREE, DEFAULT_DEVICE, memory_limit=limit)
        assert max(peak(c) for c in within.sample(50, seed=1)) == limit
    least = min(peaks)
    below = space_of(THREE, DEFAULT_DEVICE, memory_limit=least - 1)
    assert below.count() == 0
    assert f"the least possible limit is {least} bytes" in below.why_empty(least - 1)


def test_the_constants_of_the_prepare_phase_count_for_the_memory_of_the_device():
    program = parse("""def p(xs: [4]f32, const w: [4][64]f32, const u: [4][64]f32) =
      let a = w |> map(reduce(add, 0)) in let b = u |> map(reduce(add, 0)) in
      zip(xs, a, b) |> map((x, y, z) => x * y + z)""")
    (first, *_) = space_of(program, DEFAULT_DEVICE).sample(1)
    needed = compile_candidate(first.skeleton, first.point).memory.prepare
    assert needed >= 2048
    assert not space_of(program, replace(DEFAULT_DEVICE, global_memory=needed - 1)).possible
    assert space_of(program, replace(DEFAULT_DEVICE, global_memory=needed + 64)).possible


def test_families_do_not_restrict_the_values_that_the_prepare_phase_makes():
    program = parse("""def p(xs: [64]f32, const w: [64]f32) =
      let a = w |> map(x => x * x) in zip(xs, a) |> map((x, t) => x * t)""")
    tiled = space_of(program, DEFAULT_DEVICE, families=["tiled"])
    assert tiled.choices["a.family"] == ["plain"]
    assert tiled.choices["result.family"] == ["tiled"]
    assert tiled.count() > 0


def test_a_limit_that_nothing_keeps_is_refused_with_the_least():
    limited = space_of(THREE, DEFAULT_DEVICE, memory_limit=16)
    assert not limited.possible
    assert limited.count() == 0
    assert "the least possible limit is" in limited.why_empty(16)


def test_the_least_limit_of_all_stages_together_is_stated():
    """Each stage has a least limit of its own, and needs different bytes."""
    layer = Convolution(5, 6, 8, 4, (3, 3), padding=(1, 1, 1, 1))
    program = convolution(layer, "layer")
    chosen = {"winograd": "2x2", "inputs": "stored"}

    def under(limit):
        space = space_of(program, DEFAULT_DEVICE, families=("small", "direct"), memory_limit=limit)
        return space.explain(chosen)

    text = under(3000).text
    stated = {int(n) for n in re.findall(r"The least possible memory limit is (\d+) bytes", text)}
    found = re.search(r"A memory limit of (\d+) bytes is the least that admits a candidate", text)
    least = int(found[1])
    assert len(stated) > 1
    assert least in stated
    assert under(least).valid
    assert not under(least - 1).valid


def test_the_least_limit_that_is_stated_is_that_of_the_settings():
    """No candidate meets the limit; a size is given that no limit, or only a larger one, admits."""
    layer = Convolution(5, 6, 8, 4, (3, 3), padding=(1, 1, 1, 1))
    program = convolution(layer, "layer")

    def under(limit, **sizes):
        space = space_of(program, DEFAULT_DEVICE, families=("staged",), memory_limit=limit)
        return space.explain(sizes)

    assert not under(10**6, theta=10).valid
    assert "that admits a candidate" not in under(1, theta=10).text
    found = re.search(r"A memory limit of (\d+) bytes is the least", under(1, rho=2).text)
    least = int(found[1])
    assert under(least, rho=2).valid
    assert not under(least - 1, rho=2).valid
