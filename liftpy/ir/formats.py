"""Formats in which the numbers of a value may be stored, other than their own type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from liftpy.ir.types import I8, U8, ScalarType

GROUP = 32
"""How many adjacent numbers share a scale in the formats by groups."""


@dataclass(frozen=True, slots=True)
class Quantised:
    """A format of 8-bit integers q that stand for `scale * q`, or for `scale * (q - zero point)`.

    `shared` says which numbers share a scale, and a zero point if the integers are `u8`: those of
    a `row` (element of the outermost dimension; a vector is one row), those of a `group` of `GROUP`
    adjacent numbers of the innermost dimension, or all (`one`). With `i8`, the scale is the largest
    magnitude over 127. With `u8`, it is the range of the numbers, extended to contain 0, over 255,
    and 0 is exact. Integers are rounded to nearest, ties to even.
    """

    name: str
    integer: ScalarType
    shared: Literal["row", "group", "one"]

    def __str__(self) -> str:
        return self.name

    @property
    def steps(self) -> int:
        """The steps of the integers in the largest magnitude, or in the range with `u8`."""
        return 127 if self.integer == I8 else 255

    @property
    def spacing(self) -> float:
        """The largest distance between neighbouring values, relative to the largest magnitude.

        With `u8`, the range is up to twice the largest magnitude.
        """
        return (1 if self.integer == I8 else 2) / self.steps


QUANTISED = {
    made.name: made
    for made in (
        Quantised("q8", I8, "row"),
        Quantised("q8_group", I8, "group"),
        Quantised("q8_one", I8, "one"),
        Quantised("q8_zero", U8, "row"),
        Quantised("q8_group_zero", U8, "group"),
        Quantised("q8_one_zero", U8, "one"),
    )
}
"""The quantised formats by name."""

Format: TypeAlias = ScalarType | Quantised
"""How the numbers of a value are stored: in a storage type, or in a quantised format."""
