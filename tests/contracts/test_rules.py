"""Every rule is proved, says something, and asks for nothing that it does not need."""

from dataclasses import replace

import pytest

from liftpy.ir.constraint import AtMost
from liftpy.rewrite.proof_cache import is_proved
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.correlation import NAMES as CORRELATIONS
from liftpy.semantics import refute
from liftpy.semantics.prove import ASSUMED, prove
from liftpy.semantics.refute import lengths, possible
from liftpy.semantics.smt import FEWER_STEPS
from liftpy.semantics.verdict import Proved, Refuted, Unknown
from tests.covering import OPTION

#: Correlations differ in their matrices, and some take a minute: the smallest of each shape stands
#: for all. The proofs of the others are those that were recorded.
CHECKED = {
    name: RULES[name]  # others are not made here
    for name in RULES
    if name not in CORRELATIONS or (name.endswith("_2_2") and "_by_" not in name)
}
#: The correlations in two dimensions take minutes to write out. They are run on devices by
#: tests/compile/test_correlations.py.
WRITTEN = {
    n: r for n, r in CHECKED.items() if n not in {"correlation_2_2", "correlation_column_2_2"}
}
CLAUSES = [
    pytest.param(rule, field, position, id=f"{name}-{getattr(rule, field)[position]}")
    for name, rule in CHECKED.items()
    for field in ("where", "assuming")
    for position in range(len(getattr(rule, field)))
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize("name", CHECKED)
def test_rule_is_proved(name):
    verdict = prove(RULES[name])
    assert isinstance(verdict, Proved), verdict
    assert verdict.obligations[0] == ASSUMED


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", WRITTEN)
def test_rule_holds_at_many_sizes_written_out(name, request, monkeypatch):
    """A second judge: it shares the meanings with the prover, not z3 nor the inductions.

    At up to 45 sizes; `make soak` tries as many as there are for a rule that was not proved, 180.
    """
    if not request.config.getoption(OPTION):
        monkeypatch.setattr(refute, "TRIALS", 15)
    assert refute.refutation(RULES[name]) is None


@pytest.mark.sampled(28)
@pytest.mark.parametrize(("rule", "field", "position"), CLAUSES)
def test_rule_without_a_clause_is_refuted(rule, field, position):
    clauses = getattr(rule, field)
    weaker = replace(rule, **{field: clauses[:position] + clauses[position + 1 :]})
    verdict = prove(weaker, FEWER_STEPS)
    if rule.proof == "integral" and is_limit(clauses[position]):
        # No array that is tried is so long; tests/compile/test_integral.py runs one that is.
        assert isinstance(verdict, Unknown)
        assert f"beyond {clauses[position].right}" in verdict.reason
    else:
        assert isinstance(verdict, Refuted)


def is_limit(clause) -> bool:
    """Whether a clause says that a size is at most a number."""
    return isinstance(clause, AtMost) and clause.right.constant is not None


def test_rules_are_tried_on_long_arrays():
    """The sizes that are written out include arrays of more than 8 elements."""
    assert [n for n, r in RULES.items() if lengths(r) and not possible(r)] == []


def test_proved_rule_is_admitted_and_a_refuted_one_is_not():
    rule = replace(RULES["map_fusion"], name="a_new_name")
    assert not is_proved(rule)
    prove(rule)
    assert is_proved(rule)
    false = replace(RULES["map_of_crop"], where=())
    prove(false)
    assert not is_proved(false)
