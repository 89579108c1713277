"""Matrices of exact rationals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from liftpy.errors import TransformRefused

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]
Exact: TypeAlias = Fraction | int | str
"""What a number may be given as: a text is an integer or a fraction, such as `-3/4`."""

EXACT_TEXT = re.compile(r"[+-]?[0-9]{1,18}(/0*[1-9][0-9]{0,17})?")


def exact(value: object, what: str) -> Fraction:
    """A number as a fraction; `what` names it in the message. TransformRefused if it is inexact.

    >>> exact("-3/4", "a point")
    Fraction(-3, 4)
    """
    if isinstance(value, Fraction) or (isinstance(value, int) and not isinstance(value, bool)):
        return Fraction(value)
    if isinstance(value, str) and EXACT_TEXT.fullmatch(value.strip()):
        return Fraction(value.strip())
    raise TransformRefused(
        f"{what} is refused: {value!r} is not an exact number; the transforms are computed in "
        f"exact arithmetic. Give an integer or a fraction of integers{near(value)}"
    )


def near(value: object) -> str:
    """The simple fraction that an inexact number probably means, as a suggestion."""
    try:
        found = Fraction(value).limit_denominator(64) if isinstance(value, float | str) else None
    except (ValueError, OverflowError, ZeroDivisionError):
        found = None
    return ", such as 1/2 or -2" if found is None else f", such as {found}"


def matrix(rows: Iterable[Iterable[Fraction | int]]) -> Matrix:
    """A matrix of integers and fractions.

    >>> matrix([[1, Fraction(1, 2)]])
    ((Fraction(1, 1), Fraction(1, 2)),)
    """
    return tuple(tuple(Fraction(x) for x in row) for row in rows)


def identity(n: int) -> Matrix:
    """The identity matrix of n rows."""
    return matrix([int(i == j) for j in range(n)] for i in range(n))


def columns(a: Matrix) -> int:
    """The number of columns."""
    return len(a[0]) if a else 0


def times(a: Matrix, x: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """A matrix times a vector.

    >>> times(matrix([[1, 2], [0, 3]]), matrix([[1, 1]])[0])
    (Fraction(3, 1), Fraction(3, 1))
    """
    return tuple(sum((c * v for c, v in zip(row, x, strict=True) if c), Fraction(0)) for row in a)


def kronecker(left: Matrix, right: Matrix) -> Matrix:
    """The matrix that maps X to `left X right^T`, both flattened row by row.

    >>> kronecker(matrix([[1, 2]]), matrix([[3], [5]]))
    ((Fraction(3, 1), Fraction(6, 1)), (Fraction(5, 1), Fraction(10, 1)))
    """
    return tuple(tuple(x * y for x in a for y in b) for a in left for b in right)
