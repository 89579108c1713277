"""What a module requires of its caller and of a device, checked before OpenCL is called."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from liftpy.constraints.device import Device
from liftpy.errors import (
    ArgumentRefused,
    ClockRefused,
    DeviceRefused,
    InternalError,
    KernelRefused,
)
from liftpy.ir.scalar_types import RECORDS
from liftpy.ir.types import SCALARS, STORAGE
from liftpy.opencl.kernel import Buffer, Launch, Module, Names, Phase, Role, flat
from liftpy.semantics import operations
from liftpy.semantics.storage import how_stored, to_storage

DTYPES: dict[str, np.dtype[Any]] = {name: np.dtype(t) for name, t in operations.DTYPES.items()}
"""The NumPy type of each scalar type, in arrays and in device memory (bool: a byte)."""

POISON: dict[str, np.ndarray] = {
    name: np.array(np.nan, t)
    if t.kind == "f"
    else np.frombuffer(b"\x7f" * t.itemsize, np.uint8 if t.kind == "b" else t).reshape(())
    for name, t in DTYPES.items()
} | {
    t.name: to_storage(math.nan, t) if RECORDS[t.name].is_whole else np.array(0xFF, np.uint8)
    for t in STORAGE
}
"""The fill of memory that has not been written: NaN, and integers of 0x7f bytes.

Elements of 3, 5, 6 or 7 bytes, for which OpenCL has no fill, are filled byte by byte with 0xff,
which is NaN.
"""


def is_poison(memory: np.ndarray, scalar: str) -> Any:
    """A mask of the elements of an array that hold the fill of their type."""
    fill = np.frombuffer(POISON[scalar].tobytes() * memory.itemsize, np.uint8)[: memory.itemsize]
    return memory == fill.view(memory.dtype)[0]


def touched_buffers(module: Module, phase: Phase) -> frozenset[str]:
    """The buffers that must exist in a phase: its launches' arguments; in a run, inputs and result.

    The sum of their slots' bytes is the value of `Loaded.allocated_bytes` in that phase.
    """
    names = {a for launch in module.launches if launch.phase == phase for a in launch.arguments}
    if phase == "run":
        names |= {*flat(module.result), *(b.name for b in parameters(module, "input"))}
    return frozenset(names)


def overwritten(module: Module) -> frozenset[str]:
    """The inputs that share their slot with another buffer of the run, which may overwrite them."""
    users = Counter(module.buffer(name).slot for name in touched_buffers(module, "run"))
    return frozenset(b.name for b in parameters(module, "input") if users[b.slot] > 1)


def parameters(module: Module, role: Role) -> list[Buffer]:
    """The buffers of a role that the caller supplies, in the program's order."""
    return [b for b in map(module.buffer, flat(module.parameters)) if b.role == role]


def by_buffer(module: Module, values: Sequence[Any]) -> dict[str, Any]:
    """The arrays of a program's parameters by buffer; each component of a tuple has a buffer."""
    found: dict[str, Any] = {}
    for names, value in zip(module.parameters, values, strict=True):
        _spread(names, value, found)
    return found


def _spread(names: Names, value: Any, found: dict[str, Any]) -> None:
    if isinstance(names, str):
        found[names] = value
        return
    for part, component in zip(names, value, strict=True):
        _spread(part, component, found)


def check_module(module: Module) -> None:
    """Refuse a module whose figures contradict each other, which is a bug of the compiler."""
    for buffer in module.buffers:
        size = DTYPES[buffer.scalar].itemsize
        if buffer.bytes < math.prod(buffer.shape) * size or buffer.bytes % size:
            raise InternalError(
                f"{module.name}: buffer {buffer.name} of {buffer.scalar}{list(buffer.shape)} has "
                f"{buffer.bytes} bytes"
            )


def check_memory(module: Module, device: Device) -> None:
    """Refuse a module whose buffers the device cannot hold, before anything is allocated."""
    sizes = module.slots()
    where = f"{device.name} ({device.platform})"
    for slot, size in sizes.items():
        if size > device.largest_buffer:
            names = ", ".join(b.name for b in module.buffers if b.slot == slot)
            raise DeviceRefused(
                f"{module.name} needs a buffer of {size} bytes for {names}; {where} allows at most "
                f"{device.largest_buffer} bytes in one buffer. Choose a smaller problem, or a "
                "device with more memory."
            )
    phases: tuple[Phase, ...] = ("prepare", "run")
    for phase in phases:
        slots = {module.buffer(name).slot for name in touched_buffers(module, phase)}
        total = sum(sizes[slot] for slot in slots)
        if total > device.global_memory:
            raise DeviceRefused(
                f"{module.name} needs {total} bytes in its {phase} phase; {where} has "
                f"{device.global_memory}. Choose a candidate with a lower peak, a smaller "
                "problem, or a device with more memory."
            )


