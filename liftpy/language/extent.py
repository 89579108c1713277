"""Limits on types and sizes that a short program could make exponentially large."""

from __future__ import annotations

from typing import TypeVar

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat
from liftpy.ir.types import ArrayType, TupleType, Type, VectorType

E = TypeVar("E", bound=Expr)

#: The most values of a tuple, including those of the tuples in it.
MOST_PARTS = 4096
#: The most products of terms that are computed to multiply two sizes.
MOST_PRODUCTS = 1 << 10
#: The most terms of a length; the conditions of a program are evaluated at many points.
MOST_TERMS = 1 << 12


def limited(expr: E) -> E:
    """The expression; TypeRefused if its type has too many parts, or a length too many terms."""
    if has_too_many_parts(expr.type):
        message = (
            f"a tuple has more than {MOST_PARTS} values, including those of the tuples in it\n"
            "  a tuple that holds another tuple twice has twice as many values\n"
            "  use an array for values of one type"
        )
        raise TypeRefused(message)
    most = max((len(length.terms) for length in expr.type.lengths()), default=0)
    if most > MOST_TERMS:
        message = (
            f"a length has too many terms: {most}\n"
            f"  a length may have {MOST_TERMS} terms\n"
            "  name a part of the length as a size of its own"
        )
        raise TypeRefused(message)
    return expr


def has_too_many_parts(t: Type) -> bool:
    """Whether a type has more than `MOST_PARTS` parts that are not tuples; it counts no further."""
    waiting, found = [t], 0
    while waiting:
        part = waiting.pop()
        while isinstance(part, ArrayType | VectorType):
            part = part.element
        if isinstance(part, TupleType):
            waiting += part.elements
        else:
            found += 1
        if found + len(waiting) > MOST_PARTS:
            return True
    return False


def product(left: Nat, right: Nat) -> Nat:
    """The product of two sizes; TypeRefused if it has too many terms."""
    if len(left.terms) * len(right.terms) > MOST_PRODUCTS:
        message = (
            f"a product of sizes has too many terms: {len(left.terms)} times {len(right.terms)}\n"
            f"  at most {MOST_PRODUCTS} products of terms are written out\n"
            "  name a part of the product as a size of its own"
        )
        raise TypeRefused(message)
    return left * right
