"""Arithmetic on ranges of integers: the least and the largest value, None if there is no bound.

Each function returns a range that contains every result for operands in the given ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

Bounds: TypeAlias = tuple[int | None, int | None]


def scaled(bounds: Bounds, by: int) -> Bounds:
    """The range of `by * x`."""
    low, high = (None if b is None else b * by for b in bounds)
    return (low, high) if by >= 0 else (high, low)


def of_product(factors: Iterable[tuple[Bounds, int]]) -> Bounds:
    """The range of a product of non-negative factors with exponents; unknown for other factors.

    A negative exponent is an exact division: the product is whole.
    """
    low: int | None = 1
    high: int | None = 1
    exact = False
    for (least, most), exponent in factors:
        if least is None or least < 0:
            return None, None
        if exponent < 0:
            exact = True
            high = high if least >= 1 else None
            continue
        low = low * least**exponent if low is not None else None
        high = None if high is None or most is None else high * most**exponent
    return (0 if exact else low), high


def of_quotient(numerator: Bounds, denominator: Bounds) -> Bounds:
    """The range of `numerator // denominator`; unknown unless the denominator is at least 1."""
    (low, high), (least, most) = numerator, denominator
    if least is None or least < 1:
        return None, None
    lowest = (
        None if low is None else (low // least if low < 0 else (0 if most is None else low // most))
    )
    highest = (
        None
        if high is None
        else (high // least if high >= 0 else (-1 if most is None else high // most))
    )
    return lowest, highest


def of_remainder(numerator: Bounds, denominator: Bounds) -> Bounds:
    """The range of `numerator % denominator`; unknown unless the denominator is at least 1."""
    (low, high), (least, most) = numerator, denominator
    if least is None or least < 1:
        return None, None
    top = None if most is None else most - 1
    if low is not None and low >= 0 and high is not None:
        top = high if top is None else min(top, high)
    return 0, top


def of_maximum(left: Bounds, right: Bounds) -> Bounds:
    """The range of the larger of two numbers."""
    (low, high), (least, most) = left, right
    top = None if high is None or most is None else max(high, most)
    return (least if low is None else low if least is None else max(low, least)), top


def of_minimum(left: Bounds, right: Bounds) -> Bounds:
    """The range of the smaller of two numbers."""
    (low, high), (least, most) = left, right
    bottom = None if low is None or least is None else min(low, least)
    return bottom, (most if high is None else high if most is None else min(high, most))
