import itertools
from dataclasses import replace

import pytest

from liftpy.constraints.collect import collect
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.constraints.draw import Space
from liftpy.constraints.explain import explain, least_memory
from liftpy.constraints.solve import Unknown
from liftpy.constraints.system import ConstraintSystem, is_range
from liftpy.errors import ConstraintRefused
from liftpy.ir.constraint import at_least, at_most, divides, equal
from liftpy.ir.nat import nat
from tests.constraints.examples import every_point, four_stages, random_system, sizes, system
from tests.constraints.skeletons import doubling, window_sums

VALID = {"theta": 10, "rho": 0, "sigma": 64, "omega": 8, "v": 2, "kappa": 4}


def test_a_valid_point():
    found = explain(four_stages(), VALID)
    assert found.valid
    assert found.text() == (
        "theta = 10, rho = 0, sigma = 64, omega = 8, v = 2, kappa = 4 satisfies every condition."
    )


def test_a_partial_assignment_is_counted():
    found = explain(four_stages(), {"theta": 10, "kappa": 4})
    assert found.completions == 1400
    assert found.text() == "theta = 10, kappa = 4 is possible: 1400 points of the space have it."


def test_nothing_given_counts_the_space():
    assert explain(four_stages(), {}).text() == "The space has 368592 points."


def test_a_broken_condition_says_who_asks_and_what_would_work():
    found = explain(four_stages(), VALID | {"kappa": 3})
    assert not found.valid
    assert found.text().splitlines()[1:] == [
        "Broken: kappa divides 128 (required by ask 6): 3 does not divide 128.",
        "kappa: 1, 2, 4 would work with the others kept.",
    ]


def test_every_broken_condition_of_a_full_assignment_is_named():
    found = explain(four_stages(), VALID | {"omega": 7, "kappa": 3})
    assert [c.asked_by for c in found.clashes] == ["ask 3", "ask 4", "ask 6"]
    assert found.nearest == ()
    example = dict(found.example)
    assert four_stages().holds(example)
    assert (example["theta"], example["rho"], example["sigma"], example["v"]) == (10, 0, 64, 2)
    assert found.text().splitlines()[-1].startswith("A nearby point: theta = 10, rho = 0,")


def test_a_suggested_value_works_and_none_is_nearer():
    found = four_stages()
    for name, values in explain(found, VALID | {"sigma": 5}).nearest:
        kept = {n: v for n, v in (VALID | {"sigma": 5}).items() if n != name}
        works = Space(found.fix(kept)).values(name)
        given = (VALID | {"sigma": 5})[name]
        assert set(values) == set(sorted(works, key=lambda v: (abs(v - given), v))[:3])


def test_a_clash_of_several_conditions_has_no_spare_one():
    ranges = {"a": (1, 30), "b": (1, 30), "c": (1, 30)}
    a, b, c = sizes(**ranges)
    found = system(
        ranges, divides(a, 12), divides(b, a), at_most(7, b), at_most(a, 11), divides(c, 30)
    )
    text = explain(found, {"c": 15}).text()
    assert text.splitlines()[:6] == [
        "There is no point for any c.",
        "These exclude each other:",
        "- a divides 12 (required by ask 0)",
        "- b divides a (required by ask 1)",
        "- 7 <= b (required by ask 2)",
        "- a <= 11 (required by ask 3)",
    ]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("helped", [True, False], ids=["z3", "no z3"])
@pytest.mark.parametrize("seed", range(80))
def test_clashes_leave_no_point_and_each_is_needed(seed, helped, monkeypatch):
    if not helped:
        silent = lambda *_, **__: Unknown("no time")
        monkeypatch.setattr("liftpy.constraints.explain.feasible", silent)
    found = random_system(seed)
    core = [c for c in explain(found, {}).clashes if not is_range(c)]
    assert bool(core) == (Space(found).count() == 0)
    if core and not found.broken({}):
        assert Space(ConstraintSystem(found.parameters, tuple(core))).count() == 0
        for clause in core:
            rest = tuple(c for c in core if c is not clause)
            assert Space(ConstraintSystem(found.parameters, rest)).count() > 0


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(120))
def test_no_clash_is_smaller(seed):
    found = random_system(seed)
    core = [c for c in explain(found, {}).clashes if not is_range(c)]
    if not core or found.broken({}):
        return
    for size in range(1, len(core)):
        for chosen in itertools.combinations(found.clauses, size):
            assert Space(ConstraintSystem(found.parameters, chosen)).count() > 0


def test_a_clash_of_three_is_not_named_where_two_clash():
    """z3 and leaving out may end at a, b, c; a and d alone exclude each other as well."""
    ranges = {"a": (1, 30), "b": (1, 30), "c": (1, 30)}
    a, b, c = sizes(**ranges)
    found = system(
        ranges, at_most(a, b - 1), at_most(b, c - 1), at_most(c, a), at_most(7, c), at_most(c, 6)
    )
    assert [x.asked_by for x in explain(found, {}).clashes] == ["ask 3", "ask 4"]


