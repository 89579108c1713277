"""The steps of assigning a system's parameters in one order, compiled.

Each step has the values that the next parameter may take, and a key: the quantities through which
the open conditions depend on the values assigned so far. The key makes counting fast: see
liftpy/constraints/draw.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from math import gcd, isqrt
from typing import Any

from liftpy.constraints.system import (
    DIVISORS,
    ConstraintSystem,
    Source,
    divided,
    formulas,
    infix,
)
from liftpy.deadline import MANY, checked
from liftpy.ir.constraint import AtMost, Constraint, Divides, Equal, OneOf, Unequal
from liftpy.ir.nat import Nat, Var, atom, nat
from liftpy.ir.polynomial import Atom, Monomial
from liftpy.rewrite.skeleton import Parameter


def divisors(number: int, low: int, high: int) -> list[int]:
    """The divisors of a number within a range, ascending; everything divides 0."""
    if number == 0:
        return list(checked(range(max(low, 1), high + 1)))
    return [d for d in all_divisors(abs(number)) if low <= d <= high]


@lru_cache(maxsize=1 << 16)
def all_divisors(number: int) -> tuple[int, ...]:
    """Every divisor of a positive number, ascending."""
    small = [d for d in checked(range(1, isqrt(number) + 1)) if number % d == 0]
    large = [number // d for d in reversed(small) if d * d != number]
    return (*small, *large)


def ratio(*numbers: int) -> tuple[int, ...]:
    """Numbers without their common factor."""
    common = gcd(*numbers) or 1
    return tuple(n // common for n in numbers)


@lru_cache(maxsize=64)
def source_of(parameters: tuple[Parameter, ...]) -> Source:
    """The source shared by all systems over the same parameters, with the functions it calls."""
    source = Source(parameters)
    source.scope |= {"divisors": divisors, "range": range, "ratio": ratio, "checked": checked}
    return source


class Levels:
    """The compiled steps of assigning the parameters of a system in one order.

    `values[k]` returns, for the first k values, those that parameter k may take, out of about
    `tried[k]`. `key[k]` returns the quantities through which the open conditions depend on the
    first k values.
    """

    def __init__(self, system: ConstraintSystem, order: tuple[Parameter, ...]) -> None:
        self.order = order
        self.possible = all(c.constraint.holds({}) for c in system.clauses if not c.names)
        source = source_of(system.parameters)
        names = [p.name for p in order]
        place = {n: k for k, n in enumerate(names)}
        constraints = [c.constraint for c in system.clauses if c.names]
        last = [max(place[n] for n in c.names()) for c in constraints]
        self.tried: list[int] = []
        self.values: list[Callable[..., list[int]]] = []
        self.key: list[Callable[..., Any]] = []
        for k, parameter in enumerate(order):
            early = frozenset(names[:k])
            ending = [c for c, end in zip(constraints, last, strict=True) if end == k]
            pending = [c for c, end in zip(constraints, last, strict=True) if end >= k]
            further = [c for c in pending if c not in ending and parameter.name in c.names()]
            known = early | {parameter.name}
            possible = [_possible(source, c, known & c.names()) for c in further]
            values, tried = _values(source, parameter, ending, early, possible)
            self.tried.append(tried)
            self.values.append(source.function(names[:k], values))
            seen = dict.fromkeys(
                part for c in pending for part in _seen(source, c, early & c.names())
            )
            key = "".join(f"{part}, " for part in seen)
            self.key.append(source.function(names[:k], f"({key})"))

    def prefixes(self, length: int, given: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
        """The assignments of the first parameters that the conditions on them allow."""
        if len(given) == length:
            yield given
            return
        for value in self.values[len(given)](*given):
            yield from self.prefixes(length, (*given, value))


def _values(
    source: Source,
    parameter: Parameter,
    ending: list[Constraint],
    early: frozenset[str],
    possible: list[str],
) -> tuple[str, int]:
    """The source of the list of values that a parameter may take, and about how many are tried.

    The values satisfy the conditions that end here, and the tests `possible` of the others.
    """
    x = source.variables[parameter.name]
    domain = f"range({parameter.low}, {parameter.high + 1})"
    tried = parameter.high + 1 - parameter.low
    if tried > MANY:
        domain = f"checked({domain})"
    for constraint in ending:
        whole = divided(constraint, parameter.name)
        if whole is not None and whole.names() <= early:
            found = f"divisors({{}}, {parameter.low}, {parameter.high})"
            domain = _guarded(source, found, whole, otherwise="()")
            tried = min(tried, DIVISORS)
            break
    # Short tests first: most values fail one of them, and the long ones (memory) are not evaluated.
    conditions = [*filter(None, possible), *map(source.condition, sorted(ending, key=_effort))]
    tests = " and ".join(sorted(conditions, key=len))
    return f"[{x} for {x} in {domain}{f' if {tests}' if tests else ''}]", tried


@lru_cache(maxsize=1 << 12)
def _seen(source: Source, constraint: Constraint, early: frozenset[str]) -> tuple[str, ...]:
    """The sources of the quantities by which a condition depends on early parameters, cached."""
    return tuple(_seen_parts(source, constraint, early))


def _seen_parts(source: Source, constraint: Constraint, early: frozenset[str]) -> Iterator[str]:
    """`_seen`, part by part."""
    if constraint.names().isdisjoint(early):
        return
    if isinstance(constraint, AtMost) and (most := _extreme(source, constraint, early, most=True)):
        parts = "".join(f"{part}, " for part in _seen_apart(source, constraint, early))
        yield f"(None if {most} <= 0 else ({parts}))"
    else:
        yield from _seen_apart(source, constraint, early)


def _seen_apart(source: Source, constraint: Constraint, early: frozenset[str]) -> Iterator[str]:
    """`_seen` for a condition that late parameters can still break."""
    if isinstance(constraint, AtMost | Equal | Unequal):
        sides = [constraint.left, constraint.right]
        if all(_undivided(s) for s in sides):
            sides = [constraint.right - constraint.left]
    elif isinstance(constraint, Divides | OneOf):
        sides = [constraint.left, constraint.right]
    else:
        yield from (source.variables[n] for n in sorted(constraint.names() & early))
        return
    for side in sides:
        yield from _seen_of(source, side, early)


def _effort(constraint: Constraint) -> int:
    """A rank of how long a condition takes to check."""
    return (AtMost, Equal, Divides, type(constraint)).index(type(constraint))


def _undivided(size: Nat) -> bool:
    """Whether a natural has no division, so that its terms may be moved from side to side."""
    return all(isinstance(a, Var) for a in size.atoms()) and all(
        exponent > 0 for monomial in size.terms for _, exponent in monomial
    )


def _seen_of(source: Source, size: Nat, early: frozenset[str]) -> Iterator[str]:
    """The sources of numbers that determine a natural as a function of the late parameters.

    A part with early factors only is one number. Of the other terms, those with the same late
    factors are added up. Over a divisor with early factors, all these count in lowest terms only:
    the ratio of `a`, `b` and `c` determines `(a*x + b*y) // (c*z)`.
    """
    alone = nat(0)
    for over, under in size.fractions:
        fraction = over.exact_div(under)
        if fraction.names() <= early:
            alone = alone + fraction
            continue
        for a in dict.fromkeys(a for n in (over, under) for m in n.terms for a, _ in m):
            if not atom(a).names() <= early and not atom(a).names().isdisjoint(early):
                for part in a.parts():
                    yield from _seen_of(source, part, early)
        sums = _by_late(over, early)
        ((_, divisor),) = _by_late(under, early).items()
        if divisor.names():
            yield _guarded(source, f"ratio({'{}, ' * len(sums)}{{}})", *sums.values(), divisor)
            continue
        if under == 1:
            alone = alone + sums.pop((), 0)
        for total in sums.values():
            if total.names():
                yield _guarded(source, "{}", total)
    if alone.names():
        yield _guarded(source, "{}", alone)


def _by_late(size: Nat, early: frozenset[str]) -> dict[Monomial, Nat]:
    """A polynomial in the late factors: for each product of them, its coefficient in early ones."""
    sums: dict[Monomial, Nat] = {}
    for monomial, coefficient in size.terms.items():
        late = tuple(f for f in monomial if not atom(f[0]).names() <= early)
        mine = tuple(f for f in monomial if atom(f[0]).names() <= early)
        sums[late] = sums.get(late, nat(0)) + Nat({mine: coefficient})
    return sums


@lru_cache(maxsize=1 << 12)
def _possible(source: Source, constraint: Constraint, early: frozenset[str]) -> str:
    """The source of a test that fails only if no late parameters satisfy the condition."""
    least = (
        _extreme(source, constraint, early, most=False) if isinstance(constraint, AtMost) else ""
    )
    return f"{least} <= 0" if least else ""


def _extreme(source: Source, constraint: AtMost, early: frozenset[str], *, most: bool) -> str:
    """The source of a bound on `left - right` over the late parameters: an upper one if `most`.

    Empty if there is no evident bound, or if a divisor might be below 1.
    """
    if len(formulas(constraint, source.terms, infix)) > 1:
        return ""
    if _undivided(constraint.left) and _undivided(constraint.right):
        difference = _bound(source, constraint.left - constraint.right, early, most=most)
        return "" if difference is None else source.number(difference)
    left = _bound(source, constraint.left, early, most=most)
    right = _bound(source, constraint.right, early, most=not most)
    if left is None or right is None:
        return ""
    return f"({source.number(left)} - {source.number(right)})"


def _bound(source: Source, size: Nat, early: frozenset[str], *, most: bool) -> Nat | None:
    """A bound on a natural as a natural over the early parameters; factors must not be negative.

    A quotient lies between 0 and its numerator.
    """
    total = nat(0)
    for over, under in size.fractions:
        fraction = over.exact_div(under)
        if fraction.names() <= early:
            total = total + fraction
            continue
        for monomial, coefficient in over.terms.items():
            late = Nat({tuple(f for f in monomial if not atom(f[0]).names() <= early): 1})
            mine = Nat({tuple(f for f in monomial if atom(f[0]).names() <= early): 1})
            simple = under == 1 and (late == 1 or mine == 1)  # a bound on one side is enough
            if not simple and not all(_natural(source, a) for a, _ in monomial):
                return None
            low, high = late.substitute(source.sizes).bounds
            end = high if most == (coefficient > 0) else (low if under == 1 else 0)
            if end is None:
                return None
            total = total + mine * (coefficient * end)
    return total


def _natural(source: Source, factor: Atom) -> bool:
    """Whether a factor is evidently not negative."""
    low, _ = atom(factor).substitute(source.sizes).bounds
    return low is not None and low >= 0


def _guarded(source: Source, text: str, *sizes: Nat, otherwise: str = "None") -> str:
    """A source over the sources of naturals; `otherwise` if a divisor in them is below 1."""
    guards: list[Any] = []
    for term in source.terms.values():
        term.guards = guards
    filled = text.format(*(source.number(size) for size in sizes))
    return f"({filled} if {' and '.join(map(str, guards))} else {otherwise})" if guards else filled
