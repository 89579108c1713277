"""`zip` and `unzip`: convert between tuples of arrays and arrays of tuples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, equal
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Parts, Pull, Reader, Value
from liftpy.ir.types import ArrayType, TupleType, Type
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Zip(Layout):
    """Combines arrays of equal length into an array of tuples.

    zip : ([a]n, [b]n, ...) -> [(a, b, ...)]n        element i is (as[i], bs[i], ...)
    """

    name: ClassVar[str] = "zip"

    def type_of(self, *arrays: Type) -> Type:
        if len(arrays) < 2:
            message = f"zip needs two arrays or more, got {len(arrays)}"
            raise TypeRefused(message)
        known = [array_of(self.name, a) for a in arrays]
        return ArrayType(TupleType(tuple(a.element for a in known)), known[0].length)

    def requires(self, *arrays: Type) -> Iterator[Constraint]:
        known = [array_of(self.name, a) for a in arrays]
        for other in known[1:]:
            if other.length != known[0].length:
                yield equal(known[0].length, other.length)

    def meaning(self, read: Reader, *arrays: Pull) -> Value:
        return Pull(arrays[0].length, lambda i: tuple(a[i] for a in arrays))

    def reference(self, *arrays: list[Any]) -> list[Any]:
        return list(zip(*arrays, strict=True))

    def inverse(self, *arrays: Type) -> Primitive | None:
        return Unzip()


@dataclass(frozen=True)
class Unzip(Layout):
    """Converts an array of tuples to a tuple of arrays.

    unzip : [(a, b, ...)]n -> ([a]n, [b]n, ...)        component k at i is ps[i].k
    """

    name: ClassVar[str] = "unzip"
    unconditional: ClassVar[str] = "each resulting array has the length of the given one"

    def type_of(self, pairs: Type) -> Type:
        known = array_of(self.name, pairs)
        if not isinstance(known.element, TupleType):
            message = f"unzip needs an array of tuples, got {pairs}"
            raise TypeRefused(message)
        return TupleType(tuple(ArrayType(e, known.length) for e in known.element.elements))

    def meaning(self, read: Reader, pairs: Pull) -> Value:
        return Parts(pairs)

    def reference(self, pairs: list[Any]) -> tuple[Any, ...]:
        return tuple([p[k] for p in pairs] for k in range(len(pairs[0])))

    def inverse(self, pairs: Type) -> Primitive | None:
        return Zip()
