"""Access to pyopencl: its only import, open devices, and the translation of its errors."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from liftpy.constraints.device import Device
from liftpy.errors import DeviceRefused
from liftpy.opencl import runtimes
from liftpy.opencl.clock import PAUSE, Clock, clock_of


@functools.cache
def opened() -> tuple[ModuleType | None, tuple[str, ...]]:
    """Pyopencl, and notes on what cannot be used; None if it cannot be imported.

    Importing it takes longer than most commands that need no device take in total.
    """
    notes = runtimes.register()  # before the ICD loader is used, see liftpy/opencl/runtimes.py
    try:
        return importlib.import_module("pyopencl"), notes
    except ImportError as failure:  # no ICD loader, or a broken one
        return None, (*notes, f"pyopencl cannot be imported: {failure}.")


class Door:
    """pyopencl, imported at its first use; `opened` must have been called before."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(opened()[0], name)
        setattr(self, name, found)  # later accesses bypass this method: launches are timed
        return found


if TYPE_CHECKING:
    import pyopencl as cl
else:
    cl = Door()


def arrays() -> ModuleType:
    """The module of pyopencl's arrays."""
    return importlib.import_module("pyopencl.array")


_REMEDIES = {
    "MEM_OBJECT_ALLOCATION_FAILURE": "Choose a candidate or a problem with smaller buffers.",
    "OUT_OF_HOST_MEMORY": "Choose a candidate or a problem with smaller buffers.",
    "OUT_OF_RESOURCES": "Choose smaller work-groups, less local memory or smaller buffers.",
    "INVALID_WORK_GROUP_SIZE": "Choose a local size that the device allows and that divides the "
    "global size.",
    "INVALID_WORK_ITEM_SIZE": "Choose a local size within the device's limit in each dimension.",
}


@dataclass(frozen=True)
class OpenDevice:
    """A device of this machine, with its context and an in-order queue with profiling.

    `clock` is the one that times its launches.
    """

    device: Device
    handle: cl.Device
    context: cl.Context
    queue: cl.CommandQueue
    clock: Clock = "device"

    @classmethod
    def of(cls, device: Device, handle: cl.Device) -> OpenDevice:
        """Open a device. Raises DeviceRefused if its driver gives no context."""
        with refusal(device, "a context"):
            context = _of_processor(handle) if device.type == "CPU" else cl.Context([handle])
            profiling = cl.command_queue_properties.PROFILING_ENABLE
            queue = cl.CommandQueue(context, properties=profiling)
            return cls(device, handle, context, queue, _clock(handle, context, queue))

    @property
    def alignment(self) -> int:
        """The alignment of sub-buffers in bytes."""
        return self.handle.mem_base_addr_align // 8  # OpenCL gives it in bits


_CLOCKS: dict[cl.Device, Clock] = {}


def _clock(handle: cl.Device, context: cl.Context, queue: cl.CommandQueue) -> Clock:
    """The clock for the launches of a device; it is determined once per process."""
    if handle not in _CLOCKS:
        buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, size=4)
        first = cl.enqueue_fill_buffer(queue, buffer, bytes(4), 0, 4)
        first.wait()
        begun = time.perf_counter_ns()
        time.sleep(PAUSE)
        between = time.perf_counter_ns() - begun
        last = cl.enqueue_fill_buffer(queue, buffer, bytes(4), 0, 4)
        last.wait()
        buffer.release()
        try:
            stamps = int(first.profile.start), int(last.profile.end)
        except cl.Error:
            _CLOCKS[handle] = "host"  # it has no timestamps
        else:
            _CLOCKS[handle] = clock_of(*stamps, between)
    return _CLOCKS[handle]


@cache
def _of_processor(handle: cl.Device) -> cl.Context:
    """The context of a CPU, which all sessions of this process share.

    PoCL reads its library of built-in functions anew for each context, which takes longer than most
    builds. Sessions of a GPU have contexts of their own: a fault in a kernel may invalidate its
    context.
    """
    return cl.Context([handle])


def reason(error: cl.Error) -> str:
    """The OpenCL function that failed, and its error code."""
    return f"{error.routine} returned {cl.status_code.to_string(error.code)}"


def refused(device: Device, of: str, error: cl.Error) -> DeviceRefused:
    """An OpenCL error as the message that the device refused something."""
    suggestion = _REMEDIES.get(cl.status_code.to_string(error.code), "")
    return DeviceRefused(
        f"{device.name} ({device.platform}) refused {of}: {reason(error)}. {suggestion}".rstrip()
    )


@contextmanager
def refusal(device: Device, of: str) -> Generator[None]:
    """Turn an OpenCL error into DeviceRefused."""
    try:
        yield
    except cl.Error as error:
        raise refused(device, of, error) from error
