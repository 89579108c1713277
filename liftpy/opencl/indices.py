"""Indices as C."""

from __future__ import annotations

from functools import lru_cache

from liftpy.errors import InternalError
from liftpy.ir.nat import Extreme, Nat, Quotient, Remainder, Var
from liftpy.ir.polynomial import Atom

MAX_INT = 2**31 - 1
UNBOUNDED = 2**63


def index_c(n: Nat, *, wide: bool = False) -> str:
    """An index as C, in 64 bits if `wide`. `/` is printed only for dividends of 0 or more."""
    if not n.terms:
        return "0"
    parts: list[str] = []
    ordered = sorted(
        n.terms.items(), key=lambda t: (not t[0], t[1] < 0, tuple((a.key, e) for a, e in t[0]))
    )
    for monomial, coefficient in ordered:
        if any(exponent < 0 for _, exponent in monomial):
            message = f"an index has a size without a value: {n}"
            raise InternalError(message)
        factors = [text for a, e in monomial for text in [atom_c(a, wide=wide)] * e]
        number = abs(coefficient)
        if number != 1 or not factors:
            factors.append(f"{number}L" if wide and number > MAX_INT else str(number))
        text = " * ".join(factors)
        sign = "-" if coefficient < 0 else "+"
        first = f"-{text}" if sign == "-" else text
        parts.append(f"{sign} {text}" if parts else first)
    return " ".join(parts)


@lru_cache(maxsize=1 << 12)
def atom_c(a: Atom, *, wide: bool) -> str:
    """A factor of an index as C, cached because the indices of a kernel share factors."""
    match a:
        case Var():
            return f"(long){a.name}" if wide else a.name
        case Quotient() | Remainder():
            over, under = index_c(a.numerator, wide=wide), index_c(a.denominator, wide=wide)
            low = a.numerator.bounds[0]
            if low is not None and low >= 0:
                over = over if over.isidentifier() else f"({over})"
                under = under if under.isalnum() else f"({under})"
                return f"({over} {'/' if isinstance(a, Quotient) else '%'} {under})"
            return f"{'floor_div' if isinstance(a, Quotient) else 'floor_mod'}({over}, {under})"
        case Extreme():
            kind = "long" if wide else "int"  # the two must be of one type
            parts = ", ".join(f"({kind})({index_c(part, wide=wide)})" for part in a.parts())
            return f"{'max' if a.largest else 'min'}({parts})"
        case _:
            message = f"no C for {a.key}"
            raise InternalError(message)


def magnitude(n: Nat) -> int:
    """A bound on every partial result of an index as it is printed; 2^63 if there is none."""
    total = 0
    for monomial, coefficient in n.terms.items():
        term = abs(coefficient)
        for a, e in monomial:
            most, inside = atom_magnitude(a)
            if most == UNBOUNDED:
                return UNBOUNDED
            term *= most**e
            total = max(total, inside)
        total += term
    return total


@lru_cache(maxsize=1 << 12)
def atom_magnitude(a: Atom) -> tuple[int, int]:
    """A bound on a factor, and one on the partial results inside it."""
    low, high = a.bounds
    if low is None or high is None:
        return UNBOUNDED, UNBOUNDED
    return max(abs(low), abs(high), 1), max(map(magnitude, a.parts()), default=0)


#: Floor division and its remainder for dividends that may be negative, and positive divisors.
HELPERS = """\
inline long floor_div(long a, long b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
inline long floor_mod(long a, long b) { return a - b * floor_div(a, b); }
"""
