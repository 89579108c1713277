"""Built-in programs by name: `vgg16/7`, `matmul/64x48x80`.

Each is one high-level expression; sizes come from the published tables.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from liftpy.errors import UnknownName
from liftpy.ir.expr import Expr, Program
from liftpy.ir.types import F32
from liftpy.primitives.lang import (
    add,
    array_type,
    const,
    join,
    map,
    mul,
    pad2d,
    program,
    reduce,
    slide2d_rect,
    transpose,
    zip,
)


@dataclass(frozen=True, slots=True)
class Convolution:
    """The sizes of a convolution layer: input `[height][width][channels]`, channels innermost.

    `padding` is top, bottom, left, right.
    """

    channels: int
    height: int
    width: int
    kernels: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def out(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        top, bottom, left, right = self.padding
        rows = (self.height + top + bottom - self.kernel[0]) // self.stride[0] + 1
        return rows, (self.width + left + right - self.kernel[1]) // self.stride[1] + 1

    @property
    def flops(self) -> int:
        """Multiplications and additions of the direct algorithm."""
        rows, columns = self.out
        return 2 * rows * columns * self.kernels * self.kernel[0] * self.kernel[1] * self.channels


def convolution(layer: Convolution, name: str = "convolution") -> Program:
    """The high-level convolution (specs: lift-convolution, section 4), channels innermost.

    `x: [H][W][C]`, `w: [M][Kh][Kw][C]`, `b: [M]` give `[outH][outW][M]`.
    """
    rows, columns = layer.kernel

    def conv(x: Expr, w: Expr, b: Expr) -> Expr:
        windows = x >> pad2d(*layer.padding) >> slide2d_rect((rows, columns), layer.stride)

        def output(window: Expr) -> Expr:
            def weigh(kernel: Expr, bias: Expr) -> Expr:
                products = zip(window >> join() >> join(), kernel >> join() >> join()) >> map(mul)
                return products >> reduce(add, bias)

            return zip(w, b) >> map(weigh)

        return windows >> map(lambda row: row >> map(output))

    conv.__annotations__ = {
        "x": array_type(F32, layer.height, layer.width, layer.channels),
        "w": const(F32, layer.kernels, rows, columns, layer.channels),
        "b": const(F32, layer.kernels),
    }
    conv.__name__ = name
    return program(conv)


def matmul(rows: int, inner: int, columns: int, name: str = "matmul") -> Program:
    """The product of `a: [rows][inner]` and the constant `b: [inner][columns]`."""

    def product(a: Expr, b: Expr) -> Expr:
        def row_of(row: Expr) -> Expr:
            return (
                b
                >> transpose()
                >> map(lambda column: zip(row, column) >> map(mul) >> reduce(add, 0))
            )

        return a >> map(row_of)

    product.__annotations__ = {"a": array_type(F32, rows, inner), "b": const(F32, inner, columns)}
    product.__name__ = name
    return program(product)


def square(channels: int, side: int, kernels: int) -> Convolution:
    """A layer of VGG-16: 3x3 kernels, stride 1, padding 1."""
    return Convolution(channels, side, side, kernels, (3, 3), (1, 1), (1, 1, 1, 1))


#: The nine distinct convolution layers of VGG-16, by index in PyTorch's features
#: (specs: lift-convolution, Table 3).
VGG16: dict[int, Convolution] = {
    0: square(3, 224, 64),
    2: square(64, 224, 64),
    5: square(64, 112, 128),
    7: square(128, 112, 128),
    10: square(128, 56, 256),
    12: square(256, 56, 256),
    17: square(256, 28, 512),
    19: square(512, 28, 512),
    24: square(512, 14, 512),
}
#: Sizes of matrix products that `liftpy workloads` lists; any other size is accepted too.
MATMULS = ((256, 256, 256), (509, 521, 523), (1024, 1024, 1024))


@dataclass(frozen=True, slots=True)
class Workload:
    """A built-in program: its name, the program, and the operations of the direct algorithm."""

    name: str
    summary: str
    flops: int


def workloads() -> tuple[Workload, ...]:
    """The built-in programs, in the order in which they are listed."""
    layers = [
        Workload(
            f"vgg16/{i}",
            f"convolution {c.channels}x{c.height}x{c.width} -> "
            f"{c.kernels} kernels {c.kernel[0]}x{c.kernel[1]}",
            c.flops,
        )
        for i, c in VGG16.items()
    ]
    products = [
        Workload(f"matmul/{m}x{n}x{k}", f"[{m}][{n}] times [{n}][{k}]", 2 * m * n * k)
        for m, n, k in MATMULS
    ]
    return (*layers, *products)


def workload(name: str) -> Program:
    """The built-in program of that name; UnknownName lists what exists."""
    family, _, rest = name.partition("/")
    if family == "vgg16" and rest.isdecimal() and int(rest) in VGG16:
        return convolution(VGG16[int(rest)], f"vgg16_{rest}")
    if family == "matmul" and (sizes := re.fullmatch(r"([1-9]\d*)x([1-9]\d*)x([1-9]\d*)", rest)):
        m, n, k = (int(s) for s in sizes.groups())
        return matmul(m, n, k, f"matmul_{m}x{n}x{k}")
    if family == "matmul":
        message = (
            f"{name!r} is no matrix product: write matmul/MxNxK, three whole numbers of at least "
            "1, such as matmul/64x48x80"
        )
        raise UnknownName(message)
    known = [w.name for w in workloads()]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    layers = ", ".join(str(i) for i in VGG16)
    message = (
        f"no built-in program {name!r}{hint}\n"
        f"  vgg16/LAYER has layers {layers}; matmul/MxNxK takes any sizes; "
        "`liftpy workloads` lists them"
    )
    raise UnknownName(message)
