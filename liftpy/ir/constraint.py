"""Conditions on sizes, as terms: stated once; types, the prover and the sampler read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from liftpy.ir.nat import INDEX, Nat, NatLike, nat, var


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition on two naturals. The subclasses say which."""

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
        """True or False where normal forms and ranges decide; None where they do not."""
        if self.left.constant is not None and self.right.constant is not None:
            return self.compare(self.left.constant, self.right.constant)
        return self.decide()

    def compare(self, left: int, right: int) -> bool:
        """The condition on numbers."""
        raise NotImplementedError

    def denial(self) -> str:
        """The sentence that it does not hold."""
        return f"it is not so that {self}"

    def decide(self) -> bool | None:
        """The condition on symbols, where it is evident."""
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
class Everywhere(Constraint):
    """A condition on functions of the index `i` at every index; each subclass is one."""

    def names(self) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        return found.union(*(getattr(self, f.name).names() for f in fields(self))) - {INDEX}

    def substitute(self, by: Mapping[str, NatLike]) -> Constraint:
        own = {name: size for name, size in by.items() if name != INDEX}
        return type(self)(*(getattr(self, f.name).substitute(own) for f in fields(self)))

    def holds(self, at: Mapping[str, int]) -> bool:
        return self.substitute(at).known() is True


@dataclass(frozen=True, slots=True)
class Stays(Everywhere):
    """`0 <= left < right` at every index below `count`."""

    count: Nat

    def known(self) -> bool | None:
        count = self.count.constant
        index = (
            self.left if count is None else self.left.substitute({INDEX: var(INDEX, 0, count - 1)})
        )
        low, room = index.bounds[0], (self.right - 1 - index).bounds[0]
        if low is not None and low >= 0 and room is not None and room >= 0:
            return True
        return None if self.names() else stays(self.left, int(self.right), int(self.count))

    def __str__(self) -> str:
        return f"i -> {self.left} stays below {self.right} for i below {self.count}"


@lru_cache(maxsize=256)
def stays(index: Nat, end: int, count: int) -> bool:
    """Whether an index function stays in `0 .. end - 1` below `count`, by trying all indices."""
    return all(0 <= index.value({INDEX: i}) < end for i in range(count))


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
