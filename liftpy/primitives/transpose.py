"""`transpose` and `reorder`: the same elements at other places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from liftpy.ir.constraint import Constraint, at_least
from liftpy.ir.expr import Primitive
from liftpy.ir.nat import Nat, NatLike, is_index, nat, var
from liftpy.ir.pull import Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.map import array_of


@dataclass(frozen=True)
class Transpose(Primitive):
    """The two outermost dimensions exchanged.

    transpose : [[a]m]n -> [[a]n]m        element (i, j) is xss[j][i]
    """

    name: ClassVar[str] = "transpose"

    def type_of(self, xss: Type) -> Type:
        outer = array_of(self.name, xss)
        inner = array_of(self.name, outer.element)
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
class Permutes(Constraint):
    """`left` and `inverse`, both of the variable `i`, undo each other on `0 .. right - 1`."""

    inverse: Nat

    def names(self) -> frozenset[str]:
        return (self.left.names() | self.right.names() | self.inverse.names()) - {"i"}

    def substitute(self, by: Mapping[str, NatLike]) -> Constraint:
        return Permutes(
            self.left.substitute(by), self.right.substitute(by), self.inverse.substitute(by)
        )

    def holds(self, at: Mapping[str, int]) -> bool:
        return self.substitute({k: v for k, v in at.items() if k != "i"}).known() is True

    def known(self) -> bool | None:
        return (
            is_permutation(self.left, self.inverse, int(self.right)) if not self.names() else None
        )

    def __str__(self) -> str:
        return f"i -> {self.left} and i -> {self.inverse} undo each other below {self.right}"


@lru_cache(maxsize=256)
def is_permutation(index: Nat, inverse: Nat, length: int) -> bool:
    """Whether two index functions undo each other on `0 .. length - 1`, by trying them all."""
    images = [index.value({"i": i}) for i in range(length)]
    return all(
        0 <= image < length and inverse.value({"i": image}) == i for i, image in enumerate(images)
    )


@dataclass(frozen=True)
class Reorder(Primitive):
    """A permutation of the elements, given with its inverse; both are terms over `i`.

    reorder(phi, psi) : [a]n -> [a]n        element i is xs[phi(i)];  psi undoes phi
    """

    name: ClassVar[str] = "reorder"
    index: Nat
    back: Nat

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


def at_index(function: Nat, i: Any) -> Any:
    """An index function at an index: a natural, or an array of numbers."""
    return function.substitute({"i": i}) if is_index(i) else function.value({"i": i})


def stride(step: NatLike, length: NatLike) -> Reorder:
    """Reading with a stride: i -> i / (length/step) + step * (i % (length/step)).

    Its inverse is the stride of length/step (specs: Lift's `ReorderWithStride`).
    """
    i, s, n = var("i"), nat(step), nat(length)
    across = n.exact_div(s)
    return Reorder(i // across + s * (i % across), i // s + across * (i % s))
