"""Convolution layers: dense, strided, dilated, grouped and depthwise; channels last or first.

A ReLU may follow.
"""

from __future__ import annotations

import inspect
from builtins import zip as pairs
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    add,
    array_type,
    const,
    join,
    larger,
    map,
    map2d,
    map3d,
    mul,
    pad2d,
    reduce,
    split,
    transpose,
    zip,
)
from liftpy.workloads.family import Family, define
from liftpy.workloads.windows import ONCE, Axis, axes_of, windows

Layout: TypeAlias = Literal["nhwc", "nchw"]
"""The layouts of images in memory: channels innermost or outermost."""

LAYOUTS: tuple[Layout, ...] = ("nhwc", "nchw")

Epilogue: TypeAlias = Literal["", "relu"]
"""The operations on each result: none, or a ReLU, which replaces negative numbers by 0."""

EPILOGUES: tuple[Epilogue, ...] = ("relu",)


@dataclass(frozen=True, slots=True)
class Convolution:
    """The sizes of a convolution layer.

    `padding` is top, bottom, left, right. Elements of a window are `dilation` apart. With `groups`,
    each group of kernels reads its own group of channels. `layout` is the layout of the input, the
    output and each kernel: `nhwc` is `[height][width][channels]`, `nchw` is
    `[channels][height][width]`.
    """

    channels: int
    height: int
    width: int
    kernels: int
    kernel: tuple[int, int]
    stride: tuple[int, int] = ONCE
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = ONCE
    groups: int = 1
    layout: Layout = "nhwc"
    epilogue: Epilogue = ""

    def __post_init__(self) -> None:
        if self.channels % self.groups or self.kernels % self.groups:
            message = (
                f"{self.channels} channels and {self.kernels} kernels cannot be divided into "
                f"{self.groups} groups: the number of groups must divide both"
            )
            raise TypeRefused(message)

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The rows and columns of the input, with their windows."""
        image = self.height, self.width
        return axes_of(image, self.kernel, self.stride, self.padding, self.dilation)

    @property
    def out(self) -> tuple[int, int]:
        """The number of rows and columns of the output."""
        rows, columns = self.axes
        return rows.count, columns.count

    @property
    def flops(self) -> int:
        """The number of multiplications and additions of the direct algorithm."""
        rows, columns = self.out
        each = self.kernel[0] * self.kernel[1] * self.channels // self.groups
        return 2 * rows * columns * self.kernels * each

    @property
    def depthwise(self) -> bool:
        """Whether every channel has its own kernel."""
        return self.groups == self.channels == self.kernels and self.groups > 1

    def __str__(self) -> str:
        kind = "depthwise " if self.depthwise else ""
        also = [f"{self.groups} groups"] if self.groups > 1 and not self.depthwise else []
        also += [f"stride {self.stride[0]}"] if self.stride != ONCE else []
        also += [f"dilation {self.dilation[0]}"] if self.dilation != ONCE else []
        also += [self.epilogue] if self.epilogue else []
        return (
            f"{kind}convolution {self.channels}x{self.height}x{self.width} -> {self.kernels} "
            f"kernels {self.kernel[0]}x{self.kernel[1]}{''.join(f', {a}' for a in also)}"
        )

    def shape(self, rows: int, columns: int, channels: int) -> tuple[int, int, int]:
        """The shape of an image in the layer's layout."""
        return (rows, columns, channels) if self.layout == "nhwc" else (channels, rows, columns)

    def channels_last(self, image: Expr) -> Expr:
        """Converts an image from the layer's layout to `[rows][columns][channels]`."""
        return image if self.layout == "nhwc" else image >> transpose() >> map(transpose())

    def each_channels_last(self, kernels: Expr) -> Expr:
        """Applies `channels_last` to each kernel, in one layout on all, which packs them."""
        return kernels if self.layout == "nhwc" else kernels >> map(self.channels_last)

    def in_layout(self, image: Expr) -> Expr:
        """Converts an image from `[rows][columns][channels]` to the layer's layout."""
        return image if self.layout == "nhwc" else image >> map(transpose()) >> transpose()

    def output(self, image: Expr) -> Expr:
        """The output of the layer for its sums `[rows][columns][channels]`."""
        result = self.in_layout(image)
        return result >> map3d(lambda x: larger(x, 0)) if self.epilogue else result


def summed(products: Expr, bias: Expr | None, _scale: Expr | None) -> Expr:
    """The sum of the bias of a kernel, if it has one, and products."""
    return products >> reduce(add, 0 if bias is None else bias)


