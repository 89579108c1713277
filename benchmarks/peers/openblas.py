"""numpy with the OpenBLAS that its wheels bring: products, and convolutions as products of patches.

The patches (im2col, channels innermost) are copied by as many threads as there are cores, each a
part of the rows, into memory that exists before; a 1x1 convolution of stride 1 has none.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from cases import Case

from peers.interface import Made, Peer


class OpenBLAS(Peer):
    """`numpy.matmul` and `numpy.dot`."""

    name = "OpenBLAS"
    module = "numpy"

    def available(self) -> str | None:
        """Whether the BLAS of this numpy is OpenBLAS."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
        return None if "openblas" in blas else f"numpy has {blas}, not OpenBLAS"

    def version(self) -> str:
        """OpenBLAS's and numpy's."""
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["version"]
        return f"{blas} (numpy {np.__version__})"

    def make(self, case: Case, threads: int) -> Made | None:
        """The product; a convolution that is not by groups as patches times kernels, plus bias."""
        if case.kind == "matmul":
            a, b = case.arrays.values()
            out = np.empty((a.shape[0], b.shape[1]), np.float32)
            return Made(lambda: np.matmul(a, b, out=out), lambda: out)
        if case.kind == "dot":
            xs, ys = case.arrays.values()
            last = np.empty((), np.float32)
            return Made(lambda: np.dot(xs, ys, out=last), lambda: last)
        if case.kind == "convolution" and case.layer.groups == 1:
            return im2col(case, threads)
        return None


def im2col(case: Case, threads: int) -> Made:
    """Patches `[H*W][Kh*Kw*C]` times kernels `[Kh*Kw*C][M]`, plus the bias."""
    layer = case.layer
    rows, columns = layer.out
    top, bottom, left, right = layer.padding
    image = np.ascontiguousarray(case.nchw[0].transpose(1, 2, 0))
    padded = np.zeros(
        (layer.height + top + bottom, layer.width + left + right, layer.channels), np.float32
    )
    inside = padded[top : top + layer.height, left : left + layer.width]
    windows = np.lib.stride_tricks.sliding_window_view(padded, layer.kernel, axis=(0, 1))
    windows = windows[:: layer.stride[0], :: layer.stride[1]].transpose(0, 1, 3, 4, 2)
    plain = layer.kernel == layer.stride == (1, 1)
    patches = np.empty(windows.shape, np.float32)
    matrix = (image if plain else patches).reshape(rows * columns, -1)
    kernels = np.ascontiguousarray(case.oihw.transpose(2, 3, 1, 0)).reshape(-1, layer.kernels)
    bias = case.arrays["b"].reshape(-1)
    out = np.empty((rows * columns, layer.kernels), np.float32)
    pool = ThreadPoolExecutor(threads)
    cuts = np.linspace(0, rows, threads + 1, dtype=int)
    parts = [slice(a, b) for a, b in itertools.pairwise(cuts)]

    def gather(part: slice) -> None:
        np.copyto(patches[part], windows[part])

    def run() -> None:
        if not plain:
            np.copyto(inside, image)
            list(pool.map(gather, parts))
        np.matmul(matrix, kernels, out=out)
        np.add(out, bias, out=out)

    shape = (1, rows, columns, layer.kernels)
    return Made(run, lambda: case.in_layout(out.reshape(shape).transpose(0, 3, 1, 2)), "nhwc")
