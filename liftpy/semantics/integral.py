"""Laws of integers between arrays, proved as equalities of polynomials with ranges.

Both sides are read as polynomials (`polynomial.py`) of integers: elements of arrays of narrow
integers, whose types give their ranges. Numbers of i32 are kept modulo 2^32 by `+`, `-` and `*`,
so what is equal as integers is equal as i32, whatever wraps around before. Two operations need
more, and the ranges of polynomials show it, under the conditions of the rule on its sizes:

- A result in f32 is not rounded if it is an integer of at most 24 bits times a power of two.
- A quotient in i32 is that of the integers if the dividend does not wrap around and is a multiple
  of the divisor.

A number of an unsigned type is read as the middle of its range, plus a variable: `x` of u8 is
`128 + v`, with `v` from -128 to 127. So the range of `x - 128` is known, also in sums of products.

A fold over strips is read as one over all elements: `sum(i < c // m, sum(j < m, x[m * i + j]))` is
`sum(k < c, x[k])` if m divides c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from liftpy.ir.constraint import AtMost, Constraint, Divides
from liftpy.ir.denote import denote
from liftpy.ir.nat import Nat, NatLike, Var, atom, nat
from liftpy.ir.pull import Index, Value
from liftpy.ir.types import F32, I32, INTEGERS, ScalarType, Type, integer_range
from liftpy.rewrite.exactness import LARGEST_EXACT
from liftpy.rewrite.rule import Assumption, Rule
from liftpy.semantics.polynomial import (
    Monomial,
    Named,
    Polynomial,
    PolynomialReader,
    Total,
    mentions,
    same,
    summed,
)
from liftpy.semantics.refute import hypotheses
from liftpy.semantics.symbolic import components
from liftpy.semantics.verdict import Open

UNROUNDED = "no result in f32 is rounded"
DIVIDES = "quotients of i32 are those of integers"
AGREE = "elements are the same polynomial of integers"
LARGEST_I32 = 2**31 - 1

Range = tuple[Nat, Nat]
"""The least and the greatest value, which may depend on sizes."""


@dataclass(frozen=True)
class Number:
    """A polynomial that is computed in a type."""

    polynomial: Polynomial
    type: Type

    def plus(self, other: Number, factor: int = 1) -> Polynomial:
        """The polynomial `self + factor * other`."""
        return self.polynomial.plus(other.polynomial, factor)

    def __str__(self) -> str:
        return str(self.polynomial)


class IntegralReader(PolynomialReader):
    """Reads i32, f32 and narrow integers as polynomials with the types they are computed in.

    `results` are the polynomials that must not be rounded (F32), or must not wrap around (I32).
    """

    def __init__(self, assuming: tuple[Assumption, ...], given: Sequence[Constraint] = ()) -> None:
        super().__init__(assuming, given)
        self.given = tuple(given)
        sides = (side for condition in given for side in (condition.left, condition.right))
        atoms = (a for side in sides for a in side.atoms())
        self.sizes = {a.name: atom(a) for a in atoms if isinstance(a, Var)}  # with their ranges
        self.results: dict[tuple[Polynomial, Type], None] = {}
        self.types: dict[str, ScalarType] = {}
        self.reached: dict[str, Range] = {}  # what accumulators may be, by their names

    def leaf(self, name: str, t: Type, *args: Hashable) -> Value:
        found = super().leaf(name, t, *args)
        if not isinstance(found, Polynomial) or not isinstance(t, ScalarType):
            return found
        self.types[name] = t
        return Number(found.plus(Polynomial.constant(middle(t))), t)

    def literal(self, value: float, t: Type) -> Value:
        if t not in {I32, F32} or not abs(value) <= LARGEST_EXACT or value != int(value):
            polynomial = super().literal(value, t)  # a fraction that f32 has
        else:
            polynomial = Polynomial.constant(int(value))
        return Number(polynomial, t)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        types = {a.type for a in args}
        if op in {"i32", "f32"} and len(types) == 1:
            return self.converted(args[0], I32 if op == "i32" else F32)
        if len(types) != 1 or not types <= {I32, F32}:
            raise Open(AGREE, f"`{op}` of {', '.join(map(str, types))} is not read")
        (t,) = types
        if op == "/" and t == I32:
            for number in args:  # neither of them wraps around
                self.results[number.polynomial, I32] = None
        elif op == "/":
            raise Open(AGREE, "OpenCL permits a division of f32 that is not rounded correctly")
        read: Polynomial = super().operate(op, tuple(a.polynomial for a in args))
        return self.result(Number(read, t))

    def result(self, number: Number) -> Number:
        """A number of f32 or i32, with what it needs."""
        if number.type == F32:
            self.results[number.polynomial, F32] = None
        elif any(x.denominator != 1 for x in number.polynomial.terms.values()):
            raise Open(DIVIDES, f"{number} is no integer")
        return number

    def converted(self, number: Number, t: Type) -> Number:
        """A number in another type: an integer that both have."""
        if number.type == F32 and t == I32:
            self.result(number)
        if t in {I32, F32} and number.type in {*INTEGERS, F32}:
            return self.result(Number(number.polynomial, t))
        raise Open(AGREE, f"a conversion of {number.type} to {t} is not read")

    def unknown(self, function: Any, args: tuple[Value, ...]) -> Value:
        if self.laws.get(function.name) != "accumulates":
            return super().unknown(function, args)
        total, pair = args
        x, y = components(pair)
        if total.type != I32:
            raise Open(AGREE, f"{function.name} accumulates in {total.type}, not in i32")
        return Number(total.polynomial.plus(x.polynomial.times(y.polynomial)), I32)

    def fold(self, length: NatLike, init: Value, step: Callable[[Index, Value], Value]) -> Value:
        number = nat(length).constant
        if number is not None or not isinstance(init, Number):
            return super().fold(length, init, step)
        length = nat(length).substitute(self.sizes)
        self.states += 1
        counter, state = f"counter {self.states}#", f"state {self.states}#"
        before = Polynomial.variable(Named(state, ()))
        self.lengths[counter] = length
        try:
            after = step(atom(Var(counter)), Number(before, init.type))
        finally:
            del self.lengths[counter]
        added = after.polynomial.plus(before, -1)
        if mentions(added, state):
            raise Open(AGREE, f"a step of a fold over {length} elements does more than add")
        if init.type == F32:
            self.reached[state] = self.before(init.polynomial, added, length - 1)
        total = self.joined(summed(added, counter, length))
        return Number(init.polynomial.plus(total), init.type)

    def before(self, init: Polynomial, added: Polynomial, steps: Nat) -> Range:
        """The range of an accumulator after at most some steps."""
        (low, high), (down, up) = self.ends(init), self.ends(added)
        least, most = down.constant, up.constant
        if least is None or most is None:
            raise Open(UNROUNDED, f"{added} has no known range, and a fold in f32 adds it")
        return low + steps * min(least, 0), high + steps * max(most, 0)

    def joined(self, polynomial: Polynomial) -> Polynomial:
        """A polynomial whose sums over strips are sums over all elements."""
        total: dict[Monomial, Fraction] = {}
        for product, x in polynomial.terms.items():
            whole = frozenset((self.in_one(v), e) for v, e in product)
            total[whole] = total.get(whole, Fraction(0)) + x
        return Polynomial.of(total)

    def in_one(self, variable: Hashable) -> Hashable:
        """A sum over strips of sums over their elements, as one sum; any other variable as it is.

        The elements of the sum may depend on the counters as `m * strip + element` only.
        """
        strips = sum_of(variable)
        inner = None if strips is None else [*strips.product]
        strip = sum_of(inner[0][0]) if inner and [e for _, e in inner] == [1] else None
        if strips is None or strip is None:
            return variable
        length = self.product(strips.length, strip.length)
        if length is None:
            return variable
        place = atom(Var(strip.counter)) - atom(Var(strips.counter)) * strip.length
        product = frozenset((substituted(v, strip.counter, place), e) for v, e in strip.product)
        if any(mentions(v, strips.counter) for v, _ in product):
            return variable
        return Total(strip.counter, length, product)

    def product(self, count: Nat, strip: Nat) -> Nat | None:
        """The length of an array of `count` strips; None if the strips are not known to fill it."""
        if strip.constant is not None or count.constant is not None:
            return None
        for condition in self.given:
            fills = isinstance(condition, Divides) and condition.left == strip
            if fills and condition.right // strip == count:
                return condition.right
        return None

    def ends(self, polynomial: Polynomial) -> Range:
        """The least and the greatest value of a polynomial; raises `Open` if it has none."""
        low = high = nat(0)
        for product, x in polynomial.terms.items():
            if x.denominator != 1:
                raise Open(UNROUNDED, f"{polynomial} is no integer")
            ends = [end * int(x) for end in self.ends_of(product)]
            low, high = low + ends[x < 0], high + ends[x > 0]
        return low, high

    def ends_of(self, product: Monomial) -> Range:
        """The range of a product of variables: of numbers, or one sum or accumulator alone."""
        found: Range = nat(1), nat(1)
        for variable, exponent in product:
            own = self.ends_of_variable(variable)
            if len(product) == exponent == 1:
                return own
            ends = [end.constant for end in (*found, *own)]
            if exponent != 1 or None in ends:
                raise Open(UNROUNDED, f"{variable} has no range in a product")
            a, b, c, d = (end for end in ends if end is not None)
            values = [a * c, a * d, b * c, b * d]
            found = nat(min(values)), nat(max(values))
        return found

    def ends_of_variable(self, variable: Hashable) -> Range:
        """The range of an element, of an accumulator, or of a sum."""
        match variable:
            case Named(name, ()) if name in self.reached:
                return self.reached[name]
            case Named(name, _) if name in self.types and self.types[name] in INTEGERS:
                least, most = integer_range(self.types[name])
                return nat(least - middle(self.types[name])), nat(most - middle(self.types[name]))
            case Total(_, length, inside):
                down, up = self.ends_of(inside)
                return length * down, length * up
            case _:
                raise Open(UNROUNDED, f"{variable} has no range")

    def is_at_most(self, size: Nat, limit: int) -> bool:
        """Whether the conditions of the rule limit a size."""
        rest = nat(limit) - size
        slacks = (c.right - c.left for c in self.given if isinstance(c, AtMost))
        return any(
            (least := (rest - slack).bounds[0]) is not None and least >= 0
            for slack in (nat(0), *slacks)
        )

    def check(self) -> None:
        """Show what all results need; raises `Open`."""
        for polynomial, t in self.results:
            obligation, limit = (UNROUNDED, LARGEST_EXACT) if t == F32 else (DIVIDES, LARGEST_I32)
            unit = math.lcm(1, *(x.denominator for x in polynomial.terms.values()))
            if unit & (unit - 1) or (unit > 1 and t == I32):
                raise Open(obligation, f"{polynomial} is a multiple of 1/{unit}")
            whole = Polynomial.of({p: x * unit for p, x in polynomial.terms.items()})
            low, high = self.ends(whole)
            if not (self.is_at_most(high, limit) and self.is_at_most(-low, limit)):
                raise Open(obligation, f"{whole} is from {low} to {high}, beyond {limit}")


def middle(t: ScalarType) -> int:
    """The middle of the range of an unsigned type; 0 for other types."""
    return 0 if t not in INTEGERS else (sum(integer_range(t)) + 1) // 2


def sum_of(variable: Hashable) -> Total | None:
    """A variable that is a sum; None for any other."""
    return variable if isinstance(variable, Total) else None


def substituted(value: Any, counter: str, place: Nat) -> Any:
    """A variable of a polynomial with a size for a counter; raises `Open` for sums with it."""
    match value:
        case Nat():
            return value.substitute({counter: place})
        case Named(name, args):
            return Named(name, tuple(substituted(a, counter, place) for a in args))
        case _ if mentions(value, counter):
            raise Open(AGREE, f"{value} is summed over strips")
        case _:
            return value


def show_integral(rule: Rule) -> list[str]:
    """Show that both sides are the same integers; raises `Open`. Returns what was shown."""
    read = IntegralReader(rule.assuming, hypotheses(rule))
    env = {p: read.leaf(p.name, p.type) for p in rule.left.free | rule.right.free}
    same(denote(rule.left, env, read), denote(rule.right, env, read), read)
    read.check()
    return [AGREE, UNROUNDED, DIVIDES]
