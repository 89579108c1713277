"""A network on a device: tensors in one arena, constants uploaded once, nothing copied between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from time import perf_counter_ns
from typing import Any, cast

import numpy as np

from liftpy.constraints.device import Device
from liftpy.errors import NetworkRefused
from liftpy.networks.executing import Array, Reference, check_programs, given_inputs
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.layout import Layout
from liftpy.networks.schedule import (
    ARENA,
    Allocate,
    OperationLaunches,
    Pack,
    Release,
    Schedule,
    Step,
    Upload,
    bindings,
    schedule_of,
)
from liftpy.networks.sharing import TensorPlaces, only_read, sharing
from liftpy.networks.slices import whole
from liftpy.opencl.arguments import DTYPES
from liftpy.opencl.clock import Clock
from liftpy.opencl.foreign import on_host
from liftpy.opencl.kernel import Module
from liftpy.opencl.launching import Span, nothing
from liftpy.opencl.resident import Armed, Place, Resident
from liftpy.opencl.session import Session


@dataclass(frozen=True)
class Times:
    """Nanoseconds of a run: of each kernel, and of the whole on the host, without copies.

    The whole can include the time in which the host queues the copies of the outputs.

    `spans` are the start and end of each kernel by operation, by the clock `clock`. `hosted` are
    the times of operations without a program, with the copies of what they read and write; they are
    part of `host_ns`.
    """

    spans: Mapping[str, Sequence[tuple[int, int]]]
    host_ns: int
    clock: Clock = "device"
    hosted: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def kernels(self) -> Mapping[str, Sequence[int]]:
        """The duration of each kernel by operation."""
        return {name: [end - start for start, end in own] for name, own in self.spans.items()}


@dataclass(frozen=True)
class _Group:
    """Operations that are queued together, and those that the host computes after them."""

    calls: list[OperationLaunches] = field(default_factory=list[OperationLaunches])
    parts: list[Armed] = field(default_factory=list[Armed])
    hosted: list[OperationLaunches] = field(default_factory=list[OperationLaunches])


@dataclass(frozen=True)
class _Run:
    """A run of a network.

    `launched` has, for each group, the operations, a function that reads the spans of their
    kernels, and the host's time. `hosted` are the times of the operations that the host computed.
    Spans are read from the events only on request: for short kernels, this takes as long as the
    launches.
    """

    clock: Clock
    launched: list[tuple[Sequence[OperationLaunches], Callable[[], list[list[Span]]], int]] = field(
        default_factory=list[Any]
    )
    hosted: dict[str, int] = field(default_factory=dict[str, int])

    @cached_property
    def times(self) -> Times:
        """The times of the run."""
        spans = {
            call.operation.name: own
            for calls, told, _ in self.launched
            for call, own in zip(calls, told(), strict=True)
        }
        host_ns = sum(taken for _, _, taken in self.launched) + sum(self.hosted.values())
        return Times(spans, host_ns, self.clock, self.hosted)


@dataclass(frozen=True)
class _Reader:
    """A buffer of kernels that read an input: its place, and the byte of the input there."""

    part: Armed
    buffer: str
    place: Place
    offset: int


class Runner:
    """A network ready to run: memory is allocated, constants are uploaded and kernels built.

    `modules` are the kernels of operations by name. An operation in `layout.unmoved` has none, and
    neither has one without a program, which `reference` computes on the host. NetworkRefused if it
    is None and there are such operations.
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
        self._turn = RLock()  # the arena has the tensors of one run
        self._reference = reference
        self._session = Session(device)
        self._device = Resident(self._session)
        schedule = schedule_of(graph, modules, layout)
        self._tensors = schedule.tensors
        self._steps = schedule.prepare
        self._prepare()
        self._parts = [(call, self._armed(call)) for call in schedule.calls]
        self._together = _groups_of(self._parts, apart=False)
        self._apart = _groups_of(self._parts, apart=True)
        self._last = _Run(self._session.opened.clock)
        shared = sharing(graph, layout.alignment)
        self._readers = {
            name: [*_readers_of(members, self._parts)]
            for name, members in only_read(graph, shared).items()
        }
        self._lent: set[str] = set()
        self._copies: list[Any] = []  # events of copies that may not be over
        self._kept: list[Any] = []  # memory that the kernels and copies of a run read
        self._spoiled = _spoiled_by(shared, schedule)

    @property
    def constant_bytes(self) -> int:
        """The bytes of device memory that constants take, packed ones included."""
        return self._device.bytes - self.layout.bytes

    @property
    def times(self) -> Times:
        """The times of the last run."""
        return self._last.times

    @property
    def queue(self) -> Any:
        """The queue of pyopencl on which the network runs."""
        return self._device.queue

    def run(
        self,
        inputs: Mapping[str, Any] | Sequence[Any],
        *,
        poison: bool = False,
        on_device: bool = False,
    ) -> dict[str, Any]:
        """All outputs by name. `times` has those of this run.

        With `poison`, the arena is filled with NaN first, and the results and the scratch of an
        operation again before it runs: a tensor that is overwritten too early or not written shows.
        The outputs are arrays of NumPy or, with `on_device`, of pyopencl.
        """
        with self._turn:
            given = given_inputs(self.graph, inputs, self._keeps)
            return self._run(given, poison=poison, on_device=on_device)

    def _run(self, given: Mapping[str, Any], *, poison: bool, on_device: bool) -> dict[str, Any]:
        host: dict[str, Any] = {**self.graph.constants, **given}
        if poison and self.layout.bytes:
            self._device.spoil(Place(ARENA, 0, self.layout.bytes))
        try:
            for name in self.graph.inputs:
                self._send(name, given[name])
            outputs = self._launched(host, poison=poison, on_device=on_device)
            self._device.finish(self._copies)
            return outputs
        finally:
            self._device.queue.finish()
            self._copies.clear()
            self._kept.clear()

    def _launched(self, host: dict[str, Any], *, poison: bool, on_device: bool) -> dict[str, Any]:
        """The outputs; their elements are valid once the copies are over."""
        found = _Run(self._session.opened.clock)
        result = self._on_device if on_device else self._result
        outputs: dict[str, Any] = {}

        def read() -> None:
            outputs.update((name, result(name, host)) for name in self.graph.outputs)

        def meanwhile() -> None:
            # After the kernels, the caches hold none of the host's code. So the host does all that
            # need not wait for the kernels while they run: it releases the events of the last run
            # and queues the copies of the outputs.
            self._last = _Run(self._session.opened.clock)
            if not on_device:  # these copies are waited for
                read()

        groups = self._apart if poison else self._together
        for group in groups:
            if poison:
                for call in group.calls:
                    self._spoil(call)
            last = group is groups[-1] and not group.hosted
            ran = self._device.launch(group.parts, meanwhile if last else nothing)
            found.launched.append((group.calls, *ran))
            for call in group.hosted:
                start = perf_counter_ns()
                self._on_host(call.operation, host)
                found.hosted[call.operation.name] = perf_counter_ns() - start
        self._last = found
        if not outputs:
            read()
        return outputs

    def profile(
        self, inputs: Mapping[str, Any] | Sequence[Any], repeats: int = 7, warmup: int = 2
    ) -> list[Times]:
        """The times of repeated runs, after `warmup` runs; ClockRefused for impossible ones."""
        found: list[Times] = []
        parts = [part for _, part in self._parts if part is not None]
        names = [call.operation.name for call, part in self._parts if part is not None]
        for _ in range(warmup + repeats):
            with self._turn:
                self.run(inputs)
                times = self.times
            kernels = times.kernels
            launched = times.host_ns - sum(times.hosted.values())
            self._device.check(parts, [kernels[name] for name in names], launched)
            found.append(times)
        return found[warmup:]

    def close(self) -> None:
        """Frees the device memory."""
        self._device.close()
        self._session.close()

    # --- preparation ------------------------------------------------------------------------------

    def renew(self, graph: Graph) -> None:
        """Uploads and packs the constants of a graph that differs in their values only."""
        with self._turn:
            self.graph = graph
            self._prepare()

    def _prepare(self) -> None:
        """Uploads and packs constants, and frees those that no run reads."""
        for step in self._steps:
            self._do(step)

    def _do(self, step: Step) -> None:
        match step:
            case Allocate(memory, size):
                if not self._device.has(memory):
                    self._device.allocate(memory, size)
            case Upload(tensor, place):
                value = self.graph.tensors[tensor].value
                self._device.write(place, np.ascontiguousarray(value))
            case Pack(module, places):
                self._device.launch([self._device.armed(module, "prepare", places)])
            case Release(memory):
                self._device.release(memory)

    def _armed(self, call: OperationLaunches) -> Armed | None:
        """The kernels of an operation, with their arguments; None if the host computes it."""
        if call.module is None:
            return None
        return self._device.armed(call.module, "run", call.places)

    # --- a run ------------------------------------------------------------------------------------

    def _spoil(self, call: OperationLaunches) -> None:
        """Fills the results and the scratch of an operation with NaN."""
        places = [self._tensors[n] for n in self._spoiled[call.operation.name]]
        for place in (*places, *call.scratch):
            self._device.spoil(place)

    def _on_host(self, operation: Operation, host: dict[str, Array]) -> None:
        """Computes an operation without a program, from arrays of the host or the device."""
        for name in filter(None, operation.reads):
            if name in self._tensors:
                host[name] = self._read(name)
        if self._reference is not None:
            found = self._reference(self.graph, operation, host)
            for name, array in zip(operation.outputs, found, strict=True):
                fits = name not in self.graph.tensors
                host[name] = array if fits else self._fitting(name, array, operation)
                if name in self._tensors:
                    self._device.write(self._tensors[name], host[name])

    def _fitting(self, name: str, array: Array, operation: Operation) -> Array:
        """A result of the host, contiguous; NetworkRefused if the tensor has another type."""
        tensor = self.graph.tensors[name]
        wanted = np.dtype(DTYPES[tensor.type.name])
        if array.shape != tensor.shape or array.dtype != wanted:
            raise NetworkRefused(
                f"{operation.name} ({operation.operator}): {name} is {array.dtype} of shape "
                f"{array.shape}, and the model declares {wanted} of shape {tensor.shape}"
            )
        return np.ascontiguousarray(array).reshape(array.shape)  # it makes a number an array

    def _keeps(self, value: object) -> bool:
        """Whether an input is used in place: on the device, unless the host computes something."""
        return self._device.holds(value) and all(part is not None for _, part in self._parts)

    def _send(self, name: str, value: Any) -> None:
        """Lets the kernels read an input in place, or copies it to its place in the arena."""
        if name not in self._tensors:
            return
        readers = self._readers.get(name, [])
        if self._device.holds(value):
            regions = [self._device.region_of(value, r.offset, r.place.bytes) for r in readers]
            if readers and all(region is not None for region in regions):
                for reader, region in zip(readers, regions, strict=True):
                    self._device.point(reader.part, reader.buffer, region)
                self._lent.add(name)
                self._kept.append(regions)
                return
        if name in self._lent:
            for reader in readers:
                self._device.point(reader.part, reader.buffer, reader.place)
            self._lent.remove(name)
        if self._device.holds(value):
            self._device.copy(self._tensors[name], value)
            self._kept.append(value)
            return
        array = np.ascontiguousarray(value)
        self._copies.append(self._device.write(self._tensors[name], array, wait=False))
        self._kept.append(array)

    def _read(self, name: str, *, wait: bool = True) -> Array:
        tensor = self.graph.tensors[name]
        array = np.empty(tensor.shape, DTYPES[tensor.type.name])
        event = self._device.read(self._tensors[name], array, wait=wait)
        if not wait:
            self._copies.append(event)
        return array

    def _result(self, name: str, host: Mapping[str, Any]) -> Any:
        """An output as a NumPy array; its elements are valid once the queue is finished."""
        if name in self._tensors:
            return self._read(name, wait=False)
        value = host[name]
        if isinstance(value, list):  # a sequence of ONNX
            return deepcopy(cast("list[Any]", value))
        return np.array(on_host(name, value))

    def _on_device(self, name: str, host: Mapping[str, Any]) -> Any:
        if name not in self._tensors:
            return self._device.uploaded(name, self._result(name, host))
        tensor = self.graph.tensors[name]
        return self._device.array_of(self._tensors[name], tensor.shape, DTYPES[tensor.type.name])


