"""`transpose`, `reorder` and `gather`: move elements to other positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from liftpy.errors import TypeRefused
from liftpy.ir.constraint import Constraint, Everywhere, Stays, at_least
from liftpy.ir.nat import IndexFunction, Nat, NatLike, is_index, nat, var
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of, array_of_arrays


@dataclass(frozen=True)
class Transpose(Layout):
    """Swaps the two outermost dimensions.

    transpose : [[a]m]n -> [[a]n]m        element (i, j) is xss[j][i]
    """

    name: ClassVar[str] = "transpose"
    by_definition: ClassVar[Mapping[str, str]] = {
        "1 <= n": "the inner length is the length of the first row"
    }

    def type_of(self, xss: Type) -> Type:
        outer, inner = array_of_arrays(self.name, xss)
        return ArrayType(ArrayType(inner.element, outer.length), inner.length)

    def requires(self, xss: Type) -> Iterator[Constraint]:
        yield at_least(1, array_of(self.name, xss).length)

    def meaning(self, read: Reader, xss: Pull) -> Value:
        return Pull(xss[0].length, lambda i: Pull(xss.length, lambda j: xss[j][i]))

    def reference(self, xss: list[Any]) -> list[Any]:
        return [list(column) for column in zip(*xss, strict=True)]

    def inverse(self, xss: Type) -> Primitive | None:
        return Transpose()


@dataclass(frozen=True, slots=True)
class Permutes(Everywhere):
    """`left` and `inverse`, terms over the variable `i`, are inverse on `0 .. right - 1`."""

    functions: ClassVar[tuple[str, ...]] = ("left", "inverse")
    inverse: Nat

    def known(self) -> bool | None:
        length = self.right.constant  # None for a number that is divided by zero
        if self.names() or length is None:
            return None
        return is_permutation(self.left, self.inverse, length)

    def __str__(self) -> str:
        return (
            f"i -> {self.left} and i -> {self.inverse} are inverse to each other below {self.right}"
        )


@lru_cache(maxsize=256)
def is_permutation(index: Nat, inverse: Nat, length: int) -> bool:
    """Whether two index functions are inverse on `0 .. length - 1`; tries every index."""
    images = [index.value({"i": i}) for i in range(length)]
    return all(
        0 <= image < length and inverse.value({"i": image}) == i for i, image in enumerate(images)
    )


@dataclass(frozen=True)
class Reorder(Layout):
    """Permutes the elements; the permutation and its inverse are terms over `i`.

    reorder(phi, psi) : [a]n -> [a]n        element i is xs[phi(i)];  psi is the inverse of phi
    """

    name: ClassVar[str] = "reorder"
    index: IndexFunction
    back: IndexFunction

    def type_of(self, xs: Type) -> Type:
        return array_of(self.name, xs)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield Permutes(self.index, array_of(self.name, xs).length, self.back)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(xs.length, lambda i: xs[at_index(self.index, i)])

    def reference(self, xs: list[Any]) -> list[Any]:
        return [xs[self.index.value({"i": i})] for i in range(len(xs))]

    def inverse(self, xs: Type) -> Primitive | None:
        return Reorder(self.back, self.index)


@dataclass(frozen=True)
class Gather(Layout):
    """Takes elements at given indices, each any number of times; phi is a term over `i`.

    gather(length, phi) : [a]n -> [a]length        element i is xs[phi(i)];  0 <= phi(i) < n
    """

    name: ClassVar[str] = "gather"
    adjoint_by_definition: ClassVar[str] = "for each element, the sum of its copies"
    length: Nat
    index: IndexFunction

    def type_of(self, xs: Type) -> Type:
        return ArrayType(array_of(self.name, xs).element, self.length)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        yield at_least(1, self.length)
        yield Stays(self.index, array_of(self.name, xs).length, self.length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(self.length, lambda i: xs[at_index(self.index, i)])

    def reference(self, xs: list[Any]) -> list[Any]:
        return [xs[self.index.value({"i": i})] for i in range(int(self.length))]


def at_index(function: Nat, i: Any) -> Any:
    """The value of an index function at `i`, which is a natural or an array of numbers."""
    return function.substitute({"i": i}) if is_index(i) else function.value({"i": i})


def stride(step: NatLike, length: NatLike) -> Reorder:
    """The `Reorder` that reads with a stride: i -> i / (length/step) + step * (i % (length/step)).

    Its inverse is the stride of length/step (Lift's `ReorderWithStride`). The step divides the
    length.
    """
    i, s, n = var("i"), nat(step), nat(length)
    across = n.exact_div(s)
    return Reorder(i // across + s * (i % across), i // s + across * (i % s))


def swaps(axes: Sequence[int]) -> list[int]:
    """The depths at which to transpose, in order, so that dimension k is dimension `axes[k]`.

    Any permutation of dimensions is a sequence of swaps of adjacent dimensions, so it needs no
    primitive: what holds for `transpose` under `map` holds for it. TypeRefused if `axes` is not a
    permutation.
    """
    if sorted(axes) != list(range(len(axes))) or len(axes) < 2:
        given = ", ".join(map(str, axes))
        message = (
            f"permute({given}) is not a permutation of dimensions: "
            f"give each of 0 .. {max(len(axes) - 1, 1)} once"
        )
        raise TypeRefused(message)
    now, depths = list(range(len(axes))), list[int]()
    for to, axis in enumerate(axes):
        for depth in range(now.index(axis) - 1, to - 1, -1):
            now[depth : depth + 2] = now[depth + 1], now[depth]
            depths.append(depth)
    return depths
