"""Pooling layers; channels innermost."""

from __future__ import annotations

from collections.abc import Callable

from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import F32, U8
from liftpy.language.embedded.lang import (
    add,
    array_type,
    generate,
    join,
    map,
    map2d,
    maximum,
    pad2d,
    reduce,
    repeat,
    select,
    slide,
    slide2d,
    sqrt,
    transpose,
    zip,
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


def inside(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """The mean of each channel of the part of each window that is inside the image."""
    half = (k - 1) // 2
    windows = pad2d(half, half, half, half, 0) >> slide2d(k, s)
    ones = Literal(1.0, F32) >> repeat(c) >> repeat(w) >> repeat(h)

    def mean(pairs: Expr) -> Expr:
        count = pairs >> map(lambda p: p[1]) >> reduce(add, 0)
        return (pairs >> map(lambda p: p[0]) >> reduce(add, 0)) / count

    def of_window(window: Expr, there: Expr) -> Expr:
        columns = zip(window >> join() >> transpose(), there >> join() >> transpose())
        return columns >> map(lambda xs, ns: mean(zip(xs, ns)))

    return define(
        name,
        lambda x: (
            zip(x >> windows, ones >> windows)
            >> map(lambda row, there: zip(row, there) >> map(of_window))
        ),
        x=array_type(F32, h, w, c),
    )


def norm(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """The square root of the sum of squares of each channel of each window."""

    def of_channel(xs: Expr) -> Expr:
        return sqrt(xs >> map(lambda x: x * x) >> reduce(add, 0))

    return pool(name, h, w, c, k, s, of_channel, 0.0)


def dilated(name: str, h: int, w: int, c: int, k: int, s: int, d: int) -> Program:
    """The largest of every `d`th element of windows of k x k such elements."""
    side = d * (k - 1) + 1
    return define(
        name,
        lambda x: (
            x
            >> slide2d(side, s)
            >> map2d(
                lambda window: (
                    window
                    >> slide(1, d)
                    >> map(lambda row: row >> join() >> slide(1, d) >> join())
                    >> join()
                    >> transpose()
                    >> map(lambda xs: xs >> reduce(maximum, LEAST))
                )
            )
        ),
        x=array_type(F32, h, w, c),
    )


def argmax(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """The largest element of each channel of each window, and its first place in the window."""
    places = generate(k * k, lambda i: i, U8)

    def larger(best: Expr, x: Expr) -> Expr:
        return Tuple((select(best[0] < x[0], x[0], best[0]), select(best[0] < x[0], x[1], best[1])))

    def of_channel(xs: Expr) -> Expr:
        start = Tuple((Literal(LEAST, F32), Literal(0, U8)))
        return zip(xs, places) >> reduce(larger, start)

    return pool(name, h, w, c, k, s, of_channel, LEAST)


def shared(name: str, h: int, w: int, c: int, k: int, s: int) -> Program:
    """For each channel of each window, 1/m at the m places of its largest element, 0 elsewhere."""

    def of_channel(xs: Expr) -> Expr:
        largest = xs >> reduce(maximum, LEAST)
        mask = xs >> map(lambda x: select(x < largest, 0.0, 1.0))
        ties = mask >> reduce(add, 0)
        return mask >> map(lambda here: here / ties)

    return pool(name, h, w, c, k, s, of_channel, LEAST)


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


def dilated_flops(h: int, w: int, c: int, k: int, s: int, d: int) -> int:
    """The number of operations of windows without padding."""
    rows, columns = ((side - d * (k - 1) - 1) // s + 1 for side in (h, w))
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
        "pool/inside",
        WINDOWS,
        ((35, 35, 192, 3, 1),),
        "mean of windows {K}x{K} without the padding of [{H}][{W}][{C}], stride {S}",
        inside,
        flops,
    ),
    Family(
        "pool/l2",
        WINDOWS,
        ((56, 56, 64, 3, 2),),
        "root of sums of squares of windows {K}x{K} of [{H}][{W}][{C}], stride {S}",
        norm,
        flops,
    ),
    Family(
        "pool/dilated",
        (*WINDOWS, "D"),
        ((56, 56, 64, 3, 1, 2),),
        "maximum of windows {K}x{K}, dilation {D}, of [{H}][{W}][{C}], stride {S}",
        dilated,
        dilated_flops,
    ),
    Family(
        "pool/argmax",
        WINDOWS,
        ((112, 112, 64, 3, 2),),
        "maximum of windows {K}x{K} of [{H}][{W}][{C}] and its place, stride {S}",
        argmax,
        flops,
    ),
    Family(
        "pool/shared",
        WINDOWS,
        ((112, 112, 64, 3, 2),),
        "mask of the maxima of windows {K}x{K} of [{H}][{W}][{C}], stride {S}; ties share 1",
        shared,
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
