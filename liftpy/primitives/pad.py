"""`pad`: adds constant elements before and after an array, or crops it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Number
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.scalars import misfit
from liftpy.ir.types import BOOL, ArrayType, Type, scalars
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Pad(Layout):
    """Adds constant elements before and after an array; negative amounts crop.

    pad(left, right, value) : [a]n -> [a](left + n + right)
        element i is xs[i - left] if 0 <= i - left < n, else `value` in all of its scalars
    """

    name: ClassVar[str] = "pad"
    left: Nat
    right: Nat
    value: float

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        check_value(self.name, self.value, known)
        return ArrayType(known.element, self.left + known.length + self.right)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        length = array_of(self.name, xs).length
        yield at_least(1, length)
        yield at_least(1, self.left + length + self.right)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        length = xs.length

        def element(i: Index) -> Value:
            source = i - self.left
            condition = read.inside(source, length)
            return guarded(read, condition, xs[read.clip(source, xs)], self.value)

        return Pull(self.left + length + self.right, element)

    def border(self) -> tuple[Nat, ...]:
        return self.left, self.right

    def inverse(self, xs: Type) -> Primitive | None:
        """Padding, for a crop: elements that it leaves out are not written."""
        crops = all(
            amount.bounds[1] is not None and amount.bounds[1] <= 0
            for amount in (self.left, self.right)
        )
        return Pad(-self.left, -self.right, 0.0) if crops else None

    def adjoint(self, xs: Type) -> Primitive:
        return Pad(-self.left, -self.right, 0.0)

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        edge = constant_like(xs[0], self.value)
        return cropped([edge] * left + xs + [edge] * right, left, right)


def check_value(name: str, value: float, t: Type) -> None:
    """Refuse a number for all scalars of a type if it does not fit one of them."""
    for scalar in scalars(t):
        truth = scalar == BOOL and value not in {0, 1}
        if (why := "it is neither 0 nor 1" if truth else misfit(value, scalar)) is not None:
            raise TypeRefused(f"the value {value:g} of {name} does not fit {scalar}: {why}")


def cropped(padded: list[Any], left: int, right: int) -> list[Any]:
    """The padded array without the elements that negative amounts crop."""
    return padded[max(0, -left) : len(padded) - max(0, -right)]


def constant_like(x: Any, value: float) -> Any:
    """A value of the shape of `x` in which every scalar is `value`."""
    if isinstance(x, list):
        return [constant_like(y, value) for y in x]
    if isinstance(x, tuple):
        return tuple(constant_like(y, value) for y in x)
    scalar: Any = type(x)
    return scalar(value) if isinstance(x, Number) else value  # otherwise a term of the prover