def check_launch(module: Module, launch: Launch, device: Device, *, group: int, local: int) -> None:
    """Refuse a launch that the device cannot run.

    The driver reports both figures for the built kernel: `group` is the largest work-group that it
    runs in, in work-items, and `local` the local memory that it needs, in bytes.
    """
    where = f"{device.name} ({device.platform})"
    if launch.local_size is not None and math.prod(launch.local_size) > group:
        raise KernelRefused(
            f"{module.name}: {spell(launch)} has work-groups of {math.prod(launch.local_size)} "
            f"work-items; {where} runs this kernel with at most {group}. "
            f"Choose local sizes whose product is {group} or less.",
            launch.function,
            "group",
            group,
        )
    for axis, size in enumerate(launch.local_size or ()):
        limit = device.max_work_item_sizes[axis]
        if size > limit:
            raise DeviceRefused(
                f"{module.name}: {spell(launch)} has {size} work-items in dimension {axis} of a "
                f"work-group; {where} allows at most {limit}. "
                f"Choose a local size of {limit} or less there."
            )
    if local > device.local_memory:
        raise KernelRefused(
            f"{module.name}: {spell(launch)} needs {local} bytes of local memory; {where} has "
            f"{device.local_memory}. Choose smaller tiles in local memory.",
            launch.function,
            "local",
            local,
        )


CLOCK_SLACK = 2.0
"""A launch may take at most this many times longer by the device's clock than by the host's."""


def check_times(
    module: Module, device: Device, launches: Sequence[Launch], times: Sequence[int], host_ns: int
) -> None:
    """Refuse impossible times of launches, in ns; `host_ns` is the host's time for all of them."""
    where = f"the clock of {device.name} ({device.platform})"
    for launch, time in zip(launches, times, strict=True):
        if time < 0:
            raise ClockRefused(
                f"{module.name}: {where} reports that {spell(launch)} ended {-time} ns before it "
                "began. Its times are not kept."
            )
        if time > CLOCK_SLACK * host_ns:
            raise ClockRefused(
                f"{module.name}: {where} reports that {spell(launch)} took {time} ns; the host "
                f"waited {host_ns} ns for the whole run. Its times are not kept."
            )
    if launches and not any(times):
        raise ClockRefused(
            f"{module.name}: {where} reports 0 ns for its run: it is stopped or too "
            "coarse. Choose a larger problem."
        )


def spell(launch: Launch) -> str:
    """A description of a launch, with its sizes."""
    sizes = "the driver's choice" if launch.local_size is None else str(list(launch.local_size))
    return f"the launch of {launch.function} (global {list(launch.global_size)}, local {sizes})"


def checked(module: Module, role: Role, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays, contiguous and as the buffers require; exactly the parameters of that role."""
    wanted = parameters(module, role)
    takes = ", ".join(_signature(b) for b in wanted) or "none"
    for name in arrays:
        if name not in {b.name for b in wanted}:
            raise ArgumentRefused(f"{module.name} has no {role} '{name}'; it takes: {takes}.")
    for buffer in wanted:
        if buffer.name not in arrays:
            raise ArgumentRefused(
                f"{module.name} needs an array for its {role} '{buffer.name}'; it takes: {takes}."
            )
    return {b.name: _fitting(module, b, arrays[b.name]) for b in wanted}


def _fitting(module: Module, buffer: Buffer, array: Any) -> np.ndarray:
    dtype = DTYPES[buffer.scalar]
    shape = "".join(f"[{n}]" for n in buffer.shape)
    where = f"{module.name}: parameter '{buffer.name}' is {shape}{buffer.scalar}"
    if not buffer.shape and SCALARS[buffer.scalar] not in STORAGE:  # which hold no integers
        array = operations.typed(array, dtype.type)
    array = np.asarray(array)
    if array.shape != buffer.shape:
        raise ArgumentRefused(
            f"{where}; it got an array of shape {array.shape}. Pass one of shape {buffer.shape}."
        )
    if array.dtype != dtype:
        t = SCALARS[buffer.scalar]
        convert = f"Convert with .astype(np.{dtype.name})"
        if t in STORAGE:
            convert = how_stored(buffer.name, array, t)
        raise ArgumentRefused(f"{where}; it got {array.dtype.name} elements. {convert}.")
    return np.asarray(array, order="C")


def _signature(buffer: Buffer) -> str:
    return f"{buffer.name}: {buffer.scalar}" + "".join(f"[{n}]" for n in buffer.shape)
