"""`slide`, `slideStrict` and `unslide`: overlapping windows of an array, and the inverse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least, at_most, divides, equal
from liftpy.ir.expr import Layout, Primitive
from liftpy.ir.nat import Nat, least
from liftpy.ir.pull import Index, Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of, array_of_arrays
from liftpy.primitives.split import Split


@dataclass(frozen=True)
class Slide(Layout):
    """Makes overlapping windows of an array; an incomplete last window is dropped.

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


@dataclass(frozen=True)
class SlideStrict(Slide):
    """Makes overlapping windows of an array; the last one must end at the end of the array.

    slideStrict(size, step) : [a]n -> [[a]size]w        element (i, j) is xs[i*step + j]
                              w = (n - size) / step + 1;  n >= size;  step divides n - size
    """

    name: ClassVar[str] = "slideStrict"
    by_definition: ClassVar[Mapping[str, str]] = {
        "step divides n - size": "no element is left over: this is the difference from `slide`",
        "1 <= step": "`step divides n - size` implies it; stated for a better message",
    }

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield from super().requires(xs)
        yield divides(self.step, array_of(self.name, xs).length - self.size)


@dataclass(frozen=True)
class Unslide(Layout):
    """Merges overlapping windows: an element comes from the last window that begins before it.

    unslide(size, step) : [[a]size]w -> [a]((w - 1)*step + size);  step <= size
        element k is xss[i][k - i*step] where i is min(k / step, w - 1)
    """

    name: ClassVar[str] = "unslide"
    size: Nat
    step: Nat

    def type_of(self, xss: Type) -> Type:
        outer, inner = array_of_arrays(self.name, xss)
        return ArrayType(inner.element, (outer.length - 1) * self.step + self.size)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        outer, inner = array_of_arrays(self.name, xss)
        yield at_least(1, outer.length)
        yield equal(inner.length, self.size)
        yield at_least(1, self.step)
        yield at_most(self.step, self.size)

    def meaning(self, read: Reader, xss: Pull) -> Value:
        step, last = self.step, xss.length - 1

        def element(k: Index) -> Value:
            i = least(k // step, last)
            return xss[i][k - i * step]

        return Pull(last * step + self.size, element)

    def reference(self, xss: list[Any]) -> list[Any]:
        *others, last = xss
        return [x for window in others for x in window[: int(self.step)]] + last

    def inverse(self, xss: Type) -> Primitive | None:
        """None if windows overlap: two of them may hold different values for one element."""
        return Split(self.size) if self.size == self.step else None
