"""Convolution slicing analysis: tiles and a loop order of a convolution, from the caches alone.

This is the published analysis of Ferrari et al. (TACO 2023), for comparison with it; no rule and no
strategy of liftpy uses it. A layer is cut into tiles: `windows` positions of the output, `filters`
filters and `N_c` channels. One operand is stationary: a tile of it stays in the first cache, while
K2 tiles of the other, moving one pass by, which stay in the second cache for K3 stationary tiles,
which stay in the third. The stationary operand is the input (IS) or the weights (WS).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from liftpy.constraints.hardware import Hardware
from liftpy.workloads.convolution import Convolution

Order: TypeAlias = Literal["IS", "WS"]
ORDERS: tuple[Order, ...] = ("IS", "WS")
Heuristic: TypeAlias = Literal["halve", "bisect", "exact"]

BYTES = 4
"""Bytes of an element: the analysis is of f32."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The condition `fixed + n * each <= room` on a number n."""

    fixed: int
    each: int
    room: int

    def holds(self, n: int) -> bool:
        """Whether the condition holds for a number."""
        return self.fixed + n * self.each <= self.room


def halve(most: int, bound: Bound) -> int:
    """The first of `most`, half of it, a quarter and so on that fits; 0 if 1 does not."""
    n = most
    while n and not bound.holds(n):
        n //= 2
    return n


def bisect(most: int, bound: Bound) -> int:
    """The largest number up to `most` that fits, by binary search; 0 if 1 does not."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if bound.holds(middle) else (low, middle - 1)
    return low


def exact(most: int, bound: Bound) -> int:
    """The largest number up to `most` that fits, by division; 0 if 1 does not.

    The conditions on N_c, K2 and K3 are linear, and each contains only one of them that is still
    open. So these quotients are the lexicographic optimum that a solver would find.
    """
    return max(0, min(most, (bound.room - bound.fixed) // bound.each))


SEARCHES: dict[Heuristic, Callable[[int, Bound], int]] = {
    "halve": halve,
    "bisect": bisect,
    "exact": exact,
}


@dataclass(frozen=True, slots=True)
class Tiling:
    """The tiles of a layer and their order.

    `stationary` and `moving` are the numbers of tiles of the two operands for each set of channels;
    `stationary_bytes` and `moving_bytes` are the sizes of a tile.
    """

    order: Order
    channels: int
    sets: int
    stationary: int
    moving: int
    stationary_bytes: int
    moving_bytes: int
    out_bytes: int
    k2: int
    k3: int

    @property
    def groups(self) -> tuple[int, int]:
        """The number of groups of K3 stationary tiles, and of groups of K2 moving tiles."""
        return -(-self.stationary // self.k3), -(-self.moving // self.k2)


def tiling(
    layer: Convolution, hardware: Hardware, order: Order, heuristic: Heuristic = "halve"
) -> Tiling | None:
    """The tiles of a layer in an order; None if not even one channel and one tile fit.

    Raises ValueError if the hardware does not have three caches.
    """
    first, second, third = (hardware.room(k) for k in range(len(hardware.cache_sizes)))
    largest = SEARCHES[heuristic]
    windows, filters = hardware.micro_kernel
    each = layer.kernel[0] * layer.kernel[1] * BYTES
    out = windows * filters * BYTES
    depth = layer.channels // layer.groups
    channels = largest(depth, Bound(out, (windows + filters) * each, first))
    if not channels:
        return None
    rows, columns = layer.out
    parts = [
        (-(-rows * columns // windows), windows * channels * each),
        (-(-layer.kernels // filters), filters * channels * each),
    ]
    (stationary, held), (moving, moved) = parts if order == "IS" else reversed(parts)
    k2 = largest(moving, Bound(held, moved + out, second))
    k3 = largest(stationary, Bound(k2 * moved, held + k2 * out, third))
    if not (k2 and k3):
        return None
    sets = -(-depth // channels)
    return Tiling(order, channels, sets, stationary, moving, held, moved, out, k2, k3)
