"""What limits softmax: the derived kernel, and the same kernel with improvements made by hand.

    python benchmarks/softmax_by_hand.py [--runs 200] [--rows 4096] [--device D]

The rows have 1024 elements. The kernels are variants of the text that liftpy generates for the form
`rows(level=wrg, arrays=local, passes=two, stores=streamed)`, each with one more change:

    halves   the 16 lanes of a fold are combined by halves, not one by one
    joined   powers are summed in the loop that makes them
    short    a polynomial for `exp` without its special cases

They take turns with a copy of the same bytes in OpenCL, with streaming stores. A row has the least
and the first quartile of the times, and how much of the copy's speed that is. Each result is
compared with float64.
"""

from __future__ import annotations

import argparse
import re

import numpy as np
import pyopencl as cl

import liftpy as lp
from liftpy.opencl.devices import find_device, handle_of
from liftpy.pipeline import compile_candidate

WIDTH, TURNS = 1024, 64
PROGRAM = f"""
def softmax(x: [{{rows}}][{WIDTH}]f32) =
  x |> map(row =>
    let most = (row |> reduce(maximum, -inf)),
        powers = (row |> map(x => exp(x - most))),
        sum = (powers |> reduce(add, 0))
    in powers |> map(p => p / sum))"""
FORM = {
    "family": "rows",
    "level": "wrg",
    "arrays": "local",
    "passes": "two",
    "stores": "streamed",
    "strip": 64,
    "v": 16,
    "turns": TURNS,
}
COPY = f"""
__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void copy(__global const float* restrict x, __global float* restrict y) {{
  const int from = get_group_id(0) * {WIDTH * TURNS};
  for (int i = 0; i < {WIDTH * TURNS}; i += 16)
    __builtin_nontemporal_store(vload16(0, &x[from + i]), (__global float16*)&y[from + i]);
}}"""
LOOP = f"""
    acc3_0 = acc3_1 = acc3_2 = acc3_3 = (float16)(0.0f);
    for (int k = 0; k < {WIDTH // 64}; k++) {{
#define STEP(j) {{ \\
      const int at = k * 64 + 16 * j; \\
      const float16 e = POWER(vload16(0, &x[i0 * {WIDTH} + at + wid0 * {WIDTH * TURNS}]) - acc1); \\
      vstore16(e, 0, &l0[at]); \\
      acc3_##j += e; \\
      fetch_float(&x[(i0 + 1) * {WIDTH} + at + wid0 * {WIDTH * TURNS}]); }}
      STEP(0) STEP(1) STEP(2) STEP(3)
    }}
"""
SHORT = """
inline float16 power(float16 x) {
  x = fmax(x, (float16)(-87.0f));
  const float16 n = rint(x * 1.44269504f);
  const float16 r = fma(n, (float16)(-1.42860677e-6f), fma(n, (float16)(-0.693145752f), x));
  float16 p = fma(r, (float16)(1.98756915e-4f), (float16)(1.39819995e-3f));
  p = fma(r, p, (float16)(8.33345205e-3f));
  p = fma(r, p, (float16)(4.16657962e-2f));
  p = fma(r, p, (float16)(1.66666657e-1f));
  p = fma(r, p, (float16)(0.5f));
  p = fma(p * r, r, r) + 1.0f;
  return as_float16(as_int16(p) + (convert_int16(n) << 23));
}
"""


def by_halves(text: str) -> str:
    """The lanes of both folds combined by halves."""
    for scalar, vector, both in (("acc1", "acc2", "fmax({}, {})"), ("acc4", "acc5", "({} + {})")):
        lanes = re.compile(rf"(    {scalar} = [^\n]*{vector}\.s.[^\n]*\n){{16}}")
        halves = [
            f"float8 h = {both.format(f'{vector}.lo', f'{vector}.hi')};",
            f"float4 q = {both.format('h.lo', 'h.hi')};",
            f"float2 d = {both.format('q.lo', 'q.hi')};",
            f"{scalar} = {both.format('d.lo', 'd.hi')};",
        ]
        text, found = lanes.subn(f"    {{ {' '.join(halves)} }}\n", text)
        if found != 1:
            raise ValueError(f"the derived kernel has no fold of 16 lanes into {scalar}")
    return text


def joined(text: str, power: str) -> str:
    """The powers summed in the loop that makes them."""
    begin, end = text.index("    for (int i4"), text.index("    p1_0 = acc3_0")
    return f"#define POWER {power}\n" + text[:begin] + LOOP + text[end:]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--device", default=None)
    options = parser.parse_args()
    device = find_device(options.device)
    found = lp.space(lp.parse(PROGRAM.format(rows=options.rows)), device).candidate(FORM)
    derived = compile_candidate(found.skeleton, found.point).source
    halves = by_halves(derived)
    texts = {
        "copy": COPY,
        "derived": derived,
        "halves": halves,
        "joined": joined(halves, "exp"),
        "short": SHORT + joined(halves, "power"),
    }
    context = cl.Context([handle_of(device)])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    x = np.random.default_rng(0).standard_normal((options.rows, WIDTH), dtype=np.float32)
    exact = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    given = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
    made = cl.Buffer(context, cl.mem_flags.READ_WRITE, x.nbytes)
    kernels = {
        name: cl.Program(context, text).build().all_kernels()[0] for name, text in texts.items()
    }
    times: dict[str, list[int]] = {name: [] for name in kernels}
    for run in range(options.runs):
        for name, kernel in kernels.items():
            event = kernel(queue, (options.rows // TURNS,), (1,), given, made)
            event.wait()
            times[name].append(event.profile.end - event.profile.start)
            if not run:
                result = np.empty_like(x)
                cl.enqueue_copy(queue, result, made)
                error = np.abs(result - (x if name == "copy" else exact)).max() / exact.max()
                if error > 1e-6:
                    raise ValueError(f"{name} is wrong by {error:.1e} of the largest value")
    least = min(times["copy"]), np.percentile(times["copy"], 25)
    print("| kernel | least ms | first quartile, ms | copy / least | copy / first quartile |")
    print("| --- | --- | --- | --- | --- |")
    for name, mine in times.items():
        own = min(mine), np.percentile(mine, 25)
        ratios = [f"{a / b:.2f}" for a, b in zip(least, own, strict=True)]
        print(f"| {name} | {own[0] / 1e6:.3f} | {own[1] / 1e6:.3f} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
