"""The tests that make a store silent if they fail: its place already holds the value.

A fold over a padded array includes the padding for each place outside the array: a sum of products
adds 0 times something. Such a step changes nothing, by the laws of its operators: 0 is neutral to
`+` and absorbing to `*`, and -inf is neutral to `max`. (Floats count as real numbers here, as in
the rules: 0 times NaN is left out as well, and so is -inf next to NaN.) A store has a list of
tests, each of which makes it silent if it fails; `liftpy.loops.silent_stores` leaves it out.
"""

from __future__ import annotations

import functools
import math
import operator
from dataclasses import dataclass, field
from typing import TypeAlias

from liftpy.ir.operators import OPERATORS
from liftpy.ir.types import FLOATS, INTEGERS, ScalarType, integer_range
from liftpy.loops.terms import tests_of
from liftpy.loops.values import (
    RangeTest,
)
from liftpy.views.terms import Apply, Choice, Constant, Load, Term


def neutral(op: str, t: ScalarType) -> float | None:
    """The neutral right operand of an operator on a type; None if there is none."""
    record = OPERATORS.get(op)
    value = None if record is None else record.neutral
    if value is None or t in FLOATS:
        return value
    if t not in INTEGERS:
        return value if math.isfinite(value) else None
    low, high = integer_range(t)
    if math.isinf(value):
        return low if value < 0 else high
    return (int(value) - low) % (high - low + 1) + low


#: A set in insertion order.
Tests: TypeAlias = dict[RangeTest, None]


@dataclass
class Silent:
    """Finds where terms change nothing. A term may be a part of many, so results are cached."""

    equals: dict[tuple[Term, float], Tests] = field(default_factory=dict)
    changes: dict[tuple[Load, Term], Tests | None] = field(default_factory=dict)

    def unchanged(self, place: Load, value: Term) -> Tests | None:
        """Tests such that a place already holds the value wherever one of them fails.

        None if it always does.
        """
        key = place, value
        if key not in self.changes:
            self.changes[key] = self._find_unchanged(place, value)
        return self.changes[key]

    def _find_unchanged(self, place: Load, value: Term) -> Tests | None:
        match value:
            case Load():
                return None if (value.memory, value.index) == (place.memory, place.index) else {}
            case Choice(condition, then, otherwise):
                inner = self.unchanged(place, then)
                outer = self.unchanged(place, otherwise)
                if outer is None and inner is not None:
                    return dict.fromkeys(tests_of(condition)) | inner
                return of_all(inner, outer)
            case Apply(op, (left, right), t) if (unit := neutral(op, t)) is not None:
                tests: Tests = {}
                for one, other in ((left, right), (right, left)):
                    equal = self.equal(other, unit)
                    if equal and (one is left or OPERATORS[op].commutative):
                        tests |= of_all(self.unchanged(place, one), equal) or {}
                return tests
            case _:
                return {}

    def equal(self, term: Term, number: float) -> Tests:
        """The tests whose failure makes a term equal to this number."""
        if not term.parts:
            return {}
        key = term, number
        if key not in self.equals:
            self.equals[key] = self._find_equal(term, number)
        return self.equals[key]

    def _find_equal(self, term: Term, number: float) -> Tests:
        match term:
            case Choice(condition, then, Constant(value)) if value == number:
                return dict.fromkeys(tests_of(condition)) | self.equal(then, number)
            case Choice(_, then, otherwise):
                return _both(self.equal(then, number), self.equal(otherwise, number))
            case Apply(op, args) if number == 0:
                parts = [self.equal(arg, number) for arg in args]
                match OPERATORS[op].zero:
                    case "any":
                        return functools.reduce(operator.or_, parts)
                    case "all":
                        return functools.reduce(_both, parts)
                    case "first" if len(parts) == 1:
                        return parts[0]
                    case _:
                        return {}
            case Apply(op, args) if OPERATORS[op].idempotent:
                return functools.reduce(_both, (self.equal(arg, number) for arg in args))
            case _:
                return {}


def _both(left: Tests, right: Tests) -> Tests:
    return {t: None for t in left if t in right}


def of_all(left: Tests | None, right: Tests | None) -> Tests | None:
    """The tests in both; None stands for every test."""
    if left is None or right is None:
        return right if left is None else left
    return _both(left, right)
