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
from liftpy.ir.expr import Primitive
from liftpy.ir.nat import Nat, least
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of
from liftpy.primitives.pad import constant_like


def chunks(length: Any, size: Any) -> Any:
    """How many chunks of a size cover a length."""
    return (length + size - 1) // size


def shift(i: Index, length: Any, size: Any) -> Index:
    """Where chunk `i` begins, from `i * size` on: 0, or less where it would end too late."""
    return least(0, length - (i + 1) * size)


@dataclass(frozen=True)
class Cover(Primitive):
    """Chunks of `size` elements; the last one ends where the array does, wherever it begins.

    cover(m) : [a]n -> [[a]m]q        element (i, j) is xs[i*m + j + min(0, n - (i+1)*m)]
               q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "cover"
    size: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(ArrayType(known.element, self.size), chunks(known.length, self.size))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.size)
        yield at_most(self.size, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        n, m = xs.length, self.size
        return Pull(chunks(n, m), lambda i: Pull(m, lambda j: xs[i * m + j + shift(i, n, m)]))

    def reference(self, xs: list[Any]) -> list[Any]:
        return [chunk for chunk, _ in self.with_repeated(xs)]

    def with_repeated(self, xs: list[Any]) -> Iterator[tuple[list[Any], int]]:
        """Each chunk, and how many of its first elements the one before it has too."""
        m, end = int(self.size), 0
        while end < len(xs):
            begin = min(end, len(xs) - m)
            yield xs[begin : begin + m], end - begin
            end = begin + m


@dataclass(frozen=True)
class CoverOnce(Cover):
    """`cover`, with `value` for the elements of the last chunk that the one before it has too.

    coverOnce(m, value) : [a]n -> [[a]m]q
        element (i, j) is that of cover where r >= 0, else `value` in all of its scalars
        r = n - (i+1)*m + j;  q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "coverOnce"
    value: float

    def meaning(self, read: Reader, xs: Pull) -> Value:
        n, m = xs.length, self.size

        def element(i: Index, j: Index) -> Value:
            condition = read.inside(n - (i + 1) * m + j, n)
            return guarded(read, condition, xs[i * m + j + shift(i, n, m)], self.value)

        return Pull(chunks(n, m), lambda i: Pull(m, lambda j: element(i, j)))

    def reference(self, xs: list[Any]) -> list[Any]:
        edge = constant_like(xs[0], self.value)
        return [[edge] * twice + chunk[twice:] for chunk, twice in self.with_repeated(xs)]


@dataclass(frozen=True)
class Uncover(Primitive):
    """Chunks that cover an array as that array: of two elements, the one in the earlier chunk.

    uncover(n) : [[a]m]q -> [a]n        element k is xss[i][k - i*m - min(0, n - (i+1)*m)]
                 where i is k / m;  q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "uncover"
    length: Nat

    def type_of(self, xss: Type) -> Type:
        outer = array_of(self.name, xss)
        inner = array_of(self.name, outer.element)
        return ArrayType(inner.element, self.length)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        outer = array_of(self.name, xss)
        size = array_of(self.name, outer.element).length
        yield at_least(1, size)
        yield at_most(size, self.length)
        yield equal(outer.length, chunks(self.length, size))

    def meaning(self, read: Reader, xss: Pull) -> Value:
        n, m = self.length, xss[0].length
        return Pull(n, lambda k: xss[k // m][k % m - shift(k // m, n, m)])

    def reference(self, xss: list[Any]) -> list[Any]:
        *others, last = xss
        first = [x for chunk in others for x in chunk]
        return first + last[len(first) + len(last) - int(self.length) :]

    def inverse(self, xss: Type) -> Primitive | None:
        """What an earlier chunk has is written by that one: the other's stays away."""
        return CoverOnce(array_of(self.name, array_of(self.name, xss).element).length, 0.0)
