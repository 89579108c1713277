import pytest

from liftpy.constraints.draw import Space
from liftpy.constraints.solve import (
    Feasible,
    Infeasible,
    Tightened,
    Unknown,
    feasible,
    implied,
    redundant,
    tightened,
)
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.ir.constraint import Stays, at_least, at_most, divides, equal
from liftpy.ir.nat import INDEX, nat, var
from liftpy.primitives.transpose import Permutes, stride
from tests.constraints.examples import four_stages, random_system, sizes, system


@pytest.mark.parametrize("seed", range(60))
def test_z3_and_the_count_agree(seed):
    found = random_system(seed)
    verdict = feasible(found)
    assert not isinstance(verdict, Unknown)
    assert isinstance(verdict, Feasible) == bool(Space(found).count())


@pytest.mark.parametrize("seed", range(60))
def test_a_core_has_no_points(seed):
    found = random_system(seed)
    verdict = feasible(found)
    if isinstance(verdict, Infeasible):
        core = tuple(c for c in verdict.core if c in found.clauses)
        assert Space(type(found)(found.parameters, core)).count() == 0


def test_a_partial_assignment_is_completed():
    found = four_stages()
    verdict = feasible(found, {"theta": 10, "sigma": 16})
    assert isinstance(verdict, Feasible)
    assert found.holds(verdict.assignment)
    assert (verdict.assignment["theta"], verdict.assignment["sigma"]) == (10, 16)


def test_a_core_names_the_conditions():
    verdict = feasible(four_stages(), {"theta": 10, "kappa": 3})
    assert isinstance(verdict, Infeasible)
    assert [str(c) for c in verdict.core] == ["kappa divides 128 (required by ask 6)"]


def test_a_range_may_be_part_of_a_core():
    ranges = {"a": (8, 20), "b": (1, 90)}
    a, b = sizes(**ranges)
    found = system(ranges, divides(a, 7), at_least(3, b))
    verdict = feasible(found)
    assert isinstance(verdict, Infeasible)
    assert {str(c) for c in verdict.core} == {
        "a divides 7 (required by ask 0)",
        "8 <= a (required by range of a)",
    }


def test_answers_do_not_depend_on_earlier_ones():
    found = four_stages()
    alone = feasible(found, {"theta": 10})
    feasible(found, {"kappa": 3})
    assert feasible(found, {"theta": 10}) == alone


def test_division_rounds_down():
    ranges = {"a": (0, 9)}
    (a,) = sizes(**ranges)
    found = system(ranges, equal((a - 5) // 2, nat(-2)), equal((a - 5) % 2, nat(1)))
    verdict = feasible(found)
    assert verdict == Feasible({"a": 2})


def test_what_has_no_formula_is_tabulated_or_unknown():
    ranges = {"s": (2, 12)}
    (s,) = sizes(**ranges)
    by_stride = stride(s, 12)
    condition = Permutes(by_stride.index, nat(12), by_stride.back)
    verdict = feasible(system(ranges, condition, at_most(s, 4), divides(s, 12)))
    assert isinstance(verdict, Feasible)
    wide = {"s": (2, 12), "t": (1, 5000)}
    s, t = sizes(**wide)
    by_stride = stride(s, t)
    verdict = feasible(system(wide, Permutes(by_stride.index, t, by_stride.back)))
    assert isinstance(verdict, Unknown)
    assert "z3 cannot express" in verdict.reason


def test_a_hard_query_is_given_up():
    ranges = dict.fromkeys("abcd", (1, 10**6))
    a, b, c, d = sizes(**ranges)
    found = system(ranges, equal(a * b * c * d + a * b, nat(10**20 + 39)))
    verdict = feasible(found, steps=20_000)
    assert isinstance(verdict, Unknown)
    assert "gave up within 20,000 steps" in verdict.reason


def test_the_range_of_a_gather_is_a_condition_like_others():
    """As many elements are gathered as stay inside: 2*i is below 8 for i below 4."""
    ranges = {"t": (1, 9)}
    (t,) = sizes(**ranges)
    inside = Stays(2 * var(INDEX), nat(8), t)
    assert Space(system(ranges, inside)).count() == 4
    verdict = feasible(system(ranges, inside, at_least(4, t)))
    assert isinstance(verdict, Feasible)
    assert verdict.assignment == {"t": 4}
    assert isinstance(feasible(system(ranges, inside, at_least(5, t))), Infeasible)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_a_tightened_range_is_that_of_the_points(seed):
    found = random_system(seed)
    space = Space(found)
    for parameter in found.parameters:
        verdict = tightened(found, parameter.name)
        values = space.values(parameter.name)
        if values:
            assert verdict == Tightened(values[0], values[-1])
        else:
            assert isinstance(verdict, Infeasible)


def test_a_range_is_not_tightened_without_steps():
    ranges = dict.fromkeys("abcd", (1, 10**6))
    a, b, c, d = sizes(**ranges)
    found = system(ranges, equal(a * b * c * d + a * b, nat(10**20 + 39)))
    assert isinstance(tightened(found, "a", steps=20_000), Unknown)
    assert isinstance(implied(found, Clause(at_most(a, 7), ("I",)), steps=20_000), Unknown)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(40))
def test_what_follows_from_the_others_removes_no_point(seed):
    """Exactly then: the count says so too."""
    found = random_system(seed)
    for clause in found.clauses:
        others = ConstraintSystem(
            found.parameters, tuple(c for c in found.clauses if c is not clause)
        )
        verdict = implied(others, clause)
        assert not isinstance(verdict, Unknown)
        same = Space(others).count() == Space(found).count()
        assert isinstance(verdict, Infeasible) == same
        if isinstance(verdict, Feasible):
            assert others.holds(verdict.assignment)
            assert not found.holds(verdict.assignment)


def test_what_a_condition_follows_from_is_named():
    ranges = {"kappa": (1, 128), "v": (1, 16)}
    kappa, v = sizes(**ranges)
    found = system(ranges, divides(kappa, 128), divides(v, kappa), divides(v, 16))
    verdict = implied(found, Clause(at_least(1, nat(128).exact_div(v)), ("transpose",)))
    assert isinstance(verdict, Infeasible)
    assert {c.names for c in verdict.core} <= {frozenset({"v"}), frozenset({"kappa", "v"})}


@pytest.mark.parametrize("seed", range(40))
def test_without_what_is_redundant_the_points_are_the_same(seed):
    found = random_system(seed)
    dropped = redundant(found)
    assert all(isinstance(verdict, Infeasible) for verdict in dropped.values())
    rest = ConstraintSystem(found.parameters, tuple(c for c in found.clauses if c not in dropped))
    assert Space(rest).count() == Space(found).count()
    for clause in rest.clauses:
        fewer = ConstraintSystem(found.parameters, tuple(c for c in rest.clauses if c != clause))
        assert Space(fewer).count() > Space(rest).count()
