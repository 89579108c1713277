"""`map`: applies a function to every element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, final

from liftpy.errors import TypeRefused
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type


def array_of(name: str, t: Type) -> ArrayType:
    """`t` as an array type. TypeRefused, naming the primitive, if it is not one."""
    if not isinstance(t, ArrayType):
        message = f"{name} needs an array, got {t}"
        raise TypeRefused(message)
    return t


def array_of_arrays(name: str, t: Type) -> tuple[ArrayType, ArrayType]:
    """`t` and its element type, both array types. TypeRefused, naming the primitive, if not."""
    if not isinstance(t, ArrayType) or not isinstance(t.element, ArrayType):
        message = f"{name} needs an array of arrays, got {t}"
        raise TypeRefused(message)
    return t, t.element


@dataclass(frozen=True)
class AnyMap(Primitive):
    """A `map` of either dialect: `Map`, or a lowered form, which specifies what runs it.

    map(f) : [a]n -> [b]n        element i is f(xs[i])
    """

    unconditional: ClassVar[str] = "the array may have any number of elements, even none"
    f: Lambda

    def parameter_types(self, xs: Type) -> tuple[Type, ...]:
        return (array_of(self.name, xs).element,)

    def type_of(self, xs: Type) -> Type:
        return ArrayType(self.f.body.type, array_of(self.name, xs).length)

    def meaning(self, read: Reader, f: Callable[[Value], Value], xs: Pull) -> Value:
        return Pull(xs.length, lambda i: f(xs[i]))

    def reference(self, f: Callable[[Any], Any], xs: list[Any]) -> list[Any]:
        return [f(x) for x in xs]


@final
@dataclass(frozen=True)
class Map(AnyMap):
    """Applies a function to every element."""

    name: ClassVar[str] = "map"
