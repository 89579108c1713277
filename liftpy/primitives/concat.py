"""`concat`, `splitAt`, `take` and `drop`: concatenate arrays, and take parts of one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least, at_most
from liftpy.ir.nat import Nat, nat
from liftpy.ir.primitive import Layout, Primitive, sizes_agree
from liftpy.ir.pull import Index, Pull, Reader, Value, merged
from liftpy.ir.types import ArrayType, TupleType, Type
from liftpy.primitives.map import array_of
from liftpy.primitives.pad import Pad


@dataclass(frozen=True)
class Concat(Layout):
    """Concatenates two arrays.

    concat : ([a]n, [a]m) -> [a](n + m)        element i is xs[i] if i < n, else ys[i - n]
    """

    name: ClassVar[str] = "concat"
    called: ClassVar[bool] = True

    def type_of(self, xs: Type, ys: Type) -> Type:
        one, two = array_of(self.name, xs), array_of(self.name, ys)
        return ArrayType(one.element, one.length + two.length)

    def requires(self, xs: Type, ys: Type) -> Iterator[Constraint]:
        one, two = array_of(self.name, xs), array_of(self.name, ys)
        yield from sizes_agree(one.element, two.element)
        yield at_least(1, one.length)
        yield at_least(1, two.length)

    def meaning(self, read: Reader, xs: Pull, ys: Pull) -> Value:
        n, m = xs.length, ys.length

        def element(i: Index) -> Value:
            first, second = xs[read.clip(i, xs)], ys[read.clip(i - n, ys)]
            return merged(read, read.inside(i, n), first, second)

        return Pull(n + m, element)

    def reference(self, xs: list[Any], ys: list[Any]) -> list[Any]:
        return [*xs, *ys]

    def inverse(self, xs: Type, ys: Type) -> Primitive | None:
        return SplitAt(array_of(self.name, xs).length)


@dataclass(frozen=True)
class SplitAt(Layout):
    """Splits an array into its first elements and the rest.

    splitAt(first) : [a]n -> ([a]first, [a](n - first))        as take(first) and drop(first)
    """

    name: ClassVar[str] = "splitAt"
    first: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        rest = ArrayType(known.element, known.length - self.first)
        return TupleType((ArrayType(known.element, self.first), rest))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.first)
        yield at_most(self.first, array_of(self.name, xs).length - 1)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Take(self.first).meaning(read, xs), Drop(self.first).meaning(read, xs)

    def reference(self, xs: list[Any]) -> tuple[list[Any], list[Any]]:
        first = int(self.first)
        return xs[:first], xs[first:]

    def adjoint(self, xs: Type) -> Primitive:
        return Concat()


@dataclass(frozen=True)
class Take(Layout):
    """Takes the first elements.

    take(count) : [a]n -> [a]count        element i is xs[i];  count <= n
    """

    name: ClassVar[str] = "take"
    count: Nat

    def type_of(self, xs: Type) -> Type:
        return ArrayType(array_of(self.name, xs).element, self.count)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.count)
        yield at_most(self.count, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(self.count, lambda i: xs[i])

    def reference(self, xs: list[Any]) -> list[Any]:
        return xs[: int(self.count)]

    def adjoint(self, xs: Type) -> Primitive:
        return Pad(nat(0), array_of(self.name, xs).length - self.count, 0.0)


@dataclass(frozen=True)
class Drop(Layout):
    """Drops the first elements.

    drop(count) : [a]n -> [a](n - count)        element i is xs[count + i];  count < n
    """

    name: ClassVar[str] = "drop"
    count: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(known.element, known.length - self.count)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(0, self.count)
        yield at_most(self.count, array_of(self.name, xs).length - 1)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(xs.length - self.count, lambda i: xs[self.count + i])

    def reference(self, xs: list[Any]) -> list[Any]:
        return xs[int(self.count) :]

    def adjoint(self, xs: Type) -> Primitive:
        return Pad(self.count, nat(0), 0.0)
