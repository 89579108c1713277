"""Suggestions for a call whose numbers violate a condition: numbers that satisfy it."""

from __future__ import annotations

import math
from dataclasses import fields, replace

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, Divides
from liftpy.ir.expr import Expr
from liftpy.ir.nat import nat
from liftpy.ir.primitive import Primitive, index_fields
from liftpy.ir.scalars import bounds, misfit
from liftpy.ir.types import Type, scalars

REACH = 64  # the search covers numbers at most this far away
LISTED, SHOWN = 12, 8  # the most numbers listed one by one; the most ranges shown otherwise


def broken_condition(primitive: Primitive, operands: tuple[Expr, ...]) -> Constraint | None:
    """The first condition of a call that does not hold; None if the types do not fit."""
    try:
        conditions = list(primitive.conditions(*(o.type for o in operands)))
    except TypeRefused:
        return None  # the refusal names the types
    return next((c for c in conditions if c.known() is False), None)


def sizes_that_work(primitive: Primitive, operands: tuple[Expr, ...]) -> tuple[str, ...]:
    """Numbers with which a call has a type, in place of numbers that violate a condition.

    The search changes one number at a time, to nearby numbers and to all divisors of a length that
    the number must divide.
    """
    if broken_condition(primitive, operands) is None or index_fields(type(primitive)):
        return ()
    types = tuple(o.type for o in operands)
    numbers = {n: size.constant for n, size in primitive.numbers().items()}
    lines: list[str] = []
    for name, number in numbers.items():
        if number is None:
            continue
        near = range(number - REACH, number + REACH + 1)
        lengths = [
            c.right.constant or 0 for c in primitive.conditions(*types) if isinstance(c, Divides)
        ]
        divisors = {
            d
            for n in lengths
            if n > 0
            for k in range(1, math.isqrt(n) + 1)
            if n % k == 0
            for d in (k, n // k)
        }
        works = [
            v
            for v in sorted({*near, *divisors})
            if has_type(replace(primitive, **{name: nat(v)}), types)
        ]
        if works:
            found = runs(works, number)
            alone = len(numbers) == 1
            lines.append(f"sizes that work: {found}" if alone else f"{name}: {found} would work")
    return tuple(lines)


def values_that_work(primitive: Primitive, operands: tuple[Expr, ...]) -> tuple[str, ...]:
    """The ranges of numbers that fit, if an element given to a layout does not fit its type."""
    values = [getattr(primitive, f.name) for f in fields(primitive) if f.type == "float"]
    kinds = [s for o in operands for s in dict.fromkeys(scalars(o.type))]
    return tuple(bounds(s) for s in kinds if any(misfit(v, s) is not None for v in values))


def has_type(primitive: Primitive, types: tuple[Type, ...]) -> bool:
    """Whether a call of a primitive on these types has a type."""
    try:
        primitive.result(*types)
    except TypeRefused:
        return False
    return True


def runs(numbers: list[int], near: int) -> str:
    """Ascending numbers as text: a list, or if they are many, the ranges nearest to `near`."""
    if len(numbers) <= LISTED:
        return ", ".join(map(str, numbers))
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = sorted(sorted(found, key=lambda r: min(abs(r[0] - near), abs(r[1] - near)))[:SHOWN])
    return ", ".join(run(low, high, near) for low, high in shown)


def run(low: int, high: int, near: int) -> str:
    """A range of numbers as text; at an end of the search, the range is open."""
    if high == near + REACH:
        return f"{low} and more"
    if low == near - REACH:
        return f"up to {high}"
    return f"{low}" if low == high else f"{low} .. {high}"
