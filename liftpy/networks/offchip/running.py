"""Runs commands with arrays in NumPy: tiles move between arrays and memories of a fixed size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from liftpy.networks.offchip.commands import MEMORIES, Listing, LoadTile, Multiply, StoreTile, Tile
from liftpy.networks.offchip.machine import checked
from liftpy.networks.offchip.meaning import Reading
from liftpy.networks.offchip.nest import Array, Ranges

Floats: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class Run:
    """The result of a nest, and the bytes that were copied between its arrays and the memories."""

    result: Floats
    loaded: int
    stored: int


def run(listing: Listing, data: NDArray[Any], weight: NDArray[Any], where: str = "the plan") -> Run:
    """Runs the commands of a nest; the operands have as many elements as its arrays.

    The memories have exactly their capacity. They hold NaN until they are loaded, and so do the
    results until they are stored. StoreRefused for an invalid plan.
    """
    nest = listing.nest
    arrays = {
        nest.data.name: np.asarray(data, np.float32).reshape(nest.data.shape),
        nest.weight.name: np.asarray(weight, np.float32).reshape(nest.weight.shape),
        nest.result.name: np.full(nest.result.shape, np.nan, np.float32),
    }
    memories = {
        name: np.full(size, np.nan, np.float32)
        for name, size in zip(MEMORIES.values(), listing.memories, strict=True)
    }
    loaded = stored = 0
    for command, _ in checked(listing, where):
        match command:
            case LoadTile(memory, name):
                part = part_of(arrays, listing.tiles[name])
                memories[memory][: part.size] = part.ravel()
                loaded += part.nbytes
            case StoreTile(name, memory):
                part = part_of(arrays, listing.tiles[name])
                part[...] = memories[memory][: part.size].reshape(part.shape)
                stored += part.nbytes
            case Multiply():
                multiply(listing, command, memories)
    return Run(arrays[nest.result.name], loaded, stored)


def part_of(arrays: dict[str, Floats], tile: Tile) -> Floats:
    """A tile of an array, as a view."""
    array = arrays[tile.array]
    first = np.unravel_index(tile.offset, array.shape) if array.size else ()
    return array[tuple(slice(f, f + n) for f, n in zip(first, tile.shape, strict=True))]


def multiply(listing: Listing, command: Multiply, memories: dict[str, Floats]) -> None:
    """Adds the products of the tiles in the memories."""
    nest, ranges = listing.nest, dict(command.ranges)
    out, data, weight = (listing.tiles[name] for name in command.tiles)
    number = {name: k for k, name in enumerate(nest.extents)}
    operands: list[Any] = []
    for array, tile, zeros in (
        (nest.data, data, command.zeros),
        (nest.weight, weight, ((0, 0),) * len(weight.shape)),
    ):
        held = memories[MEMORIES[array.name]][: math.prod(tile.shape)].reshape(tile.shape)
        operands += [by_loops(np.pad(held, zeros), array, ranges), [number[n] for n in array.loops]]
    sums = np.einsum(*operands, [number[n] for n in nest.result.loops], optimize=True)
    held = memories[MEMORIES[nest.result.name]][: math.prod(out.shape)]
    held[:] = sums.ravel() + (held if command.adds else 0)


def by_loops(held: Floats, array: Array, ranges: Ranges) -> NDArray[Any]:
    """A tile with an axis for each loop that its indices depend on, as a view."""
    steps = dict.fromkeys(array.loops, 0)
    for axis, stride in zip(array.axes, held.strides, strict=True):
        for name, step in axis.terms:
            steps[name] += step * stride
    shape = [ranges[name][1] - ranges[name][0] for name in array.loops]
    return as_strided(held, shape, list(steps.values()), writeable=False)


def run_program(
    reading: Reading, listing: Listing, arrays: Mapping[str, NDArray[Any]], where: str = "the plan"
) -> Run:
    """Runs the commands of a program's nest on the program's arguments, by name.

    The arrays with the initial values of the sums are added to the result, off the chip.
    """
    found = run(listing, arrays[reading.data], arrays[reading.weight], where)
    nest, total = listing.nest, found.result
    whole = {name: (0, extent) for name, extent in nest.extents.items()}
    results = nest.result.loops
    for name, array in reading.added:
        held = np.asarray(arrays[name], np.float32).reshape(array.shape)
        axes = [results.index(loop) for loop in array.loops]
        by_loop = by_loops(held, array, whole).transpose(np.argsort(axes))
        shape = [n if k in axes else 1 for k, n in enumerate(nest.extents[r] for r in results)]
        total = total + by_loop.reshape(shape or (1,))
    return replace(found, result=total.reshape(reading.shape))
