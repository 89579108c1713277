"""Convolutions and pooling: windows of one or two dimensions, channels first or last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liftpy.ir.expr import Expr
from liftpy.ir.types import FLOATS, integer_range
from liftpy.language.embedded.lang import (
    absolute,
    add,
    full,
    join,
    map,  # noqa: A004
    map2d,
    maximum,
    pad,
    power,
    reduce,
    slide,
    slide2d_rect,
    transpose,
    zip,  # noqa: A004
)
from liftpy.networks.operators.layouts import each, every, folded, reshaped
from liftpy.networks.operators.node import Body, Node, Shape, decline, least, literal, operator
from liftpy.workloads.convolution import (
    Convolution,
    convolved,
    convolved_by_channel,
    convolved_in_groups,
)


@dataclass(frozen=True)
class Windows:
    """The windows of an operator in each spatial dimension, with `auto_pad` resolved.

    `beyond` is how far the last window reaches past the padded end, with `ceil_mode`.
    """

    kernel: Shape
    stride: Shape
    dilation: Shape
    before: Shape
    after: Shape
    beyond: Shape

    def as_plane(self) -> Windows:
        """The windows of one dimension, as those of a plane of one row."""
        if len(self.kernel) != 1:
            return self
        return Windows(
            (1, *self.kernel),
            (1, *self.stride),
            (1, *self.dilation),
            (0, *self.before),
            (0, *self.after),
            (0, *self.beyond),
        )

    @property
    def extent(self) -> tuple[int, int]:
        """The rows and columns that a window spans."""
        rows, columns = (d * (k - 1) + 1 for d, k in zip_equal(self.dilation, self.kernel))
        return rows, columns

    @property
    def padding(self) -> tuple[int, int, int, int]:
        """Rows and columns around a plane: top, bottom, left, right."""
        bottom, right = (a + b for a, b in zip_equal(self.after, self.beyond))
        return self.before[0], bottom, self.before[1], right


def zip_equal(*several: Sequence[int]) -> list[tuple[int, ...]]:
    """Python's `zip` of sequences of one length; the word `zip` is the language's here."""
    return [tuple(one[k] for one in several) for k in range(len(several[0]))]


def windows_of(node: Node, kernel: Sequence[int] | None = None) -> Windows:
    """The windows that the attributes of a node describe."""
    spatial = node.shape()[2:]
    rank = len(spatial)
    if rank not in {1, 2}:
        decline(f"windows in {rank} dimensions are not expressed; 1 and 2 are", "kernel_shape")
    size = [int(k) for k in (kernel or node.attribute("kernel_shape"))]
    stride = [int(s) for s in node.attribute("strides") or [1] * rank]
    dilation = [int(d) for d in node.attribute("dilations") or [1] * rank]
    pads = [int(p) for p in node.attribute("pads") or [0] * (2 * rank)]
    before, after, beyond = pads[:rank], pads[rank:], [0] * rank
    if min(pads) < 0:
        decline("negative padding is not expressed", "pads")
    auto = node.attribute("auto_pad") or "NOTSET"
    for k in range(rank):
        extent = dilation[k] * (size[k] - 1) + 1
        if auto == "VALID":
            before[k] = after[k] = 0
        elif auto != "NOTSET":
            count = -(-spatial[k] // stride[k])
            total = max(0, (count - 1) * stride[k] + extent - spatial[k])
            small, large = total // 2, total - total // 2
            before[k], after[k] = (small, large) if auto == "SAME_UPPER" else (large, small)
        room = spatial[k] + before[k] + after[k] - extent
        if node.attribute("ceil_mode") and room % stride[k]:
            count = -(-room // stride[k]) + 1
            if (count - 1) * stride[k] < spatial[k] + before[k]:  # it begins inside
                beyond[k] = stride[k] - room % stride[k]
    found = Windows(*map_tuples(size, stride, dilation, before, after, beyond))
    counts = tuple(
        (n + b + a + e - (d * (s - 1) + 1)) // t + 1
        for n, b, a, e, d, s, t in zip_equal(
            spatial, found.before, found.after, found.beyond, dilation, size, stride
        )
    )
    if counts != node.result_shape[2:]:
        decline(f"{counts} windows fit, but the result has shape {node.result_shape}", "pads")
    return found


def map_tuples(*several: Sequence[int]) -> list[Shape]:
    """Lists as tuples."""
    return [tuple(one) for one in several]


def as_images(x: Expr, shape: Shape) -> tuple[Expr, Shape]:
    """A batch of images `[N][C][H][W]`; rows `[N][C][W]` become images of one row."""
    if len(shape) == 4:
        return x, shape
    images = (*shape[:2], 1, shape[2])
    return reshaped(x, shape, images), images


def on_each_image(x: Expr, shape: Shape, result: Shape, f: Any) -> Expr:
    """Applies a function to each image of a batch; one image alone needs no map over the batch.

    The shapes are those of the stored arrays.
    """
    images, full_shape = as_images(x, shape)
    planes = (*result[:2], 1, *result[2:]) if len(result) == 3 else result
    if full_shape[0] == 1:
        found = reshaped(f(reshaped(images, full_shape, full_shape[1:])), planes[1:], planes)
    else:
        found = images >> map(f)
    return reshaped(found, planes, result)


@operator("Conv", note="1 and 2 spatial dimensions", orders="last")
def conv(node: Node) -> Body:
    """The convolution of the first input with the second."""
    return convolution_with(node, node.shape(1))


def convolution_with(node: Node, kernels: Shape) -> Callable[..., Expr]:
    """A convolution of a node's first input with kernels of a shape, as a function of x, w and b.

    The same expression as the built-in convolutions (`workloads/convolution.py`). The kernels have
    their channels before their rows, whatever the order of the images, and are reordered in the
    program: if they are constant, this is done once, in the prepare phase.
    """
    shape = node.shape()
    windows = windows_of(node, node.attribute("kernel_shape") or kernels[2:]).as_plane()
    images = shape if len(shape) == 4 else (*shape[:2], 1, shape[2])
    layer = Convolution(
        images[1],
        images[2],
        images[3],
        kernels[0],
        (windows.kernel[0], windows.kernel[1]),
        (windows.stride[0], windows.stride[1]),
        windows.padding,
        (windows.dilation[0], windows.dilation[1]),
        int(node.attribute("group") or 1),
        "nhwc" if node.channels_last else "nchw",
    )
    groups, size = layer.groups, (kernels[1], *layer.kernel)

    def ordered_as_images(depth: int, w: Any) -> Any:
        """Arrays [channels][rows][columns], `depth` dimensions further in, in the images' order."""
        return each(depth, channels_innermost)(w) if node.channels_last else w

    def image(x: Any, w: Expr, b: Expr | None) -> Any:
        if layer.depthwise:
            planes = reshaped(w, (kernels[0], *size), (kernels[0], *layer.kernel))
            return convolved_by_channel(layer, x, ordered_as_images(0, planes), b)
        if groups > 1:
            each_group = kernels[0] // groups
            grouped_w = reshaped(w, (kernels[0], *size), (groups, each_group, *size))
            grouped_b = None if b is None else reshaped(b, (kernels[0],), (groups, each_group))
            return convolved_in_groups(layer, x, ordered_as_images(2, grouped_w), grouped_b)
        return convolved(layer, x, ordered_as_images(1, w), b)

    def body(x: Expr, w: Expr, b: Expr | None = None) -> Expr:
        planes = reshaped(w, kernels, (kernels[0], *size))
        return on_each_image(x, *node.images(), lambda im: image(im, planes, b))

    return body


