"""Show without a solver that two work-items never touch one address, from sums of digits.

Most addresses are a constant plus a sum of variables, each times a factor, its worth. The
difference of two such addresses is a sum over the differences of their digits, which have ranges.
From the largest worth downwards, few differences leave a rest that the other digits can make up,
so all of them are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from itertools import accumulate

from liftpy.ir.nat import Atom, Nat, Remainder

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
) -> bool:
    """Whether two addresses provably differ for any two work-items that differ in one of the ids.

    The variables in `shared` are the same for both; those in `later` are larger for the second.
    False if this cannot be shown: an address is not a sum of digits, or there are too many
    differences to try.
    """
    here, there = worths(first), worths(second)
    if here is None or there is None:
        return False
    digits: list[Digit] = []
    common: dict[str, Atom] = {}
    for key in dict.fromkeys((*here, *there)):
        (one, worth), (two, other) = (side.get(key, (None, 0)) for side in (here, there))
        (low, high), (least, most) = ((0, 0) if a is None else a.bounds for a in (one, two))
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
