"""Show without a solver that two work-items never touch one address, from sums of digits.

Most addresses are a constant plus a sum of variables, each times a factor, its worth. The
difference of two such addresses is a sum over the differences of their digits, which have ranges.
From the largest worth downwards, few differences leave a rest that the other digits can make up,
so all of them are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

from liftpy.ir.bounds import Bounds
from liftpy.ir.constraint import AtMost, Constraint
from liftpy.ir.nat import Extreme, Nat, Remainder, atom
from liftpy.ir.polynomial import Atom

MOST = 400
"""The most differences that are tried; beyond this, the solver decides."""


@dataclass(frozen=True)
class Digit:
    """A number in a range, with its worth. If `tells` and it is not 0, an id may differ."""

    worth: int
    low: int
    high: int
    tells: bool = False

    def positive(self) -> Digit:
        """The same with a positive worth."""
        if self.worth > 0:
            return self
        return replace(self, worth=-self.worth, low=-self.high, high=-self.low)


def never_meet(
    first: Nat,
    second: Nat,
    ids: Collection[str],
    shared: Collection[str] = (),
    later: Collection[str] = (),
    conditions: tuple[Iterable[Constraint], Iterable[Constraint]] = ((), ()),
) -> bool:
    """Whether two addresses provably differ for any two work-items that differ in one of the ids.

    The variables in `shared` are the same for both; those in `later` are larger for the second.
    Each address is touched only under its `conditions`; those on a single digit narrow its range.
    False if this cannot be shown: an address is not a sum of digits, or there are too many
    differences to try.
    """
    ranges, others = map(ranges_under, conditions)
    first, second = without_extremes(first, ranges), without_extremes(second, others)
    here, there = worths(first), worths(second)
    if here is None or there is None:
        return False
    digits: list[Digit] = []
    common: dict[str, Atom] = {}
    for key in dict.fromkeys((*here, *there)):
        (one, worth), (two, other) = (side.get(key, (None, 0)) for side in (here, there))
        low, high = (0, 0) if one is None else ranges.get(key, one.bounds)
        least, most = (0, 0) if two is None else others.get(key, two.bounds)
        if low is None or high is None or least is None or most is None:
            return False
        if one is None or two is None or worth != other:
            digits += [Digit(worth, low, high), Digit(-other, least, most)]
        elif not one.names <= set(shared):
            top = -1 if key in later else high - least
            digits.append(Digit(worth, low - most, top, not one.names.isdisjoint(ids)))
            common[key] = one
    told = all(is_told(name, common) for name in ids)
    rest = second.terms.get((), 0) - first.terms.get((), 0)
    return not makes((d.positive() for d in digits if d.worth), rest, differs=not told)


def ranges_under(conditions: Iterable[Constraint]) -> dict[str, Bounds]:
    """The ranges of digits, by key, according to the conditions that mention only one digit."""
    found: dict[str, Bounds] = {}
    for condition in conditions:
        if not isinstance(condition, AtMost):
            continue
        room = condition.right - condition.left
        digits = worths(room)
        if digits is None or len(digits) != 1:
            continue
        ((key, (digit, worth)),) = digits.items()
        low, high = found.get(key, digit.bounds)
        bound = room.terms.get((), 0) // abs(worth)
        if worth < 0:  # bound - digit >= 0
            found[key] = low, bound if high is None else min(high, bound)
        else:  # digit + bound >= 0
            found[key] = -bound if low is None else max(low, -bound), high
    return found


def without_extremes(address: Nat, ranges: Mapping[str, Bounds]) -> Nat:
    """The address with minima and maxima replaced by an operand, where the ranges show which."""
    for monomial, worth in address.terms.items():
        match monomial:
            case ((Extreme(left=left, right=right, largest=largest) as extreme, 1),):
                low, high = difference(left, right, ranges)
                if low is not None and low >= 0:
                    chosen = left if largest else right
                elif high is not None and high <= 0:
                    chosen = right if largest else left
                else:
                    continue
                rest = address - worth * atom(extreme)
                return without_extremes(rest + worth * chosen, ranges)
            case _:
                pass
    return address


def difference(left: Nat, right: Nat, ranges: Mapping[str, Bounds]) -> Bounds:
    """The least and the largest value of a difference, with these ranges of digits."""
    rest = left - right
    digits = worths(rest)
    if digits is None:
        return None, None
    low: int | None = rest.terms.get((), 0)
    high = low
    for key, (digit, worth) in digits.items():
        ends = ranges.get(key, digit.bounds)
        least, most = ends if worth > 0 else ends[::-1]
        low = None if low is None or least is None else low + worth * least
        high = None if high is None or most is None else high + worth * most
    return low, high


def worths(address: Nat) -> dict[str, tuple[Atom, int]] | None:
    """The digits of an address by name, each with its worth; None if it is not a sum of digits."""
    found: dict[str, tuple[Atom, int]] = {}
    for monomial, worth in address.terms.items():
        match monomial:
            case ():
                pass
            case ((digit, 1),):
                found[digit.key] = digit, worth
            case _:
                return None
    return found


def is_told(name: str, digits: dict[str, Atom]) -> bool:
    """Whether digits determine a variable: it is a digit, or its remainder and quotient are."""
    return name in digits or any(
        isinstance(digit, Remainder)
        and (digit.denominator.constant or 0) > 0
        and digit.numerator.key == name
        and (digit.numerator // digit.denominator).key in digits
        for digit in digits.values()
    )


def makes(digits: Iterable[Digit], rest: int, *, differs: bool) -> bool:
    """Whether digits can add up to a number and the ids differ: by `differs` or a digit that tells.

    Also True if there are too many combinations to try.
    """
    ordered = sorted(digits, key=lambda d: -d.worth)
    lows = [*accumulate((d.worth * d.low for d in reversed(ordered)), initial=0)][::-1]
    highs = [*accumulate((d.worth * d.high for d in reversed(ordered)), initial=0)][::-1]
    open_sums, tried = [(0, rest, differs)], 0
    while open_sums:
        k, rest, differs = open_sums.pop()
        if k == len(ordered):
            if rest == 0 and differs:
                return True
            continue
        digit = ordered[k]
        least = max(digit.low, -((highs[k + 1] - rest) // digit.worth))
        most = min(digit.high, (rest - lows[k + 1]) // digit.worth)
        numbers = range(least, most + 1)
        tried += len(numbers)
        if tried > MOST:
            return True
        for n in numbers:
            left = rest - digit.worth * n
            open_sums.append((k + 1, left, differs or (digit.tells and n != 0)))
    return False
