"""`cover`, `coverOnce` and `uncover`: chunks whose size need not divide the length.

The last chunk begins early, so that it ends at the end of the array. No chunk extends past the
array, and the last chunk may share its first elements with the chunk before it. Their results are
computed twice, are equal, and are written once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.call import call
from liftpy.ir.constraint import Constraint, at_least, at_most, equal
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, least
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Index, Pull, Reader, Value, guarded
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.concat import Concat, Drop, Take
from liftpy.primitives.map import array_of, array_of_arrays
from liftpy.primitives.pad import check_value, constant_like
from liftpy.primitives.split import Split


def with_repeated(xs: list[Any], m: int) -> Iterator[tuple[list[Any], int]]:
    """Each chunk, and how many of its first elements are also in the chunk before it."""
    end = 0
    while end < len(xs):
        first = min(end, len(xs) - m)
        yield xs[first : first + m], end - first
        end = first + m


@dataclass(frozen=True)
class Cover(Layout):
    """Covers an array with chunks of `size`; the last chunk ends with the array and may overlap.

    cover(m) : [a]n -> [[a]m]q        element (i, j) is xs[min(i*m, n - m) + j]
               q = (n + m - 1) / m;  m <= n
    """

    name: ClassVar[str] = "cover"
    size: Nat

    def chunks(self, length: Any) -> Any:
        """The number of chunks that cover `length` elements."""
        return (length + self.size - 1) // self.size

    def begin(self, i: Index, length: Any) -> Index:
        """The index at which chunk `i` begins: `i * size`, or earlier so that it ends in time."""
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

    def equivalent(self, xs: Expr) -> Expr | None:
        """All chunks but the last, and the last; None if it is not known whether there are two."""
        n, m = array_of(self.name, xs.type).length, self.size
        count = self.chunks(n)
        if count == 1:
            return call(Split(m), xs)
        if (count.bounds[0] or 0) < 2:
            return None
        first = call(Split(m), call(Take((count - 1) * m), xs))
        return call(Concat(), first, call(Split(m), call(Drop(n - m), xs)))


@dataclass(frozen=True)
class CoverOnce(Cover):
    """Covers an array as `cover`, but with `value` for the repeated elements of the last chunk.

    coverOnce(m, value) : [a]n -> [[a]m]q
        element (i, j) is that of cover if r >= 0, else `value` in all of its scalars
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

    def adjoint(self, xs: Type) -> Primitive:
        return Uncover(array_of(self.name, xs).length)

    def equivalent(self, xs: Expr) -> None:
        """None: it has an adjoint itself."""

    def reference(self, xs: list[Any]) -> list[Any]:
        edge = constant_like(xs[0], self.value)
        chunks = with_repeated(xs, int(self.size))
        return [[edge] * twice + chunk[twice:] for chunk, twice in chunks]


@dataclass(frozen=True)
class Uncover(Layout):
    """Joins the chunks of `cover`; an element in two chunks is taken from the earlier one.

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
        """`coverOnce`: an element in two chunks is written by the earlier chunk only."""
        return CoverOnce(array_of_arrays(self.name, xss)[1].length, 0.0)
