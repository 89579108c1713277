"""Pooling layers: any window, stride, padding and dilation, in three layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal as Word
from typing import TypeAlias

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import BINARY16, F16, F32, U8, ScalarType, Type
from liftpy.language.embedded.lang import (
    Section,
    add,
    array_type,
    convert,
    generate,
    join,
    map,
    map2d,
    maximum,
    pad2d,
    reduce,
    select,
    sqrt,
    transpose,
    zip,
)
from liftpy.workloads.family import Family, define
from liftpy.workloads.windows import ONCE, Axis, axes_of, padding_around, windows

LEAST = float("-inf")

Layout: TypeAlias = Word["nhwc", "nchw", "nc1hwc0"]
"""The layouts of images in memory: channels innermost, outermost, or outermost in blocks."""

LAYOUTS: tuple[Layout, ...] = ("nhwc", "nchw", "nc1hwc0")

BLOCK = 16
"""The channels of a block in the layout `nc1hwc0`."""

TYPES: dict[str, ScalarType] = {t.name: t for t in (F32, F16, BINARY16)}
"""The types of images in memory. Elements are compared and added in f32."""

WITHIN_U8 = 256

Per: TypeAlias = Callable[..., Expr]
"""A function of an element of each of several arrays, or of the elements of a window."""


@dataclass(frozen=True, slots=True)
class Pooling:
    """The sizes of a pooling layer.

    `padding` is top, bottom, left, right. Elements of a window are `dilation` apart. With `ceil`,
    a last window that begins before the padding at the end may end outside the padded image.
    `layout` is that of the input and the result: `nhwc` is `[height][width][channels]`, `nchw` is
    `[channels][height][width]`, and `nc1hwc0` is `[blocks][height][width][16]`; channels that do
    not exist fill the last block. `stored` is the type of elements in memory.

    >>> from liftpy.workloads.pooling import Pooling
    >>> Pooling(3, 8, 8, (3, 3), (2, 2)).out, Pooling(3, 8, 8, (3, 3), (2, 2), ceil=True).out
    ((3, 3), (4, 4))
    """

    channels: int
    height: int
    width: int
    window: tuple[int, int]
    stride: tuple[int, int] = ONCE
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = ONCE
    ceil: bool = False
    layout: Layout = "nhwc"
    stored: ScalarType = F32

    @property
    def axes(self) -> tuple[Axis, Axis]:
        """The rows and columns of the image, with their windows."""
        image = self.height, self.width
        return axes_of(image, self.window, self.stride, self.padding, self.dilation, ceil=self.ceil)

    @property
    def around(self) -> tuple[int, int, int, int]:
        """The padding, and in ceil mode what the last windows read after it."""
        return padding_around(*self.axes)

    @property
    def out(self) -> tuple[int, int]:
        """The number of rows and columns of the result."""
        rows, columns = self.axes
        return rows.count, columns.count

    @property
    def places(self) -> int:
        """The number of elements of a window."""
        return self.window[0] * self.window[1]

    @property
    def flops(self) -> int:
        """The number of operations: one for each element of each window."""
        rows, columns = self.out
        return rows * columns * self.channels * self.places

    @property
    def deep(self) -> bool:
        """Whether an element of a plane is an array of channels, not a number."""
        return self.layout != "nchw"

    def array(self, *plane: int, t: ScalarType | None = None) -> Type:
        """The type of an array with planes of this shape in the layer's layout."""
        shape: tuple[int, ...] = (*plane, self.channels)
        if self.layout == "nchw":
            shape = (self.channels, *plane)
        elif self.layout == "nc1hwc0":
            shape = (-(-self.channels // BLOCK), *plane, BLOCK)
        return array_type(t or self.stored, *shape)

    def on_planes(self, f: Per, *arrays: Expr) -> Expr:
        """Applies `f` to arrays, or to corresponding channels or blocks of them."""
        if self.layout == "nhwc":
            return f(*arrays)
        return together(*arrays) >> map(f)

    def each(self, f: Per, *elements: Expr) -> Expr:
        """Applies `f` to elements of planes, or to corresponding channels of them."""
        if not self.deep:
            return f(*elements)
        return together(*elements) >> map(f)

    def per_channel(self, f: Per, window: Expr, *elements: Expr) -> Expr:
        """Applies `f` to the list of a window's elements in each channel."""
        found = window >> join()
        return self.each(f, found >> transpose() if self.deep else found, *elements)

    def windows(self, plane: Expr, edge: float) -> Expr:
        """The windows of a plane that is padded with `edge`: `[outH][outW][Kh][Kw]a`."""
        return windows(plane >> pad2d(*self.around, edge), *self.axes)

    def number(self, x: Expr) -> Expr:
        """An element as an f32."""
        return x if self.stored == F32 else convert(x, F32)

    def in_memory(self, x: Expr) -> Expr:
        """An f32 in the type of elements in memory."""
        return x if self.stored == F32 else convert(x, self.stored)

    def all_numbers(self, xs: Expr, rank: int) -> Expr:
        """The elements of an array of a rank, each as an f32."""
        return xs if self.stored == F32 else xs >> under(rank, map(self.number))

    def all_in_memory(self, xs: Expr, rank: int) -> Expr:
        """The f32 elements of an array of a rank in the type of elements in memory."""
        return xs if self.stored == F32 else xs >> under(rank, map(self.in_memory))


def together(first: Expr, *others: Expr) -> Expr:
    """One array, or the corresponding elements of several."""
    return zip(first, *others) if others else first


def under(rank: int, f: Section) -> Section:
    """`f`, which is a map, on the rows of an array of a rank."""
    return f if rank == 1 else map(under(rank - 1, f))


def fold(layer: Pooling, x: Expr, f: Per, edge: float) -> Expr:
    """Applies `f` to each channel of each window of an image that is padded with `edge`."""

    def plane(image: Expr) -> Expr:
        found = layer.windows(layer.all_numbers(image, 2 + layer.deep), edge)
        return found >> map2d(lambda window: layer.per_channel(f, window))

    return layer.on_planes(plane, x)


def pooled(layer: Pooling, name: str, body: Callable[[Pooling, Expr], Expr]) -> Program:
    """The program of a layer with one image as input."""
    return define(name, lambda x: body(layer, x), x=layer.array(layer.height, layer.width))


def largest_of(xs: Expr) -> Expr:
    """The largest of some numbers."""
    return xs >> reduce(maximum, LEAST)


def largest(layer: Pooling, x: Expr) -> Expr:
    """The largest element of each channel of each window."""
    return fold(layer, x, lambda xs: layer.in_memory(largest_of(xs)), LEAST)


def average(layer: Pooling, x: Expr) -> Expr:
    """The mean of each channel of each window; padding counts as zeros.

    What a window reads after the padding, in ceil mode, does not count.
    """
    if layer.around != layer.padding:
        return mean(layer, x, padded=True)

    def of_channel(xs: Expr) -> Expr:
        return layer.in_memory((xs >> reduce(add, 0)) * (1 / layer.places))

    return fold(layer, x, of_channel, 0.0)


def inside(layer: Pooling, x: Expr) -> Expr:
    """The mean of each channel of the part of each window that is inside the image."""
    return mean(layer, x, padded=False)


def mean(layer: Pooling, x: Expr, *, padded: bool) -> Expr:
    """The mean of the elements of each window that are in the image, or in the padded image."""

    def divided(sums: Expr) -> Expr:
        rows, columns = (axis.counts(F32, padded=padded) for axis in layer.axes)
        return zip(sums, rows) >> map(
            lambda row, many: (
                zip(row, columns)
                >> map(
                    lambda total, count: layer.each(
                        lambda v: layer.in_memory(v / (many * count)), total
                    )
                )
            )
        )

    return layer.on_planes(divided, fold(layer, x, lambda xs: xs >> reduce(add, 0), 0.0))


def norm(layer: Pooling, x: Expr) -> Expr:
    """The square root of the sum of squares of each channel of each window."""

    def of_channel(xs: Expr) -> Expr:
        return layer.in_memory(sqrt(xs >> map(lambda x: x * x) >> reduce(add, 0)))

    return fold(layer, x, of_channel, 0.0)


def for_each_place(layer: Pooling, f: Callable[[Expr], Expr]) -> Expr:
    """The array of `f` of each place in a window, in the order of the places, which are u8.

    TypeRefused if a window has more places than a u8 has values.
    """
    if layer.places > WITHIN_U8:
        what = f"places in windows of {layer.window[0]}x{layer.window[1]} are not stored as u8"
        why = f"a window has {layer.places} places, and a u8 has {WITHIN_U8} values"
        raise TypeRefused(f"{what}\n  {why}\n  use windows of at most {WITHIN_U8} elements")
    return generate(layer.places, f, U8)


def argmax(layer: Pooling, x: Expr) -> Expr:
    """The largest element of each channel of each window, and its first place in the window.

    TypeRefused if a window has more places than a u8 has values.
    """
    places = for_each_place(layer, lambda place: place)

    def larger(best: Expr, x: Expr) -> Expr:
        return Tuple((select(best[0] < x[0], x[0], best[0]), select(best[0] < x[0], x[1], best[1])))

    def of_channel(xs: Expr) -> Expr:
        start = Tuple((Literal(LEAST, F32), Literal(0, U8)))
        best = zip(xs, places) >> reduce(larger, start)
        return best if layer.stored == F32 else Tuple((layer.in_memory(best[0]), best[1]))

    return fold(layer, x, of_channel, LEAST)


def everywhere(layer: Pooling, x: Expr) -> Expr:
    """The mean of each channel over the whole image."""

    def of_channel(xs: Expr) -> Expr:
        total = layer.all_numbers(xs, 1) >> reduce(add, 0)
        return layer.in_memory(total * (1 / layer.places))

    return layer.on_planes(lambda plane: layer.per_channel(of_channel, plane), x)


def square(h: int, w: int, c: int, k: int, s: int) -> Pooling:
    """A layer with windows k x k, `s` apart, and padding of half a window."""
    half = (k - 1) // 2
    return Pooling(c, h, w, (k, k), (s, s), (half, half, half, half))


def rounded_up(h: int, w: int, c: int, k: int, s: int) -> Pooling:
    """A layer in ceil mode without padding."""
    return Pooling(c, h, w, (k, k), (s, s), ceil=True)


def apart(h: int, w: int, c: int, k: int, s: int, d: int) -> Pooling:
    """A layer without padding with windows of k x k elements that are `d` apart."""
    return Pooling(c, h, w, (k, k), (s, s), dilation=(d, d))


def whole(h: int, w: int, c: int) -> Pooling:
    """A layer with one window, the image."""
    return Pooling(c, h, w, (h, w))


def family(
    name: str,
    sizes: Callable[..., Pooling],
    letters: str,
    listed: tuple[int, ...],
    summary: str,
    make: Callable[[Pooling, str], Program],
) -> Family:
    """A family of layers in all layouts and types."""

    def layer(*numbers: int, layout: Layout = "nhwc", stored: str = "f32") -> Pooling:
        made = sizes(*numbers)
        return replace(made, layout=layout, stored=TYPES[stored])

    return Family(
        name,
        tuple(letters),
        (listed,),
        summary,
        lambda called, *numbers, **options: make(layer(*numbers, **options), called),
        lambda *numbers: sizes(*numbers).flops,
        LAYOUTS,
        types=tuple(TYPES),
    )


def forward(
    name: str,
    sizes: Callable[..., Pooling],
    letters: str,
    listed: tuple[int, ...],
    summary: str,
    body: Callable[[Pooling, Expr], Expr],
) -> Family:
    """A family of layers whose input is an image."""
    return family(
        name, sizes, letters, listed, summary, lambda layer, called: pooled(layer, called, body)
    )


FAMILIES = (
    forward(
        "pool/max",
        square,
        "HWCKS",
        (112, 112, 64, 3, 2),
        "maximum of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        largest,
    ),
    forward(
        "pool/ceil",
        rounded_up,
        "HWCKS",
        (112, 112, 64, 3, 2),
        "maximum of windows {K}x{K} of [{H}][{W}][{C}], stride {S}, also of incomplete windows",
        largest,
    ),
    forward(
        "pool/average",
        square,
        "HWCKS",
        (56, 56, 64, 2, 2),
        "mean of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        average,
    ),
    forward(
        "pool/inside",
        square,
        "HWCKS",
        (35, 35, 192, 3, 1),
        "mean of windows {K}x{K} without the padding of [{H}][{W}][{C}], stride {S}",
        inside,
    ),
    forward(
        "pool/l2",
        square,
        "HWCKS",
        (56, 56, 64, 3, 2),
        "root of sums of squares of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        norm,
    ),
    forward(
        "pool/dilated",
        apart,
        "HWCKSD",
        (56, 56, 64, 3, 1, 2),
        "maximum of windows {K}x{K}, dilation {D}, of [{H}][{W}][{C}], stride {S}",
        largest,
    ),
    forward(
        "pool/argmax",
        square,
        "HWCKS",
        (112, 112, 64, 3, 2),
        "maximum of windows {K}x{K} of [{H}][{W}][{C}] and its place, stride {S}",
        argmax,
    ),
    forward(
        "pool/global",
        whole,
        "HWC",
        (7, 7, 1024),
        "mean of each channel of [{H}][{W}][{C}]",
        everywhere,
    ),
)
