"""Loops over accesses: what the model of traffic knows of a kernel.

An access touches `width` adjacent bytes of an array. Its address is an offset plus a sum of digits,
each with a stride. The value of a digit depends on axes, the counters of loops; how many values it
takes follows from the axes that vary. So `16 * i + j` has two digits, and so has the address of a
window's element, `row * (h + kh)`, whose digits have equal strides and overlap.

Note [Quotients]. A quotient and a remainder decode an id that numbers rows and columns. If the id
takes adjacent values, so does the quotient, and each of its values occurs with each remainder. But
a GPU's unit has every 132nd group: the quotient by 28 of every 132nd number takes every fourth or
fifth value, one for each number, and the remainder adds no combinations. So a part of the numerator
whose stride is at least the divisor remains a step of its own, unless the smaller parts fill the
gaps between its values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Axes: TypeAlias = AbstractSet[str]
Kind: TypeAlias = Literal["quotient", "remainder", "any"]
Steps: TypeAlias = tuple[tuple[int, int], ...]
"""Values as a sum: each pair is a stride, and the largest number by which it is multiplied."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A digit that is the counter of a loop."""

    name: str
    trips: int
    stride: int = 1

    @property
    def trips_of(self) -> Mapping[str, int]:
        """The axes on which it depends, with their trips."""
        return {self.name: self.trips} if self.trips > 1 else {}

    def steps(self, varying: Axes) -> Steps:
        """Its values while these axes vary, without its own stride."""
        return ((1, self.trips - 1),) if self.trips > 1 and self.name in varying else ()


@dataclass(frozen=True)
class Derived:
    """A digit that is computed from others: a quotient or a remainder of their sum, or anything.

    Of a digit of the kind `any`, only the axes are known: it has a value for each combination.
    """

    kind: Kind
    parts: tuple[Digit, ...]
    divisor: int = 1
    stride: int = 1

    @cached_property
    def trips_of(self) -> Mapping[str, int]:
        """The axes on which it depends, with their trips."""
        return {axis: trips for part in self.parts for axis, trips in part.trips_of.items()}

    def steps(self, varying: Axes) -> Steps:
        """Its values while these axes vary, without its own stride: see Note [Quotients].

        >>> blocks = Axis("unit", 132), Axis("place", 6, 132)
        >>> Derived("quotient", blocks, 28).steps({"place"})
        ((4, 5),)
        >>> Derived("quotient", blocks, 28).steps({"unit", "place"})
        ((1, 28),)
        """
        found = [
            (abs(part.stride) * stride, span)
            for part in self.parts
            for stride, span in part.steps(varying)
        ]
        match self.kind:
            case "quotient":
                return tuple(quotients(merged(found), self.divisor))
            case "remainder":
                return tuple(remainders(merged(found), self.divisor))
            case "any":
                return ((1, math.prod(span + 1 for _, span in found) - 1),)


