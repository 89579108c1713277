"""Scalar terms of views: what they depend on, one lane of them, and their conditions as C."""

from __future__ import annotations

from liftpy.ir.nat import Atom, Extreme, Nat, Remainder, Var, atom, nat, product, var
from liftpy.ir.types import ScalarType
from liftpy.opencl.c import C_TYPES, MAX_INT, All, C, CallC, Test, Text, index_c, magnitude
from liftpy.opencl.scalars import literal_c
from liftpy.views.access import (
    AccessReader,
    Apply,
    Choice,
    FromIndex,
    Inside,
    Lanes,
    Load,
    Term,
)


def parts(term: Term) -> tuple[Term, ...]:
    """The terms that a term is computed from."""
    match term:
        case Apply(_, args, _):
            return args
        case Choice(_, then, otherwise):
            return then, otherwise
        case Lanes(init=init, vector=vector):
            return init, vector
        case _:
            return ()


def repeated(term: Term) -> set[Term]:
    """What is computed inside a term and mentioned more than once."""
    seen: set[Term] = set()
    again: set[Term] = set()
    waiting = [term]
    while waiting:
        for part in parts(waiting.pop()):
            if not parts(part):
                continue
            if part in seen:
                again.add(part)
            else:
                seen.add(part)
                waiting.append(part)
    return again


def at_lane(read: AccessReader, term: Term, lane: str, k: int) -> Term:
    """A term at one lane."""
    if lane not in term.names or isinstance(term, Lanes):
        return term
    key = (term, lane, k)
    if key not in read.lanes:
        read.lanes[key] = _at_lane(read, term, lane, k)
    return read.lanes[key]


def _at_lane(read: AccessReader, term: Term, lane: str, k: int) -> Term:
    match term:
        case Load(memory, index, alias):
            return Load(memory, index.substitute({lane: k}), alias)
        case FromIndex(index, t):
            return FromIndex(index.substitute({lane: k}), t)
        case Apply(op, args, _):
            return read.operate(op, tuple(at_lane(read, a, lane, k) for a in args))
        case Choice(condition, then, otherwise):
            inside = read.inside(condition.index.substitute({lane: nat(k)}), condition.length)
            return read.either(
                inside, at_lane(read, then, lane, k), at_lane(read, otherwise, lane, k)
            )
        case _:
            return term


def guards(term: Choice) -> tuple[list[Inside], Term, Term]:
    """A nest of guards with one alternative as a list of conditions."""
    conditions = [term.condition]
    then = term.then
    while isinstance(then, Choice) and then.otherwise == term.otherwise:
        conditions.append(then.condition)
        then = then.then
    return conditions, then, term.otherwise


def condition_c(conditions: list[Inside]) -> C:
    """Range tests, all of which must hold."""
    return All(tuple(dict.fromkeys(test for c in conditions for test in tests_of(c))))


def tests_of(inside: Inside) -> list[Test]:
    """The range tests of a condition that are needed."""
    low = [Test(inside.index)] if inside.test_low else []
    return [*low, Test(inside.index, int(inside.length))] if inside.test_high else low


def at_all(test: Test, name: str, low: int, high: int) -> Test | None:
    """The test that holds if this one does for all values of a variable; None if no end decides."""
    first, last = (test.index.substitute({name: k}) for k in (low, high))
    rise = test.index.substitute({name: low + 1}) - first
    if rise.constant is None or test.index != first + rise * (var(name, low, high) - low):
        return None
    return Test(first if (rise.constant >= 0) == (test.bound is None) else last, test.bound)


def in_a_row(index: Nat, lane: str, width: int) -> tuple[Nat, tuple[Test, ...]] | None:
    """Where lane 0 is, if lane `k` is `k` after it, and what has to be tested for that.

    An index that is held at an end, or goes round, runs with its lanes where none is at the end:
    `max(0, i + lane - 1)` does where `i - 1 >= 0`. None if it never does.
    """
    tests: list[Test] = []
    while True:
        bent = next((a for a in index.atoms() if lane in a.names and not isinstance(a, Var)), None)
        if bent is None:
            break
        straight = _straight(bent, lane)
        if straight is None:
            return None
        part, conditions = straight
        for condition in conditions:
            test = at_all(condition, lane, 0, width - 1)
            if test is None:
                return None
            tests.append(test)
        index = _replaced(index, bent, part)
    first = index - var(lane, 0, width - 1)
    return None if lane in first.names() else (first, tuple(dict.fromkeys(tests)))


def _straight(a: Atom, lane: str) -> tuple[Nat, list[Test]] | None:
    """What an atom is where it does not bend, and the tests for that."""
    match a:
        case Extreme(left=left, right=right, largest=largest):
            if (lane in left.names()) == (lane in right.names()):
                return None
            moving, still = (left, right) if lane in left.names() else (right, left)
            if largest:
                return moving, [Test(moving - still)]
            end = still.constant
            return moving, [Test(still - moving) if end is None else Test(moving, end + 1)]
        case Remainder(numerator=over, denominator=under) if under.constant is not None:
            return over, [Test(over), Test(over, under.constant)]
        case _:
            return None


def _replaced(index: Nat, a: Atom, by: Nat) -> Nat:
    """An index with an atom replaced."""
    total = nat(0)
    for monomial, coefficient in index.terms.items():
        factors = [by if factor == a else atom(factor) for factor, e in monomial for _ in range(e)]
        total = total + coefficient * product(factors)
    return total


def number_c(index: Nat, t: ScalarType) -> C:
    """An index as a number."""
    if index.constant is not None:
        return literal_c(index.constant, t)
    text = index_c(index, wide=magnitude(index) > MAX_INT)
    return CallC(f"({C_TYPES[t.name]})", (Text(text),))


def lanes_c(vector: Text, start: int, stop: int, width: int) -> C:
    """Some lanes of a vector variable."""
    if stop - start == width:
        return vector
    return Text(f"{vector.text}.s{''.join(f'{k:x}' for k in range(start, stop))}")
