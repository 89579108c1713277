"""`generate` and `repeat`: arrays that are computed, not read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least, at_most
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import BOOL, I32, STORAGE, ArrayType, ScalarType, Type

MOST = 2**31  # so that every index is an i32


@dataclass(frozen=True)
class Generate(Primitive):
    """Computes an array from its indices. An index has the parameter type of `f`, by default i32.

    generate(length, f) : [b]length        element i is f(i)
    """

    name: ClassVar[str] = "generate"
    declares_parameters: ClassVar[bool] = True
    by_definition: ClassVar[Mapping[str, str]] = {f"length <= {MOST}": "an index is an i32"}
    length: Nat
    f: Lambda

    def parameter_types(self) -> tuple[Type, ...]:
        return (I32,)

    def type_of(self) -> Type:
        (index,) = self.f.params
        if not isinstance(index.type, ScalarType) or index.type in {BOOL, *STORAGE}:
            message = (
                f"the function of generate cannot take {index.type}: it is applied to an index"
            )
            raise TypeRefused(message)
        return ArrayType(self.f.body.type, self.length)

    def requires(self) -> Iterator[Constraint]:
        yield at_least(1, self.length)
        yield at_most(self.length, MOST)

    def conditions(self, *args: Type) -> Iterator[Constraint]:
        """`requires`: the type of the function's parameter determines the type of an index."""
        return self.requires()

    def meaning(self, read: Reader, f: Callable[[Value], Value]) -> Value:
        t = self.f.params[0].type
        return Pull(self.length, lambda i: f(read.of_index(i, t)))

    def reference(self, f: Callable[[Any], Any]) -> list[Any]:
        number = int if self.f.params[0].type == I32 else float
        return [f(number(i)) for i in range(int(self.length))]


@dataclass(frozen=True)
class Repeat(Layout):
    """Repeats one value `length` times.

    repeat(length) : a -> [a]length        element i is x
    """

    name: ClassVar[str] = "repeat"
    adjoint_by_definition: ClassVar[str] = "the sum of the copies"
    length: Nat

    def type_of(self, x: Type) -> Type:
        return ArrayType(x, self.length)

    def requires(self, x: Type) -> Iterator[Constraint]:
        yield at_least(1, self.length)

    def meaning(self, read: Reader, x: Value) -> Value:
        return Pull(self.length, lambda _: x)

    def reference(self, x: Any) -> list[Any]:
        return [x] * int(self.length)
