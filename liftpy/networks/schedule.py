"""The work of a network on a device as data: memory, uploads, launches and places, in order.

Constants are uploaded once. Those that programs pack are packed by kernels, and freed if no run
reads them. Tensors and the scratch of operations are in the arena.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from liftpy.errors import InternalError
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.layout import Layout, constants_read, footprint
from liftpy.networks.sharing import resident, sharing
from liftpy.networks.slices import whole
from liftpy.opencl.arguments import touched_buffers
from liftpy.opencl.kernel import Module, flat
from liftpy.opencl.resident import Place

ARENA = "the arena"


@dataclass(frozen=True)
class Allocate:
    """Makes an allocation of `bytes` bytes."""

    memory: str
    bytes: int


@dataclass(frozen=True)
class Upload:
    """Copies the value of a constant to a place."""

    tensor: str
    place: Place


@dataclass(frozen=True)
class Pack:
    """Runs the kernels of the prepare phase of a module, whose buffers are at `places`."""

    module: Module
    places: Mapping[str, Place]


@dataclass(frozen=True)
class Release:
    """Frees an allocation."""

    memory: str


Step = Allocate | Upload | Pack | Release


@dataclass(frozen=True)
class OperationLaunches:
    """The launches of an operation in a run: the places of its buffers by name.

    `scratch` are the places of its temporaries. `module` is None if the host computes it.
    """

    operation: Operation
    module: Module | None
    places: Mapping[str, Place]
    scratch: tuple[Place, ...]


@dataclass(frozen=True)
class Schedule:
    """The steps before the first run, and the calls of a run.

    `tensors` are the places in the arena of all tensors that are not constants.
    """

    prepare: tuple[Step, ...]
    calls: tuple[OperationLaunches, ...]
    tensors: Mapping[str, Place]


def schedule_of(graph: Graph, modules: Mapping[str, Module], layout: Layout) -> Schedule:
    """The schedule of a network whose operations have these modules, by name."""
    slices = sharing(graph, layout.alignment).slices  # each has the place of the whole tensor
    tensors = {
        n: Place(ARENA, layout.tensors[n], graph.tensors[whole(n, slices)].bytes)
        for n in resident(graph)
    }
    making = _Preparing(graph, modules)
    arena = [Allocate(ARENA, layout.bytes)] if layout.bytes else []
    steps = (*arena, *making.steps())
    calls = tuple(_calls(graph, modules, layout, tensors, making))
    return Schedule(steps, calls, tensors)


@dataclass
class _Preparing:
    """The steps that upload and pack constants, and where these are afterwards."""

    graph: Graph
    modules: Mapping[str, Module]
    raw: dict[str, Place] = field(default_factory=dict[str, Place])
    packed: dict[tuple[Module, tuple[str, ...]], dict[str, Place]] = field(
        default_factory=dict[tuple[Module, tuple[str, ...]], dict[str, Place]]
    )

    def steps(self) -> Iterator[Step]:
        own = [(o, self.modules[o.name]) for o in self.graph.operations if o.name in self.modules]
        kept = {name for o, module in own for name in constants_read(self.graph, o, module)}
        for operation, module in own:
            key = module, constants_of(operation, module)
            if key not in self.packed:
                yield from self._pack(key, bindings(operation, module))
            for name in constants_read(self.graph, operation, module):
                yield from self._upload(name)
            for name in [name for name in self.raw if name not in kept]:
                yield Release(self.raw.pop(name).memory)

    def _pack(
        self, key: tuple[Module, tuple[str, ...]], bound: Mapping[str, str]
    ) -> Iterator[Step]:
        module, _ = key
        touched = touched_buffers(module, "prepare")
        own = {
            b.name: Place(f"{b.name} {len(self.packed)} of {module.name}", 0, b.bytes)
            for b in module.buffers
            if b.name in touched and b.name not in bound
        }
        yield from (Allocate(place.memory, place.bytes) for place in own.values())
        for name in sorted(touched & bound.keys()):
            yield from self._upload(bound[name])
        if touched:
            raw = {name: self.raw[bound[name]] for name in touched & bound.keys()}
            yield Pack(module, own | raw)
        for name in sorted(own.keys() - touched_buffers(module, "run")):
            yield Release(own.pop(name).memory)
        self.packed[key] = own

    def _upload(self, tensor: str) -> Iterator[Step]:
        """The steps that make a constant's place, when it is first needed."""
        if tensor in self.raw:
            return
        if self.graph.tensors[tensor].value is None:
            raise InternalError(f"{self.graph.name}: {tensor} is packed, and not a constant")
        place = Place(f"constant {tensor}", 0, self.graph.tensors[tensor].bytes)
        self.raw[tensor] = place
        yield Allocate(place.memory, place.bytes)
        yield Upload(tensor, place)


def _calls(
    graph: Graph,
    modules: Mapping[str, Module],
    layout: Layout,
    tensors: Mapping[str, Place],
    prepared: _Preparing,
) -> Iterator[OperationLaunches]:
    for operation in graph.operations:
        module = modules.get(operation.name)
        if operation.name in layout.unmoved:
            continue  # its results share storage with its inputs
        if module is None:
            yield OperationLaunches(operation, None, {}, ())
            continue
        bound = bindings(operation, module)
        start = layout.scratch.get(operation.name, 0)
        inner = footprint(module, layout.alignment).inner
        scratch = {
            b.name: Place(ARENA, start + inner[b.name], b.bytes)
            for b in module.buffers
            if b.name in inner
        }
        places = {**prepared.packed[module, constants_of(operation, module)], **scratch}
        for name in touched_buffers(module, "run") & bound.keys():
            tensor = bound[name]
            constant = graph.tensors[tensor].value is not None
            places[name] = prepared.raw[tensor] if constant else tensors[tensor]
            if module.buffer(name).bytes != places[name].bytes:
                raise InternalError(
                    f"{operation.name}: {name} has {module.buffer(name).bytes} bytes, and "
                    f"{tensor} {places[name].bytes}"
                )
        yield OperationLaunches(operation, module, places, tuple(scratch.values()))


def bindings(operation: Operation, module: Module) -> dict[str, str]:
    """The tensor of each buffer that is an input or output of an operation."""
    inputs = zip(flat(module.parameters), operation.inputs, strict=True)
    outputs = zip(flat(module.result), operation.outputs, strict=True)
    return {**dict(inputs), **dict(outputs)}


def constants_of(operation: Operation, module: Module) -> tuple[str, ...]:
    """The tensors of an operation's constant parameters, which decide what is packed."""
    names = zip(flat(module.parameters), operation.inputs, strict=True)
    return tuple(tensor for name, tensor in names if module.buffer(name).role == "constant")
