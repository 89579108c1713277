"""`asVector` and `asScalar`: convert an array of scalars to an array of vectors, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, divides
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type, VectorType
from liftpy.primitives.map import array_of
from liftpy.primitives.split import Join, Split

LANES_OF_A_DOT = 4  # of integers; a dot product of f32 may have fewer
LEAST_DOTS = 4  # the fewest lanes of a vector of dot products
MAX_LANES = 16  # OpenCL has vectors of 2, 4, 8 and 16 lanes; one lane is a scalar


@dataclass(frozen=True)
class AsVector(Layout):
    """Groups the elements of an array into vectors of `width` lanes.

    asVector(v) : [a]n -> [<v>a](n/v)        lane l of element i is xs[i*v + l];  v divides n and 16
    """

    name: ClassVar[str] = "asVector"
    by_definition: ClassVar[Mapping[str, str]] = {
        "v divides 16": "OpenCL has vectors of 2, 4, 8 and 16 lanes"
    }
    width: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        if isinstance(known.element, ArrayType | VectorType):
            message = f"asVector needs an array of scalars or of tuples of scalars, got {xs}"
            raise TypeRefused(message)
        return ArrayType(VectorType(known.element, self.width), known.length.exact_div(self.width))

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield divides(self.width, MAX_LANES)
        yield divides(self.width, array_of(self.name, xs).length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Split(self.width).meaning(read, xs)  # the meaning of a vector is an array of lanes

    def reference(self, xs: list[Any]) -> list[Any]:
        return [
            list(xs[k * int(self.width) :][: int(self.width)])
            for k in range(len(xs) // int(self.width))
        ]

    def inverse(self, xs: Type) -> Primitive | None:
        return AsScalar()


@dataclass(frozen=True)
class AsScalar(Layout):
    """Converts an array of vectors to the array of their lanes.

    asScalar : [<v>a]n -> [a](n*v)        element i is xs[i / v] at lane i % v
    """

    name: ClassVar[str] = "asScalar"
    adjoint_by_definition: ClassVar[str] = "`asVector` of the same width, which a vector type has"
    unconditional: ClassVar[str] = "the primitive that makes the vectors checks their width"

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        if not isinstance(known.element, VectorType):
            message = f"asScalar needs an array of vectors, got {xs}"
            raise TypeRefused(message)
        return ArrayType(known.element.element, known.length * known.element.width)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Join().meaning(read, xs)

    def reference(self, xs: list[Any]) -> list[Any]:
        return [lane for vector in xs for lane in vector]

    def inverse(self, xs: Type) -> Primitive | None:
        known = array_of(self.name, xs)
        return AsVector(known.element.width) if isinstance(known.element, VectorType) else None
