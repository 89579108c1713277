import itertools
from collections import Counter

import pytest

from liftpy.constraints.system import Clause
from liftpy.errors import ConstraintRefused, UnknownName
from liftpy.ir.constraint import at_most
from liftpy.ir.nat import var
from tests.explore.spaces import divides_twelve, member, small_space, space


def families(candidates):
    return [candidate.skeleton.family for candidate in candidates]


def test_the_count_is_the_sum_over_the_skeletons():
    assert small_space().count() == 1 + 6 + 6 + 1_000_000
    assert small_space().counts()["direct(pad=copy)"] == 6


def test_families_take_turns_however_much_their_sizes_differ():
    drawn = families(small_space().sample(12, seed=0))
    assert set(drawn[:3]) == {"plain", "direct", "staged"}
    assert Counter(drawn[3:]) == {"direct": 1, "staged": 8}  # log2 of 13 and of 1,000,001 points


def test_skeletons_of_a_family_take_turns():
    drawn = Counter(c.skeleton.key for c in small_space().sample(40, seed=0))
    assert abs(drawn["direct(pad=fused)"] - drawn["direct(pad=copy)"]) <= 1


def test_a_larger_skeleton_of_a_family_has_more_turns_and_a_small_one_its_first_at_once():
    mixed = space(member("f", [("c", "small")], k=7), member("f", [("c", "large")], k=2**20 - 1))
    drawn = [c.skeleton.key for c in mixed.sample(23, seed=3)]
    assert set(drawn[:2]) == {"f(c=small)", "f(c=large)"}
    assert Counter(drawn) == {"f(c=small)": 3, "f(c=large)": 20}


def test_who_has_no_points_left_gives_up_its_turn():
    finite = space(member("a"), member("b", k=5), member("c", [("w", "x")], k=3))
    drawn = finite.sample(100, seed=1)
    assert len(drawn) == finite.count() == 9
    assert len({c.key for c in drawn}) == 9


def test_a_skeleton_without_points_is_never_drawn():
    broken = member("b", [], [divides_twelve("k")], k=0)
    assert families(space(broken, member("a", k=2)).sample(5, seed=0)) == ["a", "a"]


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_a_longer_sample_begins_with_a_shorter_one(n):
    longer = small_space().sample(60, seed=4)
    assert [c.key for c in small_space().sample(n, seed=4)] == [c.key for c in longer[:n]]
    assert [c.ordinal for c in longer] == list(range(60))


def test_the_seed_decides():
    keys = [[c.key for c in small_space().sample(20, seed=s)] for s in (0, 0, 1)]
    assert keys[0] == keys[1] != keys[2]


def test_the_draws_of_a_skeleton_do_not_depend_on_what_others_there_are():
    alone = space(*[m for m in small_space().members if m.family == "staged"])
    of_all = [c.assignment for c in small_space().sample(60, seed=5) if "theta" in c.assignment]
    assert [c.assignment for c in alone.sample(len(of_all), seed=5)] == of_all


def test_all_points_are_drawn_once():
    points = {
        tuple(c.assignment.items()) for c in small_space().narrow({"family": "direct"}).draws(2)
    }
    divisors = (1, 2, 3, 4, 6, 12)
    assert points == {
        (("family", "direct"), ("pad", pad), ("kappa", k))
        for pad, k in itertools.product(("fused", "copy"), divisors)
    }


def test_a_family_can_be_sampled_alone():
    assert set(families(small_space().sample(9, 0, family="staged"))) == {"staged"}


def test_choices_and_sizes_are_parameters():
    found = {p["name"]: p for p in small_space().parameters}
    assert found["family"]["words"] == ["plain", "direct", "staged"]
    assert found["pad"]["words"] == ["fused", "copy"]
    assert (found["kappa"]["low"], found["kappa"]["high"]) == (1, 100)
    assert found["kappa"]["families"] == ["direct"]


def test_a_condition_stands_once_with_who_asked_and_where():
    (condition,) = small_space().constraints
    assert condition == {
        "text": "kappa divides 12",
        "asked_by": "rule split_join of kappa",
        "skeletons": ["direct(pad=fused)", "direct(pad=copy)"],
    }


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({}, 1_000_013),
        ({"family": "direct"}, 12),
        ({"family": "direct", "pad": "copy"}, 6),
        ({"kappa": 4}, 2),
        ({"kappa": 4, "pad": "copy"}, 1),
        ({"kappa": 5}, 0),
        ({"kappa": 101}, 0),
        ({"theta": 3}, 1000),
    ],
)
def test_settings_narrow_the_space(settings, count):
    narrowed = small_space().narrow(settings)
    assert narrowed.count() == count
    for candidate in narrowed.sample(5, seed=0):
        assert settings.items() <= candidate.assignment.items()


