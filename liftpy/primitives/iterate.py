"""`iterate`: applies a function repeatedly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Reader, Value
from liftpy.ir.types import Type
from liftpy.primitives.reduce import keeps


@dataclass(frozen=True)
class AnyIterate(Primitive):
    """An `iterate` of either dialect: `Iterate`, or a lowered form.

    iterate(k, f) : a -> a        f(f(... f(x)))
    """

    by_definition: ClassVar[Mapping[str, str]] = {
        "0 <= times": "a function cannot be applied fewer than 0 times"
    }
    f: Lambda
    times: Nat

    def parameter_types(self, x: Type) -> tuple[Type, ...]:
        return (x,)

    def type_of(self, x: Type) -> Type:
        return x

    def requires(self, x: Type) -> Iterator[Constraint]:
        yield at_least(0, self.times)
        yield from keeps(self.name, self.f.body.type, x)

    def meaning(self, read: Reader, f: Callable[[Value], Value], x: Value) -> Value:
        return read.fold(self.times, x, lambda _, value: f(value))

    def reference(self, f: Callable[[Any], Any], x: Any) -> Any:
        left = int(self.times)
        while left > 0:
            x, left = f(x), left - 1
        return x


@final
@dataclass(frozen=True)
class Iterate(AnyIterate):
    """Applies a function `times` times; the function must keep the type."""

    name: ClassVar[str] = "iterate"
