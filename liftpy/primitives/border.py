"""`padClamp`, `padMirror`, `padWrap`: add elements of an array before and after it.

`byClasses` asks for code that distinguishes where such elements are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from liftpy.ir.call import call
from liftpy.ir.constraint import Constraint, at_least, at_most
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import Lambda
from liftpy.ir.nat import Nat, greatest, least, nat, var
from liftpy.ir.primitive import Layout, Primitive
from liftpy.ir.pull import Index, Pull, Reader, Value
from liftpy.ir.types import ArrayType, Type
from liftpy.primitives.concat import Concat, Drop, Take
from liftpy.primitives.generate import Repeat
from liftpy.primitives.map import Map, array_of
from liftpy.primitives.pad import Pad, cropped
from liftpy.primitives.split import Join
from liftpy.primitives.transpose import Reorder


@dataclass(frozen=True)
class PadInside(Layout):
    """Adds elements of the array before and after it; a subclass defines which."""

    left: Nat
    right: Nat

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(known.element, self.left + known.length + self.right)

    def requires(self, xs: Type) -> Iterator[Constraint]:
        length = array_of(self.name, xs).length
        yield at_least(1, length)
        yield at_least(1, self.left + length + self.right)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        n = xs.length
        return Pull(self.left + n + self.right, lambda i: xs[self.source(i - self.left, n)])

    def source(self, j: Index, n: Any) -> Index:
        """The index, in an array of `n` elements, of the element at `j`, which may be outside."""
        raise NotImplementedError

    def before(self, xs: Expr, n: Nat) -> Expr:
        """The `left` elements that are added before an array of `n`."""
        raise NotImplementedError

    def after(self, xs: Expr, n: Nat) -> Expr:
        """The `right` elements that are added after an array of `n`."""
        raise NotImplementedError

    def equivalent(self, xs: Expr) -> Expr | None:
        """A concatenation of the added elements and the array, cropped where an amount is negative.

        None if it is not known which amounts are positive.
        """
        signs = sign(self.left), sign(self.right)
        if None in signs:
            return None
        n, found = array_of(self.name, xs.type).length, xs
        if signs[0] == 1:
            found = call(Concat(), self.before(xs, n), found)
        if signs[1] == 1:
            found = call(Concat(), found, self.after(xs, n))
        crops = [
            a if s == -1 else nat(0) for a, s in zip((self.left, self.right), signs, strict=True)
        ]
        return call(Pad(crops[0], crops[1], 0.0), found) if -1 in signs else found


def sign(amount: Nat) -> int | None:
    """1 for a positive number, 0 for 0, -1 for a negative one; None if its range does not tell."""
    low, high = amount.bounds
    if low is not None and low >= 1:
        return 1
    if high is not None and high <= -1:
        return -1
    return 0 if (low, high) == (0, 0) else None


def copies(xs: Expr, count: Nat) -> Expr:
    """Each element of an array `count` times."""
    x = Param("x", array_of("repeat", xs.type).element)
    return call(Join(), call(Map(Lambda((x,), call(Repeat(count), x))), xs))


def backwards(xs: Expr) -> Expr:
    """An array in reverse order.

    >>> import liftpy as lp
    >>> lp.evaluate(backwards(lp.iota(3))).tolist()
    [2, 1, 0]
    """
    last_first = array_of("reorder", xs.type).length - 1 - var("i")
    return call(Reorder(last_first, last_first), xs)


@dataclass(frozen=True)
class PadClamp(PadInside):
    """Repeats the first element before an array and the last one after it; negative amounts crop.

    padClamp(left, right) : [a]n -> [a](left + n + right)
        element i is xs[min(max(i - left, 0), n - 1)]
    """

    name: ClassVar[str] = "padClamp"

    def source(self, j: Index, n: Any) -> Index:
        return least(greatest(j, 0), n - 1)

    def before(self, xs: Expr, n: Nat) -> Expr:
        return copies(call(Take(nat(1)), xs), self.left)

    def after(self, xs: Expr, n: Nat) -> Expr:
        return copies(call(Drop(n - 1), xs), self.right)

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        return cropped([xs[0]] * left + xs + [xs[-1]] * right, left, right)


@dataclass(frozen=True)
class PadMirror(PadInside):
    """Mirrors an array at both ends, repeating the end element: index -1 is 0, -2 is 1.

    padMirror(left, right) : [a]n -> [a](left + n + right);  left <= n and right <= n
        element i is xs[min(j, 2*n - 1 - j)] where j is max(i - left, left - 1 - i)
    """

    name: ClassVar[str] = "padMirror"

    def requires(self, xs: Type) -> Iterator[Constraint]:
        length = array_of(self.name, xs).length
        yield at_most(self.left, length)
        yield at_most(self.right, length)
        yield at_least(1, self.left + length + self.right)

    def source(self, j: Index, n: Any) -> Index:
        inner = greatest(j, -1 - j)
        return least(inner, 2 * n - 1 - inner)

    def before(self, xs: Expr, n: Nat) -> Expr:
        return backwards(call(Take(self.left), xs))

    def after(self, xs: Expr, n: Nat) -> Expr:
        return backwards(call(Drop(n - self.right), xs))

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        before, after = xs[: max(0, left)], xs[len(xs) - max(0, right) :]
        return cropped(before[::-1] + xs + after[::-1], left, right)


@dataclass(frozen=True)
class PadWrap(PadInside):
    """Continues an array periodically on both sides; negative amounts crop.

    padWrap(left, right) : [a]n -> [a](left + n + right)        element i is xs[(i - left) mod n]
    """

    name: ClassVar[str] = "padWrap"

    def source(self, j: Index, n: Any) -> Index:
        return j % n

    def before(self, xs: Expr, n: Nat) -> Expr:
        return call(Drop(n - self.left), xs)

    def after(self, xs: Expr, n: Nat) -> Expr:
        return call(Take(self.right), xs)

    def equivalent(self, xs: Expr) -> Expr | None:
        """As for other paddings; None also if an amount may exceed the length."""
        n = array_of(self.name, xs.type).length
        rests = [(n - amount).bounds[0] for amount in (self.left, self.right)]
        return super().equivalent(xs) if all(r is not None and r >= 0 for r in rests) else None

    def reference(self, xs: list[Any]) -> list[Any]:
        left, right = int(self.left), int(self.right)
        before, after = xs * max(0, left), xs * max(0, right)
        whole = before[len(before) - max(0, left) :] + xs + after[: max(0, right)]
        return cropped(whole, left, right)


@dataclass(frozen=True)
class ByClasses(Layout):
    """The array itself. A kernel that reads it has versions: one for each class of border.

    byClasses : [a]n -> [a]n        element i is xs[i]
    """

    name: ClassVar[str] = "byClasses"
    unconditional: ClassVar[str] = "it changes nothing"

    def type_of(self, xs: Type) -> Type:
        known = array_of(self.name, xs)
        return ArrayType(known.element, known.length)

    def meaning(self, read: Reader, xs: Pull) -> Value:
        return Pull(xs.length, lambda i: xs[i])

    def reference(self, xs: list[Any]) -> list[Any]:
        return list(xs)

    def inverse(self, xs: Type) -> Primitive | None:
        return ByClasses()
