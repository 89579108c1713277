"""Profiles of runs: a row for each operation, the device's peaks, and traces for Chrome."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liftpy.constraints.device import Device
from liftpy.networks.arena import aligned
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.layout import Layout, blocks_of, constant_items
from liftpy.networks.running import Times
from liftpy.opencl.clock import Clock
from liftpy.opencl.kernel import Module
from liftpy.primitives.counting import operations
from liftpy.traffic.machine import hardware_of


@dataclass(frozen=True)
class Peak:
    """The largest rates of a device, and where the figures are from.

    `flops` is the rate of operations in f32, in Gflop/s, and `bytes` that of memory, in GB/s.
    """

    flops: float
    bytes: float
    flops_source: str
    bytes_source: str

    @property
    def ridge(self) -> float:
        """The operations per byte above which arithmetic takes longer than memory."""
        return self.flops / self.bytes


def peak_of(device: Device) -> Peak:
    """The peaks of a device, from its profile or assumed (docs/choosing.md)."""
    hardware = hardware_of(device)
    said = {hardware.sources[key] for key in ("flops_per_cycle", "clock")}
    return Peak(
        hardware.flops_per_cycle * hardware.clock * device.compute_units / 1e3,
        hardware.memory_bandwidth / 1e3,
        "; ".join(sorted(said)),
        hardware.sources["memory_bandwidth"],
    )


@dataclass(frozen=True)
class OperationTime:
    """A row of a profile: the median time in ns, its share of the sum, and the predicted time.

    `bytes` are those of the arrays that the operation reads and writes, constants included, each
    counted once. `flops` are the arithmetic operations of its program as written. A candidate may
    move more bytes and execute fewer operations. `live_bytes` are the bytes of the arena in use
    while it runs. `on_host`: it has no program, so `flops` is 0; its time is by the host's clock,
    copies included.
    """

    operation: str
    operator: str
    time_ns: int
    share: float
    predicted_ns: int | None
    bytes: int
    flops: int
    live_bytes: int
    on_host: bool = False

    @property
    def byte_rate(self) -> float:
        """The bytes in GB/s, over the measured time."""
        return self.bytes / max(1, self.time_ns)

    @property
    def flop_rate(self) -> float:
        """The arithmetic operations in Gflop/s, over the measured time."""
        return self.flops / max(1, self.time_ns)

    @property
    def intensity(self) -> float:
        """The arithmetic operations per byte."""
        return self.flops / max(1, self.bytes)

    def least_ns(self, peak: Peak) -> float:
        """The least time in ns that the device's peaks allow."""
        return max(self.bytes / peak.bytes, self.flops / peak.flops)

    def of_peak(self, peak: Peak) -> float:
        """The least time that the device's peaks allow, as a fraction of the measured time."""
        return self.least_ns(peak) / max(1, self.time_ns)

    def roof(self, peak: Peak) -> str:
        """The peak that determines the least time: `memory` or `arithmetic`."""
        return "memory" if self.intensity < peak.ridge else "arithmetic"


@dataclass(frozen=True)
class Profile:
    """The times of a plan: a row for each operation with kernels or on the host, in order.

    `time_ns` is the sum of the rows and `predicted_ns` that of the plan's own times, if all were
    measured; `host_ns` is the median time of a run on the host, without copies. `last` are the
    times of each kernel in the last run.
    """

    rows: tuple[OperationTime, ...]
    time_ns: int
    host_ns: int
    predicted_ns: int | None
    peak: Peak
    last: Times

    @property
    def of_peak(self) -> float:
        """The least time that the device's peaks allow all rows, as a fraction of `time_ns`."""
        return sum(row.least_ns(self.peak) for row in self.rows) / max(1, self.time_ns)

    @property
    def clock(self) -> Clock:
        """The clock that timed the kernels."""
        return self.last.clock


