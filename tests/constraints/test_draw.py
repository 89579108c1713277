import gc
import itertools
import os
import subprocess
import sys
import weakref
from collections import Counter
from dataclasses import replace
from functools import cache
from math import comb, prod

import pytest
import z3

from liftpy.constraints.draw import Space, first, search, shared_points, shuffled
from liftpy.constraints.levels import Levels, divisors
from liftpy.constraints.solve import domains, translate
from liftpy.constraints.system import ranges as range_clauses
from liftpy.errors import ConstraintRefused
from liftpy.ir.constraint import at_most, divides, equal
from liftpy.ir.nat import nat
from liftpy.primitives.transpose import Permutes, stride
from tests.constraints.examples import (
    every_point,
    four_stages,
    random_system,
    satisfies,
    sizes,
    system,
)

SMALL = [*range(60), 1302, 1420, 2355]  # the last three have sums over one divisor


@cache
def made(seed):
    """A random system; several tests ask for the same one."""
    return random_system(seed)


@cache
def points_of(found):
    """All points, by brute force."""
    return [point for point in every_point(found) if satisfies(found, point)]


def as_rows(assignments):
    return sorted(tuple(sorted(a.items())) for a in assignments)


@pytest.mark.parametrize("seed", SMALL)
def test_points_are_those_of_brute_force(seed):
    found = made(seed)
    space = Space(found)
    points = points_of(found)
    assert space.count() == len(points)
    assert as_rows(space.unrank(k) for k in range(space.count())) == as_rows(points)
    for parameter in found.parameters:
        assert space.values(parameter.name) == sorted({p[parameter.name] for p in points})


@pytest.mark.parametrize("seed", SMALL)
def test_a_point_is_found_where_there_is_one(seed):
    found = made(seed)
    point = first(found)
    assert (point is not None) == bool(points_of(found))
    assert point is None or satisfies(found, point)


@pytest.mark.parametrize("seed", SMALL)
def test_the_published_sampler_finds_the_same_points(seed):
    found = made(seed)
    drawn = list(Space(found).draws(seed, "incremental"))
    rows = as_rows(drawn)
    assert rows == sorted(set(rows))
    assert set(rows) <= set(as_rows(points_of(found)))
    assert bool(rows) == bool(points_of(found))


def test_random_systems_are_worth_counting():
    counts = [len(points_of(made(seed))) for seed in SMALL]
    assert sum(count > 5 for count in counts) >= 15
    assert sum(count == 0 for count in counts) >= 5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [s for s in SMALL if len(points_of(made(s))) <= 40])
def test_the_count_is_the_number_of_models_of_z3(seed):
    found = made(seed)
    context = z3.Context()
    variables = {p.name: z3.Int(p.name, context) for p in found.parameters}
    solver = z3.Solver(ctx=context)
    for clause in (*(c for p in found.parameters for c in range_clauses(p)), *found.clauses):
        solver.add(translate(clause, found, domains(found), variables, context))
    models = 0
    while solver.check() == z3.sat:
        model = solver.model()
        solver.add(z3.Or(*(x != model.eval(x, model_completion=True) for x in variables.values())))
        models += 1
    assert models == Space(found).count()


