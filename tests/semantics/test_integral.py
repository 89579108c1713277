"""Correlations of 8-bit integers by F(m, r): wrong versions of the rules are not proved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from liftpy.ir.call import FunCall
from liftpy.ir.constraint import AtMost, at_most
from liftpy.ir.expr import Expr, Literal
from liftpy.ir.primitive import ScalarOp
from liftpy.ir.types import F32, I32
from liftpy.ir.walk import children, with_child
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import Rule
from liftpy.rewrite.rules import RULES, integral
from liftpy.rewrite.rules.correlation import triple
from liftpy.semantics.prove import prove
from liftpy.semantics.verdict import Proved, Refuted, Unknown

RULE = RULES["integral_2_3_u8_i8"]
EACH = RULES["integral_each_2_3_u8_i8"]
LINE = RULES["integral_line_2_3_i8_u8"]


def everywhere(expr: Expr, change) -> Expr:
    """An expression with every part changed, the innermost first."""
    for k, child in enumerate(children(expr)):
        if (new := everywhere(child, change)) is not child:
            expr = with_child(expr, k, new)
    return change(expr)


def with_limit(rule: Rule, old: int, new: int) -> Rule:
    """A rule with one of its conditions changed: the limit of a size with another factor."""
    found = [c for c in rule.where if isinstance(c, AtMost) and c.right == old]
    assert len(found) == 1
    return replace(rule, where=tuple(at_most(c.left, new) if c in found else c for c in rule.where))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", integral.NAMES)
def test_each_rule_is_proved_and_does_not_reassociate(name):
    assert isinstance(prove(RULES[name]), Proved)
    assert not RULES[name].reassociates


@pytest.mark.parametrize("rule", [RULE, LINE], ids=str)
@pytest.mark.parametrize("limit", [LARGEST_EXACT, integral.LARGEST_I32])
def test_the_limits_are_needed_as_they_are(rule, limit):
    """With one more channel in a strip, or in all, a number may be too large."""
    (condition,) = (c for c in rule.where if isinstance(c, AtMost) and c.right == limit)
    (factor,) = condition.left.terms.values()
    verdict = prove(with_limit(rule, limit, limit + factor))
    assert isinstance(verdict, Unknown)
    assert f"beyond {limit}" in verdict.reason
    within = with_limit(rule, limit, limit - factor)
    assert isinstance(prove(within), Proved)


def test_a_sum_of_strips_that_do_not_fill_the_channels_is_not_proved():
    without = tuple(c for c in RULE.where if str(c) != "m divides c")
    assert not isinstance(prove(replace(RULE, where=without)), Proved)


@pytest.mark.parametrize("rule", [RULE, LINE, EACH], ids=str)
def test_a_result_that_is_divided_by_another_number_is_refuted(rule):
    def halved(part: Expr) -> Expr:
        match part:
            case FunCall(ScalarOp("/"), (x, Literal(value, t))) if t == I32:
                return FunCall(ScalarOp("/"), (x, Literal(2 * int(value), t)))
            case FunCall(ScalarOp("*"), (x, Literal(0.25, t))) if t == F32:
                return FunCall(ScalarOp("*"), (x, Literal(0.5, t)))
            case _:
                return part

    right = everywhere(rule.right, halved)
    assert right != rule.right
    assert isinstance(prove(replace(rule, right=right)), Refuted)


@pytest.mark.parametrize("rule", [RULE, LINE, EACH], ids=str)
def test_a_difference_for_a_sum_is_refuted(rule):
    changed = False

    def once(part: Expr) -> Expr:
        nonlocal changed
        if changed or not isinstance(part, FunCall) or part.fun != ScalarOp("-"):
            return part
        changed = True
        return FunCall(ScalarOp("+"), part.args)

    right = everywhere(rule.right, once)
    assert changed
    assert isinstance(prove(replace(rule, right=right)), Refuted)


def test_numbers_that_f32_does_not_hold_are_refuted():
    """F(4, 3) in two dimensions: not even one product of transformed numbers is exact."""
    f = integral.Scaled.of(triple(4, 3))
    of_types = integral.TYPES["u8_i8"]
    assert integral.largest_transformed(*of_types, f, 2) > LARGEST_EXACT
    assert isinstance(prove(integral.one_by_one("each", *of_types, f)), Refuted)


def test_transformed_numbers_reach_their_bounds():
    """Sums of 4 and of 9 elements; from tiles of u8, 128 is subtracted, from kernels it is not."""
    f = integral.Scaled.of(triple(2, 3))
    assert f.scale == 2
    sizes = {t: integral.largest_transformed(*integral.TYPES[t], f, 2) for t in integral.TYPES}
    assert sizes == {
        "u8_u8": 4 * 128 * 9 * 256,
        "u8_i8": 4 * 128 * 9 * 128,
        "i8_u8": 4 * 128 * 9 * 256,
        "i8_i8": 4 * 128 * 9 * 128,
    }
