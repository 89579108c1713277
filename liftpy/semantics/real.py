"""Laws of real numbers between scalars, and whether they hold for floating-point numbers.

A law is proved twice. For real numbers, it has to hold wherever no divisor is 0. In z3's theory of
floating-point arithmetic, both sides have to agree to the bit wherever a divisor is 0, infinite or
NaN. Elsewhere the sides differ by rounding, and where an intermediate result overflows or
underflows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import z3

from liftpy.ir.denote import denote
from liftpy.ir.operators import OPERATORS
from liftpy.ir.pull import Value
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import FLOATS, Type
from liftpy.rewrite.rule import Rule
from liftpy.semantics.agree import Proof
from liftpy.semantics.smt import Terms
from liftpy.semantics.symbolic import SymbolicReader
from liftpy.semantics.verdict import Open

REAL = "both sides are the same real number where no divisor is 0"
BEYOND = "both sides are the same to the bit where a divisor is 0, infinite or NaN"

#: Bits of the exponent and of the significand.
FORMATS = {
    name: (record.exponent, record.significand)
    for name, record in RECORDS.items()
    if record.kind == "float"
}

#: The operators that z3 interprets for numbers: z3's functions of floats, which round.
ROUNDED: dict[str, Callable[..., Any]] = {
    name: getattr(z3, record.z3)
    for name, record in OPERATORS.items()
    if record.z3 and record.operands == "numbers"
}


class RealReader(SymbolicReader):
    """Reads floating-point scalars as real numbers, and collects the divisors."""

    def __init__(self, terms: Terms) -> None:
        super().__init__(terms)
        self.divisors: list[Any] = []

    def sort(self, t: Type) -> Any:
        return self.numbers(t) if t in FLOATS else super().sort(t)

    def numbers(self, t: Type) -> Any:
        """The sort of the numbers of a floating-point type."""
        return z3.RealSort(self.terms.context)

    def literal(self, value: float, t: Type) -> Value:
        return self.number(value, t) if t in FLOATS else super().literal(value, t)

    def number(self, value: float, t: Type) -> Any:
        """A constant of a floating-point type."""
        return z3.RealVal(value, self.terms.context)

    def operate(self, op: str, args: tuple[Value, ...]) -> Value:
        terms = [self.scalar(a) for a in args]
        if op not in ROUNDED or not isinstance(terms[0], z3.ArithRef | z3.FPRef):
            return super().operate(op, args)
        if op == "/":
            self.divisors.append(terms[1])
        return self.computed(op, terms)

    def computed(self, op: str, terms: list[Any]) -> Any:
        """An operator of arithmetic applied to numbers."""
        return OPERATORS[op].reference(*terms)


class FloatReader(RealReader):
    """Reads floating-point scalars as such: each operator rounds to the nearest."""

    def numbers(self, t: Type) -> Any:
        return z3.FPSort(*FORMATS[str(t)], self.terms.context)

    def number(self, value: float, t: Type) -> Any:
        return z3.FPVal(value, None, self.numbers(t), self.terms.context)

    def computed(self, op: str, terms: list[Any]) -> Any:
        context = self.terms.context
        if op == "neg":
            return ROUNDED[op](terms[0], context)
        return ROUNDED[op](z3.RoundNearestTiesToEven(context), *terms, context)


def show_real(rule: Rule, proof: Proof) -> None:
    """Show a law of real numbers; raises `Open`."""
    if rule.left.type not in FLOATS:
        raise Open(REAL, f"the left side is {rule.left.type}, not a floating-point scalar")
    reals, floats = RealReader(proof.terms), FloatReader(proof.terms)
    one, two = read(rule, reals)
    proof.show(REAL, one == two, [divisor != 0 for divisor in reals.divisors])
    one, two = read(rule, floats)
    if reals.named or floats.named:
        raise Open(REAL, "a side mentions a fold or an array by a name")
    for divisor in floats.divisors:
        for special in specials(divisor):
            proof.show(BEYOND, z3.substitute(one == two, (divisor, special)))


def specials(number: Any) -> tuple[Any, ...]:
    """The floating-point numbers without a reciprocal, or with the reciprocal 0."""
    sort = number.sort()
    zeros = (z3.fpZero(sort, negative) for negative in (False, True))
    infinities = (z3.fpInfinity(sort, negative) for negative in (False, True))
    return *zeros, *infinities, z3.fpNaN(sort)


def read(rule: Rule, reader: RealReader) -> tuple[Any, Any]:
    """Both sides of a rule as terms."""
    env = {p: reader.leaf(p.name, p.type) for p in rule.left.free | rule.right.free}
    return denote(rule.left, env, reader), denote(rule.right, env, reader)
