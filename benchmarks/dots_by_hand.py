"""What the processor's dot products of 8-bit integers would give: kernels that are written by hand.

    python benchmarks/dots_by_hand.py [--device Intel] [--runs 50]

A product of a 2046x512 and a 512x256 matrix, in blocks of 6x32 results. Three kernels take turns:

    f32    a multiply-add of f32 for each product
    i32    a product and a sum of i32 for each product
    dots   `vpdpbusd`, which adds 64 products of a u8 and an i8 to 16 sums of i32

No OpenCL function stands for `vpdpbusd`. Intel's runtime (2026) calls LLVM's intrinsic if its name
is the assembler label of a declared function. PoCL accepts the instruction as inline assembly. A
driver that knows neither may end the process. The processor must have AVX512-VNNI. Each result is
compared with that of NumPy.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import pyopencl as cl

from liftpy.opencl.devices import find_device, handle_of

M, C, K, ROWS, LANES = 2046, 512, 256, 6, 16
ACROSS = 2 * LANES
"""The results of a block in a row: those of two vectors."""
LABEL = """
typedef char bytes64 __attribute__((ext_vector_type(64)));
int16 vpdpbusd(int16, bytes64, bytes64) __asm__("llvm.x86.avx512.vpdpbusd.512");
inline int16 four(int16 sum, int16 x, int16 w) {
  return vpdpbusd(sum, __builtin_astype(x, bytes64), __builtin_astype(w, bytes64));
}"""
ASSEMBLY = """
inline int16 four(int16 sum, int16 x, int16 w) {
  __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(w));
  return sum;
}"""
KERNEL = """
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void {name}(__global const {x}* restrict x, __global const {w}* restrict w,
            __global {sum}* restrict y) {{
  const int row = get_group_id(0) * {rows}, column = get_group_id(1) * {across};
  {sum}16 sums[{rows}][2];
  #pragma unroll
  for (int r = 0; r < {rows}; r++) sums[r][0] = sums[r][1] = 0;
  for (int c = 0; c < {steps}; c++) {{
    const {sum}16 w0 = {load_w0}, w1 = {load_w1};
    #pragma unroll
    for (int r = 0; r < {rows}; r++) {{
      const {sum}16 x0 = ({sum}16)(x[(row + r) * {steps} + c]);
      sums[r][0] = {step0};
      sums[r][1] = {step1};
    }}
  }}
  #pragma unroll
  for (int r = 0; r < {rows}; r++) {{
    vstore16(sums[r][0], 0, &y[(row + r) * {columns} + column]);
    vstore16(sums[r][1], 0, &y[(row + r) * {columns} + column + 16]);
  }}
}}"""


def kernel(name: str, x: str, w: str, total: str, steps: int, load: str, step: str) -> str:
    """The text of a kernel; `load` reads weights at `{at}`, `step` adds products to sum `{k}`."""
    at = f"c * {K} + column"
    return KERNEL.format(
        name=name,
        x=x,
        w=w,
        sum=total,
        rows=ROWS,
        across=ACROSS,
        columns=K,
        steps=steps,
        load_w0=load.format(at=at),
        load_w1=load.format(at=f"{at} + 16"),
        step0=step.format(k=0),
        step1=step.format(k=1),
    )


def main() -> None:
    """Times the kernels in turn and prints the rate of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="Intel")
    parser.add_argument("--runs", type=int, default=50)
    given = parser.parse_args()
    device = find_device(given.device)
    context = cl.Context([handle_of(device)])
    properties = cl.command_queue_properties.PROFILING_ENABLE
    queue = cl.CommandQueue(context, properties=properties)
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (M, C)).astype(np.uint8)
    w = random.integers(-128, 128, (C, K)).astype(np.int8)
    packed = np.ascontiguousarray(w.reshape(C // 4, 4, K).transpose(0, 2, 1))
    wanted = x.astype(np.int32) @ w.astype(np.int32)
    text = "\n".join(
        (
            LABEL if "Intel" in device.platform else ASSEMBLY,
            kernel(
                "f32",
                "float",
                "float",
                "float",
                C,
                "vload16(0, &w[{at}])",
                "fma(x0, w{k}, sums[r][{k}])",
            ),
            kernel(
                "i32",
                "uchar",
                "char",
                "int",
                C,
                "convert_int16(vload16(0, &w[{at}]))",
                "sums[r][{k}] + x0 * w{k}",
            ),
            kernel(
                "dots",
                "int",
                "int",
                "int",
                C // 4,
                "vload16(0, &w[{at}])",
                "four(sums[r][{k}], x0, w{k})",
            ),
        )
    )
    program = cl.Program(context, text).build()
    own = {"f32": (x.astype(np.float32), w.astype(np.float32)), "i32": (x, w), "dots": (x, packed)}
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    buffers = {
        name: [cl.Buffer(context, flags, hostbuf=array) for array in arrays]
        for name, arrays in own.items()
    }
    result = cl.Buffer(context, cl.mem_flags.WRITE_ONLY, wanted.nbytes)
    kernels = {name: cl.Kernel(program, name) for name in own}
    times: dict[str, list[int]] = {name: [] for name in own}
    for _ in range(given.runs):
        for name, function in kernels.items():
            launched = function(queue, (M // ROWS, K // ACROSS), (1, 1), *buffers[name], result)
            launched.wait()
            times[name].append(launched.profile.end - launched.profile.start)
    for name, function in kernels.items():
        got = np.empty(wanted.shape, np.float32 if name == "f32" else np.int32)
        function(queue, (M // ROWS, K // ACROSS), (1, 1), *buffers[name], result)
        cl.enqueue_copy(queue, got, result).wait()
        assert np.array_equal(got.astype(np.int32), wanted), f"{name} is wrong"
        least, median = min(times[name]), statistics.median(times[name])
        median, best = (2 * M * C * K / time for time in (median, least))
        print(f"{device.platform}: {name:4} {median:6.0f} Gop/s in the median, {best:6.0f} at best")


if __name__ == "__main__":
    main()
