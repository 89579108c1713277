"""`cover`, `coverOnce` and `uncover`: chunks of a size that need not divide the length.

There are as many chunks as it takes. The last one begins early, so that it ends where the array
does: no chunk reaches out of the array, and the elements in front of it are in two chunks. What is
computed of those twice is the same, and is written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least, at_most, equal
from liftpy.ir.expr import Layout, Primitive
from liftpy.ir.nat import Nat, least
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of, array_of_arrays
from liftpy.primitives.pad import check_value, constant_like


def with_repeated(xs: list[Any], m: int) -> Iterator[tuple[list[Any], int]]:
    """Each chunk, and how many of its first elements the one before it has too."""
    end = 0
    while end < len(xs):
        first = min(end, len(xs) - m)
        yield xs[first : first + m], end - first
        end = first + m


@dataclass(frozen=True)
class Cover(Layout):
    """Chunks of `size` elements; the last one ends at the end of the array and may overlap.

    cover(m) : [a]n -> [[a]m]q        element (i, j) is xs[min(i*m, n - m) + j]
               q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "cover"
    size: Nat

    def chunks(self, length: Any) -> Any:
        """How many chunks cover a length."""
        return (length + self.size - 1) // self.size

    def begin(self, i: Index, length: Any) -> Index:
        """Where chunk `i` begins: after those before it, or earlier if it would end too late."""
        return least(i * self.size, length - self.size)

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(ArrayType(known.element, self.size), self.chunks(known.length))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.size)
        yield at_most(self.size, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        n, m = xs.length, self.size
        return Pull(self.chunks(n), lambda i: Pull(m, lambda j: xs[self.begin(i, n) + j]))

    def reference(self, xs: list[Any]) -> list[Any]:
        return [chunk for chunk, _ in with_repeated(xs, int(self.size))]


@dataclass(frozen=True)
class CoverOnce(Cover):
    """`cover`, with `value` in place of elements of the last chunk that the one before it has.

    coverOnce(m, value) : [a]n -> [[a]m]q
        element (i, j) is that of cover where r >= 0, else `value` in all of its scalars
        r = n - (i+1)*m + j;  q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "coverOnce"
    value: float

    def type_of(self, xs: Type) -> Type:
        check_value(self.name, self.value, xs)
        return super().type_of(xs)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        n, m = xs.length, self.size

        def element(i: Index, j: Index) -> Value:
            condition = read.inside(n - (i + 1) * m + j, n)
            return guarded(read, condition, xs[self.begin(i, n) + j], self.value)

        return Pull(self.chunks(n), lambda i: Pull(m, lambda j: element(i, j)))

    def reference(self, xs: list[Any]) -> list[Any]:
        edge = constant_like(xs[0], self.value)
        chunks = with_repeated(xs, int(self.size))
        return [[edge] * twice + chunk[twice:] for chunk, twice in chunks]


@dataclass(frozen=True)
class Uncover(Layout):
    """The array that chunks cover; an element in two chunks is taken from the earlier one.

    uncover(n) : [[a]m]q -> [a]n        element k is xss[i][k - min(i*m, n - m)] where i is k / m
                  q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "uncover"
    length: Nat

    def type_of(self, xss: Type) -> Type:
        _, inner = array_of_arrays(self.name, xss)
        return ArrayType(inner.element, self.length)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        outer, inner = array_of_arrays(self.name, xss)
        size = inner.length
        yield at_least(1, size)
        yield at_most(size, self.length)
        yield equal(outer.length, Cover(size).chunks(self.length))

    def meaning(self, read: Reader, xss: Pull) -> Value:
        n, m = self.length, xss[0].length

        def element(k: Index) -> Value:
            i = k // m
            return xss[i][k % m + i * m - Cover(m).begin(i, n)]

        return Pull(n, element)

    def reference(self, xss: list[Any]) -> list[Any]:
        *others, last = xss
        first = [x for chunk in others for x in chunk]
        return first + last[len(first) + len(last) - int(self.length) :]

    def inverse(self, xss: Type) -> Primitive | None:
        """What an earlier chunk has is written by that one: the other's stays away."""
        return CoverOnce(array_of_arrays(self.name, xss)[1].length, 0.0)
