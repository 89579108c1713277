"""Stencils in one, two and three dimensions.

Dense neighbourhoods are windows; sparse ones are views of the array, shifted by offsets. At the
border, the outermost cells are repeated, as in Rodinia and SHOC; `acoustic` has walls there.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod

from liftpy.ir.expr import Expr
from liftpy.ir.program import Program
from liftpy.ir.types import F32
from liftpy.language.embedded.lang import (
    Section,
    add,
    array_type,
    const,
    join,
    let,
    map,
    map2d,
    maximum,
    minimum,
    mul,
    pad,
    pad_clamp,
    pad_clamp2d,
    reduce,
    select,
    slide,
    slide2d,
    sqrt,
    transpose,
    zip,
)
from liftpy.workloads.family import Family, define

Offset = tuple[int, ...]


def under(rank: int, f: Section | Callable[..., Expr]) -> Section:
    """Applies `f` to every element of an array of `rank` dimensions."""
    return map(f) if rank == 1 else map(under(rank - 1, f))


def zip_cells(rank: int, *arrays: Expr) -> Expr:
    """Combines arrays of equal shape into an array of tuples."""
    pairs = zip(*arrays)
    return pairs if rank == 1 else pairs >> map(lambda rows: zip_cells(rank - 1, *rows))


def moved(x: Expr, offset: Offset, border: Callable[[int, int], Section] = pad_clamp) -> Expr:
    """The array shifted: the cell at `i + offset` for each cell `i`, padded by `border`."""
    for axis, by in enumerate(offset):
        if by:
            shift = border(-by, by)
            x = x >> (under(axis, shift) if axis else shift)
    return x


def cells(f: Callable[..., Expr], x: Expr, offsets: tuple[Offset, ...], *others: Expr) -> Expr:
    """Applies `f` to the cells of `x` at offsets from each cell, and to that cell of `others`."""
    rank = len(offsets[0])
    views = (moved(x, offset) for offset in offsets)
    return zip_cells(rank, *views, *others) >> under(rank, lambda cell: f(*cell))


def star(rank: int, reach: int = 1) -> tuple[Offset, ...]:
    """A cell and its neighbours along each axis, before and after, the nearest first."""
    arms = [
        tuple(by if a == axis else 0 for a in range(rank))
        for distance in range(1, reach + 1)
        for axis in range(rank)
        for by in (-distance, distance)
    ]
    return ((0,) * rank, *arms)


def total(*terms: Expr) -> Expr:
    """The sum of scalars."""
    first, *rest = terms
    for term in rest:
        first = first + term
    return first


def three(name: str, n: int) -> Program:
    """The sum of three neighbours."""
    return define(
        name,
        lambda x: x >> pad_clamp(1, 1) >> slide(3, 1) >> map(reduce(add, 0)),
        x=array_type(F32, n),
    )


def jacobi5(name: str, h: int, w: int) -> Program:
    """The mean of a cell and its four neighbours."""
    return define(
        name,
        lambda x: cells(lambda *c: total(*c) * 0.2, x, star(2)),
        x=array_type(F32, h, w),
    )


def jacobi9(name: str, h: int, w: int) -> Program:
    """The mean of a cell and its eight neighbours."""
    return define(
        name,
        lambda x: (
            x
            >> pad_clamp2d(1, 1, 1, 1)
            >> slide2d(3)
            >> map2d(lambda window: (window >> join() >> reduce(add, 0)) * (1 / 9))
        ),
        x=array_type(F32, h, w),
    )


def gaussian(name: str, h: int, w: int) -> Program:
    """The weighted sum of a 5x5 window."""

    def weigh(window: Expr, weights: Expr) -> Expr:
        return zip(window >> join(), weights >> join()) >> map(mul) >> reduce(add, 0)

    return define(
        name,
        lambda x, k: (
            x >> pad_clamp2d(2, 2, 2, 2) >> slide2d(5) >> map2d(lambda window: weigh(window, k))
        ),
        x=array_type(F32, h, w),
        k=const(F32, 5, 5),
    )


def stencil2d(name: str, h: int, w: int) -> Program:
    """The weighted sum of 3x3 cells: one weight each for centre, sides and corners (SHOC)."""
    sides = star(2)[1:]
    corners = tuple(product((-1, 1), repeat=2))

    def f(c: Expr, *others: Expr) -> Expr:
        return c * 0.25 + total(*others[:4]) * 0.15 + total(*others[4:]) * 0.05

    return define(
        name,
        lambda x: cells(f, x, ((0, 0), *sides, *corners)),
        x=array_type(F32, h, w),
    )


def separable(name: str, h: int, w: int, k: int) -> Program:
    """A separable filter of KxK cells, in two passes, with zeros outside (NVIDIA SDK).

    `across: [K]` are the weights along rows, `down: [K]` those along columns.
    """

    def pass_along(weights: Expr) -> Section:
        def weigh(window: Expr) -> Expr:
            return zip(window, weights) >> map(mul) >> reduce(add, 0)

        return map(pad(k // 2, k - 1 - k // 2) >> slide(k, 1) >> map(weigh))

    return define(
        name,
        lambda x, across, down: (
            x >> pass_along(across) >> transpose() >> pass_along(down) >> transpose()
        ),
        x=array_type(F32, h, w),
        across=const(F32, k),
        down=const(F32, k),
    )


def gradient(name: str, h: int, w: int) -> Program:
    """A cell plus the inverse of the length of its differences (CGO 2018)."""

    def f(c: Expr, n: Expr, s: Expr, w: Expr, e: Expr) -> Expr:
        squares = total(*((c - other) * (c - other) for other in (n, s, w, e)))
        return c + 1 / sqrt(squares + 0.0001)

    return define(name, lambda x: cells(f, x, star(2)), x=array_type(F32, h, w))


def hotspot(name: str, h: int, w: int) -> Program:
    """One step of the temperature of a chip under a power map (Rodinia)."""
    chip, thickness, conductivity, heat, slope = 0.016, 0.0005, 100.0, 0.5 * 1.75e6, 3e6
    high, wide = chip / h, chip / w
    step = 0.001 / (slope / (heat * thickness)) / (heat * thickness * high * wide)
    along = wide / (2 * conductivity * thickness * high)
    across = high / (2 * conductivity * thickness * wide)
    down = thickness / (conductivity * high * wide)

    def f(c: Expr, n: Expr, s: Expr, w: Expr, e: Expr, p: Expr) -> Expr:
        flow = (n + s - 2 * c) * (1 / across) + (w + e - 2 * c) * (1 / along)
        return c + step * (p + flow + (80 - c) * (1 / down))

    return define(
        name,
        lambda x, power: cells(f, x, star(2), power),
        x=array_type(F32, h, w),
        power=array_type(F32, h, w),
    )


def coefficient(c: Expr, *others: Expr) -> Expr:
    """The diffusion coefficient of a cell, from its four neighbours (Rodinia, SRAD)."""
    speckle = 0.5
    differences = [other - c for other in others]
    g2 = total(*(d * d for d in differences)) / (c * c)
    laplace = total(*differences) / c
    part = laplace * 0.25 + 1
    q = (g2 * 0.5 - laplace * laplace * (1 / 16)) / (part * part)
    flow = 1 / ((q - speckle) * (1 / (speckle * (1 + speckle))) + 1)
    return maximum(0 * c, minimum(0 * c + 1, flow))


def srad(name: str, h: int, w: int) -> Program:
    """The diffusion coefficients (Rodinia, first kernel of speckle reduction)."""
    return define(name, lambda x: cells(coefficient, x, star(2)), x=array_type(F32, h, w))


RATE = 0.125  # the rate of diffusion in a step
FLOWS = ((0, 0), (1, 0), (0, 1))  # the cells whose coefficients determine the diffusion of a cell


def srad2(name: str, h: int, w: int) -> Program:
    """The image diffused by its coefficients (Rodinia, second kernel of speckle reduction).

    `c` are the coefficients; `n`, `s`, `w` and `e` are the differences from the neighbours.
    """

    def f(c: Expr, below: Expr, right: Expr, x: Expr, *differences: Expr) -> Expr:
        n, s, w, e = differences
        return x + (c * n + below * s + c * w + right * e) * RATE

    return define(
        name,
        lambda x, c, n, s, w, e: cells(f, c, FLOWS, x, n, s, w, e),
        **dict.fromkeys("xcnswe", array_type(F32, h, w)),
    )


def srad_step(name: str, h: int, w: int) -> Program:
    """A step of speckle reduction: computes the coefficients and diffuses the image (Rodinia)."""

    def f(c: Expr, below: Expr, right: Expr, x: Expr, *others: Expr) -> Expr:
        n, s, w, e = (other - x for other in others)
        return x + (c * n + below * s + c * w + right * e) * RATE

    def diffused(x: Expr) -> Expr:
        views = (moved(x, offset) for offset in star(2))
        return cells(coefficient, x, star(2)) >> let(lambda c: cells(f, c, FLOWS, *views))

    return define(name, diffused, x=array_type(F32, h, w))


def jacobi7(name: str, d: int, h: int, w: int) -> Program:
    """The mean of a cell and its six neighbours."""
    return define(
        name,
        lambda x: cells(lambda *c: total(*c) * (1 / 7), x, star(3)),
        x=array_type(F32, d, h, w),
    )


def heat7(name: str, d: int, h: int, w: int) -> Program:
    """One step of the heat equation in three dimensions: a cell and its six neighbours."""
    return define(
        name,
        lambda x: cells(lambda c, *others: c + (total(*others) - c * 6) * 0.125, x, star(3)),
        x=array_type(F32, d, h, w),
    )


def jacobi13(name: str, d: int, h: int, w: int) -> Program:
    """The mean of a cell and its neighbours at distance 1 and 2 along each axis."""
    return define(
        name,
        lambda x: cells(lambda *c: total(*c) * (1 / 13), x, star(3, reach=2)),
        x=array_type(F32, d, h, w),
    )


def poisson19(name: str, d: int, h: int, w: int) -> Program:
    """The weighted sum of a cell, six neighbours at faces and twelve at edges (CGO 2018)."""
    faces = star(3)[1:]
    edges = tuple(o for o in product((-1, 0, 1), repeat=3) if sum(abs(by) for by in o) == 2)

    def f(c: Expr, *others: Expr) -> Expr:
        near, far = total(*others[:6]), total(*others[6:])
        return c * 2.666 - near * 0.166 - far * 0.0833

    return define(
        name,
        lambda x: cells(f, x, ((0, 0, 0), *faces, *edges)),
        x=array_type(F32, d, h, w),
    )


def hotspot3d(name: str, d: int, h: int, w: int) -> Program:
    """One step of the temperature of a stacked chip under a power map (Rodinia)."""

    def f(c: Expr, *others: Expr) -> Expr:
        above, below, n, s, w, e, p = others
        flow = (n + s) * 0.1 + (w + e) * 0.1 + (above + below) * 0.05
        return c * 0.4 + flow + p * 0.01 + 80 * 0.05

    return define(
        name,
        lambda x, power: cells(f, x, star(3), power),
        x=array_type(F32, d, h, w),
        power=array_type(F32, d, h, w),
    )


def acoustic(name: str, d: int, h: int, w: int) -> Program:
    """One step of sound in a room (CGO 2018).

    `room` is 1 inside and 0 in walls: a cell next to a wall loses some of its energy.
    """
    squared, loss = 1 / 3, 0.005

    def f(now: Expr, neighbours: Expr, open_sides: Expr, before: Expr, inside: Expr) -> Expr:
        kept = select(open_sides < 6, 1 / (1 + loss), 1)
        damped = select(open_sides < 6, 1 - loss, 1)
        value = (2 - open_sides * squared) * now + neighbours * squared - damped * before
        return inside * kept * value

    def step(now: Expr, before: Expr, room: Expr) -> Expr:
        sides = star(3)[1:]
        around, count = (
            zip_cells(3, *(moved(x, s, pad) for s in sides)) >> under(3, lambda c: total(*c))
            for x in (now, room)
        )
        return zip_cells(3, now, around, count, before, room) >> under(3, lambda c: f(*c))

    field = array_type(F32, d, h, w)
    return define(name, step, now=field, before=field, room=field)


PLANE, SPACE = ("H", "W"), ("D", "H", "W")
IMAGE, CUBE = ((1024, 1024),), ((128, 128, 128),)


def family(
    name: str, letters: tuple[str, ...], what: str, make: Callable[..., Program], ops: int
) -> Family:
    """The family of a stencil with `ops` operations per cell."""
    shape = "".join(f"[{{{letter}}}]" for letter in letters)
    listed = {1: ((1 << 20,),), 2: IMAGE, 3: CUBE}[len(letters)]
    return Family(
        f"stencil/{name}", letters, listed, f"{what} {shape}", make, lambda *n: ops * prod(n)
    )


FAMILIES = (
    family("three", ("N",), "sum of 3 neighbours,", three, 3),
    family("jacobi5", PLANE, "mean of 5 cells,", jacobi5, 5),
    family("jacobi9", PLANE, "mean of 3x3 cells,", jacobi9, 10),
    family("gaussian5x5", PLANE, "weighted sum of 5x5 cells,", gaussian, 50),
    family("stencil2d", PLANE, "weighted sum of 3x3 cells,", stencil2d, 11),
    Family(
        "stencil/separable",
        ("H", "W", "K"),
        ((1024, 1024, 17),),
        "weighted sum of {K} cells of a row, then of a column, [{H}][{W}]",
        separable,
        lambda h, w, k: 4 * k * h * w,
    ),
    family("gradient", PLANE, "length of the gradient,", gradient, 15),
    family("hotspot", PLANE, "temperature of a chip,", hotspot, 15),
    family("srad", PLANE, "coefficient of diffusion,", srad, 28),
    family("srad2", PLANE, "diffusion by coefficients,", srad2, 9),
    family("sradstep", PLANE, "speckle reduction,", srad_step, 41),
    family("heat7", SPACE, "heat equation on 7 cells,", heat7, 9),
    family("jacobi7", SPACE, "mean of 7 cells,", jacobi7, 7),
    family("jacobi13", SPACE, "mean of 13 cells,", jacobi13, 13),
    family("poisson19", SPACE, "weighted sum of 19 cells,", poisson19, 21),
    family("hotspot3d", SPACE, "temperature of a stacked chip,", hotspot3d, 13),
    family("acoustic", SPACE, "sound in a room,", acoustic, 19),
)