def _spoiled_by(shared: TensorPlaces, schedule: Schedule) -> dict[str, list[str]]:
    """For each operation, the results whose places are filled with NaN before it runs.

    The slices of a tensor share one place. It is filled before the first of them is computed.
    """
    found: dict[str, list[str]] = {}
    begun: set[str] = set()
    for call in schedule.calls:
        own = found[call.operation.name] = []
        for name in (n for n in call.operation.outputs if n in schedule.tensors):
            of = whole(name, shared.slices)
            if of not in begun:
                own.append(name)
            begun.add(of)
    return found


def _groups_of(
    parts: Sequence[tuple[OperationLaunches, Armed | None]], *, apart: bool
) -> list[_Group]:
    """The groups of operations that are queued together.

    Operations of the host end a group; with `apart`, each operation is a group of its own.
    """
    groups: list[_Group] = []
    for call, part in parts:
        if not groups or apart or groups[-1].hosted:
            groups.append(_Group())
        if part is None:
            groups[-1].hosted.append(call)
        else:
            groups[-1].calls.append(call)
            groups[-1].parts.append(part)
    return groups


def _readers_of(
    members: Mapping[str, int], parts: Sequence[tuple[OperationLaunches, Armed | None]]
) -> Iterator[_Reader]:
    """The buffers that read tensors of a storage, which begin at bytes of it."""
    for call, part in parts:
        if part is None or call.module is None:
            continue
        for buffer, tensor in bindings(call.operation, call.module).items():
            if tensor in members and buffer in call.places:
                yield _Reader(part, buffer, call.places[buffer], members[tensor])