def four_stages_by_loops(rho_most, group):
    """The same space written as loops: points are counted, not listed."""
    count = 0
    H, p, C, K, S, M = 112, 1, 128, 3, 1, 128
    n = C * K * K
    per_chunk = [
        (n // omega, sum(omega % v == 0 for v in (1, 2, 4)))
        for omega in range(1, n + 1)
        if n % omega == 0
    ]
    groups = sum(M % kappa == 0 for kappa in range(1, M + 1))
    for theta in range(K, 2 * (H + 2 * p) + 1):
        windows = ((theta - K) // S + 1) ** 2
        shares = [windows // sigma for sigma in range(1, windows + 1) if windows % sigma == 0]
        ways = sum(v * sum(chunks * share <= group for share in shares) for chunks, v in per_chunk)
        for rho in range(rho_most + 1):
            D, step = H + 2 * p + rho, theta - K + S
            if theta <= D and (D - theta) % step == 0:
                count += ways
    return count * groups


def test_the_published_space_has_as_many_points_as_the_notes_say():
    """specs/lift-convolution.md, section 6: VGG layer 7 has about 369,000 valid points."""
    assert Space(four_stages()).count() == four_stages_by_loops(32, 384) == 368_592


def test_the_published_space_can_be_drawn_from():
    found = four_stages()
    sample = Space(found).sample(1000, seed=0)
    assert len(as_rows(sample)) == len(set(as_rows(sample))) == 1000
    assert all(found.holds(point) for point in sample)
    incremental = Space(found).sample(1000, seed=0, sampler="incremental")
    assert len(set(as_rows(incremental))) == 1000
    assert all(found.holds(point) for point in incremental)


def test_a_huge_space_is_counted_not_listed():
    ranges = {f"d{i}": (1, 5040) for i in range(12)}
    found = system(ranges, *(divides(d, 5040) for d in sizes(**ranges)))
    space = Space(found)
    assert space.count() == 60**12
    assert len(set(as_rows(space.sample(100, seed=1)))) == 100


def test_a_huge_space_without_independent_parts():
    """Chains of divisors of 5040, each dividing the next: 2.2 * 10^10, a product of binomials."""
    length = 30
    ranges = {f"d{i}": (1, 5040) for i in range(length)}
    chain = sizes(**ranges)
    conditions = (divides(small, large) for large, small in itertools.pairwise(chain))
    found = system(ranges, divides(chain[0], 5040), *conditions)
    space = Space(found)
    exponents = (4, 2, 1, 1)  # 5040 = 2^4 * 3^2 * 5 * 7
    assert len(found.components) == 1
    assert space.count() == prod(comb(e + length, e) for e in exponents) > 10**10
    assert all(found.holds(point) for point in space.sample(20, seed=1))
    assert space.unrank(space.count() - 1) != space.unrank(0)


def test_draws_are_uniform():
    """Chi-square at 1 % over single draws from many seeds."""
    space = Space(four_stages(rho=0, group=2))
    count = space.count()
    assert 100 < count < 1000
    seen = Counter(as_rows(space.sample(1, seed))[0] for seed in range(20 * count))
    expected = 20.0
    square = sum((seen[row] - expected) ** 2 / expected for row in seen)
    square += (count - len(seen)) * expected
    freedom = count - 1
    spread = 2 / (9 * freedom)
    assert square < freedom * (1 - spread + 2.326 * spread**0.5) ** 3  # Wilson and Hilferty


def test_the_published_sampler_is_not_uniform():
    """Few continuations make a point likelier: what `uniform` is there to mend."""
    ranges = {"a": (1, 2), "b": (1, 20)}
    a, b = sizes(**ranges)
    found = system(ranges, at_most(b * (a - 1), 1))
    firsts = [next(Space(found).draws(seed, "incremental"))["a"] for seed in range(400)]
    assert firsts.count(2) > 60  # of 400; one in 21 points has it


def test_a_longer_sample_begins_with_the_shorter():
    space = Space(four_stages())
    assert space.sample(50, seed=3) == space.sample(500, seed=3)[:50]
    assert space.sample(50, seed=3) != space.sample(50, seed=4)


def test_more_draws_than_points_give_all_of_them():
    found = system({"a": (1, 5), "b": (1, 3)})
    sample = Space(found).sample(100, seed=2)
    assert as_rows(sample) == as_rows(every_point(found))
    assert sample != Space(found).sample(100, seed=5)


@pytest.mark.parametrize("hash_seed", ["77"])
def test_a_seed_gives_the_same_draws_in_every_process(hash_seed):
    code = (
        "from liftpy.constraints.draw import Space\n"
        "from tests.constraints.examples import four_stages\n"
        "space = Space(four_stages())\n"
        "print(space.sample(20, 9), space.sample(20, 9, 'incremental'))"
    )
    there = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    space = Space(four_stages())
    assert there.stdout == f"{space.sample(20, 9)} {space.sample(20, 9, 'incremental')}\n"


@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_shuffled_is_a_permutation(count):
    assert sorted(shuffled(count, seed=5)) == list(range(count))


def test_shuffled_takes_counts_beyond_machine_words():
    drawn = list(itertools.islice(shuffled(10**30, seed=5), 1000))
    assert len(set(drawn)) == 1000
    assert max(drawn) > 9 * 10**29


def test_every_permutation_is_as_likely():
    seen = Counter(tuple(shuffled(3, seed)) for seed in range(6000))
    assert len(seen) == 6
    assert sum((n - 1000) ** 2 / 1000 for n in seen.values()) < 15.09  # 1 % at 5 degrees


def test_equal_conditions_share_their_points():
    """As long as they exist; who asks for a condition makes no difference, a range does."""
    a, b = sizes(a=(2, 9), b=(1, 9))
    first, again = (system({"a": (2, 9), "b": (1, 9)}, divides(b, a)) for _ in range(2))
    wider = system({"a": (2, 10), "b": (1, 9)}, divides(b, a))
    asked = replace(again, clauses=tuple(replace(c, askers=("me",)) for c in again.clauses))
    points = shared_points(first)
    assert shared_points(again) is shared_points(asked) is points
    assert shared_points(wider) is not points
    assert shared_points(wider).count() > points.count() > 0
    assert points.possible
    there = weakref.ref(points)
    del points
    gc.collect()
    assert there() is None


def test_no_points_no_draws():
    found = system({"a": (2, 3)}, divides(sizes(a=(2, 3))[0], 5))
    assert Space(found).count() == 0
    assert Space(found).sample(5, seed=0) == []
    assert Space(found).sample(5, seed=0, sampler="incremental") == []
    with pytest.raises(ConstraintRefused, match="there is no point 0: the space has 0"):
        Space(found).unrank(0)


def test_a_condition_without_parameters_that_fails_empties_the_space():
    found = system({"a": (1, 3)}, equal(nat(2), nat(3)))
    assert Space(found).count() == 0
    assert first(found) is None


def test_a_program_without_parameters_has_one_point():
    found = system({})
    assert Space(found).count() == 1
    assert Space(found).sample(3, seed=0) == [{}]
    assert first(found) == {}


def test_a_condition_without_a_formula_is_counted_too():
    ranges = {"s": (1, 12), "n": (1, 12)}
    s, n = sizes(**ranges)
    by_stride = stride(s, n)
    found = system(ranges, divides(s, n), Permutes(by_stride.index, n, by_stride.back))
    assert Space(found).count() == sum(n % s == 0 for s in range(1, 13) for n in range(1, 13))


def test_a_divisor_that_cancels_must_be_positive_still():
    ranges = {"x": (1, 3), "y": (0, 2), "z": (0, 2), "w": (0, 2)}
    x, y, z, w = sizes(**ranges)
    found = system(ranges, at_most(x // y + z, x // y + w))
    assert Space(found).count() == len(points_of(found)) == 3 * 2 * 6


def test_what_is_added_within_a_fraction_is_not_added_outside():
    ranges = {"a": (1, 4), "b": (1, 6), "c": (1, 6), "d": (1, 3)}
    a, b, c, d = sizes(**ranges)
    found = system(ranges, at_most(a + (b + c).exact_div(d), 4))
    levels = Levels(found, found.parameters)
    assert levels.key[2](1, 2) != levels.key[2](2, 1)
    assert Space(found).count() == len(points_of(found))


def test_a_factor_below_zero_turns_bounds_around():
    ranges = {"a": (0, 2), "b": (2, 4), "d": (1, 2), "c": (1, 20)}
    a, b, d, c = sizes(**ranges)
    found = system(ranges, at_most(((a - b) // d) * c, -12))
    assert found.order[-1].name == "c"
    assert Space(found).count() == len(points_of(found))


def test_a_tangled_space_is_refused(monkeypatch):
    monkeypatch.setattr("liftpy.constraints.draw.NODE_LIMIT", 50)
    with pytest.raises(ConstraintRefused, match=r"cannot be counted.*`incremental`"):
        Space(four_stages()).count()


def test_a_search_gives_up_in_time():
    found = system({"a": (1, 1000)}, divides(sizes(a=(1, 1000))[0] + 1, 1999 * 1997))
    assert search(found) == (None, True)
    assert search(found, effort=10) == (None, False)


def test_everything_divides_zero():
    assert divisors(0, 0, 4) == [1, 2, 3, 4]
    assert divisors(12, 2, 6) == divisors(-12, 2, 6) == [2, 3, 4, 6]
