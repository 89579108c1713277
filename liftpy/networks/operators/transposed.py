"""Transposed convolutions, computed as convolutions whose results are interleaved.

Along an axis with stride s, result o reads the elements h of the input and k of the kernel for
which o + before = h s + k. So k and o + before have the same remainder r modulo s, and the results
with equal r are a convolution of stride 1 with every s-th element of the kernel. One convolution
with s times as many kernels, each with 1/s of the elements, computes all s remainders. Its results
are ordered by remainder first; a reordering interleaves them.

W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from liftpy.ir.expr import Expr
from liftpy.language.embedded.lang import join, map, pad, split  # noqa: A004
from liftpy.networks.operators.convolutions import (
    on_each_image,
    on_image,
    padding_before,
    window_attributes,
)
from liftpy.networks.operators.layouts import (
    along,
    ordered,
    part,
    repeat,
    reshaped,
    reversed_array,
)
from liftpy.networks.operators.node import Body, Node, decline, operator
from liftpy.workloads.convolution import Convolution


@dataclass(frozen=True)
class Spread:
    """An axis of a transposed convolution: `length` elements become `count`.

    The kernel has `size` elements that are `dilation` apart. The product of element h of the input
    and element k of the kernel is added to result h stride + k dilation - before.

    >>> axis = Spread(5, 9, size=3, stride=2, before=1)
    >>> axis.taps, axis.first, axis.windows, axis.padding
    (2, 0, 5, (1, 0))
    """

    length: int
    count: int
    size: int
    stride: int = 1
    before: int = 0
    dilation: int = 1

    @property
    def span(self) -> int:
        """The number of results from the first to the last that an element of the input reaches."""
        return self.dilation * (self.size - 1) + 1

    @property
    def taps(self) -> int:
        """The number of elements of a kernel that a result reads; those beyond the span are 0."""
        return -(-self.span // self.stride)

    @property
    def first(self) -> int:
        """The last element of the input that the first result reads: `before` by the stride."""
        return self.before // self.stride

    @property
    def windows(self) -> int:
        """The number of windows of the input that the results read."""
        return (self.before + self.count - 1) // self.stride - self.first + 1

    @property
    def padding(self) -> tuple[int, int]:
        """The elements that windows read before and after the input; negative: that none reads."""
        before = self.taps - 1 - self.first
        return before, self.first + self.windows - self.length

    @property
    def skipped(self) -> int:
        """The number of results of the first window that are dropped."""
        return self.before - self.first * self.stride

    def cut(self, xs: Any, axis: int) -> Any:
        """An array without the elements that no window reads, along an axis."""
        before, after = (max(0, -n) for n in self.padding)
        return part_along(axis, xs, before, self.length - before - after, self.length)

    def taken(self, xs: Any, axis: int) -> Any:
        """The `count` results of the layer among those of all windows, along an axis."""
        return part_along(axis, xs, self.skipped, self.count, self.windows * self.stride)

    def by_remainder(self, ks: Any) -> Any:
        """The elements of a kernel as [taps][stride]."""
        if self.dilation > 1:  # zeros between the elements
            ks = ks >> split(1) >> map(pad(0, self.dilation - 1, 0.0)) >> join()
            ks = part(0, self.span, self.size * self.dilation)(ks)
        beyond = self.taps * self.stride - self.span
        return (pad(0, beyond, 0.0)(ks) if beyond else ks) >> split(self.stride)


def part_along(axis: int, xs: Any, start: int, count: int, length: int) -> Any:
    """`count` elements from `start` along an axis of this length."""
    return xs if count == length else along(axis, part(start, count, length))(xs)


def spreads_of(node: Node) -> tuple[Spread, Spread]:
    """The axes of a node's images, rows first; images of one dimension have one row."""
    spatial, kernel = node.shape()[2:], node.shape(1)[2:]
    stride, dilation, given, auto = window_attributes(node)
    rank, counts = len(spatial), node.result_shape[2:]
    extra = [int(n) for n in node.attribute("output_padding") or [0] * rank]
    if auto.startswith("SAME") and any(extra):
        decline("ONNX's text and its shape inference differ about output padding", "auto_pad")
    found: list[Spread] = []
    for k in range(rank):
        axis = Spread(spatial[k], counts[k], kernel[k], stride[k], given[k], dilation[k])
        if auto == "VALID" and not node.attribute("output_shape"):
            axis = replace(axis, before=0)
        elif auto != "NOTSET" or node.attribute("output_shape"):
            # ONNX divides the surplus elements between the two ends
            total = max(0, stride[k] * (spatial[k] - 1) + extra[k] + axis.span - counts[k])
            axis = replace(axis, before=padding_before(total, auto))
        found.append(axis)
    return (found[0], found[1]) if rank == 2 else (Spread(1, 1, 1), found[0])