def channels_innermost(image: Any) -> Any:
    """`[channels][rows][columns]` as `[rows][columns][channels]`."""
    return image >> transpose() >> map(transpose())


# --- pooling --------------------------------------------------------------------------------------


def pooled(node: Node, windows: Windows, edge: Any, f: Any) -> Callable[[Expr], Expr]:
    """Applies `f` to the elements of each window of each channel, padded with `edge`.

    With channels last, an element of a window is a pixel, that is, an array of channels; a window
    is transposed before `f` is applied.
    """
    plane = windows.as_plane()
    top, bottom, left, right = plane.padding

    def windowed(x: Any, of_window: Any) -> Any:
        if top or bottom:
            x = pad(top, bottom, edge)(x)
        if left or right:
            x = map(pad(left, right, edge))(x)
        found = slide2d_rect(plane.extent, (plane.stride[0], plane.stride[1]))(x)
        if plane.dilation != (1, 1):
            rows, columns = plane.dilation
            found = found >> map2d(lambda w: each(1, every(columns))(every(rows)(w)))
        return found >> map2d(lambda window: of_window(window >> join()))

    def image(x: Any) -> Any:
        if node.channels_last:
            return windowed(x, lambda pixels: pixels >> transpose() >> map(f))
        return x >> map(lambda channel: windowed(channel, f))

    return lambda x: on_each_image(x, *node.images(), image)


