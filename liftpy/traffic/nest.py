"""Loops over accesses: what the model of traffic knows of a kernel.

An access touches `width` adjacent bytes of an array. Its address is an offset plus a sum of digits,
each with a stride. The value of a digit depends on axes, the counters of loops; how many values it
takes follows from the axes that vary. So `16 * i + j` has two digits, and so has the address of a
window's element, `row * (h + kh)`, whose digits have equal strides and overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Axes: TypeAlias = AbstractSet[str]
Kind: TypeAlias = Literal["sum", "quotient", "remainder", "any"]


@dataclass(frozen=True, slots=True)
class Axis:
    """A digit that is the counter of a loop."""

    name: str
    trips: int
    stride: int = 1

    @property
    def axes(self) -> frozenset[str]:
        """The axes on which it depends."""
        return frozenset({self.name}) if self.trips > 1 else frozenset()

    def span(self, varying: Axes) -> int:
        """The difference of its largest and its least value if these axes vary."""
        return self.trips - 1 if self.name in varying else 0


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
    def axes(self) -> frozenset[str]:
        """The axes on which it depends."""
        return frozenset().union(*(part.axes for part in self.parts))

    def span(self, varying: Axes) -> int:
        """The difference of its largest and its least value if these axes vary."""
        if self.kind == "any":
            return math.prod(part.span(varying) + 1 for part in self.parts) - 1
        whole = sum(abs(part.stride) * part.span(varying) for part in self.parts)
        if self.kind == "quotient":
            return whole // self.divisor
        return min(whole, self.divisor - 1) if self.kind == "remainder" else whole


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
        return frozenset().union(*(digit.axes for digit in self.digits))

    def lines(self, varying: Axes, line: int) -> int:
        """The distinct cache lines that it touches while these axes vary.

        Digits are merged from the smallest stride to the largest: those that leave no gap of a line
        prolong a run of bytes, those with the stride of another overlap with it, and the others
        multiply the number of runs.
        """
        counts: dict[int, int] = {}
        for digit in self.digits:
            span = digit.span(varying)
            if span and digit.stride:
                stride = abs(digit.stride)
                counts[stride] = counts.get(stride, 0) + span
        for stride, span in steps(self.offsets):
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