@operator("ConvTranspose", note="1 and 2 spatial dimensions", orders="last")
def conv_transposed(node: Node) -> Body:
    """The transpose of the convolution with the second input, applied to the first."""
    rows, columns = spreads_of(node)
    channels, groups = node.shape()[1], int(node.attribute("group") or 1)
    inside = node.shape(1)[1]  # results of each group
    strides = rows.stride, columns.stride
    taps = rows.taps, columns.taps
    count, own = groups * prod(strides) * inside, channels // groups
    (top, bottom), (left, right) = rows.padding, columns.padding
    layer = Convolution(
        channels,
        rows.length + min(0, top) + min(0, bottom),
        columns.length + min(0, left) + min(0, right),
        count,
        taps,
        padding=(max(0, top), max(0, bottom), max(0, left), max(0, right)),
        groups=groups,
        layout="nhwc" if node.channels_last else "nchw",
    )
    convolved = on_image(layer, (count, own, *taps))

    def kernels(w: Expr) -> Any:
        """[channels][results][rows][columns] as [group, remainders, results][channels][taps]."""
        planes = (channels, inside, rows.size, columns.size)
        w = reshaped(w, node.shape(1), planes)
        w = along(2, rows.by_remainder)(w)
        w = along(4, columns.by_remainder)(w)
        w = along(2, reversed_array(taps[0]))(w)
        w = along(4, reversed_array(taps[1]))(w)
        shape = (channels, inside, taps[0], strides[0], taps[1], strides[1])
        w = reshaped(w, shape, (groups, own, *shape[1:]))
        w = ordered(w, [0, 4, 6, 2, 1, 3, 5])
        return reshaped(w, (groups, *strides, inside, own, *taps), (count, own, *taps))

    def biases(b: Expr | None) -> Any:
        """A number for each kernel."""
        if b is None:
            return None
        by_group = reshaped(b, (groups * inside,), (groups, inside))
        return by_group >> map(repeat(prod(strides))) >> join() >> join()

    def image(x: Any, w: Any, b: Any) -> Any:
        inner = 0 if node.channels_last else 1
        x = columns.cut(rows.cut(x, inner), inner + 1)
        found, (high, wide) = convolved(x, w, b, None), (rows.windows, columns.windows)
        parts = groups, *strides, inside
        pixels, split_pixels = (
            (high * strides[0], wide * strides[1]),
            (high, strides[0], wide, strides[1]),
        )
        if node.channels_last:
            found = reshaped(found, (high, wide, count), (high, wide, *parts))
            found = ordered(found, [0, 3, 1, 4, 2, 5])
            shape, result = (*split_pixels, groups, inside), (*pixels, groups * inside)
        else:
            found = reshaped(found, (count, high, wide), (*parts, high, wide))
            found = ordered(found, [0, 3, 4, 1, 5, 2])
            shape, result = (groups, inside, *split_pixels), (groups * inside, *pixels)
        found = reshaped(found, shape, result)
        return columns.taken(rows.taken(found, inner), inner + 1)

    def body(x: Expr, w: Expr, b: Expr | None = None) -> Expr:
        return on_each_image(x, *node.images(), lambda im: image(im, kernels(w), biases(b)))

    return body
