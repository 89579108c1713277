"""`reduce`: a left fold from an initial value."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive, sizes_agree
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import Type, same_shape
from liftpy.primitives.map import array_of


def keeps(name: str, given: Type, accumulator: Type) -> Iterator[Constraint]:
    """The conditions under which a step returns the type of its accumulator.

    TypeRefused if no sizes could make the types equal.
    """
    if same_shape(given, accumulator) is None:
        message = (
            f"{name} needs a function that returns {accumulator}, the accumulator's type; "
            f"this one returns {given}"
        )
        raise TypeRefused(message)
    yield from sizes_agree(given, accumulator)


@dataclass(frozen=True)
class AnyReduce(Primitive):
    """A `reduce` of either dialect: `Reduce`, or a lowered form.

    reduce(f) : (b, [a]n) -> b        f(... f(f(init, xs[0]), xs[1]) ..., xs[n-1])
    """

    unconditional: ClassVar[str] = (
        "only the sizes in the types of init and of the function's result must agree"
    )
    f: Lambda

    def parameter_types(self, init: Type, xs: Type) -> tuple[Type, ...]:
        return init, array_of(self.name, xs).element

    def type_of(self, init: Type, xs: Type) -> Type:
        array_of(self.name, xs)
        return init

    def requires(self, init: Type, xs: Type) -> Iterator[Constraint]:
        yield from keeps(self.name, self.f.body.type, init)

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Value, xs: Pull
    ) -> Value:
        return read.reduced(f, init, xs)

    def reference(self, f: Callable[[Any, Any], Any], init: Any, xs: list[Any]) -> Any:
        return functools.reduce(f, xs, init)


@final
@dataclass(frozen=True)
class Reduce(AnyReduce):
    """Folds an array from the left; returns the accumulator, not an array of one element."""

    name: ClassVar[str] = "reduce"
