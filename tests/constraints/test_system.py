import json

import pytest

from liftpy.constraints.system import Clause, ConstraintSystem, cheapest_order
from liftpy.errors import ConstraintRefused
from liftpy.ir.constraint import at_most, divides, equal
from liftpy.ir.nat import nat, var
from liftpy.primitives.transpose import Permutes, stride
from tests.constraints.examples import (
    every_point,
    four_stages,
    random_system,
    satisfies,
    sizes,
    system,
)


def test_a_condition_on_an_unknown_size_is_refused():
    with pytest.raises(ConstraintRefused, match=r"n divides 12 .*uses n, .*give it a number"):
        system({"a": (1, 3)}, divides(var("n"), 12))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_compiled_conditions_agree_with_the_terms(seed):
    found = random_system(seed)
    for point in every_point(found):
        assert found.holds(point) == satisfies(found, point)
        broken = {c.asked_by for c in found.broken(point)}
        for clause in found.clauses:
            alone = ConstraintSystem(found.parameters, (clause,))
            assert (clause.asked_by in broken) != satisfies(alone, point)


def test_a_divisor_below_one_breaks_its_condition():
    ranges = {"a": (0, 3)}
    (a,) = sizes(**ranges)
    found = system(ranges, at_most(nat(6) // a, 6), at_most(nat(6) % (a - 1), 6))
    assert [p["a"] for p in every_point(found) if found.holds(p)] == [2, 3]


def test_broken_lists_what_a_partial_assignment_decides():
    found = four_stages()
    assert [c.asked_by for c in found.broken({"kappa": 3, "omega": 7})] == ["ask 3", "ask 6"]
    assert found.broken({"kappa": 4, "sigma": 5}) == []


def test_a_value_out_of_range_is_broken():
    (clause,) = four_stages().broken({"kappa": 129})[:1]
    assert str(clause) == "kappa <= 128 (required by range of kappa)"
    assert not system({"a": (1, 3)}).holds({"a": 4})


def test_components_share_no_parameter_and_keep_every_condition():
    found = four_stages()
    parts = found.components
    assert [{p.name for p in part.parameters} for part in parts] == [
        {"theta", "rho", "sigma", "omega", "v"},
        {"kappa"},
    ]
    assert sum(len(part.clauses) for part in parts) == len(found.clauses)


def test_what_divides_comes_after_what_it_divides():
    ranges = {"lane": (1, 16), "chunk": (1, 64), "block": (1, 64)}
    lane, chunk, block = sizes(**ranges)
    found = system(ranges, divides(lane, chunk), divides(chunk, block), divides(block, 64))
    assert [p.name for p in cheapest_order(found)] == ["block", "chunk", "lane"]


def test_every_parameter_is_ordered_once():
    found = four_stages()
    assert sorted(p.name for p in found.order) == sorted(p.name for p in found.parameters)


def test_json_says_who_asks():
    clause = Clause(divides(var("a", 1), 12), ("split(a) at body", "rule split_join (step 1)"))
    found = ConstraintSystem(system({"a": (1, 12)}).parameters, (clause,))
    data = json.loads(json.dumps(found.to_json(6)))
    assert data == {
        "parameters": [{"name": "a", "low": 1, "high": 12, "meaning": "the size a"}],
        "constraints": [
            {"text": "a divides 12", "asked_by": "split(a) at body; rule split_join (step 1)"}
        ],
        "count": 6,
    }


def test_many_askers_are_counted():
    clause = Clause(equal(var("a"), 1), ("one", "two", "three", "four"))
    assert str(clause) == "a = 1 (required by one; two and 2 other places)"


def test_a_sum_of_many_terms_can_be_compiled():
    ranges = {f"x{i}": (1, 2) for i in range(300)}
    total = nat(0)
    for x in sizes(**ranges):
        total = total + x
    found = system(ranges, at_most(total, 300))
    assert found.holds(dict.fromkeys(ranges, 1))
    assert not found.holds(dict.fromkeys(ranges, 1) | {"x7": 2})


def test_a_condition_without_a_formula_is_asked_itself():
    ranges = {"s": (1, 12)}
    (s,) = sizes(**ranges)
    by_stride = stride(s, 12)
    found = system(ranges, Permutes(by_stride.index, nat(12), by_stride.back), divides(s, 12))
    assert [p["s"] for p in every_point(found) if found.holds(p)] == [1, 2, 3, 4, 6, 12]
