"""The dimensions of images with the windows along them: those of convolutions and of pooling."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass

from liftpy.ir.expr import Expr, Literal
from liftpy.ir.types import ScalarType
from liftpy.language.embedded.lang import (
    Section,
    add,
    full,
    join,
    map,
    map2d,
    pad,
    reduce,
    slide,
    slide2d_rect,
)

ONCE = (1, 1)


@dataclass(frozen=True, slots=True)
class Axis:
    """A dimension of an image, and the windows along it.

    `before` and `after` are the padding. Elements of a window are `dilation` apart. With `ceil`, a
    last window that begins before the padding at the end may end outside the padded image, as in
    PyTorch and ONNX.

    >>> from liftpy.workloads.windows import Axis
    >>> Axis(8, 3, 2).count, Axis(8, 3, 2, ceil=True).count
    (3, 4)
    """

    length: int
    size: int
    stride: int = 1
    before: int = 0
    after: int = 0
    dilation: int = 1
    ceil: bool = False

    @property
    def span(self) -> int:
        """The number of elements from the first to the last one of a window."""
        return self.dilation * (self.size - 1) + 1

    @property
    def room(self) -> int:
        """Where the last window of the padded image can begin."""
        return self.before + self.length + self.after - self.span

    @property
    def beyond(self) -> int:
        """How many elements the last window reads after the padded image."""
        if not self.ceil:
            return 0
        last = -(-self.room // self.stride) * self.stride
        begins_inside = last < self.before + self.length
        return last - self.room if begins_inside else 0

    @property
    def count(self) -> int:
        """The number of windows."""
        return (self.room + self.beyond) // self.stride + 1

    def counts(self, t: ScalarType, *, padded: bool) -> Expr:
        """How many elements of the image, or of the padded image, each window has: `[count]t`."""
        length, before, after = self.length, self.before, self.after
        if padded:
            length, before, after = before + length + after, 0, 0
        ones = full(length, Literal(1.0, t)) >> pad(before, after + self.beyond, 0.0)
        total = reduce(add, 0)
        if self.dilation != 1:
            total = every(self.dilation) >> total
        return ones >> slide(self.span, self.stride) >> map(total)


def axes_of(
    image: tuple[int, int],
    window: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int, int, int],
    dilation: tuple[int, int],
    *,
    ceil: bool = False,
) -> tuple[Axis, Axis]:
    """The rows and columns of an image. The padding is top, bottom, left, right."""
    top, bottom, left, right = padding
    return (
        Axis(image[0], window[0], stride[0], top, bottom, dilation[0], ceil),
        Axis(image[1], window[1], stride[1], left, right, dilation[1], ceil),
    )


def padding_around(rows: Axis, columns: Axis) -> tuple[int, int, int, int]:
    """Top, bottom, left, right: the padding, and what the last windows read after it."""
    return rows.before, rows.after + rows.beyond, columns.before, columns.after + columns.beyond


def every(step: int) -> Section:
    """Every `step`-th element, beginning with the first: windows of one element."""
    return slide(1, step) >> join()


def windows(x: Expr, rows: Axis, columns: Axis) -> Expr:
    """The dilated windows of a padded matrix: `[H][W]a -> [outH][outW][Kh][Kw]a`."""
    found = x >> slide2d_rect((rows.span, columns.span), (rows.stride, columns.stride))
    thinned: list[Section] = []
    if rows.dilation != 1:
        thinned.append(every(rows.dilation))
    if columns.dilation != 1:
        thinned.append(map(every(columns.dilation)))
    return found >> map2d(functools.reduce(operator.rshift, thinned)) if thinned else found
