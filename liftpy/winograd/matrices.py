"""Matrices of exact rationals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import TypeAlias

from liftpy.errors import TransformRefused

Matrix: TypeAlias = tuple[tuple[Fraction, ...], ...]
Exact: TypeAlias = Fraction | int | str
"""The types of exact numbers; a text is an integer or a fraction, such as `-3/4`."""

EXACT_TEXT = re.compile(r"[+-]?[0-9]{1,18}(/0*[1-9][0-9]{0,17})?")


def exact(value: object, what: str) -> Fraction:
    """A number as a fraction. TransformRefused if it is inexact; `what` names it in the message.

    >>> exact("-3/4", "a point")
    Fraction(-3, 4)
    """
    if isinstance(value, Fraction) or (isinstance(value, int) and not isinstance(value, bool)):
        return Fraction(value)
    if isinstance(value, str) and EXACT_TEXT.fullmatch(value.strip()):
        return Fraction(value.strip())
    raise TransformRefused(
        f"{what} is refused: {value!r:.60} is not an exact number; the transforms are computed in "
        f"exact arithmetic. Give an integer or a fraction of at most 18 digits{near(value)}"
    )


def near(value: object) -> str:
    """A suggestion for an inexact number: the simple fraction that is nearest to it."""
    try:
        number = float(value) if isinstance(value, float | str) else math.inf
    except ValueError:
        number = math.inf
    if not abs(number) < 1e6:  # also of NaN
        return ", such as 1/2 or -2"
    return f", such as {Fraction(number).limit_denominator(64)}"


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
