"""A network on a device: tensors in one arena, constants uploaded once, nothing copied between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

import numpy as np

from liftpy.constraints.device import Device
from liftpy.errors import InternalError
from liftpy.networks.executing import Array, Reference, check_programs, given_inputs
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.layout import Layout, constants_read, footprint
from liftpy.networks.sharing import resident
from liftpy.opencl.arguments import DTYPES, touched_buffers
from liftpy.opencl.kernel import Module, flat
from liftpy.opencl.resident import Armed, Place, Resident
from liftpy.opencl.session import Session

ARENA = "the arena"


@dataclass(frozen=True)
class Times:
    """Nanoseconds of a run: of each kernel, and of the whole on the host, without copies.

    `spans` are the start and end of each kernel by operation, by the device's clock.
    """

    spans: Mapping[str, Sequence[tuple[int, int]]]
    host_ns: int

    @property
    def kernels(self) -> Mapping[str, Sequence[int]]:
        """The duration of each kernel by operation."""
        return {name: [end - start for start, end in own] for name, own in self.spans.items()}


@dataclass
class _Held:
    """Device memory for constants: raw ones by tensor, packed ones by module and tensors."""

    raw: dict[str, Place] = field(default_factory=dict[str, Place])
    packed: dict[tuple[Module, tuple[str, ...]], dict[str, Place]] = field(
        default_factory=dict[tuple[Module, tuple[str, ...]], dict[str, Place]]
    )


class Runner:
    """A network ready to run: memory is allocated, constants are uploaded and kernels built.

    `modules` are the kernels of operations by name. An operation in `layout.unmoved` has none, and
    neither has one without a program, which `reference` computes on the host.
    """

    def __init__(
        self,
        graph: Graph,
        modules: Mapping[str, Module],
        layout: Layout,
        device: Device,
        reference: Reference | None = None,
    ) -> None:
        if reference is None:
            check_programs(graph)
        self.graph = graph
        self.layout = layout
        self.times = Times({}, 0)
        self._turn = RLock()  # the arena has the tensors of one run
        self._modules = modules
        self._reference = reference
        self._session = Session(device)
        self._device = Resident(self._session)
        self._held = _Held()
        self._tensors = {
            name: Place(ARENA, layout.tensors[name], graph.tensors[name].bytes)
            for name in resident(graph)
        }
        self._parts: list[tuple[Operation, Armed | None]] = []
        self._scratch: dict[str, list[Place]] = {}
        if layout.bytes:
            self._device.allocate(ARENA, layout.bytes)
        self._prepare()
        self._arm()

    @property
    def constant_bytes(self) -> int:
        """The bytes of device memory that constants take, packed ones included."""
        return self._device.bytes - self.layout.bytes

    def run(
        self, inputs: Mapping[str, Any] | Sequence[Any], *, poison: bool = False
    ) -> dict[str, Array]:
        """All outputs by name. `times` has those of this run.

        With `poison`, the arena is filled with NaN first, and the results and the scratch of an
        operation again before it runs: a tensor that is overwritten too early or not written shows.
        """
        with self._turn:
            return self._run(given_inputs(self.graph, inputs), poison=poison)

    def _run(self, given: Mapping[str, Array], *, poison: bool) -> dict[str, Array]:
        host: dict[str, Array] = {**self.graph.constants, **given}
        spans: dict[str, Sequence[tuple[int, int]]] = {}
        taken = 0
        if poison and self.layout.bytes:
            self._device.spoil(Place(ARENA, 0, self.layout.bytes))
        sent = {n: np.ascontiguousarray(host[n]) for n in self.graph.inputs if n in self._tensors}
        for name, array in sent.items():
            self._device.write(self._tensors[name], array, wait=False)
        for group in self._groups(apart=poison):
            armed = [(o, part) for o, part in group if part is not None]
            if poison:
                self._spoil(o for o, _ in armed)
            found, host_ns = self._device.launch([part for _, part in armed])
            spans |= {o.name: own for (o, _), own in zip(armed, found, strict=True)}
            taken += host_ns
            for operation in (o for o, part in group if part is None):
                self._on_host(operation, host)
        self.times = Times(spans, taken)
        return {name: self._result(name, host) for name in self.graph.outputs}

    def profile(
        self, inputs: Mapping[str, Any] | Sequence[Any], repeats: int = 7, warmup: int = 2
    ) -> list[Times]:
        """The times of repeated runs, after `warmup` runs; ClockRefused for impossible ones."""
        found: list[Times] = []
        parts = [part for _, part in self._parts if part is not None]
        names = [o.name for o, part in self._parts if part is not None]
        for _ in range(warmup + repeats):
            with self._turn:
                self.run(inputs)
                times = self.times
            kernels = times.kernels
            self._device.check(parts, [kernels[name] for name in names], times.host_ns)
            found.append(times)
        return found[warmup:]

    def close(self) -> None:
        """Frees the device memory."""
        self._device.close()
        self._session.close()

    # --- preparation ------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Uploads constants, packs those that programs pack, and frees those that no run reads."""
        kept = {
            name
            for o in self.graph.operations
            if (module := self._modules.get(o.name)) is not None
            for name in constants_read(self.graph, o, module)
        }
        for operation in self.graph.operations:
            module = self._modules.get(operation.name)
            if module is None:
                continue
            bound = bindings(operation, module)
            key = module, constants_of(operation, module)
            if key not in self._held.packed:
                self._held.packed[key] = self._packed(module, bound)
            for name in constants_read(self.graph, operation, module):
                self._raw(name)
            for name in [name for name in self._held.raw if name not in kept]:
                self._device.release(self._held.raw.pop(name).memory)

    def _packed(self, module: Module, bound: Mapping[str, str]) -> dict[str, Place]:
        """The packed constants of a module, by buffer."""
        touched = touched_buffers(module, "prepare")
        own = {
            b.name: Place(f"{b.name} {len(self._held.packed)} of {module.name}", 0, b.bytes)
            for b in module.buffers
            if b.name in touched and b.name not in bound
        }
        for place in own.values():
            self._device.allocate(place.memory, place.bytes)
        places = own | {name: self._raw(bound[name]) for name in touched & bound.keys()}
        if touched:
            self._device.launch([self._device.armed(module, "prepare", places)])
        kept = touched_buffers(module, "run")
        for name in own.keys() - kept:
            self._device.release(own.pop(name).memory)
        return own

    def _raw(self, tensor: str) -> Place:
        """The place of a constant, uploaded when first needed."""
        if tensor not in self._held.raw:
            value = self.graph.tensors[tensor].value
            if value is None:
                raise InternalError(f"{self.graph.name}: {tensor} is packed, and not a constant")
            array = np.ascontiguousarray(value)
            place = Place(f"constant {tensor}", 0, array.nbytes)
            self._device.allocate(place.memory, place.bytes)
            self._device.write(place, array)
            self._held.raw[tensor] = place
        return self._held.raw[tensor]

    def _arm(self) -> None:
        """Sets the arguments of all kernels."""
        for operation in self.graph.operations:
            module = self._modules.get(operation.name)
            if operation.name in self.layout.unmoved:
                continue  # its results share storage with its inputs
            if module is None:
                self._parts.append((operation, None))
                continue
            bound = bindings(operation, module)
            start = self.layout.scratch.get(operation.name, 0)
            inner = footprint(module, self.layout.alignment).inner
            places: dict[str, Place] = {
                **self._held.packed[module, constants_of(operation, module)]
            }
            for buffer in module.buffers:
                if buffer.name in inner:
                    at = start + inner[buffer.name]
                    places[buffer.name] = Place(ARENA, at, buffer.bytes)
            for name in touched_buffers(module, "run") & bound.keys():
                tensor = bound[name]
                constant = self.graph.tensors[tensor].value is not None
                places[name] = self._raw(tensor) if constant else self._tensors[tensor]
                if module.buffer(name).bytes != places[name].bytes:
                    raise InternalError(
                        f"{operation.name}: {name} has {module.buffer(name).bytes} bytes, and "
                        f"{tensor} {places[name].bytes}"
                    )
            self._scratch[operation.name] = [places[name] for name in inner]
            self._parts.append((operation, self._device.armed(module, "run", places)))

    # --- a run ------------------------------------------------------------------------------------

    def _groups(self, *, apart: bool) -> list[list[tuple[Operation, Armed | None]]]:
        """Operations that are queued together: a group ends with one that the host computes."""
        groups: list[list[tuple[Operation, Armed | None]]] = [[]]
        for operation, part in self._parts:
            groups[-1].append((operation, part))
            if part is None or apart:
                groups.append([])
        return [group for group in groups if group]

    def _spoil(self, operations: Any) -> None:
        for operation in operations:
            places = [self._tensors[n] for n in operation.outputs if n in self._tensors]
            for place in (*places, *self._scratch[operation.name]):
                self._device.spoil(place)

    def _on_host(self, operation: Operation, host: dict[str, Array]) -> None:
        """Computes an operation without a program, from arrays of the host or the device."""
        for name in filter(None, operation.reads):
            if name in self._tensors:
                host[name] = self._read(name)
        if self._reference is not None:
            found = self._reference(self.graph, operation, host)
            for name, array in zip(operation.outputs, found, strict=True):
                host[name] = array
                if name in self._tensors:
                    self._device.write(self._tensors[name], np.ascontiguousarray(array))

    def _read(self, name: str) -> Array:
        tensor = self.graph.tensors[name]
        array = np.empty(tensor.shape, DTYPES[tensor.type.name])
        self._device.read(self._tensors[name], array)
        return array

    def _result(self, name: str, host: Mapping[str, Array]) -> Array:
        return self._read(name) if name in self._tensors else np.array(host[name])


def bindings(operation: Operation, module: Module) -> dict[str, str]:
    """The tensor of each buffer that is an input or output of an operation."""
    inputs = zip(flat(module.parameters), operation.inputs, strict=True)
    outputs = zip(flat(module.result), operation.outputs, strict=True)
    return {**dict(inputs), **dict(outputs)}


def constants_of(operation: Operation, module: Module) -> tuple[str, ...]:
    """The tensors of an operation's constant parameters, which decide what is packed."""
    names = zip(flat(module.parameters), operation.inputs, strict=True)
    return tuple(tensor for name, tensor in names if module.buffer(name).role == "constant")
