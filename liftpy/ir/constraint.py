"""Conditions on sizes, as terms that types, the prover and the sampler share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import ClassVar

from liftpy.ir.nat import INDEX, Nat, NatLike, nat, var


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on two naturals; a subclass defines which."""

    left: Nat
    right: Nat

    def names(self) -> frozenset[str]:
        """The variables that the condition mentions."""
        return self.left.names() | self.right.names()

    def substitute(self, by: Mapping[str, NatLike]) -> Constraint:
        """The condition with variables replaced."""
        return type(self)(self.left.substitute(by), self.right.substitute(by))

    def holds(self, at: Mapping[str, int]) -> bool:
        """Whether the condition is true at an assignment of all its variables."""
        return self.compare(self.left.value(at), self.right.value(at))

    def known(self) -> bool | None:
        """True or False if normal forms and ranges decide the condition, else None."""
        if self.left.constant is not None and self.right.constant is not None:
            return self.compare(self.left.constant, self.right.constant)
        return self.decide()

    def compare(self, left: int, right: int) -> bool:
        """Whether the condition holds for two numbers."""
        raise NotImplementedError

    def denial(self) -> str:
        """A sentence that states that the condition does not hold."""
        return f"it is false that {self}"

    def decide(self) -> bool | None:
        """Whether the condition holds for symbols; None if that is not evident."""
        return None


@dataclass(frozen=True, slots=True)
class Divides(Constraint):
    """`left` divides `right`, and is at least 1."""

    def compare(self, left: int, right: int) -> bool:
        return left >= 1 and right % left == 0

    def decide(self) -> bool | None:
        return (
            True
            if self.left == 1 or (self.left == self.right and (self.left.bounds[0] or 0) >= 1)
            else None
        )

    def denial(self) -> str:
        return f"{self.left} does not divide {self.right}"

    def __str__(self) -> str:
        return f"{self.left} divides {self.right}"


@dataclass(frozen=True, slots=True)
class AtMost(Constraint):
    """`left <= right`."""

    def compare(self, left: int, right: int) -> bool:
        return left <= right

    def decide(self) -> bool | None:
        low, high = (self.right - self.left).bounds
        if low is not None and low >= 0:
            return True
        return False if high is not None and high < 0 else None

    def denial(self) -> str:
        return f"{self.left} is more than {self.right}"

    def __str__(self) -> str:
        return f"{self.left} <= {self.right}"


@dataclass(frozen=True, slots=True)
class Equal(Constraint):
    """`left = right`."""

    def compare(self, left: int, right: int) -> bool:
        return left == right

    def decide(self) -> bool | None:
        if self.left == self.right:
            return True
        low, high = (self.right - self.left).bounds
        return False if (low is not None and low > 0) or (high is not None and high < 0) else None

    def denial(self) -> str:
        return f"{self.left} is not {self.right}"

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


@dataclass(frozen=True, slots=True)
class Unequal(Constraint):
    """`left` and `right` differ."""

    def compare(self, left: int, right: int) -> bool:
        return left != right

    def decide(self) -> bool | None:
        same = Equal(self.left, self.right).decide()
        return None if same is None else not same

    def denial(self) -> str:
        return f"{self.left} is {self.right}"

    def __str__(self) -> str:
        return f"{self.left} != {self.right}"


@dataclass(frozen=True, slots=True)
class OneOf(Constraint):
    """`left` is one of some numbers; `right` is the largest of them."""

    numbers: tuple[int, ...]

    def substitute(self, by: Mapping[str, NatLike]) -> Constraint:
        return OneOf(self.left.substitute(by), self.right, self.numbers)

    def compare(self, left: int, right: int) -> bool:
        return left in self.numbers

    def decide(self) -> bool | None:
        low, high = self.left.bounds
        below, above = self.numbers[0], self.numbers[-1]
        outside = (low is not None and low > above) or (high is not None and high < below)
        return False if outside else None

    def denial(self) -> str:
        return f"{self.left} is not one of {', '.join(map(str, self.numbers))}"

    def __str__(self) -> str:
        return f"{self.left} is one of {', '.join(map(str, self.numbers))}"


@dataclass(frozen=True, slots=True)
class Everywhere(Constraint):
    """A condition on functions of the index `i` at every index; a subclass defines which.

    A size may also be called `i`: only in `functions` does `i` denote the index.
    """

    functions: ClassVar[tuple[str, ...]] = ("left",)

    def names(self) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for f in fields(self):
            own = getattr(self, f.name).names()
            found |= own - {INDEX} if f.name in self.functions else own
        return found

    def substitute(self, by: Mapping[str, NatLike]) -> Constraint:
        inner = {name: size for name, size in by.items() if name != INDEX}
        return type(self)(
            *(
                getattr(self, f.name).substitute(inner if f.name in self.functions else by)
                for f in fields(self)
            )
        )

    def holds(self, at: Mapping[str, int]) -> bool:
        return self.substitute(at).known() is True


@dataclass(frozen=True, slots=True)
class Stays(Everywhere):
    """`0 <= left < right` at every index below `count`."""

    count: Nat

    def known(self) -> bool | None:
        count = self.count.constant
        index = var(f"{INDEX}#", 0, None if count is None else count - 1)
        image = self.left.substitute({INDEX: index})
        low, room = image.bounds[0], (self.right - 1 - image).bounds[0]
        if low is not None and low >= 0 and room is not None and room >= 0:
            return True
        return None if self.names() else self.outside() is None

    def outside(self) -> int | None:
        """The first index at which the function leaves the range, if all sizes are numbers."""
        return first_outside(self.left, int(self.right), int(self.count))

    def __str__(self) -> str:
        text = f"i -> {self.left} is in 0 .. {self.right - 1} for i in 0 .. {self.count - 1}"
        if self.names() or (i := self.outside()) is None:
            return text
        return f"{text}; at {i} it is {self.left.value({INDEX: i})}"


@lru_cache(maxsize=256)
def first_outside(index: Nat, end: int, count: int) -> int | None:
    """The first index below `count` whose image is not in `0 .. end - 1`; tries them all."""
    return next((i for i in range(count) if not 0 <= index.value({INDEX: i}) < end), None)


def divides(divisor: NatLike, number: NatLike) -> Divides:
    """`divisor` divides `number`."""
    return Divides(nat(divisor), nat(number))


def at_least(least: NatLike, value: NatLike) -> AtMost:
    """`value` is `least` or more."""
    return AtMost(nat(least), nat(value))


def at_most(value: NatLike, most: NatLike) -> AtMost:
    """`value` is `most` or less."""
    return AtMost(nat(value), nat(most))


def equal(left: NatLike, right: NatLike) -> Equal:
    """`left` equals `right`."""
    return Equal(nat(left), nat(right))


def unequal(left: NatLike, right: NatLike) -> Unequal:
    """`left` and `right` differ."""
    return Unequal(nat(left), nat(right))


def one_of(value: NatLike, numbers: Iterable[int]) -> Constraint:
    """`value` is one of some numbers."""
    first, *others = sorted(set(numbers))
    if not others:
        return equal(value, first)
    return OneOf(nat(value), nat(others[-1]), (first, *others))
