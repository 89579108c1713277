"""`pad`: constant elements before and after an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.expr import Primitive
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.scalars import misfit
from liftpy.ir.types import BOOL, ArrayType, Type, scalars
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Pad(Primitive):
    """Constant elements before and after; negative amounts crop.

    pad(left, right, value) : [a]n -> [a](left + n + right)
        element i is xs[i - left] where 0 <= i - left < n, else `value` in all of its scalars
    """

    name: ClassVar[str] = "pad"
    left: Nat
    right: Nat
    value: float

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        for scalar in scalars(known):
            truth = scalar == BOOL and self.value not in {0, 1}
            if (
                why := "it is neither 0 nor 1" if truth else misfit(self.value, scalar)
            ) is not None:
                raise TypeRefused(f"pad with {self.value:g} does not fit {scalar}: {why}")
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
            return guarded(read, condition, xs[read.clip(source, length)], self.value)

        return Pull(self.left + length + self.right, element)

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        body = xs[max(0, -left) : len(xs) - max(0, -right)]
        edge = constant_like(xs[0], self.value)
        return [edge] * left + body + [edge] * right


def constant_like(x: Any, value: float) -> Any:
    """A value of the shape of `x` that is constant."""
    if isinstance(x, list):
        return [constant_like(y, value) for y in x]
    return tuple(constant_like(y, value) for y in x) if isinstance(x, tuple) else value
