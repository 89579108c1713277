"""Mutants of the rules are refuted; those that are not are listed, and proved or counted as missed.

The prover and the writing out share the meanings of primitives, and nothing else.
"""

import pytest

from liftpy.rewrite.rules import RULES
from liftpy.semantics.mutants import LAWS, UNDECIDED, judge, mutants_of
from liftpy.semantics.prove import attempt
from liftpy.semantics.refute import refutation
from liftpy.semantics.smt import FIRST_STEPS
from liftpy.semantics.verdict import Open, Proved, Refuted
from tests.docs.pages import DOCS

LEAST = 0.95  # the share of false mutants that is refuted

#: Lowerings differ in a word: one is enough. Wrong correlations are in test_polynomial.py and
#: test_integral.py of tests/semantics; a mutant of one, or of a law with four sizes, takes seconds.
LONG = ("map_to_", "correlation_", "integral_", "linear_maps_interchange")
NAMES = [n for n in RULES if n == "map_to_lcl_1" or not n.startswith(LONG)]
#: Rules with a mutant that few of the sizes refute; a case tries all mutants of one of them.
WEAK = (
    "crop_of_crop",
    "pad_apart",
    "pad_clamp_of_pad_clamp",
    "pad_of_pad",
    "products_exchange",
    "slide_extension",
    "split_of_pad",
    "sum_in_f32",
    "transpose_of_map_join",
)
PARTS = 3  # of the mutants of a rule


def test_most_false_mutants_are_refuted_and_names_are_used_once():
    """By count; the next tests check that all are but those listed, in `make soak` of all rules."""
    rules = [rule for rule in RULES.values() if not rule.family.startswith("correlation")]
    names = [m.name for rule in rules for m in mutants_of(rule)]
    assert len(set(names)) == len(names)
    assert set(LAWS) | set(UNDECIDED) <= set(names)
    assert not set(LAWS) & set(UNDECIDED)
    false = len(names) - len(LAWS)
    assert len(names) > 2000
    refuted = false - len(UNDECIDED)
    assert refuted / false >= LEAST
    others = len(RULES) - len(rules)
    page = " ".join((DOCS / "design.md").read_text(encoding="utf-8").split())
    for stated in (
        f"Of the {len(names):,} mutants of {len(rules)} rules, {len(LAWS)} are laws",
        f"{refuted:,} are refuted by numbers, {refuted / false:.1%}".replace("%", " %"),
        f"and {len(UNDECIDED)} are undecided",
        f"The {others} rules of correlations",
    ):
        assert stated in page, f"docs/design.md: {stated}"


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", WEAK)
def test_mutant_that_few_sizes_refute_is_refuted_or_listed(name):
    refuted_or_listed([*mutants_of(RULES[name])])


@pytest.mark.sampled(60)
@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", [n for n in NAMES if n not in WEAK])
def test_mutant_is_refuted_or_listed(name, part):
    refuted_or_listed([*mutants_of(RULES[name])][part::PARTS])


def refuted_or_listed(mutants):
    verdicts = {m.name: judge(m) for m in mutants}
    left = {m: v for m, v in verdicts.items() if not isinstance(v, Refuted)}
    listed = {*LAWS, *UNDECIDED} & set(verdicts)
    assert set(left) == listed, {m: str(v) for m, v in left.items() if m not in listed}
    assert {m for m, v in left.items() if isinstance(v, Proved)} == listed & set(LAWS)


@pytest.mark.sampled(32)
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_proved_mutant_is_true(name):
    """The prover is asked first here, and what it proves no size refutes.

    It has few steps; what is listed as a law was proved above, with more, when no size refuted it.
    """
    for k, mutant in enumerate(mutants_of(RULES[name])):
        if k % 12 == 0 and mutant.name not in LAWS:
            assert not proved(mutant.rule) or refutation(mutant.rule) is None, mutant.name


def proved(rule):
    """Whether the prover says that a rule is true, with few steps."""
    try:
        return isinstance(attempt(rule, FIRST_STEPS), Proved)
    except Open:
        return False
