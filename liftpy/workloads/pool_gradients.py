"""Masks of maxima, which training stores, and the gradients of max-pooling from what is stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.program import Program
from liftpy.ir.types import F32, U8
from liftpy.language.embedded.lang import (
    Section,
    add,
    equal,
    iota,
    join,
    map,
    map2d,
    minimum,
    overlaps,
    pad,
    pad2d,
    permute,
    reduce,
    repeat,
    select,
    split,
    transpose,
    zip,
)
from liftpy.workloads.family import Family, define
from liftpy.workloads.pooling import (
    LEAST,
    Pooling,
    family,
    for_each_place,
    largest,
    pooled,
    square,
)

NONE, ONE = Literal(0.0, F32), Literal(1.0, F32)

Ties: TypeAlias = Callable[[Expr, Expr, int], Expr]
"""The mask of a window, from its elements, the largest of them, and their number."""


def every_one(xs: Expr, best: Expr, _count: int) -> Expr:
    """1 for each element that equals the largest."""
    return xs >> map(lambda x: select(equal(x, best), ONE, NONE))


def first_one(xs: Expr, best: Expr, count: int) -> Expr:
    """1 for the first element that equals the largest, 0 elsewhere."""
    places = iota(count)
    smallest = reduce(minimum, count)
    first = zip(xs, places) >> map(lambda x, i: select(equal(x, best), i, count)) >> smallest
    return places >> map(lambda i: select(equal(i, first), ONE, NONE))


def shares(xs: Expr, best: Expr, count: int) -> Expr:
    """1/m for each of m elements that equal the largest."""
    mask = every_one(xs, best, count)
    ties = mask >> reduce(add, 0)
    return mask >> map(lambda here: here / ties)


def masked(layer: Pooling, x: Expr, ties: Ties) -> Expr:
    """The largest element of each window, and the mask: `[Kh][Kw][outH][outW]` for each channel."""

    def plane(image: Expr, best: Expr) -> Expr:
        found = layer.windows(layer.all_numbers(image, 2 + layer.deep), LEAST)
        masks = zip(found, best) >> map(lambda rows, tops: zip(rows, tops) >> map(of_window))
        # [outH][outW][K], with channels before K
        by_place = permute(3, 0, 1, 2) if layer.deep else permute(2, 0, 1)
        return masks >> by_place >> split(layer.window[1])

    def of_window(window: Expr, best: Expr) -> Expr:
        def of_channel(xs: Expr, top: Expr) -> Expr:
            return layer.all_in_memory(ties(xs, layer.number(top), layer.places), 1)

        return layer.per_channel(of_channel, window, best)

    tops = largest(layer, x)
    return Tuple((tops, layer.on_planes(plane, x, tops)))


def spread(step: int) -> Section:
    """Puts `step - 1` zeros between elements: the adjoint of reading every `step`-th."""
    apart = map(lambda x: x >> repeat(1) >> pad(0, step - 1, 0)) >> join()
    return apart >> pad(0, 1 - step, 0)


def added(layer: Pooling, planes: Expr) -> Expr:
    """Adds `[Kh][Kw][outH][outW]a` where the windows have read an image: `[H][W]a` (col2im).

    Each element is one sum, over the windows that contain it.
    """
    top, bottom, left, right = layer.around
    height, width = layer.height + top + bottom, layer.width + left + right
    rows, columns = layer.dilation
    zs = planes >> permute(2, 0, 3, 1)
    if columns > 1:
        zs = zs >> map(map2d(spread(columns)))
    lines = zs >> map2d(overlaps(width, layer.stride[1], 0))
    if rows > 1:
        lines = lines >> map(spread(rows))
    holders = lines >> overlaps(height, layer.stride[0], 0) >> map(transpose())
    image = holders >> map2d(lambda of: layer.per_channel(lambda xs: xs >> reduce(add, 0), of))
    return image >> pad2d(-top, -bottom, -left, -right, 0)


def from_mask(layer: Pooling, name: str) -> Program:
    """The gradient with respect to the image, from the mask and the cotangents of the maxima."""

    def plane(mask: Expr, d: Expr) -> Expr:
        def product(here: Expr, cotangent: Expr) -> Expr:
            return layer.each(lambda m, c: layer.number(m) * layer.number(c), here, cotangent)

        def of_place(masks: Expr) -> Expr:
            return zip(masks, d) >> map(lambda row, ds: zip(row, ds) >> map(product))

        return layer.all_in_memory(added(layer, mask >> map2d(of_place)), 2 + layer.deep)

    return define(
        name,
        lambda mask, d: layer.on_planes(plane, mask, d),
        mask=layer.array(*layer.window, *layer.out),
        d=layer.array(*layer.out),
    )


def from_argmax(layer: Pooling, name: str) -> Program:
    """The gradient with respect to the image, from the cotangents of the maxima and their places.

    TypeRefused if a window has more places than a u8 has values.
    """

    def plane(places: Expr, d: Expr) -> Expr:
        def of_place(k: Expr) -> Expr:
            def here(place: Expr, cotangent: Expr) -> Expr:
                chosen = lambda p, c: select(equal(p, k), layer.number(c), NONE)  # noqa: E731
                return layer.each(chosen, place, cotangent)

            return zip(places, d) >> map(lambda row, ds: zip(row, ds) >> map(here))

        by_place = for_each_place(layer, of_place) >> split(layer.window[1])
        return layer.all_in_memory(added(layer, by_place), 2 + layer.deep)

    return define(
        name,
        lambda places, d: layer.on_planes(plane, places, d),
        places=layer.array(*layer.out, t=U8),
        d=layer.array(*layer.out),
    )


def with_mask(name: str, mask: str, ties: Ties) -> Family:
    """A family of layers that return maxima and a mask of them."""
    return family(
        name,
        square,
        "HWCKS",
        (112, 112, 64, 3, 2),
        f"maximum and mask of windows {{K}}x{{K}} of [{{H}}][{{W}}][{{C}}], stride {{S}}: {mask}",
        lambda layer, called: pooled(layer, called, lambda of, x: masked(of, x, ties)),
    )


FAMILIES = (
    with_mask("pool/all", "1 at each maximum", every_one),
    with_mask("pool/first", "1 at the first maximum", first_one),
    with_mask("pool/shared", "1/m at each of m maxima", shares),
    family(
        "pool/maskback",
        square,
        "HWCKS",
        (112, 112, 64, 3, 2),
        "gradient of the maximum of windows {K}x{K} of [{H}][{W}][{C}], stride {S}, from a mask",
        from_mask,
    ),
    family(
        "pool/argmaxback",
        square,
        "HWCKS",
        (112, 112, 64, 3, 2),
        "gradient of the maximum of windows {K}x{K} of [{H}][{W}][{C}], stride {S}, from places",
        from_argmax,
    ),
)
