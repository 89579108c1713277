"""Data-dependent indices: `at` gathers an element, `reduceByIndex` folds values into bins.

Each is the adjoint of the other: `at` is 0 where `reduceByIndex` ignores a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, at_least, at_most
from liftpy.ir.function import Lambda
from liftpy.ir.primitive import Primitive
from liftpy.ir.pull import Index, Pull, Reader, Value, merged
from liftpy.ir.types import I32, ArrayType, TupleType, Type
from liftpy.primitives.generate import MOST
from liftpy.primitives.map import array_of
from liftpy.primitives.pad import constant_like
from liftpy.primitives.reduce import keeps


@final
@dataclass(frozen=True)
class At(Primitive):
    """Reads an array at a data-dependent index; outside the array, every scalar is 0 (or false).

    at : (i32, [a]n) -> a        xs[i] if 0 <= i < n, else 0 in every scalar
    """

    name: ClassVar[str] = "at"
    by_definition: ClassVar[Mapping[str, str]] = {f"n <= {MOST}": "an index is an i32"}

    def type_of(self, index: Type, xs: Type) -> Type:
        element = array_of(self.name, xs).element
        if index != I32:
            message = f"at needs an index of type i32, got {index}: write `i32(x)`"
            raise TypeRefused(message)
        return element

    def requires(self, index: Type, xs: Type) -> Iterator[Constraint]:
        length = array_of(self.name, xs).length
        yield at_least(1, length)
        yield at_most(length, MOST)

    def meaning(self, read: Reader, index: Value, xs: Pull) -> Value:
        return read.element_at(xs, index)

    def reference(self, index: Any, xs: list[Any]) -> Any:
        found = [x for k, x in enumerate(xs) if k == index]
        return found[0] if found else constant_like(xs[0], 0)


def indexed(pairs: Type) -> Type:
    """The type of an array of pairs with i32 for the index; the type itself if it is none."""
    match pairs:
        case ArrayType(TupleType((_, value)), length):
            return ArrayType(TupleType((I32, value)), length)
        case _:
            return pairs


@dataclass(frozen=True)
class AnyReduceByIndex(Primitive):
    """A `reduceByIndex` of either dialect: `ReduceByIndex`, or a lowered form.

    reduceByIndex(f) : ([b]m, [(i32, a)]n) -> [b]m
        element j is the fold by f, from init[j], of the values with index j, in their order;
        values with an index outside 0 .. m - 1 are ignored
    """

    by_definition: ClassVar[Mapping[str, str]] = {f"m <= {MOST}": "an index is an i32"}
    f: Lambda

    def parts(self, init: Type, pairs: Type) -> tuple[ArrayType, Type]:
        """The type of the bins and that of the values; TypeRefused if there are none."""
        bins = init
        if not isinstance(bins, ArrayType):
            message = (
                f"{self.name} needs an array of initial values, one for each bin; got {init}: "
                "write `init |> repeat(bins)`"
            )
            raise TypeRefused(message)
        pair = array_of(self.name, pairs).element
        if not isinstance(pair, TupleType) or len(pair.elements) != 2 or pair.elements[0] != I32:
            message = (
                f"{self.name} needs pairs of an i32 index and a value, got elements of type {pair}:"
                " write `zip(indices, values)`"
            )
            raise TypeRefused(message)
        return bins, pair.elements[1]

    def parameter_types(self, init: Type, pairs: Type) -> tuple[Type, ...]:
        bins, value = self.parts(init, pairs)
        return bins.element, value

    def type_of(self, init: Type, pairs: Type) -> Type:
        return self.parts(init, pairs)[0]

    def requires(self, init: Type, pairs: Type) -> Iterator[Constraint]:
        bins, _ = self.parts(init, pairs)
        yield from keeps(self.name, self.f.body.type, bins.element)
        yield at_most(bins.length, MOST)

    def meaning(
        self, read: Reader, f: Callable[[Value, Value], Value], init: Pull, pairs: Pull
    ) -> Value:
        def bin_at(j: Index) -> Value:
            def step(k: Index, acc: Value) -> Value:
                index, value = pairs[k]
                here = read.operate("==", (index, read.of_index(j, I32)))
                return merged(read, here, f(acc, value), acc)

            return read.fold(pairs.length, init[j], step)

        return Pull(init.length, bin_at)

    def reference(
        self, f: Callable[[Any, Any], Any], init: list[Any], pairs: list[tuple[Any, Any]]
    ) -> list[Any]:
        bins = list(init)
        for index, value in pairs:
            if index in range(len(bins)):
                bins[index] = f(bins[index], value)
        return bins


@final
@dataclass(frozen=True)
class ReduceByIndex(AnyReduceByIndex):
    """Folds values into bins: each value goes to the bin that its index names (a histogram)."""

    name: ClassVar[str] = "reduceByIndex"
