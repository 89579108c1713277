"""The effects of commands on the memories of a chip: each command is checked before it runs.

The same checks verify a plan and guard its run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from liftpy.errors import StoreRefused
from liftpy.networks.offchip.commands import (
    MEMORIES,
    Command,
    Listing,
    LoadTile,
    Multiply,
    StoreTile,
    Tile,
    tile_of,
    zeros_of,
)
from liftpy.networks.offchip.nest import WORD, Array, Range, Ranges
from liftpy.networks.offchip.traffic import exact_traffic, traffic


class Wrong(Exception):
    """A command that the memories do not allow, or a list that is not complete."""


@dataclass
class State:
    """The state of the memories after some commands.

    `holds` has the tile in each memory; `unsaved` is whether the tile of results there has sums
    that are not stored. `sums` counts the products added to each tile of results in steps, and
    `stored` how many of the steps the stored tile has.
    """

    listing: Listing
    holds: dict[str, str] = field(default_factory=dict[str, str])
    unsaved: bool = False
    sums: dict[str, int] = field(default_factory=dict[str, int])
    stored: dict[str, int] = field(default_factory=dict[str, int])
    cells: set[tuple[Range, ...]] = field(default_factory=set[tuple[Range, ...]])
    moved: int = 0

    def __post_init__(self) -> None:
        self.arrays = {array.name: array for array in self.listing.nest.arrays}
        self.rooms = dict(zip(MEMORIES.values(), self.listing.memories, strict=True))

    def tile(self, name: str, memory: str) -> Tile:
        """The tile of a name, for a memory. Wrong if there is none, or if it does not fit."""
        tile = self.listing.tiles.get(name)
        if tile is None or MEMORIES.get(tile.array) != memory:
            raise Wrong(f"{memory} is no memory for {name}")
        if tile.bytes > WORD * self.rooms[memory]:
            raise Wrong(
                f"{name} has {math.prod(tile.shape)} elements, and {memory} has room for "
                f"{self.rooms[memory]}"
            )
        return tile

    def step(self, command: Command) -> None:
        """Applies a command. Wrong if it is invalid in this state."""
        match command:
            case LoadTile(memory, name):
                self.moved += self.tile(name, memory).bytes
                if memory == MEMORIES["OUTPUT"]:
                    if self.unsaved:
                        raise Wrong(f"{self.holds[memory]} is in {memory} and was not stored")
                    if self.sums.get(name, 0) != self.stored.get(name):
                        raise Wrong(f"{name} has no stored sums")
                self.holds[memory] = name
            case StoreTile(name, memory):
                self.moved += self.tile(name, memory).bytes
                if self.holds.get(memory) != name or not self.unsaved:
                    raise Wrong(f"{memory} has no new sums of {name}")
                self.stored[name] = self.sums[name]
                self.unsaved = False
            case Multiply():
                self.multiply(command)

    def multiply(self, command: Multiply) -> None:
        """Adds products."""
        nest, ranges = self.listing.nest, dict(command.ranges)
        if list(ranges) != list(nest.extents) or any(
            not 0 <= first < end <= nest.extents[name] for name, (first, end) in ranges.items()
        ):
            raise Wrong("its ranges are not those of the loops")
        out, *operands = command.tiles
        for array, name in zip((nest.data, nest.weight), operands, strict=True):
            if self.holds.get(MEMORIES[array.name]) != name:
                raise Wrong(f"{name} is not in {MEMORIES[array.name]}")
            self.covers(array, name, ranges)
        memory = MEMORIES["OUTPUT"]
        self.tile(out, memory)
        self.covers(nest.result, out, ranges)
        if command.zeros != zeros_of(nest.data, ranges):
            raise Wrong(f"outside the input are {zeros_of(nest.data, ranges)}, not {command.zeros}")
        if command.adds != (self.sums.get(out, 0) > 0):
            raise Wrong(f"{self.sums.get(out, 0)} steps were added to {out} before")
        if self.holds.get(memory) != out:
            if command.adds:
                raise Wrong(f"{out} is not in {memory}")
            if self.unsaved:
                raise Wrong(f"{self.holds[memory]} is in {memory} and was not stored")
        cell = tuple(ranges.values())
        if cell in self.cells:
            raise Wrong("its products were added before")
        self.cells.add(cell)
        self.holds[memory], self.unsaved = out, True
        self.sums[out] = self.sums.get(out, 0) + 1

    def covers(self, array: Array, name: str, ranges: Ranges) -> None:
        """Wrong unless a tile is the part of its array that the ranges use."""
        needed = tile_of(array, ranges, name)
        if self.listing.tiles[name] != needed:
            raise Wrong(f"{name} must be {needed.shape} of {array.name} from {needed.offset}")

    def finish(self) -> None:
        """Wrong unless all products were added once and all results are stored."""
        listing = self.listing
        nest, schedule = listing.nest, listing.schedule
        for k, (name, extent) in enumerate(nest.extents.items()):
            ranges = sorted({cell[k] for cell in self.cells})
            ends = [0, *(end for _, end in ranges)]
            if [first for first, _ in ranges] != ends[:-1] or ends[-1] != extent:
                raise Wrong(f"its commands do not go through {name} once")
        many = math.prod(len({cell[k] for cell in self.cells}) for k in range(len(nest.loops)))
        if len(self.cells) != many:
            raise Wrong(f"{many - len(self.cells)} of {many} commands with products are missing")
        if self.stored != self.sums:
            raise Wrong("results are not stored at its end")
        if self.moved != listing.exact:
            raise Wrong(f"it moves {self.moved} bytes, but states {listing.exact}")
        options = schedule.order, schedule.tiles, schedule.stationary
        for stated, found in (
            (listing.exact, exact_traffic(nest, *options)),
            (listing.traffic, int(traffic(nest, *options))),
        ):
            if stated != found:
                raise Wrong(f"its tiles and order move {found} bytes, but it states {stated}")


def checked(listing: Listing, where: str) -> Iterator[tuple[Command, State]]:
    """The commands, each after it was checked, and the state after it.

    StoreRefused for a command that the memories do not allow, and at the end for a list that does
    not compute the nest, or does not move the bytes that it states.
    """
    state, number, command = State(listing), 0, None
    try:
        for number, command in enumerate(listing.commands, 1):  # noqa: B007  for the message
            state.step(command)
            yield command, state
        command = None
        state.finish()
    except Wrong as error:
        place = "" if command is None else f", command {number} ({type(command).__name__.upper()})"
        raise StoreRefused(
            f"{where}{place} is refused: {error}\n"
            "  `liftpy plan MODEL --objective traffic --hardware FILE -o PLAN` makes a valid plan"
        ) from error


def verify(listing: Listing, where: str) -> int:
    """The bytes that the commands move. StoreRefused for an invalid plan; see `checked`."""
    moved = 0
    for _, state in checked(listing, where):
        moved = state.moved
    return moved
