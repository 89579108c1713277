"""The modelled time of kernels: operations, loads, and waiting for each level of the hierarchy.

A compute unit takes the longer of its operations and its loads from the first cache, and waits for
lines of the other levels: `latency / outstanding_misses` cycles each (Little's law). The units work
at the same time. A kernel whose operations are scalar is taken to be vectorized over work-items of
dimension 0, as OpenCL drivers do; loads that are not adjacent there are made one by one. All of
this is modelled: a time orders candidates, and predicts no measurement.
"""

from __future__ import annotations

from liftpy.constraints.device import Device
from liftpy.constraints.hardware import Hardware
from liftpy.ir.types import size_bytes
from liftpy.kernels.chain import launch_order
from liftpy.loops.lower import LoopKernel
from liftpy.opencl.generate import buffer_names
from liftpy.pipeline import chain_of, collection_paused, counted_loops_of
from liftpy.primitives.dialects import LoweredProgram
from liftpy.traffic.gpu import kernel_on_gpu
from liftpy.traffic.model import LATENCY, Modelled, ModelledKernel
from liftpy.traffic.reading import Work, work_of
from liftpy.traffic.reuse import by_array, warm
from liftpy.traffic.subgroups import with_subgroups_of

OPERANDS = 3
"""Vector registers that hold operands rather than sums; assumed."""

PORTS = 2
"""Loads from the first cache in a cycle; assumed."""


def modelled(lowered: LoweredProgram, device: Device, hardware: Hardware) -> Modelled:
    """The modelled traffic and time of a lowered program whose sizes are numbers.

    All launches of a kernel in a loop of the host have the figures of the first one.
    """
    with collection_paused():
        cut = chain_of(lowered)
        codes = counted_loops_of(cut.run, buffer_names(cut))
        model = kernel_of if device.type == "CPU" else kernel_on_gpu
        sized = (with_subgroups_of(code, hardware.subgroup) for code in codes)
        made = [model(code, device, hardware) for code in sized]
        return Modelled(tuple(made[number] for number, _ in launch_order(cut.run)), hardware)


def kernel_of(code: LoopKernel, device: Device, hardware: Hardware) -> ModelledKernel:
    """The model of one kernel on a processor."""
    work = work_of(code, max(device.compute_units, 1))
    cold = by_array(work.nest, hardware, work.shares)
    held = sum(size_bytes(p.type).value({}) for p in code.kernel.buffers)
    arrays = {array: warm(t, held, hardware, work.units) for array, t in cold.items()}
    operations, issued = computing(work, device, hardware)
    waiting = [0.0 for _ in hardware.cache_sizes]
    for traffic in arrays.values():
        for k, count in enumerate(traffic.served):
            written = traffic.stored if k == len(waiting) - 1 else 0
            waiting[k] += (count + written) * hardware.cache_latencies[k] / work.units
    return ModelledKernel(
        work.name,
        arrays,
        issued * work.units,
        work.counts.moved * work.units,
        operations,
        issued / PORTS,
        tuple(cycles / hardware.outstanding_misses for cycles in waiting),
        work.units,
    )


def computing(work: Work, device: Device, hardware: Hardware) -> tuple[float, float]:
    """The cycles of a unit's operations, and its loads and stores as instructions.

    Too few independent sums leave the pipes idle; what exceeds the registers is spilled.
    """
    lanes = max(device.vector_width, 1)
    pipes = max(1.0, hardware.flops_per_cycle / (2 * lanes))
    widest = max(work.counts.operations, default=1)
    across = widest == 1 and work.first >= lanes
    slots = sum(
        count * (width / lanes if across else -(-width // lanes))
        for width, count in work.counts.operations.items()
    )
    issued = sum(
        count * loads_of(width, size, stride, lanes, across=across)
        for (width, size, stride), count in work.counts.loads.items()
    )
    vectors = max(1.0, work.private / 4 / (1 if across else min(widest, lanes)))
    spilled = max(0.0, 1 - (hardware.vector_registers - OPERANDS) / vectors)
    issued += 2 * spilled * slots
    slots *= max(1.0, LATENCY * pipes / vectors)
    return slots / pipes, issued


def loads_of(width: int, size: int, stride: int | None, lanes: int, *, across: bool) -> float:
    """The load instructions of an access, for each work-item.

    If adjacent work-items share a vector, those that access one address or adjacent ones load it
    together.
    """
    if not across:
        return -(-width // lanes)
    return width / lanes if stride in (0, size * width) else float(width)
