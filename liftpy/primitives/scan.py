"""`scan` and `exclusiveScan`: every intermediate value of a left fold."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, final

from liftpy.ir.constraint import Constraint
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of
from liftpy.primitives.reduce import keeps


@dataclass(frozen=True)
class AnyScan(Primitive):
    """A `scan` or `exclusiveScan` of either dialect."""

    exclusive: ClassVar[bool]
    unconditional: ClassVar[str] = (
        "only the sizes in the types of init and of the function's result must agree"
    )
    f: Lambda

    def parameter_types(self, init: Type, xs: Type) -> tuple[Type, ...]:
        return init, array_of(self.name, xs).element

    def type_of(self, init: Type, xs: Type) -> Type:
        return ArrayType(init, array_of(self.name, xs).length)

    def requires(self, init: Type, xs: Type) -> Iterator[Constraint]:
        yield from keeps(self.name, self.f.body.type, init)

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Value, xs: Pull
    ) -> Value:
        return read.scan(xs.length, init, lambda k, acc: f(acc, xs[k]), exclusive=self.exclusive)

    def reference(self, f: Callable[[Any, Any], Any], init: Any, xs: list[Any]) -> Any:
        states = list(itertools.accumulate(xs, f, initial=init))
        return states[:-1] if self.exclusive else states[1:]


@dataclass(frozen=True)
class AnyInclusiveScan(AnyScan):
    """A `scan` of either dialect.

    scan(f) : (b, [a]n) -> [b]n        element i is f(... f(f(init, xs[0]), xs[1]) ..., xs[i])
    """

    exclusive: ClassVar[bool] = False


@dataclass(frozen=True)
class AnyExclusiveScan(AnyScan):
    """An `exclusiveScan` of either dialect.

    exclusiveScan(f) : (b, [a]n) -> [b]n        element i is f(... f(init, xs[0]) ..., xs[i-1])
    """

    exclusive: ClassVar[bool] = True


@final
@dataclass(frozen=True)
class Scan(AnyInclusiveScan):
    """Computes the accumulators of a left fold after each element: an inclusive scan."""

    name: ClassVar[str] = "scan"


@final
@dataclass(frozen=True)
class ExclusiveScan(AnyExclusiveScan):
    """Computes the accumulators of a left fold before each element: an exclusive scan.

    The first is the initial value; the last element of the array is not used.
    """

    name: ClassVar[str] = "exclusiveScan"
