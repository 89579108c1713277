"""Modules written by hand: out = y + (2 w) x with the 2 w prepared, and one of a single kernel."""

import numpy as np

from liftpy.opencl.kernel import Buffer, Launch, MemoryFigures, Module

N = 101
SOURCE = """
kernel void pack(global const float* w, global float* w2) {
  int i = get_global_id(0);
  w2[i] = 2.0f * w[i];
}
kernel void scale(global const float* w2, global const float* x, global float* t) {
  int i = get_global_id(0);
  t[i] = w2[i] * x[i];
}
kernel void add(global const float* t, global const float* y, global float* out) {
  int i = get_global_id(0);
  out[i] = t[i] + y[i];
}
"""
NO_FIGURES = MemoryFigures(peak=0, allocated=0, scratch=0, local=0, private=0, prepare=0)


def f32(name, role, slot, n=N):
    return Buffer(name, role, "f32", (n,), 4 * n, slot)


def saxpy(source=SOURCE, n=N):
    """The output lives where x did, which is dead by then."""
    return Module(
        name="saxpy",
        source=source,
        buffers=(
            f32("w", "constant", "raw", n),
            f32("w2", "packed", "weights", n),
            f32("x", "input", "first", n),
            f32("y", "input", "second", n),
            f32("t", "temporary", "between", n),
            f32("out", "output", "first", n),
        ),
        launches=(
            Launch("pack", ("w", "w2"), (n,), None, "prepare"),
            Launch("scale", ("w2", "x", "t"), (n,), None, "run"),
            Launch("add", ("t", "y", "out"), (n,), (1,), "run"),
        ),
        parameters=("x", "w", "y"),
        result="out",
        memory=NO_FIGURES,
    )


def single(source, local=None, n=N, scalar="f32", result_shape=None):
    """A module of one kernel `k(x, out)`."""
    out = Buffer(
        "out", "output", scalar, (n,) if result_shape is None else result_shape, 4 * n, "o"
    )
    return Module(
        name="single",
        source=source,
        buffers=(Buffer("x", "input", scalar, (n,), 4 * n, "x"), out),
        launches=(Launch("k", ("x", "out"), (n,), local, "run"),),
        parameters=("x",),
        result="out",
        memory=NO_FIGURES,
    )


COPY = "kernel void k(global const float* x, global float* out) { int i = get_global_id(0); %s }"

X = np.arange(N, dtype=np.float32) * 3 + 1
Y = np.arange(N, dtype=np.float32)[::-1] - 7
W = np.arange(N, dtype=np.float32) ** 2 + 5
EXPECTED = Y + 2 * W * X
