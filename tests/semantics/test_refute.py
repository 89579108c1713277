"""Sizes at which a side of a rule cannot be computed are passed over when it is refuted."""

from __future__ import annotations

import pytest

from liftpy.ir.nat import INDEX, var
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES
from liftpy.rewrite.rules.notation import S, array, reorder
from liftpy.semantics import refute
from liftpy.semantics.free import Sizes
from liftpy.semantics.mutants import mutants_of
from liftpy.semantics.verdict import Refuted

BENT = {"left": 4, "m": 12, "n": 12, "right": -4}
EMPTY = {"k": 14, "m": 0, "n": 15}
CASES = [
    ("split_of_pad", "without m divides left", BENT),
    ("transpose_of_map_join", "rotated at 0", EMPTY),
    ("transpose_of_map_join", "rotated at 0.0", EMPTY),
]


@pytest.mark.parametrize(("name", "change", "sizes"), CASES)
def test_a_mutant_without_an_instance_at_some_sizes_is_refuted_at_others(
    name: str, change: str, sizes: Sizes
) -> None:
    (mutant,) = (m for m in mutants_of(RULES[name]) if m.change == change)
    assert refute.refutation_at(mutant.rule, sizes) is None
    found = refute.refutation(mutant.rule, sizes)
    assert isinstance(found, Refuted)


def test_a_false_rule_whose_length_divides_by_zero_is_refuted() -> None:
    length = var("n") // var("m")
    xs, place = array("xs", S, length), length - 1 - var(INDEX)
    rule = Rule("reversed", "tests", xs, reorder(place, place, xs))
    assert refute.refutation_at(rule, {"n": 12, "m": 0}) is None
    assert isinstance(refute.refutation(rule), Refuted)
