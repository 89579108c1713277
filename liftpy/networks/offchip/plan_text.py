"""Listings as text, in the three sections `info`, `var` and `text`, and back.

[info]
loops OH=5 OC=4 IC=3 KH=3            the loops; those of `sums` add products
INPUT(3, 9) IC 2OH+KH-1              shape and indices of each array
[var]
IN(1024)                             a memory, and its elements
INPUT_0[0] (3, 5) strides (9, 1)     a tile: its first element, its shape, and the array's steps
[text]
LOAD IN INPUT_0
MULTIPLY OUTPUT_0 INPUT_0 WEIGHT_0 OH=0:2 OC=0:4 IC=0:3 KH=0:3 zeros (0:0, 1:0) adds 0
STORE OUTPUT_0 OT
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from liftpy.errors import StoreRefused
from liftpy.networks.offchip.commands import (
    MEMORIES,
    Command,
    Listing,
    LoadTile,
    Multiply,
    StoreTile,
    Tile,
)
from liftpy.networks.offchip.nest import Array, Nest, NestAxis, NestLoop
from liftpy.networks.offchip.search import Schedule

NUMBER = r"\d{1,15}"
NAME = r"[A-Z]+[0-9]*"
LOOPS = re.compile(rf"{NAME}={NUMBER}(?: {NAME}={NUMBER})*")
ARRAY = re.compile(rf"({NAME})\(({NUMBER}(?:, {NUMBER})*)\) (\S+(?: \S+)*)")
PART = re.compile(rf"({NUMBER})?({NAME})")
MEMORY = re.compile(rf"([A-Z]+)\(({NUMBER})\)")
TILE = re.compile(
    rf"(([A-Z]+)_{NUMBER})\[({NUMBER})\] \(({NUMBER}(?:, {NUMBER})*)\) "
    rf"strides \(({NUMBER}(?:, {NUMBER})*)\)"
)
TILE_NAME = rf"[A-Z]+_{NUMBER}"
LOAD = re.compile(rf"LOAD ([A-Z]+) ({TILE_NAME})")
STORE = re.compile(rf"STORE ({TILE_NAME}) ([A-Z]+)")
RANGE = re.compile(rf"({NAME})=({NUMBER}):({NUMBER})")
MULTIPLY = re.compile(
    rf"MULTIPLY ({TILE_NAME}) ({TILE_NAME}) ({TILE_NAME})((?: {RANGE.pattern})*) "
    rf"zeros \(({NUMBER}:{NUMBER}(?:, {NUMBER}:{NUMBER})*)\) adds ([01])"
)
LAYER = re.compile(rf"layer ({NUMBER}) (.+)")


# --- writing --------------------------------------------------------------------------------------


def printed(listing: Listing) -> Iterator[str]:
    """The lines of a listing."""
    nest, schedule = listing.nest, listing.schedule
    yield "[info]"
    yield f"loops {pairs(nest.extents)}"
    for kind, names in (
        ("sums", nest.summed),
        ("windows", nest.windows),
        ("contiguous", nest.contiguous),
    ):
        yield f"{kind} {' '.join(n for n in nest.extents if n in names) or '-'}"
    for array in nest.arrays:
        yield f"{array.name}({numbers(array.shape)}) {' '.join(map(index, array.axes))}"
    yield f"tiles {pairs({name: schedule.tiles[name] for name in nest.extents})}"
    yield f"order {' '.join(schedule.order)}"
    yield f"stationary {schedule.stationary or '-'}"
    yield f"traffic {listing.traffic}"
    yield f"exact {listing.exact}"
    yield "[var]"
    for name, size in zip(MEMORIES.values(), listing.memories, strict=True):
        yield f"{name}({size})"
    strides = {array.name: numbers(array.strides) for array in nest.arrays}
    for tile in listing.tiles.values():
        steps = strides[tile.array]
        yield f"{tile.name}[{tile.offset}] ({numbers(tile.shape)}) strides ({steps})"
    yield "[text]"
    yield from map(command_text, listing.commands)


def pairs(values: Mapping[str, int]) -> str:
    """Numbers with their names."""
    return " ".join(f"{name}={value}" for name, value in values.items())


def numbers(values: Sequence[int]) -> str:
    """Numbers in a row."""
    return ", ".join(map(str, values))


def index(axis: NestAxis) -> str:
    """An index as text.

    >>> index(NestAxis(9, (("OH", 2), ("KH", 1)), -1))
    '2OH+KH-1'
    """
    text = "+".join(f"{step if step > 1 else ''}{name}" for name, step in axis.terms)
    return f"{text}{axis.start:+d}" if text and axis.start else text or str(axis.start)


def command_text(command: Command) -> str:
    """A command as a line."""
    match command:
        case LoadTile(memory, tile):
            return f"LOAD {memory} {tile}"
        case StoreTile(tile, memory):
            return f"STORE {tile} {memory}"
        case Multiply(tiles, ranges, zeros, adds):
            parts = [*tiles, *(f"{name}={first}:{end}" for name, (first, end) in ranges)]
            outside = ", ".join(f"{before}:{after}" for before, after in zeros)
            return f"MULTIPLY {' '.join(parts)} zeros ({outside}) adds {int(adds)}"


# --- reading --------------------------------------------------------------------------------------


class Lines:
    """The lines of a plan, one after the other. StoreRefused names the file and the line."""

    def __init__(self, text: str, where: str) -> None:
        self.lines = text.splitlines()
        self.where = where
        self.at = 0

    @property
    def more(self) -> bool:
        """Whether there is another line."""
        return self.at < len(self.lines)

    @property
    def next(self) -> str:
        """The next line, which is not consumed; empty at the end."""
        return self.lines[self.at] if self.more else ""

    def take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        """Consumes the next line, which must match."""
        found = pattern.fullmatch(self.next)
        if found is None:
            raise self.refusal(f"wanted {wanted}, for example `{EXAMPLES.get(wanted, wanted)}`")
        self.at += 1
        return found

    def word(self, word: str) -> str:
        """Consumes the next line, which must begin with a word; returns the rest."""
        found = self.take(re.compile(rf"{re.escape(word)}(?: (.+))?"), word)
        return found[1] or ""

    def names(self, word: str, known: Mapping[str, int]) -> list[str]:
        """The loops on the next line; `-` stands for none."""
        text = self.word(word)
        found = [] if text == "-" else text.split()
        if unknown := [name for name in found if name not in known]:
            raise self.refusal(f"the loops are {' '.join(known)}, not {' '.join(unknown)}")
        return found

    def number(self, word: str) -> int:
        """The number on the next line."""
        return int(self.take(re.compile(rf"{word} ({NUMBER})"), word)[1])

    def refusal(self, why: str) -> StoreRefused:
        """The refusal of the next line."""
        shown = f"`{self.next[:60]}`" if self.more else "the end of the plan"
        return StoreRefused(f"{self.where}, line {self.at + 1}: {shown} is refused: {why}")


EXAMPLES = {
    "network": "network vgg16",
    "accelerator": "accelerator {...}",
    "policy": "policy best",
    "layer": "layer 1 conv1",
    "loops": "loops OH=5 OC=4 IC=3",
    "sums": "sums IC",
    "windows": "windows -",
    "contiguous": "contiguous -",
    "an array": "INPUT(3, 9) IC 2OH+KH-1",
    "tiles": "tiles OH=2 OC=4 IC=3",
    "order": "order OH OC IC",
    "stationary": "stationary -",
    "traffic": "traffic 1024",
    "exact": "exact 1024",
    "a memory": "IN(1024)",
    "a tile": "INPUT_0[0] (3, 5) strides (9, 1)",
    "a command": "LOAD IN INPUT_0",
}


def parsed(lines: Lines) -> Listing:
    """The listing in the next lines. StoreRefused for an unexpected line.

    The effects of its commands are not checked here; see `machine.verify`.
    """
    lines.word("[info]")
    extents = by_name(lines.take(re.compile(rf"loops ({LOOPS.pattern})"), "loops")[1])
    summed, windows, contiguous = (
        frozenset(lines.names(word, extents)) for word in ("sums", "windows", "contiguous")
    )
    data, weight, result = (array_of(lines, name, extents) for name in MEMORIES)
    tiles = by_name(lines.take(re.compile(rf"tiles ({LOOPS.pattern})"), "tiles")[1])
    order = tuple(lines.names("order", extents))
    if [*tiles] != [*extents] or sorted(order) != sorted(extents) or 0 in {*tiles.values()}:
        raise lines.refusal(
            f"tiles and order must name each of {' '.join(extents)}, with sizes above 0"
        )
    stationary = lines.word("stationary")
    schedule = Schedule(tiles, order, "" if stationary == "-" else stationary)
    traffic, exact = lines.number("traffic"), lines.number("exact")
    lines.word("[var]")
    a, b, c = (int(lines.take(MEMORY, "a memory")[2]) for _ in MEMORIES)
    known: dict[str, Tile] = {}
    strides = {array.name: array.strides for array in (data, weight, result)}
    while lines.next != "[text]":
        name, array, offset, shape, steps = lines.take(TILE, "a tile").groups()
        if strides.get(array) != whole(steps):
            raise lines.refusal(f"{array} has strides {strides.get(array)}")
        known[name] = Tile(name, array, int(offset), whole(shape))
    lines.word("[text]")
    commands: list[Command] = []
    while lines.more and not lines.next.startswith("["):
        commands.append(command_of(lines))
    loops = tuple(NestLoop(name, extent, name in summed) for name, extent in extents.items())
    nest = Nest(loops, data, weight, result, windows, contiguous)
    return Listing(nest, schedule, (a, b, c), traffic, exact, known, tuple(commands))


def by_name(text: str) -> dict[str, int]:
    """Numbers by name."""
    return {name: int(value) for name, value in (part.split("=") for part in text.split())}


def whole(text: str) -> tuple[int, ...]:
    """Numbers in a row."""
    return tuple(map(int, text.split(", ")))


def array_of(lines: Lines, wanted: str, extents: Mapping[str, int]) -> Array:
    """The array on the next line."""
    name, shape, indices = lines.take(ARRAY, "an array").groups()
    lengths, texts = whole(shape), indices.split()
    axes = [axis_of(n, text, extents) for n, text in zip(lengths, texts, strict=False)]
    if name != wanted or len(lengths) != len(texts) or None in axes:
        lines.at -= 1
        raise lines.refusal(f"wanted {wanted}, with an index of loops for each axis")
    return Array(name, tuple(axis for axis in axes if axis is not None))


def axis_of(length: int, text: str, extents: Mapping[str, int]) -> NestAxis | None:
    """An axis from its index; None if that is not a sum of loops.

    >>> axis_of(9, "2OH+KH-1", {"OH": 5, "KH": 3})
    NestAxis(length=9, terms=(('OH', 2), ('KH', 1)), start=-1)
    """
    found = re.fullmatch(rf"((?:{NUMBER})?{NAME}(?:\+(?:{NUMBER})?{NAME})*)?([+-]?{NUMBER})?", text)
    if found is None:
        return None
    terms = [PART.fullmatch(part) for part in (found[1] or "").split("+") if part]
    named = tuple((part[2], int(part[1] or 1)) for part in terms if part is not None)
    if any(name not in extents for name, _ in named):
        return None
    return NestAxis(length, named, int(found[2] or 0))


def command_of(lines: Lines) -> Command:
    """The command on the next line."""
    if found := LOAD.fullmatch(lines.next):
        lines.at += 1
        return LoadTile(found[1], found[2])
    if found := STORE.fullmatch(lines.next):
        lines.at += 1
        return StoreTile(found[1], found[2])
    found = lines.take(MULTIPLY, "a command")
    ranges = tuple((n, (int(f), int(e))) for n, f, e in RANGE.findall(found[4]))
    before_and_after = (pair.split(":") for pair in found[8].split(", "))
    zeros = tuple((int(before), int(after)) for before, after in before_and_after)
    return Multiply((found[1], found[2], found[3]), ranges, zeros, adds=found[9] == "1")
