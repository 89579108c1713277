"""Arrays of other libraries: those of pyopencl in device memory, and those with DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from liftpy.errors import ArgumentRefused


def in_device_memory(value: object) -> bool:
    """Whether a value is an array of pyopencl, without importing pyopencl."""
    return hasattr(value, "base_data") and hasattr(value, "queue")


def on_host(name: str, value: Any) -> NDArray[Any]:
    """A value as an array of NumPy: without a copy if it is in the processor's memory.

    It may be an array of NumPy or of pyopencl (copied from the device), an object with
    `__dlpack__`, such as a tensor of PyTorch, or numbers and lists. ArgumentRefused for an object
    whose memory NumPy cannot read; `name` is that of the input.
    """
    if in_device_memory(value):
        if value.queue is None:
            raise ArgumentRefused(
                f"the array for {name} cannot be read from the device\n"
                "  this array of pyopencl has no queue, and NumPy needs a copy\n"
                f"  pass {name}.with_queue(queue)"
            )
        return np.asarray(value.get())
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return np.asarray(value)
    try:
        return np.from_dlpack(value)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
        raise ArgumentRefused(
            f"the array for {name}, a {kind}, cannot be read\n"
            f"  NumPy reads it through DLPack: {error}\n"
            "  pass an array in the processor's memory, of a type of NumPy and without a gradient: "
            f"{name}.detach().cpu() in PyTorch"
        ) from error
