"""`slide` and its kin: overlapping windows of an array, the inverse, and the adjoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.call import call
from liftpy.ir.constraint import Constraint, at_least, at_most, divides, equal
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, least
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.concat import Concat, Drop, Take
from liftpy.primitives.generate import Repeat
from liftpy.primitives.map import Map, array_of, array_of_arrays
from liftpy.primitives.pad import check_value, constant_like
from liftpy.primitives.split import Join, Split


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

    def equivalent(self, xs: Expr) -> Expr:
        """Windows of copies of each element: its adjoint adds what comes from each window."""
        x = Param("x", array_of(self.name, xs.type).element)
        each = Map(Lambda((x,), call(Repeat(holders(self.size, self.step)), x)))
        return call(SlideCopies(self.size, self.step), call(each, xs))


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

    def equivalent(self, xs: Expr) -> Expr | None:
        """The first `step` elements of every window, and the rest of the last one.

        None if it is not known whether there are two windows.
        """
        count = array_of(self.name, xs.type).length
        if count == 1:
            return call(Join(), xs)
        if (count.bounds[0] or 0) < 2:
            return None
        window = Param("window", array_of(self.name, xs.type).element)
        shorter = Map(Lambda((window,), call(Take(self.step), window)))
        first = call(Join(), call(shorter, call(Take(count - 1), xs)))
        return call(Concat(), first, call(Join(), call(Drop(count - 1), xs)))

    def inverse(self, xss: Type) -> Primitive | None:
        """None if windows overlap: two of them may hold different values for one element."""
        return Split(self.size) if self.size == self.step else None


def holders(size: Any, step: Any) -> Any:
    """The most windows of `size` elements that contain one element, if they are `step` apart."""
    return (size + step - 1) // step


@dataclass(frozen=True)
class SlideCopies(Layout):
    """Makes overlapping windows of an array whose elements have a copy for each window.

    slideCopies(size, step) : [[a]k]n -> [[a]size]w
        element (i, j) is xss[i*step + j][j / step]
        w = (n - size) / step + 1;  n >= size;  k = (size + step - 1) / step
    """

    name: ClassVar[str] = "slideCopies"
    size: Nat
    step: Nat

    def type_of(self, xss: Type) -> Type:
        outer, inner = array_of_arrays(self.name, xss)
        windows = Slide(self.size, self.step).windows(outer.length)
        return ArrayType(ArrayType(inner.element, self.size), windows)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        outer, inner = array_of_arrays(self.name, xss)
        yield at_least(1, self.size)
        yield at_least(1, self.step)
        yield at_least(self.size, outer.length)
        yield equal(inner.length, holders(self.size, self.step))

    def meaning(self, read: Reader, xss: Pull) -> Value:
        size, step = self.size, self.step
        windows = Slide(size, step).windows(xss.length)
        return Pull(windows, lambda i: Pull(size, lambda j: xss[i * step + j][j // step]))

    def reference(self, xss: list[Any]) -> list[Any]:
        size, step = int(self.size), int(self.step)
        starts = range(0, len(xss) - size + 1, step)
        return [[xss[start + j][j // step] for j in range(size)] for start in starts]

    def inverse(self, xss: Type) -> Primitive | None:
        return Overlaps(array_of_arrays(self.name, xss)[0].length, self.step, 0.0)


@dataclass(frozen=True)
class Overlaps(Layout):
    """Makes, for each element of an array, its copies in the windows that contain it.

    overlaps(n, step, value) : [[a]size]w -> [[a]k]n
        element (i, t) is xss[i/step - t][i%step + t*step] if that is in a window, else `value` in
        all of its scalars;  w = (n - size) / step + 1;  n >= size;  k = (size + step - 1) / step
    """

    name: ClassVar[str] = "overlaps"
    by_definition: ClassVar[Mapping[str, str]] = {
        "1 <= m": "a window has an element; without any, no element has a copy"
    }
    length: Nat
    step: Nat
    value: float

    def type_of(self, xss: Type) -> Type:
        inner = array_of_arrays(self.name, xss)[1]
        check_value(self.name, self.value, inner.element)
        return ArrayType(ArrayType(inner.element, holders(inner.length, self.step)), self.length)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        outer, inner = array_of_arrays(self.name, xss)
        yield at_least(1, inner.length)
        yield at_least(1, self.step)
        yield at_least(inner.length, self.length)
        yield equal(outer.length, Slide(inner.length, self.step).windows(self.length))

    def meaning(self, read: Reader, xss: Pull) -> Value:
        step, windows, size = self.step, xss.length, xss[0].length

        def element(i: Index, t: Index) -> Value:
            window, place = i // step - t, i % step + t * step
            row = xss[read.clip(window, xss)]
            held = guarded(read, read.inside(place, size), row[read.clip(place, row)], self.value)
            return guarded(read, read.inside(window, windows), held, self.value)

        return Pull(self.length, lambda i: Pull(holders(size, step), lambda t: element(i, t)))

    def adjoint(self, xss: Type) -> Primitive:
        return SlideCopies(array_of_arrays(self.name, xss)[1].length, self.step)

    def reference(self, xss: list[Any]) -> list[Any]:
        size, step = len(xss[0]), int(self.step)
        edge = constant_like(xss[0][0], self.value)
        copies = [[edge] * holders(size, step) for _ in range(int(self.length))]
        for w, window in enumerate(xss):
            for j, x in enumerate(window):
                copies[w * step + j][j // step] = x
        return copies
