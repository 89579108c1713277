"""`split` and `join`: split one dimension into two, and join two into one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least, divides
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of, array_of_arrays


@dataclass(frozen=True)
class Split(Layout):
    """Splits an array into chunks of `size` elements.

    split(m) : [a]n -> [[a]m](n/m)        element (i, j) is xs[i*m + j];  m divides n
    """

    name: ClassVar[str] = "split"
    by_definition: ClassVar[Mapping[str, str]] = {
        "1 <= size": "`size divides n` implies it; stated for a better message"
    }
    size: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(ArrayType(known.element, self.size), known.length.exact_div(self.size))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.size)
        yield divides(self.size, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        m = self.size
        return Pull(xs.length // m, lambda i: Pull(m, lambda j: xs[i * m + j]))

    def reference(self, xs: list[Any]) -> list[Any]:
        m = int(self.size)
        return [xs[start : start + m] for start in range(0, len(xs), m)]

    def inverse(self, xs: Type) -> Primitive | None:
        return Join()


@dataclass(frozen=True)
class Join(Layout):
    """Joins the two outermost dimensions into one.

    join : [[a]m]n -> [a](n*m)        element i is xss[i / m][i % m]
    """

    name: ClassVar[str] = "join"
    by_definition: ClassVar[Mapping[str, str]] = {
        "1 <= m": "indices are divided by `m`, though an empty row has none"
    }

    def type_of(self, xss: Type) -> Type:
        outer, inner = array_of_arrays(self.name, xss)
        return ArrayType(inner.element, outer.length * inner.length)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        yield at_least(1, array_of_arrays(self.name, xss)[1].length)

    def meaning(self, read: Reader, xss: Pull) -> Value:
        m = xss[0].length
        return Pull(xss.length * m, lambda i: xss[i // m][i % m])

    def reference(self, xss: list[Any]) -> list[Any]:
        return list(itertools.chain.from_iterable(xss))

    def inverse(self, xss: Type) -> Primitive | None:
        return Split(array_of_arrays(self.name, xss)[1].length)
