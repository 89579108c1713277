"""Pooling layers; channels innermost."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    add,
    array_type,
    join,
    map,
    map2d,
    maximum,
    pad2d,
    reduce,
    slide2d,
    transpose,
)
from liftpy.workloads.family import Family, define

LEAST = float("-inf")


def pool(
    name: str, h: int, w: int, c: int, k: int, s: int, f: Callable[[Expr], Expr], edge: float
) -> Program:
    """Applies `f` to each channel of each window; pads the image with half a window of `edge`."""
    half = (k - 1) // 2
    return define(
        name,
        lambda x: (
            x
            >> pad2d(half, half, half, half, edge)
            >> slide2d(k, s)
            >> map2d(lambda window: window >> join() >> transpose() >> map(f))
        ),
        x=array_type(F32, h, w, c),
    )


def largest(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """The largest element of each channel of each window."""
    return pool(name, h, w, c, k, s, lambda xs: xs >> reduce(maximum, LEAST), LEAST)


def average(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """The mean of each channel of each window, with zeros around the image."""
    return pool(name, h, w, c, k, s, lambda xs: (xs >> reduce(add, 0)) * (1 / k**2), 0.0)


def everywhere(name: str, h: int, w: int, c: int) -> Program:
    """The mean of each channel over the whole image."""
    return define(
        name,
        lambda x: (
            x >> join() >> transpose() >> map(lambda xs: (xs >> reduce(add, 0)) * (1 / (h * w)))
        ),
        x=array_type(F32, h, w, c),
    )


def flops(h: int, w: int, c: int, k: int, s: int) -> int:
    """The number of operations: one for each element of each window."""
    rows, columns = ((side + 2 * ((k - 1) // 2) - k) // s + 1 for side in (h, w))
    return rows * columns * c * k * k


WINDOWS = ("H", "W", "C", "K", "S")
FAMILIES = (
    Family(
        "pool/max",
        WINDOWS,
        ((112, 112, 64, 3, 2),),
        "maximum of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        largest,
        flops,
    ),
    Family(
        "pool/average",
        WINDOWS,
        ((56, 56, 64, 2, 2),),
        "mean of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        average,
        flops,
    ),
    Family(
        "pool/global",
        ("H", "W", "C"),
        ((7, 7, 1024),),
        "mean of each channel of [{H}][{W}][{C}]",
        everywhere,
        lambda h, w, c: h * w * c,
    ),
)
