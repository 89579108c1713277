"""Conditions and listed values that the user adds to a system."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from liftpy.constraints.draw import Space
from liftpy.constraints.explain import explain
from liftpy.constraints.solve import Feasible, Infeasible, feasible
from liftpy.constraints.system import Clause, ConstraintSystem
from liftpy.constraints.user import asked_too, wishes
from liftpy.errors import ConstraintRefused, LiftError
from liftpy.ir.constraint import divides
from liftpy.rewrite.skeleton import Parameter

KAPPA = Parameter("kappa", 1, 24, "kernels")
SIGMA = Parameter("sigma", 0, 9, "windows")
NAMES = ("kappa", "sigma", "theta")
SYSTEM = ConstraintSystem((KAPPA, SIGMA), ())
POINTS = list(itertools.product(range(1, 25), range(10)))


def asked(*where, **fixed):
    return asked_too(SYSTEM, wishes(where, fixed, NAMES))


CONDITIONS = {
    "kappa*sigma <= 64": lambda k, s: k * s <= 64,
    "kappa < sigma": lambda k, s: k < s,
    "kappa > 2*sigma + 1": lambda k, s: k > 2 * s + 1,
    "2*(kappa - sigma) >= 7": lambda k, s: 2 * (k - s) >= 7,
    "kappa == 2*sigma": lambda k, s: k == 2 * s,
    "kappa != sigma": lambda k, s: k != s,
    "kappa % 4 == 0": lambda k, s: k % 4 == 0,
    "0 == (24 % kappa)": lambda k, s: 24 % k == 0,
    "kappa % 5 == sigma": lambda k, s: k % 5 == s,
    "kappa // 3 <= 2 and sigma != 0": lambda k, s: k // 3 <= 2 and s != 0,
    "kappa /^ 4 < sigma": lambda k, s: k % 4 == 0 and k // 4 < s,
    "12 // sigma <= 3": lambda k, s: s >= 1 and 12 // s <= 3,
    "(kappa <= 8 and (sigma >= 2)) and kappa*kappa > sigma": lambda k, s: (
        k <= 8 and s >= 2 and k * k > s
    ),
    "-sigma + 3 >= -(kappa /^ 2)": lambda k, s: k % 2 == 0 and s - 3 <= k // 2,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_means_what_it_says(text):
    system = asked(text)
    wanted = [(k, s) for k, s in POINTS if CONDITIONS[text](k, s)]
    held = [(k, s) for k, s in POINTS if system.holds({"kappa": k, "sigma": s})]
    space = Space(system)
    drawn = sorted((p["kappa"], p["sigma"]) for p in space.draws(0))
    assert held == wanted
    assert space.count() == len(wanted)
    assert drawn == wanted


@pytest.mark.parametrize("text", CONDITIONS)
def test_z3_agrees(text):
    system = asked(text)
    verdict = feasible(system)
    assert isinstance(verdict, Feasible)
    assert system.holds(verdict.assignment)


@settings(max_examples=12)
@given(st.lists(st.sampled_from(list(CONDITIONS)), max_size=3), st.sets(st.integers(1, 30)))
def test_conditions_and_lists_together_are_counted_exactly(texts, values):
    fixed = {"kappa": sorted(values)} if values else {}
    wanted = sum(
        all(CONDITIONS[t](k, s) for t in texts) and (not values or k in values) for k, s in POINTS
    )
    system = asked(*texts, **fixed)
    assert Space(system).count() == wanted
    assert isinstance(feasible(system), Feasible if wanted else Infeasible)


def test_how_and_in_what_order_they_are_written_is_not_remembered():
    one = wishes(["kappa<=8", "sigma % 2 == 0"], {"theta": [9, 7, 7]}, NAMES)
    other = wishes(["sigma  % 2 == 0 and (kappa <= 8)"], {"theta": [7, 9]}, NAMES)
    assert [w.text for w in one] == [w.text for w in other]
    assert [w.text for w in one] == ["2 divides sigma", "kappa <= 8", "theta is one of 7, 9"]


def test_who_lacks_a_parameter_is_not_bound():
    assert asked("kappa*theta <= 3").clauses == ()
    assert Space(asked("kappa*theta <= 3", "kappa <= 3")).count() == 30


def test_a_condition_that_is_there_already_gets_one_asker_more():
    (wish,) = wishes(["24 % kappa == 0"], {}, NAMES)
    clause = Clause(divides(KAPPA.nat, 24), ("split",))
    system = asked_too(ConstraintSystem((KAPPA,), (clause,)), [wish])
    assert [c.askers for c in system.clauses] == [("split", 'user --where "24 % kappa == 0"')]


def test_a_core_names_the_user(golden):
    system = asked("kappa >= 8", "sigma >= 9", "kappa*sigma <= 64")
    lines = [explain(system, {}).text()]
    listed = asked("kappa % 4 == 0", kappa=[7, 9])
    lines += [explain(listed, {}).text(), explain(asked("kappa*sigma <= 64"), {"kappa": 24}).text()]
    lines.append(explain(asked("kappa != 8", kappa=[8]), {}).text())
    golden("\n".join([*lines, ""]))


REFUSED = {
    "an unknown parameter": ["kapa*sigma <= 64"],
    "an unknown parameter like none": ["x <= 64"],
    "no comparison": ["kappa"],
    "a number": ["7"],
    "nothing": [""],
    "cut off": ["kappa*sigma <="],
    "a chain": ["1 <= kappa <= 4"],
    "either": ["kappa <= 4 or sigma <= 3"],
    "a denial": ["not kappa <= 4"],
    "a sign of another language": ["kappa <= 4 && sigma <= 3"],
    "an assignment": ["kappa = 4"],
    "a fraction": ["kappa <= 2.5"],
    "a scalar division": ["kappa / 2 <= 3"],
    "a division by zero": ["kappa % 0 == 0"],
    "a call": ["min(kappa, 2) <= 2"],
    "a stray character": ["kappa <= $4"],
    "never in range": ["sigma <= 4 and kappa > 24"],
    "never for two": ["kappa + sigma >= 40"],
    "never a square": ["kappa*kappa == 2"],
}


def refusal(where, fixed):
    """What is said of conditions that are refused."""
    try:
        for wish in wishes(where, fixed, NAMES):
            wish.refuse_if_hopeless([SYSTEM])
    except LiftError as error:
        return f"{type(error).__name__}: {error}"
    pytest.fail("nothing was refused")


@pytest.mark.parametrize("name", REFUSED)
def test_a_condition_that_cannot_be_is_refused_with_its_place(golden, name):
    golden(refusal(REFUSED[name], {}))


def test_listed_values_out_of_range_are_refused(golden):
    golden(refusal([], {"kappa": [30, 40]}))


def test_a_condition_is_hopeless_only_where_it_is_for_every_skeleton():
    (wish,) = wishes(["kappa > 24"], {}, NAMES)
    wider = ConstraintSystem((Parameter("kappa", 1, 32, "kernels"),), ())
    wish.refuse_if_hopeless([SYSTEM, wider])
    wish.refuse_if_hopeless([ConstraintSystem((SIGMA,), ()), wider])


def test_a_condition_that_no_skeleton_has_the_sizes_of_is_refused():
    """It would leave every point, and nobody would notice."""
    (wish,) = wishes(["kappa*sigma <= 64"], {}, NAMES)
    apart = [ConstraintSystem((p,), ()) for p in (KAPPA, SIGMA)]
    with pytest.raises(ConstraintRefused, match="applies to no skeleton") as refusal:
        wish.refuse_if_hopeless(apart)
    assert "none has kappa and sigma" in str(refusal.value)
    wish.refuse_if_hopeless([*apart, SYSTEM])


DOTTED = ConstraintSystem((Parameter("score.kappa", 1, 24, "kernels"),), ())
STAGES = ("score.kappa", "result.kappa", "kappa")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("score.kappa <= 8", 8),
        ("24 % score.kappa == 0 and (score.kappa != 1)", 7),
        ("`score.kappa` <= 8", 8),  # as the text of a program has it
        ("kappa <= 8", 24),
    ],
)
def test_the_sizes_of_stages_are_written_as_they_are_shown(text, count):
    assert Space(asked_too(DOTTED, wishes([text], {}, STAGES))).count() == count


def test_a_condition_over_stages_that_no_partition_has_is_refused_with_the_reason():
    other = ConstraintSystem((Parameter("result.kappa", 1, 9, "kernels"),), ())
    (wish,) = wishes(["score.kappa < result.kappa"], {}, STAGES)
    with pytest.raises(ConstraintRefused, match="no partition has stages with all of these"):
        wish.refuse_if_hopeless([DOTTED, other])