def profiled(
    graph: Graph,
    layout: Layout,
    modules: Mapping[str, Module],
    predicted: Mapping[str, int | None],
    device: Device,
    times: Sequence[Times],
) -> Profile:
    """The profile of repeated runs; `predicted` are the times of the plan by operation."""
    live = live_bytes(graph, layout, modules)
    own = [o for o in graph.operations if o.name in modules or o.program is None]
    each = [{n: sum(k) for n, k in one.kernels.items()} | dict(one.hosted) for one in times]
    medians = {o.name: round(statistics.median(one[o.name] for one in each)) for o in own}
    total = sum(medians.values())
    rows = tuple(
        OperationTime(
            o.name,
            o.operator,
            medians[o.name],
            medians[o.name] / max(1, total),
            predicted.get(o.name),
            moved_bytes(graph, o, modules.get(o.name)),
            0 if o.program is None else operations(o.program),
            live[o.name],
            o.program is None,
        )
        for o in own
    )
    known = [predicted.get(o.name) for o in own]
    every = [t for t in known if t is not None]
    return Profile(
        rows,
        total,
        round(statistics.median(one.host_ns for one in times)),
        sum(every) if len(every) == len(known) else None,
        peak_of(device),
        times[-1],
    )


def moved_bytes(graph: Graph, operation: Operation, module: Module | None) -> int:
    """The bytes of the arrays that a run of an operation reads and writes, each once.

    Without kernels, only the arrays that the device has are counted, as they are copied.
    """
    tensors = {*operation.inputs, *operation.outputs} & graph.tensors.keys()
    arrays = [graph.tensors[n] for n in tensors]
    constants = constant_items(graph, [(operation, module)]) if module is not None else {}
    return sum(t.bytes for t in arrays if t.value is None) + sum(constants.values())


def live_bytes(graph: Graph, layout: Layout, modules: Mapping[str, Module]) -> dict[str, int]:
    """The bytes of the arena that are in use during each operation."""
    blocks = blocks_of(graph, modules, layout.alignment)
    return {
        o.name: sum(aligned(b.bytes, layout.alignment) for b in blocks if b.first <= k <= b.last)
        for k, o in enumerate(graph.operations)
    }


def trace_of(profile: Profile, network: str, device: str) -> dict[str, Any]:
    """The last run as a trace in Chrome's format, for `chrome://tracing` or Perfetto.

    It has a track of operations, a track of kernels, and the live bytes. Times are by the device's
    clock, from the start of the first kernel.
    """
    spans = profile.last.spans
    start = min((low for own in spans.values() for low, _ in own), default=0)

    def event(name: str, track: int, low: int, high: int, **more: Any) -> dict[str, Any]:
        at = {"ts": (low - start) / 1e3, "dur": (high - low) / 1e3}
        return {"name": name, "ph": "X", "pid": 1, "tid": track, **at, "args": more}

    named = [("process_name", 0, f"{network} on {device}")]
    named += [("thread_name", 1, "operations"), ("thread_name", 2, "kernels")]
    events: list[dict[str, Any]] = [
        {"name": kind, "ph": "M", "pid": 1, "tid": track, "args": {"name": name}}
        for kind, track, name in named
    ]
    for row in profile.rows:
        own = spans.get(row.operation, ())
        if not own:
            continue
        low, high = min(first for first, _ in own), max(last for _, last in own)
        about: dict[str, Any] = {"operator": row.operator, "bytes": row.bytes, "flops": row.flops}
        about["of_peak"] = row.of_peak(profile.peak)
        events.append(event(row.operation, 1, low, high, **about))
        events += [
            event(f"{row.operation} {k}", 2, first, last) for k, (first, last) in enumerate(own)
        ]
        live = {"ts": (low - start) / 1e3, "args": {"bytes": row.live_bytes}}
        events.append({"name": "live bytes", "ph": "C", "pid": 1, **live})
    return {"traceEvents": events, "displayTimeUnit": "ns"}
