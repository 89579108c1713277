"""CLBlast, untuned, through its C interface, on PoCL.

Intel's OpenCL compiler dies of some of its kernels, and would take this process along. The library
is of the system (Debian: `libclblast1`). `convgemm` is its convolution as a product of patches; it
has no bias, so the bias is added by the check alone and costs CLBlast nothing.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import subprocess
from typing import Any

import numpy as np
from cases import Case

from liftpy.opencl.runtimes import register
from peers.interface import Made, Peer

POCL = "Portable Computing Language"
ROW_MAJOR, NOT_TRANSPOSED, CROSS_CORRELATION = 101, 111, 151


class CLBlast(Peer):
    """`CLBlastSconvgemm` and `CLBlastSgemm`."""

    name = "CLBlast"
    module = "pyopencl"

    def __init__(self) -> None:
        self._context: Any = None
        self._queue: Any = None

    def available(self) -> str | None:
        """Whether the system has the library and PoCL."""
        if ctypes.util.find_library("clblast") is None:
            return "the system has no libclblast (Debian: libclblast1)"
        register()
        if POCL not in {p.name for p in self.library().get_platforms()}:
            return "the system has no PoCL (Debian: pocl-opencl-icd)"
        return None

    def version(self) -> str:
        """The version in the library's file name."""
        lines = subprocess.run(
            ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True
        ).stdout
        path = next(x.split()[-1] for x in lines.splitlines() if "libclblast.so" in x)
        return os.path.realpath(path).rpartition(".so.")[2]

    def queue(self) -> Any:
        """A queue on PoCL."""
        if self._queue is None:
            register()
            cl = self.library()
            platform = next(p for p in cl.get_platforms() if p.name == POCL)
            self._context = cl.Context([platform.get_devices()[0]])
            self._queue = cl.CommandQueue(self._context)
        return self._queue

    def make(self, case: Case, threads: int) -> Made | None:
        """The call on buffers that hold the tensors."""
        if case.kind == "matmul":
            a, b = case.arrays.values()
            m, k, n = a.shape[0], a.shape[1], b.shape[1]
            whole = (ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, *map(ctypes.c_size_t, (m, n, k)))
            one, none = ctypes.c_float(1), ctypes.c_float(0)
            return self._called(
                "CLBlastSgemm",
                (a, b),
                (m, n),
                lambda x, y, z: (*whole, one, *x, size(k), *y, size(n), none, *z, size(n)),
                lambda out: out,
            )
        if case.kind != "convolution" or case.layer.groups > 1:
            return None
        layer = case.layer
        top, bottom, left, right = layer.padding
        if (top, left) != (bottom, right):
            return None
        numbers = (
            *(layer.channels, layer.height, layer.width),
            *(*layer.kernel, top, left),
            *(*layer.stride, *layer.dilation, layer.kernels, 1),
        )
        bias = case.arrays["b"].reshape(-1, 1, 1)
        return self._called(
            "CLBlastSconvgemm",
            (case.nchw, case.oihw),
            (1, layer.kernels, *layer.out),
            lambda x, w, y: (CROSS_CORRELATION, *map(ctypes.c_size_t, numbers), *x, *w, *y),
            lambda out: case.in_layout(out + bias),
            "nchw",
        )

    def _called(
        self,
        function: str,
        given: tuple[np.ndarray, ...],
        shape: tuple[int, ...],
        arguments: Any,
        read: Any,
        layout: str = "",
    ) -> Made:
        """A C function on device memory; arguments come as (memory, offset)."""
        cl, queue = self.library(), self.queue()
        call = getattr(ctypes.CDLL(ctypes.util.find_library("clblast")), function)
        flags = cl.mem_flags.READ_WRITE
        out = np.empty(shape, np.float32)
        memory = [
            cl.Buffer(self._context, flags | cl.mem_flags.COPY_HOST_PTR, hostbuf=a) for a in given
        ]
        memory.append(cl.Buffer(self._context, flags, out.nbytes))
        handles = [(ctypes.c_void_p(m.int_ptr), size(0)) for m in memory]
        where = ctypes.byref(ctypes.c_void_p(queue.int_ptr))
        every = (*arguments(*handles), where, None)

        def run() -> None:
            status = call(*every)
            if status:
                message = f"{function} returned {status}"
                raise RuntimeError(message)
            queue.finish()

        def result() -> np.ndarray:
            cl.enqueue_copy(queue, out, memory[-1])
            return read(out)

        return Made(run, result, layout)


def size(n: int) -> ctypes.c_size_t:
    """A C size."""
    return ctypes.c_size_t(n)
