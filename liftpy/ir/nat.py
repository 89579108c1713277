"""Symbolic naturals: the sizes and indices of liftpy.

A `Nat` is a polynomial over *atoms* (variables, floor divisions, remainders, minima and maxima) in
normal form, so that sizes that are equal by ring laws are equal values. Variables have ranges,
which floor division and remainder use:

    (12*i + j) // 4  =  3*i + j // 4
    (4*i + j) // 4   =  i        if 0 <= j < 4

Division is always floor division; the C printer emits `/` only where the two agree. Exact division
(`split` of a length by its divisor) is a monomial with a negative exponent: `(n /^ m) * m = n`.
Every simplification here is checked by z3 in tests/ir/test_nat.py.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from numbers import Integral
from typing import Any, TypeAlias, Union

from liftpy.errors import TypeRefused
from liftpy.ir.lazy import lazy
from liftpy.ir.provided import TRACE
from liftpy.ir.size import Size, is_expression
from liftpy.source.caller import compared_by_user

#: One word in its own parentheses: `(n)//(2)` is shown as `n//2`.
ALONE = re.compile(r"(?<!\w)\((\w+)\)")

NatLike: TypeAlias = Union["Nat", int]
#: An index function of a primitive: a natural over the variable `INDEX`.
IndexFunction: TypeAlias = "Nat"
INDEX = "i"
Monomial: TypeAlias = tuple[tuple["Atom", int], ...]
Bounds: TypeAlias = tuple[int | None, int | None]


class Atom:
    """An indivisible factor of a monomial: a variable, a floor division or a remainder.

    Two atoms are equal if they have the same kind and equal parts, including ranges.
    """

    def __init__(self, *identity: object) -> None:
        self.identity = identity
        self._hash = hash(identity)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(self) is type(other)
            and self._hash == other._hash  # pyright: ignore[reportAttributeAccessIssue]
            and self.identity == other.identity  # pyright: ignore[reportAttributeAccessIssue]
        )

    @lazy
    def key(self) -> str:
        """The atom as text; monomials sort their factors by it."""
        raise NotImplementedError

    @lazy
    def names(self) -> frozenset[str]:
        """The names of the variables inside."""
        return frozenset[str]().union(*(part.names() for part in self.parts()))

    @lazy
    def bounds(self) -> Bounds:
        """The least and the largest value; None if unknown."""
        raise NotImplementedError

    def parts(self) -> tuple[Nat, ...]:
        """The naturals inside the atom."""
        return ()

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        """The atom with other parts."""
        raise NotImplementedError

    def value(self, at: Mapping[str, Any]) -> Any:
        """The value of the atom at an assignment, as in `Nat.evaluate`."""
        raise NotImplementedError


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
        (low, high), (least, most) = self.numerator.bounds, self.denominator.bounds
        if least is None or least < 1:
            return None, None
        lowest = (
            None
            if low is None
            else (low // least if low < 0 else (0 if most is None else low // most))
        )
        highest = (
            None
            if high is None
            else (high // least if high >= 0 else (-1 if most is None else high // most))
        )
        return lowest, highest

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
        least, most = self.denominator.bounds
        if least is None or least < 1:
            return None, None
        low, high = self.numerator.bounds
        top = None if most is None else most - 1
        if low is not None and low >= 0 and high is not None:
            top = high if top is None else min(top, high)
        return 0, top

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
        (low, high), (least, most) = self.left.bounds, self.right.bounds
        if self.largest:
            return _larger(low, least), None if high is None or most is None else max(high, most)
        return None if low is None or least is None else min(low, least), _smaller(high, most)

    def parts(self) -> tuple[Nat, ...]:
        return self.left, self.right

    def rebuild(self, parts: tuple[Nat, ...]) -> Nat:
        return _extreme(*parts, largest=self.largest)

    def value(self, at: Mapping[str, Any]) -> Any:
        choose = greatest_number if self.largest else least_number
        return choose(self.left.evaluate(at), self.right.evaluate(at))


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


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


class Nat(Size):
    """A polynomial with integer coefficients over atoms, in normal form.

    Arithmetic with ints and other Nats gives Nats. A constant Nat also combines with NumPy index
    arrays, so that the same index law works on symbols and numbers.
    """

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms

    @lazy
    def key(self) -> str:
        """The normal form as text: equal naturals have equal keys."""
        return _show(self)

    @lazy
    def constant(self) -> int | None:
        """The value of a natural without variables."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    @lazy
    def bounds(self) -> Bounds:
        """The least and the largest value that the variables' ranges allow; None if unknown."""
        low: int | None = 0
        high: int | None = 0
        for monomial, coefficient in self.terms.items():
            least, most = _scale(_monomial_bounds(monomial), coefficient)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
        return low, high

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            same = self.constant == other
        elif isinstance(other, Nat):
            same = self.terms == other.terms
        else:
            return NotImplemented
        if not same and TRACE.get() is not None and compared_by_user():
            return not self.differs(other)
        return same

    @lazy
    def _hash(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __hash__(self) -> int:
        if TRACE.get() is not None:
            self.looked_up()
        return self._hash

    def __repr__(self) -> str:
        return self.key

    def __str__(self) -> str:
        return ALONE.sub(r"\1", self.key)

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

    def combined(self, op: str, function: Callable[[Any, Any], Any], other: Any) -> Any:
        """An operator with a NumPy number, or, if the size is constant, with a NumPy array."""
        if isinstance(other, Integral):
            return function(self, int(other))
        if is_expression(other):
            return NotImplemented
        if self.constant is None:
            raise self.beside(op, other)
        return function(self.constant, other)

    def __add__(self, other: Any) -> Any:
        if isinstance(other, int):
            if (number := self.constant) is not None:
                return nat(number + other)
            return self if other == 0 else self._shifted(other)
        if isinstance(other, Nat):
            if (number := other.constant) is not None:
                return self + number
            return _add(self.terms, other.terms)
        return self.combined("+", operator.add, other)

    __radd__ = __add__

    def _shifted(self, by: int) -> Nat:
        """The natural plus a number; its variables are the same."""
        shifted = _add(self.terms, {(): by})
        shifted._names = self._names  # noqa: SLF001
        return shifted

    def __neg__(self) -> Nat:
        if (number := self.constant) is not None:
            return nat(-number)
        return Nat({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            if (number := self.constant) is not None:
                return nat(number * other)
            return Nat({m: c * other for m, c in self.terms.items()}) if other else ZERO
        if isinstance(other, Nat):
            if (number := other.constant) is not None:
                return self * number
            return _multiply(self.terms, other.terms)
        return self.combined("*", operator.mul, other)

    __rmul__ = __mul__

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

    def exact_div(self, other: NatLike) -> Nat:
        """`self / other`, where `other` divides `self`; a polynomial if possible.

        A monomial divides the terms one by one; `fractions` sums them by denominator. If `other` is
        a polynomial, the quotient is a polynomial or, failing that, a floor division.
        """
        divisor = nat(other)
        if not divisor.terms:  # division by 0; the caller requires a divisor of at least 1
            return self // divisor
        if len(divisor.terms) == 1:
            ((monomial, coefficient),) = divisor.terms.items()
            if all(number % coefficient == 0 for number in self.terms.values()):
                inverse = tuple((a, -e) for a, e in monomial)
                return Nat(
                    {
                        _times(mine, inverse): number // coefficient
                        for mine, number in self.terms.items()
                    }
                )
            return self // divisor
        quotient = _polynomial_quotient(self, divisor)
        return self // divisor if quotient is None else quotient

    @lazy
    def fractions(self) -> tuple[tuple[Nat, Nat], ...]:
        """The natural as a sum of exact quotients (numerator, denominator), one per denominator.

        Only the sum of the terms over a denominator is whole: `n/m - k/m` is `(n - k)/m`.
        """
        groups: dict[Monomial, dict[Monomial, int]] = {}
        for monomial, coefficient in self.terms.items():
            under = tuple((a, -e) for a, e in monomial if e < 0)
            over = tuple((a, e) for a, e in monomial if e > 0)
            groups.setdefault(under, {})[over] = coefficient
        return tuple((Nat(over), Nat({under: 1})) for under, over in groups.items())

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

    def atoms(self) -> Iterator[Atom]:
        """Every atom, including those inside atoms."""
        for monomial in self.terms:
            for factor, _ in monomial:
                yield factor
                for part in factor.parts():
                    yield from part.atoms()

    @lazy
    def _names(self) -> frozenset[str]:
        return frozenset[str]().union(*(a.names for m in self.terms for a, _ in m))

    def names(self) -> frozenset[str]:
        """The names of the variables."""
        return self._names

    @lazy
    def _is_whole(self) -> bool:
        """Whether the natural contains no exact quotients."""
        return all(map(_is_integral, self.terms))

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

    def parted(self, name: str) -> tuple[Nat, Nat]:
        """The sum of the terms without a variable, and the sum of the others."""
        still: dict[Monomial, int] = {}
        moving: dict[Monomial, int] = {}
        for monomial, coefficient in self.terms.items():
            moves = any(name in factor.names for factor, _ in monomial)
            (moving if moves else still)[monomial] = coefficient
        return Nat(still), Nat(moving)

    def value(self, at: Mapping[str, int]) -> int:
        """The value of the natural at an assignment."""
        number = self.constant
        return self.evaluate(at) if number is None else number

    def evaluate(self, at: Mapping[str, Any]) -> Any:
        """`value` for anything that supports `+ * ** // %` with ints: solver terms, source text."""
        if self._is_whole:
            return _evaluate_whole(self, at)
        total: Any = 0
        for over, under in self.fractions:
            numerator = _evaluate_whole(over, at)
            total = total + (numerator if under == ONE else numerator // _evaluate_whole(under, at))
        return total


@lru_cache(maxsize=1 << 12)
def _rows(remainder: Remainder, k: int) -> tuple[Nat, tuple[Monomial, ...]]:
    """`k*d*(x // d)` for the remainder `x % d`, and its terms that contain a division."""
    x, d = remainder.numerator, remainder.denominator
    rows: Nat = (x // d) * d * k
    return rows, tuple(m for m in rows.terms if any(isinstance(a, Quotient) for a, _ in m))


def _substitute_whole(n: Nat, by: Mapping[str, NatLike]) -> Nat:
    """`substitute` for a natural without exact quotients."""
    kept: dict[Monomial, int] = {}
    changed: dict[Monomial, int] = {}
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
        terms: dict[Monomial, int] = {still: scale} if scale else {}
        for new in moved:
            terms = _multiply(terms, new.terms).terms
        _add_to(changed, terms)
    _add_to(changed, kept)
    return Nat(changed)


def _evaluate_whole(n: Nat, at: Mapping[str, Any]) -> Any:
    """`evaluate` for a natural without exact quotients."""
    total: Any = 0
    for monomial, coefficient in n.terms.items():
        term: Any = coefficient
        for factor, exponent in monomial:
            value = factor.value(at)
            term *= value if exponent == 1 else value**exponent
        total += term
    return total


def _monomial_bounds(monomial: Monomial) -> Bounds:
    """The range of a single factor, or of a product of non-negative factors; else unknown."""
    if not monomial:
        return 1, 1
    if len(monomial) == 1 and monomial[0][1] == 1:
        return monomial[0][0].bounds
    low: int | None = 1
    high: int | None = 1
    exact = False
    for factor, exponent in monomial:
        least, most = factor.bounds
        if least is None or least < 0:
            return None, None
        if exponent < 0:
            exact = True
            high = high if least >= 1 else None
            continue
        low = low * least**exponent if low is not None else None
        high = None if high is None or most is None else high * most**exponent
    return (0 if exact else low), high


def _scale(bounds: Bounds, by: int) -> Bounds:
    low, high = (None if b is None else b * by for b in bounds)
    return (low, high) if by >= 0 else (high, low)


def _add(left: dict[Monomial, int], right: dict[Monomial, int]) -> Nat:
    terms = dict(left)
    _add_to(terms, right)
    return Nat(terms)


def _add_to(terms: dict[Monomial, int], more: dict[Monomial, int]) -> None:
    """Add terms to a sum in place."""
    for monomial, coefficient in more.items():
        total = terms.get(monomial, 0) + coefficient
        if total:
            terms[monomial] = total
        else:
            terms.pop(monomial, None)


def _times(left: Monomial, right: Monomial) -> Monomial:
    if not left:
        return right
    if not right:
        return left
    exponents: dict[Atom, int] = dict(left)
    for factor, exponent in right:
        exponents[factor] = exponents.get(factor, 0) + exponent
    return tuple(sorted(((a, e) for a, e in exponents.items() if e), key=lambda pair: pair[0].key))


def _multiply(left: dict[Monomial, int], right: dict[Monomial, int]) -> Nat:
    terms: dict[Monomial, int] = {}
    for m1, c1 in left.items():
        for m2, c2 in right.items():
            monomial = _times(m1, m2)
            total = terms.get(monomial, 0) + c1 * c2
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
    return Nat(terms)


def _polynomial_quotient(numerator: Nat, divisor: Nat) -> Nat | None:
    """The polynomial whose product with `divisor` is `numerator`; None if there is none."""
    if not all(_is_integral(m) for m in (*numerator.terms, *divisor.terms)):
        return None
    lead = _leading(divisor)
    inverse = tuple((a, -e) for a, e in lead)
    quotient, rest = ZERO, numerator
    while rest.terms:
        top = _leading(rest)
        step = _times(top, inverse)
        if not _is_integral(step) or rest.terms[top] % divisor.terms[lead]:
            return None
        term = Nat({step: rest.terms[top] // divisor.terms[lead]})
        quotient = quotient + term
        rest = rest - term * divisor
    return quotient


def _leading(n: Nat) -> Monomial:
    """The leading monomial in lexicographic order of exponents, which division needs."""
    names = sorted({a.key for m in n.terms for a, _ in m})
    return max(n.terms, key=lambda m: [{a.key: e for a, e in m}.get(name, 0) for name in names])


def _is_integral(monomial: Monomial) -> bool:
    return all(exponent > 0 for _, exponent in monomial)


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
        quotient, remainder = _cut_by_number(numerator, d)
    elif len(denominator.terms) == 1:
        quotient, remainder = _cut_by_monomial(numerator, denominator)
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


def _cut_by_number(numerator: Nat, d: int) -> tuple[Nat, Nat]:
    """The part of the numerator that `d` divides term by term, over `d`; and the rest."""
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in numerator.terms.items():
        if _is_integral(monomial):
            q, r = divmod(coefficient, d)
            if q:
                whole[monomial] = q
            if r:
                rest[monomial] = r
        else:
            rest[monomial] = coefficient
    return Nat(whole), Nat(rest)


def _cut_by_monomial(numerator: Nat, denominator: Nat) -> tuple[Nat, Nat]:
    """`_cut_by_number` for a product of factors, which must be at least 1."""
    ((divisor, scale),) = denominator.terms.items()
    if scale != 1 or not _is_integral(divisor) or (denominator.bounds[0] or 0) < 1:
        return ZERO, numerator
    inverse = tuple((a, -e) for a, e in divisor)
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in numerator.terms.items():
        product = _times(monomial, inverse)
        if _is_integral(monomial) and _is_integral(product):
            whole[product] = coefficient
        else:
            rest[monomial] = coefficient
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
        {math.gcd(c, d) for m, c in rest.terms.items() if _is_integral(m)} - {1}, reverse=True
    )
    for g in factors:
        p = {m: c // g for m, c in rest.terms.items() if c % g == 0 and _is_integral(m)}
        s = Nat({m: c for m, c in rest.terms.items() if c % g != 0 or not _is_integral(m)})
        low, high = s.bounds
        if p and low is not None and low >= 0 and high is not None and high < g:
            quotient, remainder = _divide(Nat(p), nat(d // g))
            return quotient, remainder * g + s
    return None


def _show_factor(factor: Atom, *, alone: bool) -> str:
    return factor.key if alone or isinstance(factor, Var) else f"({factor.key})"


def _show_term(monomial: Monomial, coefficient: int) -> str:
    alone = len(monomial) == 1 and monomial[0][1] == 1 and coefficient == 1
    factors = [_show_factor(a, alone=alone) for a, e in monomial for _ in range(e)]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def _show(n: Nat) -> str:
    """The terms as text, sorted by their factors, the constant last; `/^` is exact division."""
    parts: list[str] = []
    for over, under in sorted(n.fractions, key=lambda f: _show_whole(f[1].terms)):
        text = _show_whole(over.terms)
        if under != ONE:
            text = text if len(over.terms) == 1 else f"({text})"
            text = f"{text}/^({_show_whole(under.terms)})"
        parts.append(text)
    return " + ".join(parts) if parts else "0"


def _show_whole(terms: dict[Monomial, int]) -> str:
    """A natural without exact quotients, as text."""
    ordered = sorted(terms.items(), key=lambda t: (not t[0], tuple((a.key, e) for a, e in t[0])))
    ordered.sort(key=lambda t: t[1] < 0)  # a leading minus reads badly
    text = _show_term(*ordered[0])
    for monomial, coefficient in ordered[1:]:
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {_show_term(monomial, abs(coefficient))}"
    return text


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
