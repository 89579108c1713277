"""Campaigns whose forms by F(m, r) have other points than the usual ones."""

from dataclasses import replace
from fractions import Fraction

import pytest

import liftpy as lp
from liftpy.constraints.device import DEFAULT_DEVICE
from liftpy.errors import RuleRefused, StoreRefused, TransformRefused
from liftpy.explore.campaign.replay import replay
from liftpy.explore.one_candidate import candidate_of
from liftpy.explore.report.page import reproduce
from liftpy.explore.space.given_points import admit_proofs, bank_asked, proofs_for, proved
from liftpy.explore.spaces import space_of
from liftpy.language.text.program import parse
from liftpy.rewrite import bank, proof_cache
from liftpy.rewrite.algorithms import algorithms_of
from liftpy.rewrite.bank import Bank, asked_points
from liftpy.rewrite.composition import skeleton_named
from liftpy.rewrite.partition import GIVEN_POINTS, other_algorithms
from liftpy.rewrite.rules import RULES, correlation
from liftpy.rewrite.rules.correlation import NAMES, SHAPES, SIZES, triple, with_points
from liftpy.rewrite.stages import WINOGRAD
from liftpy.winograd.choosing import By, of_rules
from liftpy.winograd.measured import measured_error
from liftpy.winograd.triple import Triple
from tests.fuzz.correlations import Case

pytestmark = pytest.mark.usefixtures("in_one_process")

LINE = Case((7,), 2, 3, (2,), 0)
GIVEN = "1/2,-1"
WORD = "2.2_1/2_-1"
HALF = Fraction(1, 2)


def test_a_list_is_for_every_f_m_r_with_as_many_points():
    found = dict(asked_points([GIVEN, "0,1,-1,1/2,-1/2"]))
    assert found.keys() == {(2, 2), (4, 3), (2, 5)}
    assert found[2, 2] == (HALF, -1)


def test_points_that_are_used_anyway_are_not_given():
    assert asked_points(["bound"]) == asked_points(["0,1"]) == asked_points([]) == ()


@pytest.mark.parametrize("sizes", [SIZES[:4], pytest.param(SIZES, marks=pytest.mark.soak)])
def test_measured_points_have_the_smallest_measured_error_of_those_that_are_allowed(
    sizes, monkeypatch
):
    monkeypatch.setattr(bank, "SIZES", sizes)
    assert of_rules(4, 3, By.BOUND) == triple(4, 3).points
    found = dict(asked_points(["measured"]))
    assert (4, 3) in found
    assert all(
        found.get(size, triple(*size).points) == of_rules(*size, By.MEASURED) for size in sizes
    )
    for size, some in found.items():
        assert measured_error(triple(*size, some)) < measured_error(triple(*size))


def test_the_name_of_a_rule_has_only_the_points_of_its_own_sizes():
    given = asked_points([GIVEN, "0,1,-1,1/2,-1/2"])
    assert with_points("correlation_line_2_2", given) == f"correlation_line_2_2@{WORD}"
    assert with_points("correlation_4_3_by_2_3", given).endswith("@4.3_0_1_-1_1/2_-1/2")
    assert with_points("correlation_2_3", given) == "correlation_2_3"
    assert len([*RULES]) == len({*RULES}) >= len(NAMES)  # the catalogue does not list them


def test_a_rule_from_given_points_is_proved_before_it_is_applied():
    points = asked_points(["1/2,-2"])
    with pytest.raises(RuleRefused, match="it has no valid proof, and no prover"):
        other_algorithms(LINE.program, Bank(points))
    forms = other_algorithms(LINE.program, Bank(points, proved))
    words = [dict(form.words) for form in forms]
    assert {word[WINOGRAD]: word.get(GIVEN_POINTS) for word in words} == {
        "2": "2.2_1/2_-2",
        "4": None,
        "4+overlap": None,
    }
    (used,) = algorithms_of(next(f for f in forms if dict(f.words)[WINOGRAD] == "2"))
    assert used.triples == (triple(2, 2, (HALF, Fraction(-2))),)


def test_a_rule_with_a_wrong_matrix_has_no_proof(monkeypatch):
    """A triple is checked when it is made; the proof does not rely on this."""
    right = triple(2, 2, (HALF, Fraction(-1)))
    monkeypatch.setattr(Triple, "_check", lambda _: None)
    name = f"correlation_line_2_2@{WORD}"
    wrong = SHAPES["correlation_line"](name, replace(right, bt=(*right.bt[1:], right.bt[0])))
    monkeypatch.setattr(correlation, "made", {name: wrong}.get)
    with pytest.raises(RuleRefused, match="the proof for its points failed: refuted"):
        Bank((), proved).law(name)


def test_a_stored_candidate_is_derived_from_its_key():
    settings = {WINOGRAD: "2", GIVEN_POINTS: WORD}
    made = candidate_of(LINE.program, lp.find_device("profile:desktop-gpu"), settings)
    again = skeleton_named(LINE.program, made.skeleton.key, proved)
    assert again is not None
    assert again.program == made.skeleton.program
    assert any(s.rule == f"correlation_line_2_2@{WORD}" for s in again.derivation.steps)


def test_a_worker_is_told_of_the_proofs(monkeypatch):
    laws = proofs_for(LINE.program, bank_asked(GIVEN))
    assert laws.keys() == {f"correlation_line_2_2@{WORD}"}
    assert proofs_for(LINE.program, bank_asked("bound")) == {}
    monkeypatch.setattr(proof_cache, "_session", set())
    (name,) = laws
    admit_proofs({name: "another law"})
    assert not proof_cache.is_proved(RULES[name])
    admit_proofs(laws)
    assert proof_cache.is_proved(RULES[name])


def test_a_campaign_has_its_points_in_its_candidates_and_goes_on_with_no_others(device, tmp_path):
    path, fixed = tmp_path / "points.db", {WINOGRAD: "2"}

    def explored(points, samples):
        return lp.explore(
            LINE.program, samples, 1, path, device, again=False, fixed=fixed, winograd_points=points
        )

    found = explored(GIVEN, 2)
    assert [row.assignment[GIVEN_POINTS] for row in found.rows] == [WORD] * 2
    assert found.identity.settings["winograd_points"] == WORD
    assert all(row.outcome == "measured" for row in found.rows)
    assert replay(path, found.rows[0].id).identical
    assert f"--winograd-points {WORD}" in reproduce(found)
    with pytest.raises(StoreRefused, match=f"winograd points: it has {WORD}, this has none"):
        explored((), 3)
    assert len(explored([GIVEN], 3).rows) == 3


def test_measured_points_are_not_refused_for_a_program_whose_forms_have_the_usual_ones():
    program = parse("def p(xs: [8]f32) = xs |> reduce(add, 0)")
    space = space_of(program, DEFAULT_DEVICE, winograd_points="measured")
    assert space.count() == space_of(program, DEFAULT_DEVICE).count()
    with pytest.raises(TransformRefused, match="no form of p"):
        space_of(program, DEFAULT_DEVICE, winograd_points=["0,1,1/2"])
