"""`slide`: overlapping windows of an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.expr import Primitive
from liftpy.ir.nat import Nat
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Slide(Primitive):
    """Overlapping windows; an incomplete last window is dropped.

    slide(size, step) : [a]n -> [[a]size]w        element (i, j) is xs[i*step + j]
                        w = (n - size) / step + 1;  n >= size
    """

    name: ClassVar[str] = "slide"
    size: Nat
    step: Nat

    def windows(self, length: Any) -> Any:
        """The number of complete windows."""
        return (length - self.size) // self.step + 1

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(ArrayType(known.element, self.size), self.windows(known.length))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.size)
        yield at_least(1, self.step)
        yield at_least(self.size, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        step = self.step
        return Pull(self.windows(xs.length), lambda i: Pull(self.size, lambda j: xs[i * step + j]))

    def reference(self, xs: list[Any]) -> list[Any]:
        size, step = int(self.size), int(self.step)
        return [xs[start : start + size] for start in range(0, len(xs) - size + 1, step)]