@operator("MaxPool", note="1 and 2 spatial dimensions, without indices", orders="last")
def max_pool(node: Node) -> Body:
    """The largest element of each window."""
    node.only_first_result("the indices of the largest elements are not expressed")
    if node.attribute("storage_order"):
        decline("column-major indices are not expressed", "storage_order")
    t = node.type()
    edge = -np.inf if t in FLOATS else integer_range(t)[0]
    return pooled(node, windows_of(node), edge, lambda xs: xs >> reduce(maximum, least(t)))


@operator("AveragePool", note="1 and 2 spatial dimensions", orders="last")
def average_pool(node: Node) -> Body:
    """The mean of each window: of the elements inside the image, or inside the padded image."""
    node.float_only()
    windows, t = windows_of(node), node.type()
    plane = windows.as_plane()
    area = int(np.prod(windows.kernel))
    padded = bool(node.attribute("count_include_pad"))
    sums = pooled(node, windows, 0.0, lambda xs: xs >> reduce(add, literal(0, t)))
    if not any(windows.beyond) and (padded or not any((*windows.before, *windows.after))):
        return pooled(
            node, windows, 0.0, lambda xs: (xs >> reduce(add, literal(0, t))) / literal(area, t)
        )

    def counts(axis: int, length: int) -> Any:
        """The number of counted elements in each window along an axis."""
        before, after, beyond = plane.before[axis], plane.after[axis], plane.beyond[axis]
        if padded:
            length, before, after = length + before + after, 0, 0
        ones = full(length, literal(1, t)) >> pad(before, after + beyond, 0.0)
        return (
            ones
            >> slide(plane.extent[axis], plane.stride[axis])
            >> map(lambda window: every(plane.dilation[axis])(window) >> reduce(add, literal(0, t)))
        )

    height, width = node.shape()[2:] if len(node.shape()) == 4 else (1, node.shape()[2])

    def divided(image: Any) -> Any:
        rows, columns = counts(0, height), counts(1, width)

        def row_of_pixels(sums_of_row: Any, count: Any) -> Any:
            return zip(sums_of_row, columns) >> map(
                lambda pixel, many: pixel >> map(lambda total: total / (count * many))
            )

        if node.channels_last:
            return zip(image, rows) >> map(row_of_pixels)

        def row(sums_of_row: Any, count: Any) -> Any:
            return zip(sums_of_row, columns) >> map(lambda total, many: total / (count * many))

        return image >> map(lambda channel: zip(channel, rows) >> map(row))

    _, result = node.images()
    return lambda x: on_each_image(sums(x), result, result, divided)


@operator("LpPool", note="1 and 2 spatial dimensions", orders="last")
def lp_pool(node: Node) -> Body:
    """The p-norm of each window."""
    node.float_only()
    t, p = node.type(), node.attribute("p")

    def norm(xs: Any) -> Any:
        powers = xs >> map(lambda x: power(absolute(x), literal(p, t)))
        return power(powers >> reduce(add, literal(0, t)), literal(1 / p, t))

    return pooled(node, windows_of(node), 0.0, norm)


@operator("GlobalAveragePool", "GlobalMaxPool", orders="last")
def global_pool(node: Node) -> Body:
    """The mean, or the largest element, of each channel."""
    (shape, _), t = node.images(), node.type()
    count = int(np.prod(node.shape()[2:]))
    axes = range(1, len(shape) - 1) if node.channels_last else range(2, len(shape))

    def mean(xs: Any) -> Any:
        return (xs >> reduce(add, literal(0, t))) / literal(count, t)

    def top(xs: Any) -> Any:
        return xs >> reduce(maximum, least(t))

    f = mean if node.operator == "GlobalAveragePool" else top
    return lambda x: folded(x, shape, [*axes], f, keep=True)
