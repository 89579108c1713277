"""Whether a plan from anywhere is one: places, sizes and sums are computed again."""

from __future__ import annotations

from collections.abc import Mapping

from liftpy.networks.arena import Block, aligned, conflict, end_of, lower_bound
from liftpy.networks.graph import Graph
from liftpy.networks.layout import blocks_of, constant_bytes
from liftpy.networks.plan_file import PlanData
from liftpy.networks.planning import Point
from liftpy.opencl.kernel import Module, flat


def verified(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """What is wrong with a plan whose operations have these kernels; None if nothing is.

    The arrays of kernels are those of the tensors, what is in use at the same time is in different
    places, and the plan's costs are those of its operations, tensors and constants. The times of
    operations, and whether a plan is proved to be best, are as the plan states them.
    """
    graph = data.graph
    return _misfit(graph, modules) or _misplaced(data, modules) or _miscounted(data, modules)


def _misfit(graph: Graph, modules: Mapping[str, Module]) -> str | None:
    """An array of a kernel that is not its tensor."""
    for o in graph.operations:
        module = modules[o.name]
        names = (*flat(module.parameters), *flat(module.result))
        tensors = (*o.inputs, *o.outputs)
        if len(names) != len(tensors):
            return f"{o.name} has {len(tensors)} tensors, its program {len(names)}"
        for buffer, name in zip(map(module.buffer, names), tensors, strict=True):
            tensor = graph.tensors[name]
            if (buffer.shape, buffer.scalar) != (tensor.shape, tensor.type.name):
                return (
                    f"{name} is {tensor.type}{list(tensor.shape)}, and {o.name} has "
                    f"{buffer.scalar}{list(buffer.shape)}"
                )
            if buffer.role == "constant" and tensor.value is None:
                return f"{name} is a constant of {o.name}, and has no value"
    return None


def _misplaced(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """A block of the arena without a place of its own."""
    layout = data.layout
    blocks = blocks_of(data.graph, modules, layout.alignment)
    offsets = _offsets(data)
    if missing := sorted({b.name for b in blocks} - offsets.keys()):
        return f"it has no offset for {missing[0]}"
    return conflict(blocks, offsets, layout.bytes, layout.alignment)


def _miscounted(data: PlanData, modules: Mapping[str, Module]) -> str | None:
    """A cost that is not that of the plan's own operations, tensors and constants."""
    point, alignment = data.point, data.layout.alignment
    blocks = [
        Block(b.name, aligned(b.bytes, alignment), b.first, b.last)
        for b in blocks_of(data.graph, modules, alignment)
    ]
    times = [data.choices[o.name].time_ns for o in data.graph.operations]
    known = [t for t in times if t is not None]
    figures = {
        "constants have": (point.constants, constant_bytes(data.graph, modules), " bytes"),
        "arena has": (point.arena, end_of(blocks, _offsets(data)), " bytes"),
        "lower bound is": (point.bound, lower_bound(blocks), " bytes"),
        "operations take": (point.time_ns, sum(known) if len(known) == len(times) else None, " ns"),
    }
    for what, (stated, found, unit) in figures.items():
        if stated != found:
            return f"its {what} {_shown(found, unit)}, not {_shown(stated, unit)}"
    return next(filter(None, map(_impossible, data.front)), None)


def _shown(figure: int | None, unit: str) -> str:
    return "an unknown time" if figure is None else f"{figure}{unit}"


def _impossible(point: Point) -> str | None:
    if point.arena < point.bound:
        return f"its front has an arena of {point.arena} bytes, of at least {point.bound}"
    return None


def _offsets(data: PlanData) -> dict[str, int]:
    """The places of all blocks by name."""
    offsets = {f"tensor {n}": at for n, at in data.layout.tensors.items()}
    return offsets | {f"scratch of {n}": at for n, at in data.layout.scratch.items()}
