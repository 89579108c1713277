"""The text of names, naturals, types and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from liftpy.errors import InternalError
from liftpy.ir.nat import Applied, Extreme, Nat, Quotient, Remainder, Var
from liftpy.ir.polynomial import Atom
from liftpy.ir.scalars import as_float
from liftpy.ir.types import F32, INTEGERS, ArrayType, TupleType, Type, VectorType

RESERVED = frozenset(
    "fun laws def const let in true false inf nan and or not".split()  # noqa: SIM905
)


def show_name(name: str, words: Collection[str] = RESERVED) -> str:
    """A name, in backquotes if it could be mistaken for something else."""
    plain = re.fullmatch(r"[^\W\d]\w*", name) is not None
    return name if plain and name not in words else f"`{name}`"


def show_nat(n: Nat) -> str:
    """A natural; `//` and `%` have the precedence of `*` and associate to the left."""
    if not n.terms:
        return "0"
    terms = sorted(n.terms.items(), key=lambda t: (not t[0], tuple((a.key, e) for a, e in t[0])))
    terms.sort(key=lambda t: t[1] < 0)  # a leading minus reads badly
    text = ""
    for monomial, coefficient in terms:
        sign = (" - " if coefficient < 0 else " + ") if text else "-" if coefficient < 0 else ""
        text += sign + show_term(monomial, abs(coefficient), among=bool(text) or coefficient < 0)
    return text


def show_term(monomial: tuple[tuple[Atom, int], ...], coefficient: int, *, among: bool) -> str:
    """A product of atoms, those with negative exponents divided out."""
    over = [a for a, e in monomial for _ in range(e)]
    under = [a for a, e in monomial for _ in range(-e)]
    alone = len(over) == 1 and coefficient == 1 and not under and not among
    factors = [] if coefficient == 1 and over else [str(coefficient)]
    factors += [show_atom(a, alone=alone) for a in over]
    text = "*".join(factors)
    if not under:
        return text
    divisor = "*".join(show_atom(a, alone=False) for a in under)
    return f"{text}/^({divisor})" if len(under) > 1 else f"{text}/^{divisor}"


def show_atom(a: Atom, *, alone: bool) -> str:
    """A variable, or a quotient or remainder, in parentheses unless it is `alone`."""
    match a:
        case Var():
            return show_name(a.name)
        case Extreme():
            return f"{'max' if a.largest else 'min'}({', '.join(map(show_nat, a.parts()))})"
        case Quotient():
            op = "//"
        case Remainder():
            op = "%"
        case Applied(function=function, argument=argument):
            return f"{function}({show_nat(argument)})"
        case _:
            message = f"no text for the natural {a.key}"
            raise InternalError(message)
    numerator, denominator = a.parts()
    text = f"{operand(numerator, left=True)} {op} {operand(denominator, left=False)}"
    return text if alone else f"({text})"


def operand(n: Nat, *, left: bool) -> str:
    """A natural before or after `//` or `%`."""
    simple = n.constant is not None and n.constant >= 0
    if len(n.terms) == 1:
        ((monomial, coefficient),) = n.terms.items()
        product = coefficient > 0 and all(e > 0 and isinstance(a, Var) for a, e in monomial)
        simple = simple or (product and (left or (coefficient == 1 and len(monomial) == 1)))
        simple = simple and (left or all(e == 1 for _, e in monomial))
    return show_nat(n) if simple else f"({show_nat(n)})"


def show_type(t: Type) -> str:
    """A type."""
    match t:
        case ArrayType(element, length):
            return f"[{show_nat(length)}]{show_type(element)}"
        case VectorType(element, width):
            return f"<{show_nat(width)}>{show_type(element)}"
        case TupleType(elements):
            return f"({', '.join(map(show_type, elements))})"
        case _:
            return str(t)


def show_number(value: float, t: Type) -> str:
    """A scalar constant: without a suffix it is an f32."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_unknown(value):
        return str(value)
    digits = repr(int(value)) if t in INTEGERS else show_float(value)
    return digits if t == F32 else f"{digits}{t}"


def is_unknown(value: float) -> bool:
    """Whether a number is the unknown constant of a rule, which is shown as its name."""
    return isinstance(value, float) and "nan" not in str(value) and math.isnan(value)


def show_float(value: float) -> str:
    """A number as text that parses to the same one; a small integer has no decimal point."""
    if is_unknown(value):
        return str(value)
    exact = as_float(value)
    if isinstance(exact, int):
        return str(exact)
    whole = math.isfinite(exact) and exact.is_integer() and abs(exact) < 2**24
    if whole and not (exact == 0.0 and math.copysign(1, exact) < 0):
        return str(int(exact))
    return repr(exact)
