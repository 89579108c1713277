"""Symbolic naturals: the sizes and indices of liftpy.

A `Nat` is a polynomial over *atoms* (variables, floor divisions, remainders, minima and maxima) in
normal form, so that sizes that are equal by ring laws are equal values. Variables have ranges,
which floor division and remainder use:

    (12*i + j) // 4  =  3*i + j // 4
    (4*i + j) // 4   =  i        if 0 <= j < 4

Division is always floor division; the C printer emits `/` only where the two agree. Exact division
(`split` of a length by its divisor) is a monomial with a negative exponent: `(n /^ m) * m = n`.
z3 proves the laws that are applied here for all coefficients and divisors (tests/ir/test_nat.py).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, Union

from liftpy.errors import TypeRefused
from liftpy.ir.bounds import Bounds, of_maximum, of_minimum, of_quotient, of_remainder
from liftpy.ir.lazy import lazy
from liftpy.ir.polynomial import (
    Atom,
    Monomial,
    Polynomial,
    Terms,
    add_to,
    cut_by_monomial,
    cut_by_number,
    is_integral,
    multiplied,
)
from liftpy.source.caller import compared_by_user

NatLike: TypeAlias = Union["Nat", int]
#: An index function of a primitive: a natural over the variable `INDEX`.
IndexFunction: TypeAlias = "Nat"
INDEX = "i"


class Var(Atom):
    """A variable with an inclusive range; a bound of None is unbounded."""

    def __init__(self, name: str, low: int | None = 0, high: int | None = None) -> None:
        super().__init__(name, low, high)
        self.key = name
        self.name = name
        self.names = frozenset({name})
        self.low = low
        self.high = high
        self.bounds = low, high

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return atom(self)

    def value(self, at: Mapping[str, Any]) -> Any:
        return at[self.name]


class Quotient(Atom):
    """`numerator // denominator`, rounding down."""

    def __init__(self, numerator: Nat, denominator: Nat) -> None:
        super().__init__(numerator, denominator)
        self.numerator = numerator
        self.denominator = denominator

    @lazy
    def key(self) -> str:
        return f"({self.numerator.key})//({self.denominator.key})"

    @lazy
    def bounds(self) -> Bounds:
        return of_quotient(self.numerator.bounds, self.denominator.bounds)

    def parts(self) -> tuple[Nat, ...]:
        return self.numerator, self.denominator

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return parts[0] // parts[1]

    def value(self, at: Mapping[str, Any]) -> Any:
        return self.numerator.evaluate(at) // self.denominator.evaluate(at)


class Remainder(Atom):
    """`numerator % denominator`, with the sign of the denominator."""

    def __init__(self, numerator: Nat, denominator: Nat) -> None:
        super().__init__(numerator, denominator)
        self.numerator = numerator
        self.denominator = denominator

    @lazy
    def key(self) -> str:
        return f"({self.numerator.key})%({self.denominator.key})"

    @lazy
    def bounds(self) -> Bounds:
        return of_remainder(self.numerator.bounds, self.denominator.bounds)

    def parts(self) -> tuple[Nat, ...]:
        return self.numerator, self.denominator

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return parts[0] % parts[1]

    def value(self, at: Mapping[str, Any]) -> Any:
        return self.numerator.evaluate(at) % self.denominator.evaluate(at)


class Extreme(Atom):
    """The smaller or the larger of two naturals; made by `least` and `greatest`."""

    def __init__(self, left: Nat, right: Nat, *, largest: bool) -> None:
        super().__init__(left, right, largest)
        self.left = left
        self.right = right
        self.largest = largest

    @lazy
    def key(self) -> str:
        return f"{'max' if self.largest else 'min'}({self.left.key}, {self.right.key})"

    @lazy
    def bounds(self) -> Bounds:
        of_either = of_maximum if self.largest else of_minimum
        return of_either(self.left.bounds, self.right.bounds)

    def parts(self) -> tuple[Nat, ...]:
        return self.left, self.right

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return _extreme(*parts, largest=self.largest)

    def value(self, at: Mapping[str, Any]) -> Any:
        choose = greatest_number if self.largest else least_number
        return choose(self.left.evaluate(at), self.right.evaluate(at))


class Applied(Atom):
    """An unknown function of naturals, applied; in rules only."""

    def __init__(self, function: str, argument: Nat) -> None:
        super().__init__(function, argument)
        self.key = f"{function}({argument.key})"
        self.function = function
        self.argument = argument
        self.bounds = None, None

    def parts(self) -> tuple[Nat, ...]:
        return (self.argument,)

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return atom(Applied(self.function, parts[0]))


class Nat(Polynomial):
    """A polynomial over variables, divisions, remainders, minima and maxima, in normal form.

    >>> n, i = lp.size("n", 1, 64), lp.size("i", 0, 3)
    >>> print((4 * n + i) // 4, (4 * n + i) % 4)
    n i

    Arithmetic with ints and other Nats gives Nats. A constant Nat also combines with NumPy index
    arrays, so that the same index law works on symbols and numbers.
    """

    def noun(self) -> str:
        return f"the {'index' if self.names() == frozenset((INDEX,)) else 'size'} {self}"

    def like(self, value: Any) -> Nat:
        return nat(value)

    def bounds_of(self, other: NatLike) -> Bounds:
        return (self - other).bounds

    def larger(self, other: Any) -> Nat:
        return self.decided("maximum", greatest(self, nat(other)))

    def smaller(self, other: Any) -> Nat:
        return self.decided("minimum", least(self, nat(other)))

    def decided(self, name: str, found: Nat) -> Nat:
        """The minimum or maximum of two sizes; undecided ones are for index functions only."""
        if INDEX in found.names() or not any(isinstance(a, Extreme) for a in found.atoms()):
            return found
        raise self.undecided_extreme(name)

    def __floordiv__(self, other: Any) -> Any:
        if isinstance(other, int | Nat):
            if other.__class__ is int and not other and compared_by_user():
                raise self.divided_by_zero("//")
            return _divide(self, nat(other))[0]
        return self.combined("//", operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        if isinstance(other, int):
            return _divide(nat(other), self)[0]
        return self.combined("//", lambda a, b: b // a, other)

    def __mod__(self, other: Any) -> Any:
        if isinstance(other, int | Nat):
            if other.__class__ is int and not other and compared_by_user():
                raise self.divided_by_zero("%")
            return _divide(self, nat(other))[1]
        return self.combined("%", operator.mod, other)

    def __rmod__(self, other: Any) -> Any:
        if isinstance(other, int):
            return _divide(nat(other), self)[1]
        return self.combined("%", lambda a, b: b % a, other)

    def recombined(self) -> Nat:
        """The same natural, with each sum `k*d*(x // d) + k*(x % d)` rewritten to `k*x`.

        This simplifies an index that is split into row and column and then recombined.
        """
        for monomial, k in self.terms.items():
            if (
                len(monomial) != 1
                or monomial[0][1] != 1
                or not isinstance(monomial[0][0], Remainder)
            ):
                continue
            rows, divided = _rows(monomial[0][0], k)
            if divided and all(self.terms.get(m) == rows.terms[m] for m in divided):
                rest = Nat({m: c for m, c in self.terms.items() if m != monomial})
                return (rest - rows + monomial[0][0].numerator * k).recombined()
        return self

    def substitute(self, by: Mapping[str, NatLike]) -> Nat:
        """The natural with variables replaced, in normal form."""
        if not by or self._names.isdisjoint(by):
            return self
        if self._is_whole:
            return _substitute_whole(self, by)
        total = ZERO
        for over, under in self.fractions:
            numerator = _substitute_whole(over, by)
            total = total + (
                numerator if under == ONE else numerator.exact_div(_substitute_whole(under, by))
            )
        return total


@lru_cache(maxsize=1 << 12)
def _rows(remainder: Remainder, k: int) -> tuple[Nat, tuple[Monomial, ...]]:
    """`k*d*(x // d)` for the remainder `x % d`, and its terms that contain a division."""
    x, d = remainder.numerator, remainder.denominator
    rows: Nat = (x // d) * d * k
    return rows, tuple(m for m in rows.terms if any(isinstance(a, Quotient) for a, _ in m))


def _substitute_whole(n: Nat, by: Mapping[str, NatLike]) -> Nat:
    """`substitute` for a natural without exact quotients."""
    kept: Terms = {}
    changed: Terms = {}
    for monomial, coefficient in n.terms.items():
        still = tuple([pair for pair in monomial if pair[0].names.isdisjoint(by)])
        if len(still) == len(monomial):
            kept[monomial] = coefficient
            continue
        scale = coefficient
        moved: list[Nat] = []
        for factor, exponent in monomial:
            if factor.names.isdisjoint(by):
                continue
            if isinstance(factor, Var):
                new = nat(by[factor.name])
            else:
                new = factor.rebuild(tuple(p.substitute(by) for p in factor.parts()))
            if (number := new.constant) is not None:
                scale *= number**exponent
            else:
                moved += [new] * exponent
        terms: Terms = {still: scale} if scale else {}
        for new in moved:
            terms = multiplied(terms, new.terms)
        add_to(changed, terms)
    add_to(changed, kept)
    return Nat(changed)


def _divide(numerator: Nat, denominator: Nat) -> tuple[Nat, Nat]:
    """Floor quotient and remainder, simplified."""
    n, d = numerator.constant, denominator.constant
    if n is not None and d is not None and d > 0:
        return nat(n // d), nat(n % d)
    return _divide_unknown(numerator, denominator)


@lru_cache(maxsize=1 << 15)
def _divide_unknown(numerator: Nat, denominator: Nat) -> tuple[Nat, Nat]:
    """`_divide` unless both are numbers.

    The numerator is split into a part that the denominator divides term by term and a rest `r`. If
    ranges show `0 <= r < d`, the quotient is the first part over `d` and the remainder is `r`. If
    `d` is a number, a common factor `g` of `d` and of the larger terms of `r` is cancelled:
    `(g*p + s) // (g*q) = p // q` if `0 <= s < g`.
    """
    d = denominator.constant
    if d == 1:
        return numerator, ZERO
    if d is not None and d > 0 and (nested := _single_quotient(numerator)) is not None:
        inner = nested.numerator // (nested.denominator * d)
        return inner, numerator - inner * d
    if d is not None and d > 0:
        quotient, remainder = map(Nat, cut_by_number(numerator.terms, d))
    elif len(denominator.terms) == 1:
        quotient, remainder = _cut_by_product(numerator, denominator)
    elif numerator == denominator and (denominator.bounds[0] or 0) >= 1:
        return ONE, ZERO
    else:
        quotient, remainder = ZERO, numerator
    if not remainder.terms:
        return quotient, ZERO
    least = denominator.bounds[0]
    low, high = remainder.bounds
    if low is not None and low >= 0 and high is not None and least is not None and high < least:
        return quotient, remainder
    if d is not None and d > 0 and (smaller := _cancel(remainder, d)) is not None:
        return quotient + smaller[0], smaller[1]
    more, less = atom(Quotient(remainder, denominator)), atom(Remainder(remainder, denominator))
    return quotient + more, less


def _cut_by_product(numerator: Nat, denominator: Nat) -> tuple[Nat, Nat]:
    """`cut_by_monomial` if the denominator is a product of factors that is at least 1."""
    ((divisor, scale),) = denominator.terms.items()
    if scale != 1 or not is_integral(divisor) or (denominator.bounds[0] or 0) < 1:
        return ZERO, numerator
    whole, rest = cut_by_monomial(numerator.terms, divisor)
    return Nat(whole), Nat(rest)


def _single_quotient(n: Nat) -> Quotient | None:
    """The natural as `x // a` with a positive number `a`, since `(x // a) // b = x // (a*b)`."""
    if len(n.terms) != 1:
        return None
    ((monomial, coefficient),) = n.terms.items()
    if (
        coefficient != 1
        or len(monomial) != 1
        or monomial[0][1] != 1
        or not isinstance(monomial[0][0], Quotient)
    ):
        return None
    return monomial[0][0] if (monomial[0][0].denominator.constant or 0) > 0 else None


def _cancel(rest: Nat, d: int) -> tuple[Nat, Nat] | None:
    """`(g*p + s) // (g*q)` as `p // q`, and the remainder `g*(p % q) + s`, if `0 <= s < g`."""
    factors = sorted(
        {math.gcd(c, d) for m, c in rest.terms.items() if is_integral(m)} - {1}, reverse=True
    )
    for g in factors:
        p = {m: c // g for m, c in rest.terms.items() if c % g == 0 and is_integral(m)}
        s = Nat({m: c for m, c in rest.terms.items() if c % g != 0 or not is_integral(m)})
        low, high = s.bounds
        if p and low is not None and low >= 0 and high is not None and high < g:
            quotient, remainder = _divide(Nat(p), nat(d // g))
            return quotient, remainder * g + s
    return None


def atom(a: Atom) -> Nat:
    """An atom as a natural."""
    return Nat({((a, 1),): 1})


@lru_cache(maxsize=1 << 12)
def var(name: str, low: int | None = 0, high: int | None = None) -> Nat:
    """A variable; the bounds `low` and `high` are inclusive, None means unbounded."""
    return atom(Var(name, low, high))


def nats(names: str) -> tuple[Nat, ...]:
    """Several unbounded variables, named in one string."""
    return tuple(var(name) for name in names.split())


_SMALL: dict[int, Nat] = {}


def to_int(value: Any) -> int:
    """An integer of a type other than `int`, such as NumPy's, as an int; TypeRefused for others."""
    if getattr(value, "type", None) is None and hasattr(value, "__index__"):
        return operator.index(value)
    given = repr(value) if isinstance(value, str) else value
    message = f"{given} is not a size: use a whole number, or a variable such as lp.size('n')"
    raise TypeRefused(message)


def nat(value: NatLike) -> Nat:
    """An int or a Nat as a Nat."""
    if isinstance(value, Nat):
        return value
    if type(value) is not int:
        value = to_int(value)
    if (known := _SMALL.get(value)) is None:
        known = Nat({(): value} if value else {})
        if -1024 < value < 1 << 16:
            _SMALL[value] = known
    return known


def product(factors: Iterable[NatLike]) -> Nat:
    """The product of naturals; 1 if there are none."""
    total = ONE
    for factor in factors:
        total = total * factor
    return total


def least(a: Any, b: Any) -> Any:
    """The smaller of two indices: naturals, or arrays of numbers."""
    if is_index(a) and is_index(b):
        return _extreme(nat(a), nat(b), largest=False)
    return least_number(*(int(x) if isinstance(x, Nat) else x for x in (a, b)))


def greatest(a: Any, b: Any) -> Any:
    """The larger of two indices: naturals, or arrays of numbers."""
    if is_index(a) and is_index(b):
        return _extreme(nat(a), nat(b), largest=True)
    return greatest_number(*(int(x) if isinstance(x, Nat) else x for x in (a, b)))


def least_number(a: Any, b: Any) -> Any:
    """The smaller of two numbers, elementwise for arrays (Python's `min` is not elementwise)."""
    return a - (a - b) * (a > b)


def greatest_number(a: Any, b: Any) -> Any:
    """The larger of two numbers, elementwise for arrays."""
    return a + (b - a) * (b > a)


def _extreme(a: Nat, b: Nat, *, largest: bool) -> Nat:
    """One of the two if ranges decide which, else an atom over both in a fixed order."""
    low, high = (b - a).bounds
    if low is not None and low >= 0:
        return b if largest else a
    if high is not None and high <= 0:
        return a if largest else b
    left, right = sorted((a, b), key=lambda n: n.key)
    return atom(Extreme(left, right, largest=largest))


def is_index(value: object) -> bool:
    """Whether a value is a natural or a plain int."""
    return isinstance(value, Nat | int) and not isinstance(value, bool)


ZERO = Nat({})
ONE = nat(1)
