"""How a driver for x86 processors can be made to use their dot products of bytes, `vpdpbusd`.

No OpenCL function stands for the instruction. Intel's runtime calls LLVM's intrinsic if its name is
the label of a declared function. PoCL accepts the instruction as inline assembly. Neither is
documented, and a driver may end the process at what it does not know. So before the first program
with such code is built, a child process builds and runs a small kernel (`trial`). If that fails,
the program uses OpenCL's `dot`, or products in i32 (`liftpy.opencl.dots`).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from liftpy.opencl.dots import ASSEMBLY, BYTE_DOTS, LABEL, sums_of_dots_helpers

if TYPE_CHECKING:
    from liftpy.constraints.device import Device

PLATFORMS: Mapping[str, int] = MappingProxyType(
    {"Intel(R) OpenCL": LABEL, "Portable Computing Language": ASSEMBLY}
)
"""The ways to try, by platform."""
CPUINFO = Path("/proc/cpuinfo")
LIMIT = 60.0
"""Seconds after which a trial counts as failed."""
WIDTHS = 4, 8, 16
"""The numbers of lanes for which there is an instruction."""
STEP = """
  vstore{n}(dots_u8_i8_{n}(vload{n}(0, sums), vload4(0, x), vload{n}(0, (const __global uint*)w)),
            0, sums);"""
TRIAL = f"""
__kernel void trial(__global const uchar* x, __global const char* w, __global int* sums) {{
{"".join(STEP.format(n=n) for n in WIDTHS)}
}}"""


@cache
def of_processor() -> frozenset[str]:
    """The instruction sets of this machine's processor that liftpy knows, as extensions."""
    if not CPUINFO.is_file():
        return frozenset()
    text = CPUINFO.read_text(encoding="utf-8", errors="replace")
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return frozenset(f"x86_{flag}" for flag in flags if flag == "avx512_vnni")


@cache
def way_for(device: Device) -> int:
    """The value of `BYTE_DOTS` with which a trial on a device is right; 0 if none is.

    It takes about a second, once for each device in a process.
    """
    way = PLATFORMS.get(device.platform, 0)
    if not way:
        return 0
    command = [sys.executable, "-m", "liftpy.opencl.byte_dots", device.platform, str(way)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, timeout=LIMIT)
    except (subprocess.TimeoutExpired, OSError):
        return 0
    return way if done.returncode == 0 else 0


def trial(platform: str, way: str) -> int:
    """Build and run a kernel that calls the instruction; 0 if the result is right."""
    from liftpy.opencl.driver import cl  # noqa: PLC0415  the parent needs no driver here

    named = (p for p in cl.get_platforms() if p.name.strip() == platform)
    handle = next(device for p in named for device in p.get_devices(cl.device_type.CPU))
    random = np.random.default_rng(0)
    x, w = random.integers(0, 256, 4, np.uint8), random.integers(-128, 128, (16, 4), np.int8)
    sums = random.integers(-1000, 1000, 16, np.int32)
    context = cl.Context([handle])
    queue = cl.CommandQueue(context)
    text = "\n".join((*sums_of_dots_helpers(TRIAL), TRIAL))
    program = cl.Program(context, text).build([f"-D{BYTE_DOTS}={way}"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=array) for array in (x, w, sums)]
    cl.Kernel(program, "trial")(queue, (1,), (1,), *buffers)
    got, wanted = np.empty_like(sums), sums.copy()
    cl.enqueue_copy(queue, got, buffers[2]).wait()
    for n in WIDTHS:
        wanted[:n] += w[:n].astype(np.int32) @ x.astype(np.int32)
    return int(not np.array_equal(got, wanted))


if __name__ == "__main__":
    sys.exit(trial(*sys.argv[1:]))