def merged(steps: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Values as a sum of fewer steps, in ascending order: those that leave no gap become one.

    >>> [*merged([(128, 3), (1, 127), (2048, 5)])]
    [(1, 511), (2048, 5)]
    """
    last, reach = 0, 0
    for stride, span in sorted(steps):
        if last and stride % last == 0 and stride <= last * (reach + 1):
            reach += stride // last * span
            continue
        if last:
            yield last, reach
        last, reach = stride, span
    if last:
        yield last, reach


def quotients(steps: Iterable[tuple[int, int]], divisor: int) -> Iterator[tuple[int, int]]:
    """The quotients of values whose steps are merged: see Note [Quotients]."""
    below = 0
    for stride, span in steps:
        if stride >= divisor:
            yield stride // divisor, span
        else:
            below += stride * span
    if below >= divisor:
        yield 1, below // divisor


def remainders(steps: Iterable[tuple[int, int]], divisor: int) -> Iterator[tuple[int, int]]:
    """The remainders of values whose steps are merged: see Note [Quotients]."""
    below = 0
    for stride, span in steps:
        below += stride * span
        if below < divisor:
            yield stride, span
            continue
        many = min(span + 1, divisor // math.gcd(divisor, stride))
        if many > 1:
            yield divisor // many, many - 1


Digit: TypeAlias = Axis | Derived


@dataclass(frozen=True)
class Access:
    """Loads or stores of `width` bytes of an array, at each of some offsets in bytes.

    A nontemporal store bypasses the caches.
    """

    array: str
    digits: tuple[Digit, ...]
    width: int
    offsets: tuple[int, ...] = (0,)
    stores: bool = False
    nontemporal: bool = False

    @cached_property
    def axes(self) -> frozenset[str]:
        """The axes on which its address depends."""
        return frozenset(axis for digit in self.digits for axis in digit.trips_of)

    def lines(self, varying: Axes, line: int) -> int:
        """The distinct cache lines that it touches while these axes vary.

        Digits are merged from the smallest stride to the largest: those that leave no gap of a line
        prolong a run of bytes, those with the stride of another overlap with it, and the others
        multiply the number of runs.
        """
        counts: dict[int, int] = {}
        for stride, span in (*self.steps(varying), *steps(self.offsets)):
            counts[stride] = counts.get(stride, 0) + span
        run, levels = self.width, list[tuple[int, int]]()
        for stride in sorted(counts):
            span = counts[stride]
            if not levels and stride <= max(run, line):
                run += stride * span
                continue
            if levels:
                last, known = levels[-1]
                if stride % last == 0 and stride <= last * (known + 1):
                    levels[-1] = last, known + stride // last * span
                    continue
            levels.append((stride, span))
        return -(-run // line) * math.prod(span + 1 for _, span in levels)

    def steps(self, varying: Axes) -> Steps:
        """Its addresses while these axes vary, without its offsets.

        Digits that are computed from the same axes have no more values together than these have,
        spread over the same range.
        """
        found: list[tuple[int, int]] = []
        derived: dict[frozenset[str], list[tuple[int, int]]] = {}
        trips: dict[str, int] = {}
        for digit in self.digits:
            moving = [(abs(digit.stride) * stride, span) for stride, span in digit.steps(varying)]
            if isinstance(digit, Axis):
                found += moving
            else:
                axes = frozenset(varying & digit.trips_of.keys())
                derived.setdefault(axes, []).extend(moving)
                trips |= digit.trips_of
        for axes, moving in derived.items():
            left = math.prod(trips[axis] for axis in axes)
            for stride, span in sorted(moving, reverse=True):
                some = min(span, left - 1)
                left = -(-left // (some + 1))
                found += [(stride * span // some, some)] if some else []
        return tuple((stride, span) for stride, span in found if stride)


def steps(offsets: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Offsets as digits: a stride and a span for each step that occurs between them.

    >>> [*steps((0, 4, 8, 100, 104, 108))]
    [(4, 2), (100, 1)]
    """
    left = sorted(set(offsets))
    while len(left) > 1:
        stride = left[1] - left[0]
        known = set(left)
        count = 1
        while left[0] + stride * count in known:
            count += 1
        starts = [o for o in left if o - stride not in known]
        yield stride, count - 1
        left = starts if len(starts) < len(left) else left[:1]


@dataclass(frozen=True)
class Loop:
    """A loop: the axis that its counter is, and what each iteration does in order."""

    axis: str
    trips: int
    body: tuple[Loop | Access, ...]

    @cached_property
    def accesses(self) -> tuple[Access, ...]:
        """All accesses in it."""
        return tuple(accesses_in(self.body))

    @cached_property
    def arrays(self) -> frozenset[str]:
        """The arrays that it touches."""
        return frozenset(access.array for access in self.accesses)

    @cached_property
    def inner(self) -> frozenset[str]:
        """The axes of the loops inside it."""
        loops = [part for part in self.body if isinstance(part, Loop)]
        return frozenset().union(*({loop.axis} | loop.inner for loop in loops))


Nest: TypeAlias = Loop | Access


def accesses_in(body: tuple[Nest, ...]) -> Iterator[Access]:
    """The accesses in some statements."""
    for part in body:
        if isinstance(part, Loop):
            yield from part.accesses
        else:
            yield part
