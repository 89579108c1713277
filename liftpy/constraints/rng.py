"""Random numbers that are the same on every platform and in every version of Python.

`random.Random` guarantees only two things: the effect of an integer seed, and what `random()` then
returns. Everything else (`randrange`, `shuffle`) may change, and is implemented here.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
BITS = 32  # taken from one `random()`, which has 53


class Rng:
    """Uniform numbers from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed).random

    def below(self, count: int) -> int:
        """A uniform number from 0 to `count` - 1, however large `count` is."""
        bits = (count - 1).bit_length()
        while True:
            number = 0
            for taken in range(0, bits, BITS):
                more = min(BITS, bits - taken)
                number = number << more | int(self.random() * (1 << more))
            if number < count:
                return number

    def choice(self, values: Sequence[T]) -> T:
        """A uniform choice among values."""
        return values[self.below(len(values))]

    def shuffle(self, values: list[T]) -> None:
        """Put a list in a uniform random order."""
        for i in range(len(values) - 1):
            j = i + self.below(len(values) - i)
            values[i], values[j] = values[j], values[i]


def shuffled(count: int, seed: int, start: int = 0) -> Iterator[int]:
    """The numbers below `count` in a uniform random order, from position `start` of it.

    A lazy Fisher-Yates shuffle: only the moved numbers are in memory.
    """
    rng = Rng(seed)
    moved: dict[int, int] = {}
    for i in range(count):
        j = i + rng.below(count - i)
        here = moved.pop(i, i)
        drawn = here
        if j != i:
            drawn, moved[j] = moved.get(j, j), here
        if i >= start:
            yield drawn
