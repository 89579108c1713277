"""Windows of two dimensions: those of convolutions and of pooling."""

from __future__ import annotations

from liftpy.ir.expr import Expr
from liftpy.language.embedded.lang import (
    Section,
    join,
    map,
    map2d,
    pad2d,
    slide,
    slide2d_rect,
)

ONCE = (1, 1)


def extent(size: tuple[int, int], dilation: tuple[int, int]) -> tuple[int, int]:
    """The number of rows and columns that a window spans."""
    return dilation[0] * (size[0] - 1) + 1, dilation[1] * (size[1] - 1) + 1


def every(step: int) -> Section:
    """Every `step`-th element, beginning with the first: windows of one element."""
    return slide(1, step) >> join()


def windows(
    x: Expr,
    size: tuple[int, int],
    stride: tuple[int, int],
    dilation: tuple[int, int],
    padding: tuple[int, int, int, int],
    edge: float = 0.0,
) -> Expr:
    """The dilated windows of a matrix padded with `edge`: `[H][W]a -> [outH][outW][Kh][Kw]a`."""
    found = x >> pad2d(*padding, edge) >> slide2d_rect(extent(size, dilation), stride)
    if dilation == ONCE:
        return found
    rows, columns = dilation
    return found >> map2d(every(rows) >> map(every(columns)))