def test_listed_words_are_remembered_in_any_order():
    first = small_space().asking([], {"pad": ["copy", "fused"], "kappa": [4, 6]})
    again = small_space().asking([], {"kappa": [6, 4, 4], "pad": ["fused", "copy", "copy"]})
    assert first.asked == again.asked == ("pad is copy,fused", "kappa is one of 4, 6")


def test_a_candidate_has_the_settings_asked_for():
    candidate = small_space().candidate({"pad": "copy", "kappa": 6})
    assert candidate.assignment == {"family": "direct", "pad": "copy", "kappa": 6}
    assert candidate.label == "direct(pad=copy) kappa=6"


def test_an_impossible_assignment_is_refused_with_the_condition_and_what_would_work():
    with pytest.raises(ConstraintRefused, match="5 does not divide 12") as refusal:
        small_space().candidate({"kappa": 5})
    assert "rule split_join of kappa" in str(refusal.value)
    assert "would work" in str(refusal.value)


def test_explain_says_valid_and_how_many():
    answer = small_space().explain({"kappa": 4})
    assert answer.valid
    assert answer.text == ("kappa=4: 2 valid candidates in direct(pad=fused), direct(pad=copy)")
    assert not small_space().explain({"kappa": 5}).valid


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"kapa": 5}, UnknownName, "twice has no parameter 'kapa'; its parameters are: family"),
        ({"pad": "both"}, UnknownName, "pad cannot be 'both'; it is one of: fused, copy"),
        ({"kappa": "many"}, ConstraintRefused, "kappa is a size: it needs a whole number"),
        ({"pad": "copy", "theta": 3}, ConstraintRefused, "no skeleton of twice has pad=copy"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        small_space().narrow(settings)
    with pytest.raises(error, match=message):
        small_space().explain(settings)


def test_a_value_may_be_in_the_range_of_some_skeletons_only():
    mixed = space(
        member("f", [("c", "small")], k=7),
        member("f", [("c", "large")], [divides_twelve("k")], k=12),
    )
    answer = mixed.explain({"k": 12})
    assert answer.valid
    assert answer.text == "k=12: a valid candidate in f(c=large)"
    refused = mixed.explain({"k": 8})
    assert not refused.valid
    assert "8 does not divide 12" in refused.text
    assert "f(c=small):\n  k = 8 is out of range: k (size k) ranges from 1 to 7" in refused.text
    with pytest.raises(ConstraintRefused) as refusal:
        mixed.explain({"k": 99})
    assert all(f"ranges from 1 to {high}" in str(refusal.value) for high in (7, 12))


def test_a_key_stands_for_skeleton_and_sizes():
    drawn = small_space().sample(200, seed=0)
    assert len({c.key for c in drawn}) == 200
    assert all(len(c.key) == 12 and int(c.key, 16) >= 0 for c in drawn)
    again = {c.key for c in small_space().sample(200, seed=0)}
    assert again == {c.key for c in drawn}


def asks(least, name="kappa"):
    return Clause(at_most(least, var(name)), ("the driver",))


def test_an_empty_space_says_why_in_a_sentence_where_there_is_one_reason():
    hopeless = Clause(at_most(5, 4), ("largest buffer",))
    some = member("direct", clauses=[hopeless, divides_twelve("kappa")], kappa=9)
    assert space(some, member("plain", clauses=[hopeless])).why_empty() == (
        "twice has no candidate on generic: 5 <= 4 (required by largest buffer) does not hold"
    )
    bound = [member("direct", [("pad", w)], [asks(10)], kappa=9) for w in ("copy", "fused")]
    assert space(*bound).why_empty() == (
        "twice has no candidate on generic: 10 <= kappa (required by the driver); "
        "kappa <= 9 (required by range of kappa) exclude each other"
    )


def test_an_empty_space_lists_the_reasons_where_they_differ():
    text = space(
        member("direct", clauses=[asks(10)], kappa=9),
        member("staged", clauses=[asks(5, "theta")], theta=4),
    ).why_empty()
    first, *rest = text.splitlines()
    assert first == "twice has no candidate on generic:"
    assert rest[0] == "direct():"
    assert "staged():" in rest
