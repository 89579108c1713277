"""Convolutions and pooling: windows of one or two dimensions, channels first or last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from liftpy.ir.expr import Expr
from liftpy.ir.types import FLOATS, integer_range
from liftpy.language.embedded.lang import (
    absolute,
    add,
    join,
    map,  # noqa: A004
    map2d,
    maximum,
    pad,
    power,
    reduce,
    transpose,
    zip,  # noqa: A004
)
from liftpy.networks.operators.layouts import each, folded, reshaped
from liftpy.networks.operators.node import Body, Node, Shape, decline, least, literal, operator
from liftpy.workloads.convolution import (
    PRODUCTS,
    Convolution,
    Terms,
    convolved,
    convolved_by_channel,
    convolved_in_groups,
)
from liftpy.workloads.windows import Axis, padding_around, windows


def window_attributes(node: Node) -> tuple[list[int], list[int], list[int], str]:
    """The strides, dilations and pads of a node's windows, and `auto_pad`, or their defaults."""
    rank = len(node.shape()) - 2
    if rank not in {1, 2}:
        decline(f"windows in {rank} dimensions are not expressed; 1 and 2 are", "kernel_shape")
    stride = [int(s) for s in node.attribute("strides") or [1] * rank]
    dilation = [int(d) for d in node.attribute("dilations") or [1] * rank]
    pads = [int(p) for p in node.attribute("pads") or [0] * (2 * rank)]
    if min(pads) < 0:
        decline("negative padding is not expressed", "pads")
    return stride, dilation, pads, node.attribute("auto_pad") or "NOTSET"


def padding_before(total: int, auto: str) -> int:
    """How much of the padding of an axis is before it: the smaller half with SAME_UPPER."""
    return total // 2 if auto == "SAME_UPPER" else total - total // 2


def windows_of(node: Node, kernel: Sequence[int] | None = None) -> tuple[Axis, Axis]:
    """The rows and columns of a node's images, with the windows that its attributes describe.

    `auto_pad` is resolved. Images of one dimension have one row.
    """
    spatial = node.shape()[2:]
    size = [int(k) for k in (kernel or node.attribute("kernel_shape"))]
    stride, dilation, pads, auto = window_attributes(node)
    rank = len(spatial)
    ceil = bool(node.attribute("ceil_mode"))
    axes: list[Axis] = []
    for k in range(rank):
        axis = Axis(spatial[k], size[k], stride[k], pads[k], pads[rank + k], dilation[k], ceil)
        if auto == "VALID":
            axis = replace(axis, before=0, after=0)
        elif auto != "NOTSET":
            count = -(-spatial[k] // stride[k])
            total = max(0, (count - 1) * stride[k] + axis.span - spatial[k])
            before = padding_before(total, auto)
            axis = replace(axis, before=before, after=total - before)
        axes.append(axis)
    counts = tuple(axis.count for axis in axes)
    if counts != node.result_shape[2:]:
        decline(f"{counts} windows fit, but the result has shape {node.result_shape}", "pads")
    rows, columns = axes if rank == 2 else (Axis(1, 1), *axes)
    return rows, columns


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


def convolution_with(node: Node, kernels: Shape, terms: Terms = PRODUCTS) -> Callable[..., Expr]:
    """A convolution of the first input with kernels of a shape: a function of x, w, b and scales.

    The same expression as the built-in convolutions (`workloads/convolution.py`). The kernels have
    their channels before their rows, whatever the order of the images, and are reordered in the
    program: if they are constant, this is done once, in the prepare phase.
    """
    shape = node.shape()
    rows, columns = windows_of(node, node.attribute("kernel_shape") or kernels[2:])
    images = shape if len(shape) == 4 else (*shape[:2], 1, shape[2])
    layer = Convolution(
        images[1],
        images[2],
        images[3],
        kernels[0],
        (rows.size, columns.size),
        (rows.stride, columns.stride),
        padding_around(rows, columns),
        (rows.dilation, columns.dilation),
        int(node.attribute("group") or 1),
        "nhwc" if node.channels_last else "nchw",
    )
    image = on_image(layer, kernels, terms)

    def body(x: Expr, w: Expr, b: Expr | None = None, scales: Expr | None = None) -> Expr:
        planes = reshaped(w, kernels, (kernels[0], kernels[1], *layer.kernel))
        return on_each_image(x, *node.images(), lambda im: image(im, planes, b, scales))

    return body


def on_image(layer: Convolution, kernels: Shape, terms: Terms = PRODUCTS) -> Callable[..., Any]:
    """The convolution of one image, in the layer's layout: a function of x, w, b and scales.

    `kernels` is the shape of the weights in the model; its first two lengths are the numbers of
    kernels and of channels of each. w is an array [kernels][channels][rows][columns].
    """
    groups, size = layer.groups, (kernels[1], *layer.kernel)
    channels_last = layer.layout == "nhwc"

    def ordered_as_images(depth: int, w: Any) -> Any:
        """Arrays [channels][rows][columns], `depth` dimensions further in, in the images' order."""
        return each(depth, channels_innermost)(w) if channels_last else w

    def in_groups(numbers: Expr | None, *inner: int) -> Any:
        """Numbers for each kernel, or kernels, by group."""
        each_group = groups, kernels[0] // groups
        if numbers is None:
            return None
        return reshaped(numbers, (kernels[0], *inner), (*each_group, *inner))

    def image(x: Any, w: Expr, b: Expr | None, scales: Expr | None) -> Any:
        if layer.depthwise:
            planes = reshaped(w, (kernels[0], *size), (kernels[0], *layer.kernel))
            return convolved_by_channel(layer, x, ordered_as_images(0, planes), b, scales, terms)
        if groups > 1:
            kernels_of = ordered_as_images(2, in_groups(w, *size))
            return convolved_in_groups(layer, x, kernels_of, in_groups(b), in_groups(scales), terms)
        return convolved(layer, x, ordered_as_images(1, w), b, scales, terms)

    return image


def channels_innermost(image: Any) -> Any:
    """`[channels][rows][columns]` as `[rows][columns][channels]`."""
    return image >> transpose() >> map(transpose())


# --- pooling --------------------------------------------------------------------------------------


def pooled(node: Node, axes: tuple[Axis, Axis], edge: Any, f: Any) -> Callable[[Expr], Expr]:
    """Applies `f` to the elements of each window of each channel, padded with `edge`.

    With channels last, an element of a window is a pixel, that is, an array of channels; a window
    is transposed before `f` is applied.
    """
    top, bottom, left, right = padding_around(*axes)

    def windowed(x: Any, of_window: Any) -> Any:
        if top or bottom:
            x = pad(top, bottom, edge)(x)
        if left or right:
            x = map(pad(left, right, edge))(x)
        return windows(x, *axes) >> map2d(lambda window: of_window(window >> join()))

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
    axes, t = windows_of(node), node.type()
    area = axes[0].size * axes[1].size
    padded = bool(node.attribute("count_include_pad"))
    sums = pooled(node, axes, 0.0, lambda xs: xs >> reduce(add, literal(0, t)))
    whole = not any(axis.beyond for axis in axes)
    if whole and (padded or not any(padding_around(*axes))):
        return pooled(
            node, axes, 0.0, lambda xs: (xs >> reduce(add, literal(0, t))) / literal(area, t)
        )

    def divided(image: Any) -> Any:
        rows, columns = (axis.counts(t, padded=padded) for axis in axes)

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
