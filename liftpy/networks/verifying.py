"""Checks a plan that was read from a file: computes places, sizes and sums again."""

from __future__ import annotations

from collections.abc import Mapping

from liftpy.ir.types import components
from liftpy.networks.arena import Block, aligned, conflict, end_of, lower_bound
from liftpy.networks.graph import Operation
from liftpy.networks.layout import Layout, blocks_of, constant_bytes
from liftpy.networks.plan_file import PlanData, total_ns
from liftpy.networks.planning import Point
from liftpy.networks.sharing import TensorPlaces, sharing
from liftpy.networks.slices import whole
from liftpy.opencl.kernel import Module, flat


def verified(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """What is wrong with a plan whose operations have these kernels; None if nothing is.

    The arrays of kernels have to be those of the tensors, blocks that are in use at the same time
    must not overlap, and the results of an operation without kernels have to share storage with its
    inputs. The costs of the plan have to follow from its operations, tensors and constants. The
    times of operations and `proved` are not checked.
    """
    return _misfit(data, modules) or _misplaced(data, modules) or _miscounted(data, modules)


def _misfit(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """An array of an operation whose shape, type or role is not that of its tensor.

    An operation whose result is a slice stores it in an array of the shape of the whole tensor.
    """
    graph, slices = data.graph, sharing(data.graph, data.layout.alignment).slices
    for o in graph.computed:
        tensors = (*o.inputs, *(whole(n, slices) for n in o.outputs))
        arrays = _arrays(o, modules.get(o.name))
        if len(arrays) != len(tensors):
            return f"{o.name} has {len(tensors)} tensors, its program {len(arrays)}"
        for (shape, scalar, constant), name in zip(arrays, tensors, strict=True):
            tensor = graph.tensors[name]
            if (shape, scalar) != (tensor.shape, tensor.type.name):
                return (
                    f"{name} is {tensor.type}{list(tensor.shape)}, and {o.name} has "
                    f"{scalar}{list(shape)}"
                )
            if constant and tensor.value is None:
                return f"{name} is a constant of {o.name}, and has no value"
    return None


def _arrays(o: Operation, module: Module | None) -> list[tuple[tuple[int, ...], str, bool]]:
    """Shape and type of each array of an operation, and whether it is constant."""
    if module is not None:
        buffers = map(module.buffer, (*flat(module.parameters), *flat(module.result)))
        return [(b.shape, b.scalar, b.role == "constant") for b in buffers]
    if o.program is None:
        return []
    types = [*(p.type for p in o.program.params), o.program.body.body.type]
    parts = [part for t in types for part in components(t)]
    return [(tuple(map(int, part.shape)), part.scalar.name, False) for part in parts]


def _misplaced(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """A tensor or block that has no offset, a wrong one, or one that overlaps another block."""
    layout, shared = data.layout, sharing(data.graph, data.layout.alignment)
    if wrong := sorted(layout.unmoved - shared.unmoved):
        return f"operation {wrong[0]} has no kernels, and its results have to be computed"
    if wrong := sorted(shared.unmoved - layout.unmoved):
        return f"operation {wrong[0]} has kernels, and its results share storage with its inputs"
    blocks = blocks_of(data.graph, modules, layout.alignment, shared)
    if missing := sorted(shared.places.keys() - layout.tensors.keys()):
        return f"it has no offset for tensor {missing[0]}"
    for name, (storage, at) in shared.places.items():
        start, own = layout.tensors[storage], layout.tensors[name]
        if own != start + at:
            return f"tensor {name} is at {own}; as a part of {storage} it belongs at {start + at}"
    offsets = _offsets(layout, shared)
    if missing := sorted({b.name for b in blocks} - offsets.keys()):
        return f"it has no offset for {missing[0]}"
    return conflict(blocks, offsets, layout.bytes, layout.alignment)


def _miscounted(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """A cost that does not follow from the plan's operations, tensors and constants."""
    point, alignment = data.point, data.layout.alignment
    shared = sharing(data.graph, alignment)
    blocks = [
        Block(b.name, aligned(b.bytes, alignment), b.first, b.last)
        for b in blocks_of(data.graph, modules, alignment, shared)
    ]
    figures = {
        "constants have": (point.constants, constant_bytes(data.graph, modules), " bytes"),
        "arena has": (point.arena, end_of(blocks, _offsets(data.layout, shared)), " bytes"),
        "lower bound is": (point.bound, lower_bound(blocks), " bytes"),
        "operations take": (point.time_ns, total_ns(data.choices.values()), " ns"),
    }
    for what, (stated, found, unit) in figures.items():
        if stated != found:
            return f"its {what} {_shown(found, unit)}, not {_shown(stated, unit)}"
    return next(filter(None, map(_impossible, data.front)), None)


def _shown(figure: int | None, unit: str) -> str:
    return "an unknown time" if figure is None else f"{figure}{unit}"


def _impossible(point: Point) -> str | None:
    if point.arena < point.bound:
        return f"its front has an arena of {point.arena} bytes, below its bound {point.bound}"
    return None


def _offsets(layout: Layout, shared: TensorPlaces) -> dict[str, int]:
    """The places of all blocks by name."""
    offsets = {part.name: layout.tensors[part.storage] + part.offset for part in shared.parts}
    return offsets | {f"scratch of {n}": at for n, at in layout.scratch.items()}
