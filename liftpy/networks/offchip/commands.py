"""A schedule as a list of commands: loads, stores, and products of tiles on the chip."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from liftpy.networks.offchip.nest import WORD, Array, Nest, Range, Ranges, ranges_of
from liftpy.networks.offchip.search import Schedule
from liftpy.networks.offchip.traffic import exact_traffic, traffic

MEMORIES: Mapping[str, str] = {"INPUT": "IN", "WEIGHT": "WT", "OUTPUT": "OT"}
"""The memory of each array."""

Zeros: TypeAlias = tuple[Range, ...]
"""How many indices, which read 0, lie before each axis of the input and after it."""


@dataclass(frozen=True)
class Tile:
    """A part of an array: the first element, counted in row-major order, and its lengths."""

    name: str
    array: str
    offset: int
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return WORD * math.prod(self.shape)


@dataclass(frozen=True)
class LoadTile:
    """Copies a tile from off-chip memory to a memory of the chip."""

    memory: str
    tile: str


@dataclass(frozen=True)
class StoreTile:
    """Copies the tile in a memory of the chip to off-chip memory."""

    tile: str
    memory: str


@dataclass(frozen=True)
class Multiply:
    """Adds the products over some ranges of the loops to the tile of results in its memory.

    Without `adds`, the sums begin at 0.
    """

    tiles: tuple[str, str, str]
    ranges: tuple[tuple[str, Range], ...]
    zeros: Zeros
    adds: bool


Command: TypeAlias = LoadTile | StoreTile | Multiply


@dataclass(frozen=True)
class Listing:
    """The commands of a nest, with the tiles that they name.

    `memories` are the capacities in elements. `traffic` and `exact` are the bytes moved, by the
    published formulas and as the commands move them.
    """

    nest: Nest
    schedule: Schedule
    memories: tuple[int, int, int]
    traffic: int
    exact: int
    tiles: Mapping[str, Tile]
    commands: tuple[Command, ...]


def zeros_of(array: Array, ranges: Ranges) -> Zeros:
    """How far the indices of an array reach before its beginning and after its end.

    >>> from liftpy.networks.offchip.nest import NestAxis
    >>> rows = NestAxis(56, (("OH", 1), ("KH", 1)), start=-1)
    >>> zeros_of(Array("INPUT", (rows,)), {"OH": (0, 16), "KH": (0, 3)})
    ((1, 0),)
    """
    hulls = [(axis, *axis.hull(ranges)) for axis in array.axes]
    return tuple((max(0, -first), max(0, end - axis.length)) for axis, first, end in hulls)


def tile_of(array: Array, ranges: Ranges, name: str) -> Tile:
    """The tile of an array that these ranges of loops use."""
    box = array.box(ranges)
    offset = sum(first * stride for (first, _), stride in zip(box, array.strides, strict=True))
    return Tile(name, array.name, offset, tuple(end - first for first, end in box))


def listed(nest: Nest, schedule: Schedule, capacities: tuple[int, int, int]) -> Listing:
    """The commands of a schedule. `capacities` are the bytes of the memories.

    A tile is loaded if its memory holds another one, or if the schedule does not keep it. A tile of
    results is stored before another one takes its memory.
    """
    moving = schedule.moving(nest)
    whole = {name: (0, extent) for name, extent in nest.extents.items()}
    parts = [ranges_of(nest.extents[name], schedule.tiles[name]) for name in moving]
    made = Maker(nest, schedule)
    for part in itertools.product(*parts):
        made.iterate({**whole, **dict(zip(moving, part, strict=True))})
    made.finish()
    a, b, c = (size // WORD for size in capacities)
    return Listing(
        nest,
        schedule,
        (a, b, c),
        int(traffic(nest, schedule.order, schedule.tiles, schedule.stationary)),
        exact_traffic(nest, schedule.order, schedule.tiles, schedule.stationary),
        {tile.name: tile for tile in made.tiles.values()},
        tuple(made.commands),
    )


class Maker:
    """Makes the commands, iteration by iteration."""

    def __init__(self, nest: Nest, schedule: Schedule) -> None:
        self.nest = nest
        self.stationary = schedule.stationary
        self.tiles: dict[tuple[str, tuple[Range, ...]], Tile] = {}
        self.commands: list[Command] = []
        self.held: dict[str, str] = {}
        self.begun: set[str] = set()
        self.numbers: dict[str, int] = {}

    def tile(self, array: Array, ranges: Ranges) -> str:
        """The name of a tile; a new one has the next number of its array."""
        key = array.name, tuple(ranges[name] for name in array.loops)
        if key not in self.tiles:
            self.numbers[array.name] = number = self.numbers.get(array.name, -1) + 1
            self.tiles[key] = tile_of(array, ranges, f"{array.name}_{number}")
        return self.tiles[key].name

    def stays(self, array: Array) -> bool:
        """Whether a tile stays in its memory as long as it is used."""
        return self.stationary in ("", array.name)

    def iterate(self, ranges: Ranges) -> None:
        """The commands of one iteration."""
        data, weight, result = self.nest.arrays
        names = [self.tile(array, ranges) for array in self.nest.arrays]
        for array, name in zip((data, weight), names, strict=False):
            if self.held.get(array.name) != name or not self.stays(array):
                self.commands.append(LoadTile(MEMORIES[array.name], name))
                self.held[array.name] = name
        out, memory = names[2], MEMORIES[result.name]
        if self.held.get(result.name) != out:
            self.finish()
            if out in self.begun:
                self.commands.append(LoadTile(memory, out))
            self.held[result.name] = out
        self.commands.append(
            Multiply(
                (out, names[0], names[1]),
                tuple(ranges.items()),
                zeros_of(data, ranges),
                out in self.begun,
            )
        )
        self.begun.add(out)
        if not self.stays(result):
            self.finish()

    def finish(self) -> None:
        """Stores the tile of results that its memory holds."""
        result = self.nest.result.name
        if result in self.held:
            self.commands.append(StoreTile(self.held.pop(result), MEMORIES[result]))
