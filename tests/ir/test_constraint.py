"""Conditions on index functions: for every index below a length."""

import pytest
import z3

from liftpy.ir.constraint import Stays
from liftpy.ir.nat import INDEX, greatest, least, nat, nats, var
from liftpy.ir.walk import substitute_sizes
from liftpy.language.text.program import parse, show
from liftpy.primitives import Gather
from liftpy.primitives.transpose import Permutes
from liftpy.semantics.smt import Terms, ask

i, (n, m) = var(INDEX), nats("n m")


@pytest.mark.parametrize(
    ("index", "end", "count", "outside"),
    [
        (2 * i, 7, 4, None),
        (2 * i, 6, 4, 3),
        (i - 1, 7, 4, 0),
        ((5 * i) % 7, 7, 100, None),
        ((5 * i) % 7, 6, 100, 4),
        (least(greatest(i - 2, 0), 4), 5, 9, None),
        (6 - i, 7, 7, None),
        (6 - i, 7, 8, 7),
    ],
)
def test_an_index_function_stays_in_range_or_it_is_said_where_not(index, end, count, outside):
    condition = Stays(nat(index), nat(end), nat(count))
    assert condition.known() is (outside is None)
    assert condition.outside() == outside
    assert (f"at {outside} it is" in str(condition)) == (outside is not None)


def test_ranges_decide_what_cannot_be_tried():
    assert Stays(i % n, n, nat(10)).known() is None, "n may be 0"
    some = var("some", 1)
    assert Stays(i, some + 9, nat(10)).known() is True
    assert Stays(nat(3), nat(4), n).known() is True
    assert Stays(i, n, m).known() is None
    assert Stays(i, nat(10**12), nat(10**12)).known() is True, "and not by trying"


def test_a_size_that_is_called_like_the_index_is_not_the_index():
    condition = Stays(i + n, m, nat(4))
    assert condition.names() == {"n", "m"}
    there = condition.substitute({INDEX: 100, "n": 2, "m": 6})
    assert there == Stays(i + 2, nat(6), nat(4))
    assert there.known() is True
    assert condition.holds({INDEX: 100, "n": 2, "m": 6})
    assert not condition.holds({INDEX: 0, "n": 3, "m": 6})


def test_a_size_may_be_called_like_the_index():
    p = parse("size i: 1..9\ndef f(xs: [i]f32) = xs |> gather(i, k => k)")
    assert parse(show(p)) == p
    (condition,) = [c for c in p.body.body.fun.conditions(p.params[0].type) if "->" in str(c)]
    assert condition.names() == {"i"}
    assert condition.known() is None
    assert condition.holds({"i": 7})
    fixed = substitute_sizes(p.body.body, {"i": 5})
    assert fixed.fun == Gather(nat(5), i)
    turned = Permutes(i, i, n - 1 - i)
    assert turned.names() == {"i", "n"}, "the length is the size"


@pytest.mark.parametrize(("size", "status"), [(9, "sat"), (8, "unsat")])
def test_as_a_formula_it_is_about_all_indices(size, status):
    terms = Terms()
    formula = terms.condition(Stays(2 * i + 2, n, m))
    sizes = [z3.Int("n") == size, z3.Int("m") == 4]
    assert ask([*terms.facts, *sizes, formula]).status == status


def test_it_is_shown_at_an_index_of_its_own():
    terms = Terms()
    goals = terms.claims(Stays(least(i, n - 1), n, m))
    for goal in goals:
        assert ask([*terms.facts, z3.Int("n") >= 1, z3.Not(goal)]).status == "unsat"
    assert any(ask([*terms.facts, z3.Not(goal)]).status == "sat" for goal in goals), "n may be 0"
