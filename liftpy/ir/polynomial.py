"""Polynomials with integer coefficients in normal form: ring arithmetic, exact division, text.

A polynomial maps each *monomial*, a product of atoms with exponents, to its coefficient. Negative
exponents stand for exact division: `n*m^-1` is `n /^ m`. The module knows only the interface of
atoms; which kinds there are, and floor division, which makes atoms, are defined in
`liftpy.ir.nat`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from numbers import Integral
from typing import Any, Self, TypeAlias

from liftpy.ir.bounds import Bounds, of_product, scaled
from liftpy.ir.lazy import lazy
from liftpy.ir.provided import TRACE
from liftpy.ir.size import Size, is_expression
from liftpy.source.caller import compared_by_user, refusal

Monomial: TypeAlias = tuple[tuple["Atom", int], ...]
Terms: TypeAlias = dict[Monomial, int]

#: The most products of terms that are computed to multiply two polynomials.
MOST_PRODUCTS = 1 << 16
#: One word in its own parentheses: `(n)//(2)` is shown as `n//2`.
ALONE = re.compile(r"(?<!\w)\((\w+)\)")


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

    def parts(self) -> tuple[Any, ...]:
        """The naturals inside the atom; a variable has none."""
        return ()

    def rebuild(self, parts: tuple[Any, ...]) -> Any:
        """The atom with other parts."""
        raise NotImplementedError

    def value(self, at: Mapping[str, Any]) -> Any:
        """The value of the atom at an assignment, as in `Polynomial.evaluate`."""
        raise NotImplementedError


class Polynomial(Size):
    """A sum of products of atoms with integer coefficients.

    Results have the class of the operand. A subclass defines `like`, which converts an int, and
    floor division.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    @lazy
    def key(self) -> str:
        """The normal form as text: equal polynomials have equal keys."""
        return shown(self)

    @lazy
    def constant(self) -> int | None:
        """The value if there are no variables; else None."""
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
            least, most = scaled(bounds_of_monomial(monomial), coefficient)
            low = None if low is None or least is None else low + least
            high = None if high is None or most is None else high + most
        return low, high

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            same = self.constant == other
        elif isinstance(other, Polynomial):
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
                return self.like(number + other)
            return self if other == 0 else self._shifted(other)
        if isinstance(other, Polynomial):
            if (number := other.constant) is not None:
                return self + number
            return self.__class__(added(self.terms, other.terms))
        return self.combined("+", operator.add, other)

    __radd__ = __add__

    def _shifted(self, by: int) -> Self:
        """The sum with a number; its variables are the same."""
        shifted = self.__class__(added(self.terms, {(): by}))
        shifted._names = self._names  # noqa: SLF001
        return shifted

    def __neg__(self) -> Self:
        if (number := self.constant) is not None:
            return self.like(-number)
        return self.__class__({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            if (number := self.constant) is not None:
                return self.like(number * other)
            return (
                self.__class__({m: c * other for m, c in self.terms.items()})
                if other
                else self.like(0)
            )
        if isinstance(other, Polynomial):
            if (number := other.constant) is not None:
                return self * number
            if len(self.terms) * len(other.terms) > MOST_PRODUCTS:
                raise refusal(
                    f"a product has too many terms: {len(self.terms)} times {len(other.terms)}",
                    f"at most {MOST_PRODUCTS} products of terms are computed",
                    "name a part of the product as a size of its own",
                )
            return self.__class__(multiplied(self.terms, other.terms))
        return self.combined("*", operator.mul, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Any:
        raise NotImplementedError

    def exact_div(self, other: Self | int) -> Self:
        """`self / other`, where `other` divides `self`; a polynomial if possible.

        A monomial divides the terms one by one; `fractions` sums them by denominator. If `other` is
        a polynomial, the quotient is a polynomial or, failing that, a floor division.
        """
        divisor: Self = self.like(other)
        if not divisor.terms:  # division by 0; the caller requires a divisor of at least 1
            return self // divisor
        if len(divisor.terms) == 1:
            ((monomial, coefficient),) = divisor.terms.items()
            if all(number % coefficient == 0 for number in self.terms.values()):
                inverse = tuple((a, -e) for a, e in monomial)
                return self.__class__(
                    {
                        times(mine, inverse): number // coefficient
                        for mine, number in self.terms.items()
                    }
                )
            return self // divisor
        quotient = polynomial_quotient(self.terms, divisor.terms)
        return self // divisor if quotient is None else self.__class__(quotient)

    @lazy
    def fractions(self) -> tuple[tuple[Self, Self], ...]:
        """The polynomial as a sum of exact quotients (numerator, denominator), one per denominator.

        Only the sum of the terms over a denominator is whole: `n/m - k/m` is `(n - k)/m`.
        """
        groups: dict[Monomial, Terms] = {}
        for monomial, coefficient in self.terms.items():
            under = tuple((a, -e) for a, e in monomial if e < 0)
            over = tuple((a, e) for a, e in monomial if e > 0)
            groups.setdefault(under, {})[over] = coefficient
        return tuple(
            (self.__class__(over), self.__class__({under: 1})) for under, over in groups.items()
        )

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
        """Whether there are no exact quotients."""
        return all(map(is_integral, self.terms))

    def parted(self, name: str) -> tuple[Self, Self]:
        """The sum of the terms without a variable, and the sum of the others."""
        still: Terms = {}
        moving: Terms = {}
        for monomial, coefficient in self.terms.items():
            moves = any(name in factor.names for factor, _ in monomial)
            (moving if moves else still)[monomial] = coefficient
        return self.__class__(still), self.__class__(moving)

    def value(self, at: Mapping[str, int]) -> int:
        """The value at an assignment."""
        number = self.constant
        return self.evaluate(at) if number is None else number

    def evaluate(self, at: Mapping[str, Any]) -> Any:
        """`value` for anything that supports `+ * ** // %` with ints: solver terms, source text."""
        if self._is_whole:
            return _evaluate_whole(self, at)
        total: Any = 0
        for over, under in self.fractions:
            numerator = _evaluate_whole(over, at)
            total = total + (
                numerator if under.constant == 1 else numerator // _evaluate_whole(under, at)
            )
        return total


def _evaluate_whole(n: Polynomial, at: Mapping[str, Any]) -> Any:
    """`evaluate` for a polynomial without exact quotients."""
    total: Any = 0
    for monomial, coefficient in n.terms.items():
        term: Any = coefficient
        for factor, exponent in monomial:
            value = factor.value(at)
            term *= value if exponent == 1 else value**exponent
        total += term
    return total


def bounds_of_monomial(monomial: Monomial) -> Bounds:
    """The range of a single factor, or of a product of non-negative factors; else unknown."""
    if not monomial:
        return 1, 1
    if len(monomial) == 1 and monomial[0][1] == 1:
        return monomial[0][0].bounds
    return of_product((factor.bounds, exponent) for factor, exponent in monomial)


def added(left: Terms, right: Terms) -> Terms:
    """The sum of two polynomials."""
    terms = dict(left)
    add_to(terms, right)
    return terms


def add_to(terms: Terms, more: Terms) -> None:
    """Add terms to a sum in place."""
    for monomial, coefficient in more.items():
        total = terms.get(monomial, 0) + coefficient
        if total:
            terms[monomial] = total
        else:
            terms.pop(monomial, None)


def times(left: Monomial, right: Monomial) -> Monomial:
    """The product of two monomials."""
    if not left:
        return right
    if not right:
        return left
    exponents: dict[Atom, int] = dict(left)
    for factor, exponent in right:
        exponents[factor] = exponents.get(factor, 0) + exponent
    return tuple(sorted(((a, e) for a, e in exponents.items() if e), key=lambda pair: pair[0].key))


def multiplied(left: Terms, right: Terms) -> Terms:
    """The product of two polynomials."""
    terms: Terms = {}
    for m1, c1 in left.items():
        for m2, c2 in right.items():
            monomial = times(m1, m2)
            total = terms.get(monomial, 0) + c1 * c2
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
    return terms


def polynomial_quotient(numerator: Terms, divisor: Terms) -> Terms | None:
    """The polynomial whose product with `divisor` is `numerator`; None if there is none."""
    if not all(is_integral(m) for m in (*numerator, *divisor)):
        return None
    lead = _leading(divisor)
    inverse = tuple((a, -e) for a, e in lead)
    quotient: Terms = {}
    rest = dict(numerator)
    while rest:
        top = _leading(rest)
        step = times(top, inverse)
        if not is_integral(step) or rest[top] % divisor[lead]:
            return None
        coefficient = rest[top] // divisor[lead]
        add_to(quotient, {step: coefficient})
        add_to(rest, multiplied({step: -coefficient}, divisor))
    return quotient


def _leading(terms: Terms) -> Monomial:
    """The leading monomial in lexicographic order of exponents, which division needs."""
    names = sorted({a.key for m in terms for a, _ in m})
    return max(terms, key=lambda m: [{a.key: e for a, e in m}.get(name, 0) for name in names])


def is_integral(monomial: Monomial) -> bool:
    """Whether a monomial has no negative exponents."""
    return all(exponent > 0 for _, exponent in monomial)


def cut_by_number(numerator: Terms, d: int) -> tuple[Terms, Terms]:
    """The part of the numerator that `d` divides term by term, over `d`; and the rest."""
    whole: Terms = {}
    rest: Terms = {}
    for monomial, coefficient in numerator.items():
        if is_integral(monomial):
            q, r = divmod(coefficient, d)
            if q:
                whole[monomial] = q
            if r:
                rest[monomial] = r
        else:
            rest[monomial] = coefficient
    return whole, rest


def cut_by_monomial(numerator: Terms, divisor: Monomial) -> tuple[Terms, Terms]:
    """`cut_by_number` for a product of factors, which must be at least 1."""
    inverse = tuple((a, -e) for a, e in divisor)
    whole: Terms = {}
    rest: Terms = {}
    for monomial, coefficient in numerator.items():
        product = times(monomial, inverse)
        if is_integral(monomial) and is_integral(product):
            whole[product] = coefficient
        else:
            rest[monomial] = coefficient
    return whole, rest


def _show_factor(factor: Atom, *, alone: bool) -> str:
    return factor.key if alone or not factor.parts() else f"({factor.key})"


def _show_term(monomial: Monomial, coefficient: int) -> str:
    alone = len(monomial) == 1 and monomial[0][1] == 1 and coefficient == 1
    factors = [_show_factor(a, alone=alone) for a, e in monomial for _ in range(e)]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient))
    return "*".join(factors)


def shown(n: Polynomial) -> str:
    """The terms as text, sorted by their factors, the constant last; `/^` is exact division."""
    parts: list[str] = []
    for over, under in sorted(n.fractions, key=lambda f: _show_whole(f[1].terms)):
        text = _show_whole(over.terms)
        if under.constant != 1:
            text = text if len(over.terms) == 1 else f"({text})"
            text = f"{text}/^({_show_whole(under.terms)})"
        parts.append(text)
    return " + ".join(parts) if parts else "0"


def _show_whole(terms: Terms) -> str:
    """A polynomial without exact quotients, as text."""
    ordered = sorted(terms.items(), key=lambda t: (not t[0], tuple((a.key, e) for a, e in t[0])))
    ordered.sort(key=lambda t: t[1] < 0)  # a leading minus reads badly
    text = _show_term(*ordered[0])
    for monomial, coefficient in ordered[1:]:
        sign = "-" if coefficient < 0 else "+"
        text += f" {sign} {_show_term(monomial, abs(coefficient))}"
    return text
