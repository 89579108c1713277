"""Placement of blocks in one arena: blocks that are stored at the same time do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """Memory that is in use from step `first` to step `last`, both included.

    Blocks `within` the same group are placed together: a block is `at` bytes after the start of its
    group. A block without a group is a group of its own.
    """

    name: str
    bytes: int
    first: int
    last: int
    within: str = ""
    at: int = 0

    @property
    def group(self) -> str:
        """The name of its group."""
        return self.within or self.name

    def meets(self, other: Block) -> bool:
        """Whether both are in use in some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Placement:
    """The offset of each block by name, and the `bytes` of the arena.

    `bound` is the largest sum of the bytes in use in one step: no arena is smaller. `proved`:
    whether no placement of these blocks has a smaller arena.
    """

    offsets: Mapping[str, int]
    bytes: int
    bound: int
    proved: bool


def aligned(size: int, alignment: int) -> int:
    """The least multiple of the alignment that is not below a size.

    >>> aligned(130, 64)
    192
    """
    return -(-size // alignment) * alignment


def lower_bound(blocks: Sequence[Block]) -> int:
    """The largest sum of the bytes in use in one step.

    >>> lower_bound([Block("a", 3, 0, 1), Block("b", 5, 1, 2), Block("c", 7, 3, 3)])
    8
    """
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.bytes
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.bytes
    most = used = 0
    for step in sorted(changes):
        used += changes[step]
        most = max(most, used)
    return most


def end_of(blocks: Iterable[Block], offsets: Mapping[str, int]) -> int:
    """The bytes of the smallest arena with all blocks at their offsets."""
    return max((offsets[b.name] + b.bytes for b in blocks), default=0)


def conflict(
    blocks: Sequence[Block], offsets: Mapping[str, int], size: int, alignment: int = 1
) -> str | None:
    """What is wrong with a placement in an arena of `size` bytes; None if nothing is.

    It is a check of plans from anywhere, and shares no code with what finds placements.

    >>> conflict([Block("a", 4, 0, 1), Block("b", 4, 1, 1)], {"a": 0, "b": 2}, 8)
    'a at 0 and b at 2 share bytes 2 to 3, and both are in use in step 1'
    """
    for b in blocks:
        start = offsets[b.name]
        if start < 0 or start + b.bytes > size:
            return f"{b.name} at {start} with {b.bytes} bytes is not within {size} bytes"
        if start % alignment:
            return f"{b.name} at {start} is not at a multiple of {alignment}"
    running: list[Block] = []
    for b in sorted(blocks, key=lambda b: (b.first, b.name)):
        running = [other for other in running if other.last >= b.first]
        for other in running:
            low = max(offsets[b.name], offsets[other.name])
            high = min(offsets[b.name] + b.bytes, offsets[other.name] + other.bytes)
            if low < high:
                return (
                    f"{other.name} at {offsets[other.name]} and {b.name} at {offsets[b.name]} "
                    f"share bytes {low} to {high - 1}, and both are in use in step {b.first}"
                )
        running.append(b)
    return None


ORDERS: tuple[Callable[[Block], tuple[float, ...]], ...] = (
    lambda b: (-b.bytes, b.first),
    lambda b: (-(b.last - b.first), -b.bytes),
    lambda b: (-b.bytes * (b.last - b.first + 1), b.first),
    lambda b: (b.first, -b.bytes),
    lambda b: (-b.last, -b.bytes),
)
"""The orders in which `greedy` places blocks."""


def greedy(blocks: Sequence[Block]) -> dict[str, int]:
    """Offsets by the best of several orders; each group goes to the lowest gap that it fits."""
    groups: dict[str, list[Block]] = {}
    for b in blocks:
        groups.setdefault(b.group, []).append(b)
    wholes = [
        Block(name, sum(b.bytes for b in own), min(b.first for b in own), max(b.last for b in own))
        for name, own in groups.items()
    ]
    found = [
        _in_order([groups[w.name] for w in sorted(wholes, key=lambda w: (*order(w), w.name))])
        for order in ORDERS
    ]
    return min(found, key=lambda offsets: end_of(blocks, offsets))


def _in_order(groups: Sequence[Sequence[Block]]) -> dict[str, int]:
    offsets: dict[str, int] = {}
    placed: list[Block] = []
    for group in groups:
        # the group must not start between two such numbers: a block would overlap a placed one
        taken = [
            (offsets[other.name] - b.at - b.bytes, offsets[other.name] + other.bytes - b.at)
            for b in group
            for other in placed
            if other.meets(b)
        ]
        start = 0
        for low, high in sorted(taken):
            if low >= start:
                break
            start = max(start, high)
        offsets |= {b.name: start + b.at for b in group}
        placed += group
    return offsets


Solve = Callable[[Sequence[Block], int, Mapping[str, int]], tuple[Mapping[str, int], bool]]
"""From blocks, their lower bound and a first placement: a placement, and whether it is proved."""


def place(blocks: Sequence[Block], alignment: int = 1, solve: Solve | None = None) -> Placement:
    """A placement at multiples of the alignment; sizes are rounded up to it.

    The places of blocks in their groups (`at`) have to be multiples of the alignment.

    It is greedy, and proved if it needs no more than the lower bound. Otherwise `solve`, if given,
    looks for a smaller one.
    """
    units = [
        Block(b.name, -(-b.bytes // alignment), b.first, b.last, b.within, b.at // alignment)
        for b in blocks
    ]
    bound = lower_bound(units)
    offsets: Mapping[str, int] = greedy(units) if units else {}
    proved = end_of(units, offsets) == bound
    if not proved and solve is not None:
        offsets, proved = solve(units, bound, offsets)
    return Placement(
        {name: at * alignment for name, at in offsets.items()},
        end_of(units, offsets) * alignment,
        bound * alignment,
        proved,
    )
