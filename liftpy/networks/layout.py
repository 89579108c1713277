"""Where everything of a network is in device memory: tensors and scratch in one arena, constants.

The scratch of an operation is one block of the arena, in use while the operation runs. Inside it,
temporaries that are never in use by the same kernel share memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from liftpy.networks.arena import Block, Solve, place
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.sharing import Part, TensorPlaces, sharing
from liftpy.opencl.arguments import touched_buffers
from liftpy.opencl.kernel import Module, flat


@dataclass(frozen=True)
class Footprint:
    """What a module needs beside its inputs and outputs, in bytes.

    `scratch` bytes of the arena hold the temporaries, each at its offset of `inner`. `packed` are
    the bytes of packed constants, and `raw` the constant parameters that its runs read, by buffer.
    """

    scratch: int
    inner: Mapping[str, int]
    packed: int
    raw: frozenset[str]


@cache
def footprint(module: Module, alignment: int) -> Footprint:
    """The footprint of a module on a device with this alignment."""
    touched = touched_buffers(module, "run")
    runs = [launch for launch in module.launches if launch.phase == "run"]
    blocks: list[Block] = []
    for b in module.buffers:
        if b.role == "temporary" and b.name in touched:
            used = [k for k, launch in enumerate(runs) if b.name in launch.arguments]
            blocks.append(Block(b.name, b.bytes, used[0], used[-1]))
    placed = place(blocks, alignment)
    packed = sum(b.bytes for b in module.buffers if b.role == "packed" and b.name in touched)
    raw = {b.name for b in module.buffers if b.role == "constant"} & touched
    return Footprint(placed.bytes, placed.offsets, packed, frozenset(raw))


@dataclass(frozen=True)
class Layout:
    """The offsets of tensors and of the scratch of operations, by name, in an arena of `bytes`.

    Tensors that are parts of others share their bytes. `unmoved` are the operations without
    kernels, whose results share storage with their inputs.

    `bound` is the largest sum of the bytes in use during one operation; `proved`: whether no arena
    for this order and these modules is smaller. All are multiples of `alignment`.
    """

    tensors: Mapping[str, int]
    scratch: Mapping[str, int]
    bytes: int
    bound: int
    proved: bool
    alignment: int
    unmoved: frozenset[str] = frozenset()


def blocks_of(
    graph: Graph, modules: Mapping[str, Module], alignment: int, shared: TensorPlaces | None = None
) -> list[Block]:
    """The blocks of the arena: parts of storages, and the scratch of operations that have some.

    `shared` is `sharing(graph, alignment)`, if the caller has computed it. The parts of a storage
    are in the group `storage of TENSOR`.
    """
    shared = sharing(graph, alignment) if shared is None else shared
    blocks = [part_block(graph, part) for part in shared.parts]
    for k, operation in enumerate(graph.operations):
        if operation.name in modules:
            scratch = footprint(modules[operation.name], alignment).scratch
            if scratch:
                blocks.append(Block(f"scratch of {operation.name}", scratch, k, k))
    return blocks


def part_block(graph: Graph, part: Part) -> Block:
    """The block of a part, which is in use while any of its tensors is."""
    lives = [graph.lifetimes[n] for n in part.tensors]
    first, last = min(first for first, _ in lives), max(last for _, last in lives)
    return Block(part.name, part.bytes, first, last, f"storage of {part.storage}", part.offset)


def layout_of(
    graph: Graph, modules: Mapping[str, Module], alignment: int, solve: Solve | None = None
) -> Layout:
    """The layout of a network whose operations have these modules, by name."""
    shared = sharing(graph, alignment)
    placed = place(blocks_of(graph, modules, alignment, shared), alignment, solve)
    starts = {part.storage: placed.offsets[part.name] - part.offset for part in shared.parts}
    tensors = {n: starts[storage] + at for n, (storage, at) in shared.places.items()}
    scratch = {
        o.name: placed.offsets[f"scratch of {o.name}"]
        for o in graph.operations
        if f"scratch of {o.name}" in placed.offsets
    }
    return Layout(
        tensors, scratch, placed.bytes, placed.bound, placed.proved, alignment, shared.unmoved
    )


def constants_read(graph: Graph, operation: Operation, module: Module) -> list[str]:
    """The tensors that runs of an operation read as they are given, and that are constant."""
    touched = touched_buffers(module, "run")
    pairs = zip(flat(module.parameters), operation.inputs, strict=True)
    return [n for b, n in pairs if b in touched and graph.tensors[n].value is not None]


def constant_bytes(graph: Graph, modules: Mapping[str, Module]) -> int:
    """The bytes of all constants in device memory: raw ones that runs read, and packed ones."""
    own = [(o, modules[o.name]) for o in graph.operations if o.name in modules]
    items = constant_items(graph, own)
    return sum(items.values())


def constant_items(
    graph: Graph, chosen: Iterable[tuple[Operation, Module]]
) -> dict[tuple[object, ...], int]:
    """The bytes of each constant in device memory: what operations share is there once."""
    items: dict[tuple[object, ...], int] = {}
    for operation, module in chosen:
        for name in constants_read(graph, operation, module):
            items["raw", name] = graph.tensors[name].bytes
        packed = footprint(module, 1).packed
        if packed:
            names = zip(flat(module.parameters), operation.inputs, strict=True)
            given = tuple(n for b, n in names if module.buffer(b).role == "constant")
            items["packed", module, given] = packed
    return items
