"""Halide, just-in-time for this processor, with handwritten schedules; its OpenCL back end as well.

The convolution has the schedule of Halide's own example (apps/conv_layer): a block of pixels and
kernels in registers, channels innermost. The sizes of the block are tried and the fastest is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib import metadata
from typing import Any, Literal

import numpy as np
from cases import Case

from liftpy.opencl.runtimes import INTEL, installed, register
from peers.interface import Made, Peer
from peers.plain import OFFSETS

Where = Literal["cpu", "opencl"]
LANES = 16
BLOCKS = ((4, 7), (4, 5), (2, 14), (2, 12), (2, 7), (4, 4), (1, 14))
"""Vectors of kernels by pixels of a row."""

TRIES = 3


class Halide(Peer):
    """Stencils and convolutions without groups."""

    module = "halide"

    def __init__(self, where: Where) -> None:
        self.where = where
        self.name = "Halide" if where == "cpu" else "Halide OpenCL"

    def version(self) -> str:
        """The version of its distribution."""
        return metadata.version("halide")

    def target(self) -> Any:
        """This processor, or OpenCL on it."""
        hl = self.library()
        host = hl.get_host_target()
        return host if self.where == "cpu" else host.with_feature(hl.TargetFeature.OpenCL)

    def make(self, case: Case, threads: int) -> Made | None:
        """The fastest of the schedules tried."""
        os.environ["HL_NUM_THREADS"] = str(threads)
        if self.where == "opencl":  # on the runtime that liftpy prefers, where it is installed
            os.environ["HL_OCL_DEVICE_TYPE"] = "cpu"
            register()
            if installed("intel-opencl-rt", INTEL) is not None:
                os.environ["HL_OCL_PLATFORM_NAME"] = "Intel"
        if case.kind in OFFSETS and self.where == "cpu":
            return self._stencil(case)
        if case.kind == "convolution" and case.layer.groups == 1:
            return self._convolution(case)
        return None

    def _stencil(self, case: Case) -> Made:
        hl = self.library()
        (x,) = case.arrays.values()
        out = np.empty_like(x)
        source = hl.Buffer(x)
        axes = [hl.Var(f"d{k}") for k in range(x.ndim)]
        near = hl.BoundaryConditions.repeat_edge(source)
        mean = hl.Func("mean")
        offsets = OFFSETS[case.kind]
        cells = [near[tuple(a + by for a, by in zip(axes, o, strict=True))] for o in offsets]
        total = cells[0]
        for cell in cells[1:]:
            total = total + cell
        mean[tuple(axes)] = total * hl.f32(1 / len(offsets))
        outer, inner = hl.Var("outer"), hl.Var("inner")
        mean.vectorize(axes[0], LANES).split(axes[-1], outer, inner, 16).parallel(outer)
        mean.compile_jit(self.target())
        target = hl.Buffer(out)
        return Made(lambda _alive=x: mean.realize(target), lambda: out)

    def _convolution(self, case: Case) -> Made | None:
        layer = case.layer
        out = np.empty((*layer.out, layer.kernels), np.float32)
        found: list[tuple[float, Callable[[], object], Any]] = []
        for vectors, pixels in BLOCKS:
            if layer.kernels % (vectors * LANES) or layer.out[1] % pixels:
                continue
            run, target = self._blocked(case, out, vectors, pixels)
            times = [_seconds(run) for _ in range(TRIES)]
            found.append((min(times), run, target))
        if not found:
            return None
        _, best, target = min(found, key=lambda made: made[0])

        def result() -> np.ndarray:
            if self.where == "opencl":
                target.copy_to_host()
            return case.in_layout(out.transpose(2, 0, 1)[None])

        return Made(best, result, "nhwc")

    def _blocked(
        self, case: Case, out: np.ndarray, vectors: int, pixels: int
    ) -> tuple[Callable[[], object], Any]:
        """A run of the schedule with such blocks, and the buffer that it writes."""
        hl, layer = self.library(), case.layer
        arrays = (
            np.ascontiguousarray(case.nchw[0].transpose(1, 2, 0)),
            np.ascontiguousarray(case.oihw.transpose(1, 2, 3, 0)),
            case.arrays["b"].reshape(-1),
        )
        image, kernels, bias = map(hl.Buffer, arrays)
        c, x, y = hl.Var("c"), hl.Var("x"), hl.Var("y")
        top, _, left, _ = layer.padding
        padded, conv, result = hl.Func("padded"), hl.Func("conv"), hl.Func("result")
        around = hl.BoundaryConditions.constant_exterior(image, hl.f32(0))
        padded[c, x, y] = around[c, x - left, y - top]
        r = hl.RDom([(0, layer.channels), (0, layer.kernel[1]), (0, layer.kernel[0])])
        conv[c, x, y] = bias[c]
        row, column = y * layer.stride[0] + r.z, x * layer.stride[1] + r.y
        conv[c, x, y] += kernels[c, r.y, r.z, r.x] * padded[r.x, column, row]
        result[c, x, y] = conv[c, x, y]
        co, ci, xo, xi = (hl.Var(n) for n in ("co", "ci", "xo", "xi"))
        blocks = result.split(c, co, ci, LANES * vectors).split(x, xo, xi, pixels)
        blocks.reorder(ci, xi, xo, y, co).vectorize(ci, LANES).unroll(ci).unroll(xi)
        if self.where == "cpu":
            blocks.parallel(y).parallel(co)
        else:
            blocks.gpu_blocks(xo, y, co)
        conv.compute_at(result, xo).vectorize(c, LANES).unroll(c).unroll(x)
        update = conv.update().reorder(c, x, y, r.x, r.y, r.z)
        update.vectorize(c, LANES).unroll(c).unroll(x)
        if self.where == "cpu":
            padded.compute_root().parallel(y)
            if layer.channels % LANES == 0:
                padded.vectorize(c, LANES)
        else:
            padded.compute_root().gpu_blocks(x, y)
        result.compile_jit(self.target())
        target = hl.Buffer(out)

        def run(_alive: object = arrays) -> None:  # Halide keeps the memory, not the arrays
            result.realize(target)
            if self.where == "opencl":
                target.device_sync()

        return run, target


def _seconds(run: Callable[[], object]) -> float:
    """How long a run takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
