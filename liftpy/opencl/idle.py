"""What changes nothing is not done.

A fold over a padded array takes in, for each place outside, what stands there: a sum of products
adds 0 times something. Such a step changes nothing, by the laws of its operators: 0 is neutral to
`+` and absorbing to `*`, and -inf neutral to `max`. (Floats count as real numbers here, as in the
rules: 0 times NaN is left out as well, and -inf beside NaN.) An assignment knows the tests of which
each, where it fails, makes it change nothing (`Idle`); so in front of a loop

    if (tests) { the loop, where they hold }

where its other passes would do nothing (`skipping`). And where a loop has a version for when one or
two tests hold, those for when one fails leave out the assignments that it makes idle: at a border
that goes through a block of accumulators, those outside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

from liftpy.ir.types import FLOATS, INTEGERS, SCALARS, ScalarType, integer_range
from liftpy.opencl.c import (
    All,
    Assign,
    Barrier,
    Block,
    Declare,
    Do,
    For,
    If,
    RangeTest,
    Simple,
    Statement,
    names_of,
)
from liftpy.opencl.terms import tests_of
from liftpy.opencl.unswitch import blocks_in, counters_of, given, strongest
from liftpy.views.access import Apply, Choice, Constant, Load, Term

NEUTRAL: dict[str, float] = {"+": 0, "-": 0, "*": 1, "max": -math.inf, "min": math.inf}
"""What an operator has no effect with, as its right operand."""

COMMUTATIVE = frozenset({"+", "*", "max", "min"})
KEEPS_ZERO = frozenset({"neg", "abs", "sqrt", "floor", "ceil", *SCALARS})
"""Operators that give 0 for 0."""

FEW = 2
"""Tests of a branch whose ways of failing are told apart: each makes the code longer."""


def neutral(op: str, t: ScalarType) -> float | None:
    """The neutral right operand of an operator on a type; None if there is none."""
    value = NEUTRAL.get(op)
    if value is None or t in FLOATS or math.isfinite(value):
        return value
    if t not in INTEGERS:
        return None
    low, high = integer_range(t)
    return low if value < 0 else high


# --- of a term ------------------------------------------------------------------------------------

#: A set in the order of its making.
Tests: TypeAlias = dict[RangeTest, None]


@dataclass
class Idle:
    """Where terms change nothing. A term may be a part of many: what was found is kept."""

    equals: dict[tuple[Term, float], Tests] = field(default_factory=dict)

    def unchanged(self, place: Load, value: Term) -> tuple[RangeTest, ...]:
        """The tests of which each, where it fails, makes a value what its place holds already."""
        return tuple(self._unchanged(place, value, {}) or ())

    def _unchanged(self, place: Load, value: Term, found: dict[Term, Tests | None]) -> Tests | None:
        """As `unchanged`; None for a value that always is what its place holds."""
        if value not in found:
            found[value] = self._find_unchanged(place, value, found)
        return found[value]

    def _find_unchanged(
        self, place: Load, value: Term, found: dict[Term, Tests | None]
    ) -> Tests | None:
        match value:
            case Load():
                return None if (value.memory, value.index) == (place.memory, place.index) else {}
            case Choice(condition, then, otherwise):
                inner = self._unchanged(place, then, found)
                outer = self._unchanged(place, otherwise, found)
                if outer is None and inner is not None:
                    return dict.fromkeys(tests_of(condition)) | inner
                return _of_all(inner, outer)
            case Apply(op, (left, right), t) if (unit := neutral(op, t)) is not None:
                tests: Tests = {}
                for one, other in ((left, right), (right, left)):
                    equal = self.equal(other, unit)
                    if equal and (one is left or op in COMMUTATIVE):
                        tests |= _of_all(self._unchanged(place, one, found), equal) or {}
                return tests
            case _:
                return {}

    def equal(self, term: Term, number: float) -> Tests:
        """The tests of which each, where it fails, makes a term this number."""
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
            case Apply("*", (left, right)) if number == 0:
                return self.equal(left, number) | self.equal(right, number)
            case Apply("+" | "-", (left, right)) if number == 0:
                return _both(self.equal(left, number), self.equal(right, number))
            case Apply("min" | "max", (left, right)):
                return _both(self.equal(left, number), self.equal(right, number))
            case Apply(op, (arg,)) if number == 0 and op in KEEPS_ZERO:
                return self.equal(arg, number)
            case _:
                return {}


def _both(left: Tests, right: Tests) -> Tests:
    return {t: None for t in left if t in right}


def _of_all(left: Tests | None, right: Tests | None) -> Tests | None:
    """The tests in both; None stands for every test."""
    if left is None or right is None:
        return right if left is None else left
    return _both(left, right)


# --- of code --------------------------------------------------------------------------------------


def skipping(block: Block) -> Block:
    """A block without what changes nothing, as far as tests in front of loops tell."""
    return Block([made for s in block.statements for made in _skipping(s)])


def _skipping(s: Statement) -> list[Statement]:
    match s:
        case For(body=body):
            counters = counters_of(s)
            idle = [t for t in _idle(body) or () if counters.keys().isdisjoint(t.index.names())]
            inside = For(s.var, s.start, s.bound, s.step, skipping(given(body, frozenset(idle))))
            return [If(All(strongest(idle)), Block([inside]), Block())] if idle else [inside]
        case If(All(tests), then, otherwise):
            return [_where_some_fail(tests, skipping(then), skipping(otherwise))]
        case _:
            return [s]


def _where_some_fail(tests: tuple[RangeTest, ...], then: Block, otherwise: Block) -> If:
    """A branch, with what is otherwise for each way in which one or two tests fail."""

    def failing(*some: RangeTest) -> Block:
        holding = frozenset(tests) - set(some)
        return _doing(given(otherwise, holding, frozenset(some)))

    nowhere = _idle(otherwise)
    if nowhere is None or nowhere.keys() >= set(tests):
        return If(All(tests), then, Block())
    idle = [t for t in tests if t in _mentioned(otherwise)]
    if len(tests) == 1 and idle:
        otherwise = failing(*tests)
    if len(tests) == FEW and idle:
        first, second = tests
        not_first = failing(first)
        if _may_both_fail(first, second):
            not_first = Block([If(All((second,)), not_first, failing(first, second))])
        otherwise = Block([If(All((first,)), failing(second), not_first)])
    return If(All(tests), then, otherwise)


def _may_both_fail(first: RangeTest, second: RangeTest) -> bool:
    """Whether two tests may fail together: what they have room for is below 0 then, twice."""
    least = (first.room + second.room).bounds[0]
    return least is None or least <= -2


def _doing(block: Block) -> Block:
    """A block without variables that nobody reads, and without loops and branches of nothing."""
    kept: list[Statement] = []
    read: set[str] = set()
    for s in reversed(block.statements):
        done = s
        if isinstance(s, For):
            done = For(s.var, s.start, s.bound, s.step, _doing(s.body))
            if not done.body.statements:
                continue
        if isinstance(s, If):
            done = If(s.condition, _doing(s.then), _doing(s.otherwise))
            if not (done.then.statements or done.otherwise.statements):
                continue
        if isinstance(done, Declare) and done.name not in read:
            continue
        read |= names_in(done)
        kept.append(done)
    return Block(kept[::-1])


def names_in(s: Statement) -> set[str]:
    """The names that a statement mentions."""
    if isinstance(s, Simple):
        return set(s.names)
    names = set(names_of(s.condition)) if isinstance(s, If) else set[str]()
    inner = (names_in(part) for block in blocks_in(Block([s])) for part in block.statements)
    return names.union(*inner)


def _idle(block: Block) -> Tests | None:
    """The tests of which each, where it fails, makes a block change nothing; None: it never does.

    Declarations do nothing that is seen outside.
    """
    found: Tests | None = None
    for s in block.statements:
        match s:
            case Declare():
                continue
            case Assign(idle=idle):
                here: Tests | None = dict.fromkeys(idle)
            case For(body=body):
                here = _idle(body)
            case If(All(tests), then, otherwise):
                here = _idle(then)
                here = None if here is None else dict.fromkeys(tests) | here
                here = _of_all(here, _idle(otherwise))
            case If() | Do() | Barrier():
                here = {}
        found = _of_all(found, here)
    return found


def _mentioned(block: Block) -> Tests:
    """The tests that make some assignment of a block idle."""
    found: Tests = {}
    for s in block.statements:
        match s:
            case Assign(idle=idle):
                found |= dict.fromkeys(idle)
            case For(body=body):
                found |= _mentioned(body)
            case If(_, then, otherwise):
                found |= _mentioned(then) | _mentioned(otherwise)
            case Declare() | Do() | Barrier():
                pass
    return found
