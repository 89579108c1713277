"""Naturals and conditions as z3 terms, and collisions of work-items."""

import itertools

import pytest
import z3
from hypothesis import given
from hypothesis import strategies as st

from liftpy.deadline import Deadline
from liftpy.errors import TimeUp
from liftpy.ir.constraint import at_least, at_most, divides, equal
from liftpy.ir.nat import nats, var
from liftpy.rewrite.rules import RULES
from liftpy.semantics.prove import prove
from liftpy.semantics.smt import (
    A_MONTH,
    STEPS,
    Collision,
    Side,
    Terms,
    Undecided,
    ask,
    find_collision,
)
from liftpy.semantics.verdict import Proved

n, m, k = nats("n m k")
c = var("c", None)
group, local, other = var("group", 0, 6), var("local", 0, 15), var("other", 0, 3)
loop = var("loop", 0, 3)
GROUP, PAIRS = {"local": 16}, {"local": 16, "other": 4}


@given(
    st.sampled_from([at_least(n, m), at_most(n, m), equal(n, 2 * m), divides(m, n)]),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_condition_is_true_where_it_holds(condition, a, b):
    proof = Terms()
    formula = proof.condition(condition)
    sizes = [z3.Int("n") == a, z3.Int("m") == b]
    expected = "sat" if condition.holds({"n": a, "m": b}) else "unsat"
    assert ask([*proof.facts, *sizes, formula]).status == expected


@given(st.integers(-20, 20), st.integers(1, 7))
def test_quotient_rounds_down_on_negative_numbers_too(number, divisor):
    proof = Terms()
    q, r = proof.nat(c // m), proof.nat(c % m)
    given_ = [z3.Int("c") == number, z3.Int("m") == divisor]
    meant = z3.And(q == number // divisor, r == number % divisor)
    assert ask([*proof.facts, *given_, z3.Not(meant)]).status == "unsat"


def test_nothing_is_known_of_a_division_by_zero():
    proof = Terms()
    q = proof.nat(n // m)
    for value in (0, 5, -3):
        assert ask([*proof.facts, z3.Int("m") == 0, q == value]).status == "sat"


def test_exact_division_is_exact_only_where_that_is_assumed():
    assumed, open_ = Terms(), Terms()
    fact = assumed.assume(divides(m, n))
    back = assumed.nat(n.exact_div(m)) * assumed.nat(m) == assumed.nat(n)
    assert ask([*assumed.facts, fact, z3.Not(back)]).status == "unsat"
    back = open_.nat(n.exact_div(m)) * open_.nat(m) == open_.nat(n)
    assert ask([*open_.facts, z3.Not(back)]).status == "sat"


def test_exact_division_is_not_taken_from_a_floor_division():
    """K * n may be divisible by m where n is not."""
    proof = Terms()
    proof.nat(n // m)
    exact = proof.nat((k * n).exact_div(m))
    sizes = [z3.Int("n") == 3, z3.Int("m") == 2, z3.Int("k") == 2]
    assert ask([*proof.facts, *sizes, exact == 3]).status == "sat"
    assert ask([*proof.facts, *sizes, exact != 3]).status == "unsat"


def cubes():
    x, y, z = z3.Ints("x y z")
    return [x > 10, y > 10, z > 10, x**3 + y**3 == z**3 + 33]


def test_limit_of_steps_is_an_answer():
    answer = ask(cubes(), steps=20_000)
    assert answer.status == "unknown"
    assert answer.reason


def test_a_query_is_limited_by_steps_and_not_by_the_clock(monkeypatch):
    """No verdict depends on the machine's speed: without a time limit no clock is looked at."""
    limits = []
    set_ = z3.Solver.set
    monkeypatch.setattr(z3.Solver, "set", lambda s, *a: limits.append(a) or set_(s, *a))
    monkeypatch.setattr("time.monotonic", lambda: pytest.fail("a clock was asked"))
    ask(cubes(), steps=20_000)
    assert ("rlimit", 20_000) in limits
    assert {value for name, value in limits if name == "timeout"} == {1000 * A_MONTH + 1}


def test_what_a_query_takes_does_not_depend_on_earlier_ones(monkeypatch):
    """Nor on what else z3 knows: its terms are ordered by age."""

    def steps():
        taken = []
        check = z3.Solver.check
        with monkeypatch.context() as patch:
            patch.setattr("liftpy.semantics.smt.UNSAT", set())
            patch.setattr(z3.Solver, "check", lambda s: (check(s), taken.append(count(s)))[0])
            assert isinstance(prove(RULES["join_of_join"]), Proved)
        return taken

    alone = steps()
    kept = [z3.Ints(f"i{k}# q!{k} n m")[0] * z3.Int("m") for k in range(50)]
    assert steps() == alone
    assert len(kept) == 50
    assert max(alone) * 10 <= STEPS


def count(solver):
    return solver.statistics().get_key_value("rlimit count")


def test_a_query_ends_with_the_time_limit_of_the_call():
    """Then there is no answer: Unknown would be one that depends on the machine."""
    with pytest.raises(TimeUp), Deadline.after(0.2).phase("proving"):
        ask(cubes(), steps=10**9)


# --- collisions ---------------------------------------------------------------------------------

DISJOINT = {
    "each its own": (local, local),
    "rows of four": (group * 64 + local * 4 + loop, group * 64 + local * 4 + loop),
    "a permutation": ((local * 7) % 16, (local * 7) % 16),
    "columns of one round": (local + 16 * loop, local + 16 * loop),
    "halves": (2 * local, 2 * local + 1),
    "quotient and remainder": ((local % 4) * 4 + local // 4, (local % 4) * 4 + local // 4),
}
SHARED = {"columns of one round": ["loop", "group"]}


@pytest.mark.parametrize("name", DISJOINT)
def test_disjoint_accesses_do_not_collide(name):
    first, second = DISJOINT[name]
    assert find_collision(Side(first), Side(second), GROUP, SHARED.get(name, ["group"])) is None


COLLIDING = {
    "one address for all": (local * 0, local * 0),
    "overlapping rows": (local * 3 + loop, local * 3 + loop),
    "four to one": (local // 4, local // 4),
    "a neighbour's": (local, local + 1),
    "transposed": (local % 4 * 4 + local // 4, local),
    "wrapped": ((local + loop) % 16, (local + loop) % 16),
}


@pytest.mark.parametrize("name", COLLIDING)
def test_witness_of_a_collision_is_one(name):
    first, second = COLLIDING[name]
    found = find_collision(Side(first), Side(second), GROUP, ["group"])
    assert isinstance(found, Collision)
    assert first.value(found.first) == second.value(found.second) == found.address
    if "local" in found.first:
        assert found.first["local"] != found.second["local"]
    assert f"address {found.address}" in str(found)


def test_id_that_no_address_mentions_may_differ():
    assert isinstance(find_collision(Side(local), Side(local), PAIRS), Collision)
    both = local * 4 + other
    assert find_collision(Side(both), Side(both), PAIRS) is None


def test_counter_of_a_loop_around_both_is_the_same_for_both():
    index = (local + loop) % 16
    assert find_collision(Side(index), Side(index), GROUP, ["loop"]) is None
    assert isinstance(find_collision(Side(index), Side(index), GROUP), Collision)


@given(
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3)),
    st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3)),
)
def test_decision_is_that_of_trying_all(one, two):
    row, column, count = var("row", 0, 3), var("column", 0, 2), var("count", 0, 1)
    first = row * one[0] + column * one[1] + count * one[2]
    second = row * two[0] + column * two[1] + count * two[2]
    found = find_collision(Side(first), Side(second), {"row": 4, "column": 3})
    assert not isinstance(found, Undecided)
    expected = any(
        (r, c_) != (r2, c2)
        and r * one[0] + c_ * one[1] + t * one[2] == r2 * two[0] + c2 * two[1] + t2 * two[2]
        for r, c_, t, r2, c2, t2 in itertools.product(*[range(k_) for k_ in (4, 3, 2)] * 2)
    )
    assert (found is not None) == expected