@dataclass(frozen=True, slots=True)
class Terms:
    """How an element of a convolution's result is computed.

    `times` multiplies an element of the image by a weight; for numbers of narrow types, it converts
    both to the type of the sum first. `total` makes the result of the products, the bias and the
    scale of the kernel; the last two are None if there are none. `edge` is the element outside the
    image.
    """

    times: Callable[..., Any] = mul
    total: Callable[[Expr, Expr | None, Expr | None], Expr] = summed
    edge: float = 0.0


PRODUCTS = Terms()
"""Sums of products of elements of the sum's type, with zeros around the image."""


def windows_of(layer: Convolution, x: Expr, edge: float = 0.0) -> Expr:
    """The dilated windows of the padded input: `[outH][outW][Kh][Kw][C]`."""
    return windows(layer.channels_last(x) >> pad2d(*layer.padding, edge), *layer.axes)


def convolution(layer: Convolution, name: str = "convolution") -> Program:
    """The algorithmic program of a convolution (specs: lift-convolution, section 4).

    `x: [H][W][C]`, `w: [M][Kh][Kw][C]`, `b: [M]` give `[outH][outW][M]`; in the layout `nchw`
    `x: [C][H][W]`, `w: [M][C][Kh][Kw]`, `b: [M]` give `[M][outH][outW]`.
    """
    if layer.depthwise:
        return depthwise(layer, name)
    if layer.groups > 1:
        return grouped(layer, name)
    return define(
        name,
        lambda x, w, b: convolved(layer, x, w, b),
        x=array_type(F32, *layer.shape(layer.height, layer.width, layer.channels)),
        w=const(F32, layer.kernels, *layer.shape(*layer.kernel, layer.channels)),
        b=const(F32, layer.kernels),
    )


def mapped(f: Callable[..., Expr], scales: Expr | None = None, **arrays: Expr | None) -> Expr:
    """Maps a function over arrays by the names of its parameters; for an absent one, it gets None.

    The scales are its last parameter. They are zipped with the tuples of the others, so that the
    computation with the scales can be separated from that with the others.
    """
    given = {name: array for name, array in arrays.items() if array is not None}
    first, *others = given.values()
    array = zip(first, *others) if others else first

    def call(parts: Iterable[Expr], scale: Expr | None) -> Expr:
        return f(**dict.fromkeys(arrays) | dict(pairs(given, parts, strict=True)), scale=scale)

    if scales is not None:
        return zip(array, scales) >> map(
            lambda own, scale: call([own[k] for k in range(len(given))] if others else [own], scale)
        )

    def one(*parts: Expr) -> Expr:
        return call(parts, None)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = inspect.Signature([inspect.Parameter(name, kind) for name in given])
    vars(one)["__signature__"] = named
    return array >> map(one)


def convolved(
    layer: Convolution,
    x: Expr,
    w: Expr,
    b: Expr | None,
    scales: Expr | None = None,
    terms: Terms = PRODUCTS,
) -> Expr:
    """The dense convolution of one image; the shapes are those of `convolution`.

    `b` and `scales` have an element for each kernel.
    """

    def output(window: Expr) -> Expr:
        def weigh(kernel: Expr, bias: Expr | None, scale: Expr | None) -> Expr:
            weights = kernel >> join() >> join()
            products = zip(window >> join() >> join(), weights) >> map(terms.times)
            return terms.total(products, bias, scale)

        return mapped(weigh, scales, kernel=layer.each_channels_last(w), bias=b)

    return layer.output(windows_of(layer, x, terms.edge) >> map(lambda row: row >> map(output)))


def depthwise(layer: Convolution, name: str) -> Program:
    """A depthwise convolution; `w: [Kh][Kw][C]` (or `[C][Kh][Kw]`), `b: [C]`."""
    return define(
        name,
        lambda x, w, b: convolved_by_channel(layer, x, w, b),
        x=array_type(F32, *layer.shape(layer.height, layer.width, layer.channels)),
        w=const(F32, *layer.shape(*layer.kernel, layer.channels)),
        b=const(F32, layer.channels),
    )


def convolved_by_channel(
    layer: Convolution,
    x: Expr,
    w: Expr,
    b: Expr | None,
    scales: Expr | None = None,
    terms: Terms = PRODUCTS,
) -> Expr:
    """The depthwise convolution of one image; the shapes are those of `depthwise`."""

    def output(window: Expr) -> Expr:
        def weigh(channel: Expr, kernel: Expr, bias: Expr | None, scale: Expr | None) -> Expr:
            return terms.total(zip(channel, kernel) >> map(terms.times), bias, scale)

        by_channel = join() >> transpose()
        channels, kernels = window >> by_channel, layer.channels_last(w) >> by_channel
        return mapped(weigh, scales, channel=channels, kernel=kernels, bias=b)

    return layer.output(windows_of(layer, x, terms.edge) >> map2d(output))


