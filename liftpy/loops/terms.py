"""Scalar terms of views: repeated parts, conditions, and lanes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from liftpy.ir.nat import Extreme, Nat, Quotient, Remainder, Var, atom, nat, product, var
from liftpy.ir.polynomial import Atom
from liftpy.loops.values import (
    All,
    RangeTest,
)
from liftpy.views.terms import Choice, Inside, Term

#: The most operators of a total of a fold over lanes that is not held in a variable.
MOST_NESTED = 48


def repeated(term: Term) -> set[Term]:
    """The computed terms inside a term that are mentioned more than once."""
    seen: set[Term] = set()
    again: set[Term] = set()
    waiting = [term]
    while waiting:
        for part in waiting.pop().parts:
            if not part.parts:
                continue
            if part in seen:
                again.add(part)
            else:
                seen.add(part)
                waiting.append(part)
    return again


def is_small(term: Term) -> bool:
    """Whether a total of a fold over lanes needs no variable: it is a tree with few operators.

    The steps of a fold are nested: many of them would exceed Python's recursion limit.
    """
    waiting = [term] if term.parts else []
    seen = set(waiting)
    while waiting and len(seen) <= MOST_NESTED:
        for part in waiting.pop().parts:
            if part in seen:
                return False
            if part.parts:
                seen.add(part)
                waiting.append(part)
    return len(seen) <= MOST_NESTED


def guards(term: Choice) -> tuple[list[Inside], Term, Term]:
    """A nest of guards with the same alternative as a list of conditions."""
    conditions = [term.condition]
    then = term.then
    while isinstance(then, Choice) and then.otherwise == term.otherwise:
        conditions.append(then.condition)
        then = then.then
    return conditions, then, term.otherwise


def condition_of(conditions: Iterable[Inside]) -> All:
    """Range tests, all of which must hold."""
    return All(tuple(dict.fromkeys(test for c in conditions for test in tests_of(c))))


@lru_cache(maxsize=1 << 12)
def tests_of(inside: Inside) -> tuple[RangeTest, ...]:
    """The range tests that a condition needs."""
    low = (RangeTest(inside.index),) if inside.test_low else ()
    return (*low, RangeTest(inside.index, int(inside.length))) if inside.test_high else low


def at_all(test: RangeTest, name: str, low: int, high: int) -> RangeTest | None:
    """A test that holds only if this one holds for all values of a variable; None if none is known.

    The variable, or each of its digits such as `i % 3`, is replaced by the end at which the room is
    least.
    """
    first, last = (test.index.substitute({name: k}) for k in (low, high))
    rise = test.index.substitute({name: low + 1}) - first
    if rise.constant is None or test.index != first + rise * (var(name, low, high) - low):
        least = least_room(test.room, name, low, high)
        if least is None:
            return None
        return RangeTest(least if test.bound is None else test.bound - 1 - least, test.bound)
    return RangeTest(first if (rise.constant >= 0) == (test.bound is None) else last, test.bound)


def least_room(room: Nat, name: str, low: int, high: int) -> Nat | None:
    """A lower bound of a room over the values of a variable that occurs in digits; None if unknown.

    It is the minimum if all digits can be at these ends at once, as those of a window's axes can.
    """
    total = nat(0)
    for monomial, coefficient in room.terms.items():
        match [a for a, _ in monomial if name in a.names]:
            case []:
                total = total + Nat({monomial: coefficient})
            case [digit] if monomial == ((digit, 1),):
                ends = ends_of_digit(digit, name, low, high)
                if ends is None:
                    return None
                total = total + coefficient * ends[coefficient < 0]
            case _:
                return None
    return total


def ends_of_digit(a: Atom, name: str, low: int, high: int) -> tuple[int, int] | None:
    """The least and the greatest value of a variable, or of one of its digits; None for others."""
    if isinstance(a, Var):
        return low, high
    if not isinstance(a, Remainder | Quotient):
        return None
    number, divisor = a.parts()
    match [*number.terms.items()], divisor.constant:
        case [(((Var(name=found), 1),), 1)], int(d) if found == name:
            pass
        case _:
            return None
    if isinstance(a, Quotient):
        return low // d, high // d
    return (low % d, high % d) if low // d == high // d else (0, d - 1)


def in_all_lanes(tests: Iterable[RangeTest], lane: str, width: int) -> dict[RangeTest, None] | None:
    """The tests that hold if `tests` hold in all lanes; None if one has no decisive lane."""
    found: dict[RangeTest, None] = {}
    for test in tests:
        end = at_all(test, lane, 0, width - 1)
        if end is None:
            return None
        found[end] = None
    return found


def turning_point(test: RangeTest, name: str) -> tuple[int, bool] | None:
    """The value of a variable from which on (`True`) or below which (`False`) a test holds.

    None if the test does not depend on this variable only, or its index is not linear.
    """
    first = each = 0
    for monomial, coefficient in test.room.terms.items():
        match monomial:
            case ():
                first = coefficient
            case ((Var(name=found), 1),) if found == name:
                each += coefficient  # twice if one occurrence has a narrower range
            case _:
                return None
    if each > 0:
        return -(first // each), True
    return (first // -each + 1, False) if each else None


def where_fails(test: RangeTest) -> dict[str, Nat]:
    """The only variable of an index, with the range that it has where the test fails."""
    match [*test.index.atoms()]:
        case [Var(name=name, low=int(low), high=int(high))]:
            turn = turning_point(test, name)
        case _:
            return {}
    if turn is None:
        return {}
    number, rises = turn
    low, high = (low, min(high, number - 1)) if rises else (max(low, number), high)
    return {name: var(name, low, high)} if low <= high else {}


def in_a_row(index: Nat, lane: str, width: int) -> tuple[Nat, tuple[RangeTest, ...]] | None:
    """The index of lane 0, if lane `k` is `k` after it, and the tests that this requires.

    An index that is clamped or wraps around runs with its lanes if none of them is at an end:
    `max(0, i + lane - 1)` does where `i - 1 >= 0`. None if it never does.
    """
    tests: dict[RangeTest, None] = {}
    try:
        straight = _straight(index, lane, width, tests)
    except _BentError:
        return None
    first = straight - var(lane, 0, width - 1)
    return None if lane in first.names() else (first, tuple(tests))


class _BentError(Exception):
    """An index has no straight form; caught in `in_a_row`."""


def _straight(index: Nat, lane: str, width: int, tests: dict[RangeTest, None]) -> Nat:
    """An index without the bends that depend on the lane; adds the tests that this requires."""
    if lane not in index.names():
        return index
    total = nat(0)
    for monomial, coefficient in index.terms.items():
        factors = [_unbent(a, lane, width, tests) for a, e in monomial for _ in range(e)]
        total = total + coefficient * product(factors)
    return total


def _unbent(a: Atom, lane: str, width: int, tests: dict[RangeTest, None]) -> Nat:
    """The value of an atom where it does not bend."""
    if lane not in a.names or isinstance(a, Var):
        return atom(a)
    parts = [_straight(part, lane, width, tests) for part in a.parts()]
    moves = [lane in part.names() for part in parts]
    needed: list[RangeTest]
    match a:
        case Extreme(largest=largest) if moves in ([True, False], [False, True]):
            value, still = parts if moves[0] else reversed(parts)
            end = still.constant
            if largest:
                needed = [RangeTest(value - still)]
            else:
                needed = [RangeTest(still - value) if end is None else RangeTest(value, end + 1)]
        case Remainder() if (period := parts[1].constant) and None not in parts[0].bounds:
            turns = sum(int(end or 0) for end in parts[0].bounds) // 2 // period  # in the middle
            value = parts[0] - turns * period
            needed = [RangeTest(value), RangeTest(value, period)]
        case _:
            raise _BentError
    ends = in_all_lanes(needed, lane, width)
    if ends is None:
        raise _BentError
    tests |= ends
    return value
