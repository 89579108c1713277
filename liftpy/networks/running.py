"""A network on a device: tensors in one arena, constants uploaded once, nothing copied between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import RLock
from typing import Any

import numpy as np

from liftpy.constraints.device import Device
from liftpy.networks.executing import Array, Reference, check_programs, given_inputs
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.layout import Layout
from liftpy.networks.schedule import (
    ARENA,
    Allocate,
    Call,
    Pack,
    Release,
    Step,
    Upload,
    schedule_of,
)
from liftpy.opencl.arguments import DTYPES
from liftpy.opencl.kernel import Module
from liftpy.opencl.resident import Armed, Place, Resident
from liftpy.opencl.session import Session


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
        self._reference = reference
        self._session = Session(device)
        self._device = Resident(self._session)
        schedule = schedule_of(graph, modules, layout)
        self._tensors = schedule.tensors
        for step in schedule.prepare:
            self._prepare(step)
        self._parts = [(call, self._armed(call)) for call in schedule.calls]

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
            armed = [(call, part) for call, part in group if part is not None]
            if poison:
                for call, _ in armed:
                    self._spoil(call)
            found, host_ns = self._device.launch([part for _, part in armed])
            spans |= {call.operation.name: own for (call, _), own in zip(armed, found, strict=True)}
            taken += host_ns
            for call in (call for call, part in group if part is None):
                self._on_host(call.operation, host)
        self.times = Times(spans, taken)
        return {name: self._result(name, host) for name in self.graph.outputs}

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
            self._device.check(parts, [kernels[name] for name in names], times.host_ns)
            found.append(times)
        return found[warmup:]

    def close(self) -> None:
        """Frees the device memory."""
        self._device.close()
        self._session.close()

    # --- preparation ------------------------------------------------------------------------------

    def _prepare(self, step: Step) -> None:
        """Uploads or packs constants, or frees those that no run reads."""
        match step:
            case Allocate(memory, size):
                self._device.allocate(memory, size)
            case Upload(tensor, place):
                value = self.graph.tensors[tensor].value
                self._device.write(place, np.ascontiguousarray(value))
            case Pack(module, places):
                self._device.launch([self._device.armed(module, "prepare", places)])
            case Release(memory):
                self._device.release(memory)

    def _armed(self, call: Call) -> Armed | None:
        """The kernels of an operation, with their arguments; None if the host computes it."""
        if call.module is None:
            return None
        return self._device.armed(call.module, "run", call.places)

    # --- a run ------------------------------------------------------------------------------------

    def _groups(self, *, apart: bool) -> list[list[tuple[Call, Armed | None]]]:
        """Operations that are queued together: a group ends with one that the host computes."""
        groups: list[list[tuple[Call, Armed | None]]] = [[]]
        for call, part in self._parts:
            groups[-1].append((call, part))
            if part is None or apart:
                groups.append([])
        return [group for group in groups if group]

    def _spoil(self, call: Call) -> None:
        """Fills the results and the scratch of an operation with NaN."""
        places = [self._tensors[n] for n in call.operation.outputs if n in self._tensors]
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