def grouped(layer: Convolution, name: str) -> Program:
    """A grouped convolution: each group of kernels reads its own group of channels.

    `w: [G][M/G][Kh][Kw][C/G]` (or `[G][M/G][C/G][Kh][Kw]`), `b: [G][M/G]`.
    """
    channels, kernels = layer.channels // layer.groups, layer.kernels // layer.groups
    return define(
        name,
        lambda x, w, b: convolved_in_groups(layer, x, w, b),
        x=array_type(F32, *layer.shape(layer.height, layer.width, layer.channels)),
        w=const(F32, layer.groups, kernels, *layer.shape(*layer.kernel, channels)),
        b=const(F32, layer.groups, kernels),
    )


def convolved_in_groups(
    layer: Convolution,
    x: Expr,
    w: Expr,
    b: Expr | None,
    scales: Expr | None = None,
    terms: Terms = PRODUCTS,
) -> Expr:
    """The grouped convolution of one image; the shapes are those of `grouped`."""

    def output(window: Expr) -> Expr:
        def group(part: Expr, weights: Expr, biases: Expr | None, scale: Expr | None) -> Expr:
            def weigh(kernel: Expr, bias: Expr | None, scale: Expr | None) -> Expr:
                own = kernel >> join() >> join()
                return terms.total(zip(part >> join(), own) >> map(terms.times), bias, scale)

            kernels = layer.each_channels_last(weights)
            return mapped(weigh, scale, kernel=kernels, bias=biases)

        parts = window >> join() >> map(split(layer.channels // layer.groups)) >> transpose()
        return mapped(group, scales, part=parts, weights=w, biases=b) >> join()

    return layer.output(windows_of(layer, x, terms.edge) >> map2d(output))


def same(side: int, dilation: int = 1) -> tuple[int, int, int, int]:
    """The padding with which the output has the size of the input at stride 1."""
    before = dilation * (side - 1) // 2
    after = dilation * (side - 1) - before
    return before, after, before, after


def strided(h: int, w: int, c: int, m: int, k: int, s: int) -> Convolution:
    """The sizes of a convolution with stride `s`."""
    return Convolution(c, h, w, m, (k, k), (s, s), same(k))


def dilated(h: int, w: int, c: int, m: int, k: int, d: int) -> Convolution:
    """The sizes of a convolution with dilation `d`."""
    return Convolution(c, h, w, m, (k, k), ONCE, same(k, d), (d, d))


def in_groups(h: int, w: int, c: int, m: int, k: int, g: int) -> Convolution:
    """The sizes of a convolution with `g` groups."""
    return Convolution(c, h, w, m, (k, k), ONCE, same(k), groups=g)


def by_channel(h: int, w: int, c: int, k: int, s: int) -> Convolution:
    """The sizes of a depthwise convolution with stride `s`."""
    return Convolution(c, h, w, c, (k, k), (s, s), same(k), groups=c)


def made_by(sizes: Callable[..., Convolution]) -> Callable[..., Program]:
    """A function that makes a family's programs from a name, sizes, a layout and an epilogue."""

    def make(name: str, *numbers: int, layout: Layout = "nhwc", epilogue: Epilogue = "") -> Program:
        return convolution(replace(sizes(*numbers), layout=layout, epilogue=epilogue), name)

    return make


FAMILIES = (
    Family(
        "convolution/strided",
        ("H", "W", "C", "M", "K", "S"),
        ((56, 56, 32, 32, 3, 2),),
        "[{H}][{W}][{C}] by {M} kernels {K}x{K}, stride {S}",
        made_by(strided),
        lambda *sizes: strided(*sizes).flops,
        LAYOUTS,
        EPILOGUES,
    ),
    Family(
        "convolution/dilated",
        ("H", "W", "C", "M", "K", "D"),
        ((28, 28, 32, 32, 3, 2),),
        "[{H}][{W}][{C}] by {M} kernels {K}x{K}, dilation {D}",
        made_by(dilated),
        lambda *sizes: dilated(*sizes).flops,
        LAYOUTS,
        EPILOGUES,
    ),
    Family(
        "convolution/grouped",
        ("H", "W", "C", "M", "K", "G"),
        ((28, 28, 64, 64, 3, 4),),
        "[{H}][{W}][{C}] by {M} kernels {K}x{K}, {G} groups",
        made_by(in_groups),
        lambda *sizes: in_groups(*sizes).flops,
        LAYOUTS,
        EPILOGUES,
    ),
    Family(
        "convolution/depthwise",
        ("H", "W", "C", "K", "S"),
        ((56, 56, 64, 3, 1),),
        "[{H}][{W}][{C}], each channel by a kernel {K}x{K}, stride {S}",
        made_by(by_channel),
        lambda *sizes: by_channel(*sizes).flops,
        LAYOUTS,
        EPILOGUES,
    ),
)
