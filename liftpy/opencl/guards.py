"""Guard zones: memory on both sides of a buffer that no kernel may write.

A checked run allocates them around every device allocation, fills them, and checks after every
launch that they are unchanged. Timed runs have none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ZONE = 1 << 16
"""The most bytes of a zone: a write that strays by less is detected."""

FILL = np.array(0xFF, np.uint8)
"""The fill of zones: bytes that are a NaN in every float type, and -1 in integers.

A value that is read from a zone by mistake shows in the result as well. This NaN differs from the
one that arithmetic produces, so a stray write of the latter is detected.
"""


@dataclass(frozen=True)
class Stray:
    """Bytes that a kernel wrote where it must not.

    `first` and `last` are offsets in bytes from the beginning of `buffer`, which has `size` bytes;
    those in a zone are negative, or at least `size`. Other offsets mean that the kernel wrote into
    a buffer that it may only read.
    """

    kernel: str
    buffer: str
    first: int
    last: int
    size: int

    @property
    def sentence(self) -> str:
        """The sentence that reports the write."""
        end = self.size - 1
        where = f"from byte {self.first} to byte {self.last} of buffer {self.buffer}"
        if 0 <= self.first < self.size:
            return f"kernel {self.kernel} changed bytes {where}, which it may only read"
        return f"kernel {self.kernel} wrote {where}, which has bytes 0 to {end}"


def zone(size: int, largest: int, alignment: int) -> int:
    """Bytes of each zone of an allocation of `size`.

    `largest` is the device's limit for one buffer: if two zones do not fit, there are none. A
    buffer begins after its first zone, whose size is a multiple of the device's `alignment`.
    """
    room = min(ZONE, (largest - size) // 2)
    return max(0, room - room % max(alignment, 1))


def changed(before: NDArray[Any], after: NDArray[Any]) -> tuple[int, int] | None:
    """The first and last byte in which memory has changed; None if none has."""
    different = np.flatnonzero(after != before)
    return (int(different[0]), int(different[-1])) if len(different) else None