def test_a_clash_that_may_not_be_the_smallest_says_so(monkeypatch):
    """Without time a smaller one is not looked for, and nobody claims that there is none."""
    assert explain(four_stages(), {"theta": 10, "sigma": 5}).fewest
    monkeypatch.setattr("liftpy.constraints.explain.SMALLEST_SECONDS", 0.0)
    ranges = {"a": (1, 30), "b": (1, 30)}
    a, b = sizes(**ranges)
    found = explain(system(ranges, divides(a, 12), at_most(7, b), divides(b, a), at_most(a, 6)), {})
    assert len([c for c in found.clashes if not is_range(c)]) == 3
    assert not found.fewest
    assert found.to_json()["fewest"] is False
    assert (
        "These exclude each other (maybe not the fewest: the search ended after 2 s):"
        in found.text()
    )


def test_a_given_value_is_not_blamed_for_what_clashes_without_it():
    ranges = {"a": (1, 8), "b": (1, 16)}
    a, b = sizes(**ranges)
    found = explain(system(ranges, divides(b, a), at_least(nat(101), a * b)), {"a": 3})
    assert not found.valid
    assert found.nearest == found.example == ()
    assert found.text().splitlines()[:4] == [
        "There is no point for any a.",
        "These exclude each other:",
        "- b divides a (required by ask 0)",
        "- 101 <= a*b (required by ask 1)",
    ]


def test_a_range_that_takes_part_is_named():
    device = replace(DEFAULT_DEVICE, max_work_group_size=4)
    found = collect(doubling(7, low=2), device)
    split = "split(chunk)"
    assert explain(found, {}).text().splitlines() == [
        "The space is empty.",
        "These exclude each other:",
        f"- chunk divides 7 (required by {split}; rule split_join (step 1))",
        "- chunk <= 4 (required by device work-group size of kernel k0_output)",
        "- 2 <= chunk (range of chunk)",
    ]


def test_an_empty_space_says_why():
    device = replace(DEFAULT_DEVICE, max_work_group_size=4)
    text = explain(collect(doubling(7, low=2), device), {}).text()
    assert text.startswith("The space is empty.\n")
    assert "device work-group size" in text
    assert explain(collect(doubling(8, low=2), device), {}).valid


def test_an_unknown_parameter_is_refused_with_the_known_ones():
    with pytest.raises(ConstraintRefused, match="no parameter is named tau: this program has"):
        explain(four_stages(), {"tau": 3})


def test_a_value_out_of_range_is_refused_with_the_range():
    with pytest.raises(
        ConstraintRefused, match=r"theta = 2 .* \(the size theta\) ranges from 3 to 228"
    ):
        explain(four_stages(), {"theta": 2})


@pytest.mark.parametrize("limit", [1, 375])
def test_a_memory_limit_too_low_says_the_least(limit):
    found = explain(collect(window_sums(), DEFAULT_DEVICE, memory_limit=limit), {})
    assert found.least_memory == 376
    assert "The least possible memory limit is 376 bytes." in found.text()
    assert explain(collect(window_sums(), DEFAULT_DEVICE, memory_limit=376), {}).valid


def test_the_least_memory_is_exact():
    ranges = {"a": (1, 60), "b": (1, 60)}
    a, b = sizes(**ranges)
    free = system(ranges, divides(a, 60), equal(a * b, nat(60)))
    limited = tuple(
        replace(c, askers=("memory limit while kernel k runs",))
        for c in system(ranges, at_most(a * 7 + b * 5 + 11, 20), at_most(b * 9 + 2, 20)).clauses
    )
    found = ConstraintSystem(free.parameters, (*free.clauses, *limited))
    least = min(
        max(p["a"] * 7 + p["b"] * 5 + 11, p["b"] * 9 + 2)
        for p in every_point(free)
        if free.holds(p)
    )
    assert least_memory(found) == least


def test_memory_that_does_not_depend_on_sizes_is_the_least():
    found = explain(collect(doubling(), DEFAULT_DEVICE, memory_limit=100), {})
    assert found.least_memory == 768
    assert "768 <= 100" in found.text()


def test_a_least_memory_that_is_hard_to_find_is_not_given(monkeypatch):
    monkeypatch.setattr("liftpy.constraints.explain.EFFORT", 0)
    found = explain(collect(window_sums(), DEFAULT_DEVICE, memory_limit=1), {})
    assert found.least_memory is None
    assert "memory limit that" not in found.text()


def test_no_memory_limit_helps_where_something_else_is_broken():
    device = replace(DEFAULT_DEVICE, max_work_group_size=4)
    assert least_memory(collect(doubling(7, low=2), device, memory_limit=10)) is None


def test_a_long_condition_is_shown_without_its_middle():
    ranges = {f"x{i}": (1, 9) for i in range(24)}
    total = nat(0)
    for x in sizes(**ranges):
        total = total + x
    found = explain(system(ranges, at_most(total, 23)), {})
    assert len(found.clashes[0].constraint.names()) == 24
    assert " ... " in found.text()
    assert "+ x9 <= 23 (required by ask 0)" in found.text()
