"""Beginnings of random programs: the shapes that families of derivations look for.

Grown step by step alone, hardly a program would have one.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeAlias

from liftpy.ir.call import FunCall
from liftpy.ir.expr import Expr, Param
from liftpy.ir.function import UserFun
from liftpy.ir.types import F32, array
from liftpy.language.embedded.lang import (
    PRELUDE,
    fun,
    map2d,
    pad2d,
    reduce,
    slide,
    slide2d,
    transpose,
)
from liftpy.language.embedded.lang import join as joined
from liftpy.language.embedded.lang import map as mapped
from liftpy.language.embedded.lang import zip as zipped

#: The inputs, and a value made of them.
Shape: TypeAlias = tuple[list[Param], Expr]

SUMS = (PRELUDE["add"], PRELUDE["add"], PRELUDE["maximum"], PRELUDE["minimum"])
PRODUCTS = (
    PRELUDE["mul"],
    fun("differ", {"x": F32, "y": F32}, lambda x, y: x - y * 2),
    fun("square", {"x": F32, "y": F32}, lambda x, y: (x - y) * (x - y)),
)


def begun(some: Random) -> Shape:
    """A shape of random lengths and functions."""
    shapes: tuple[Callable[[Random], Shape], ...] = (product, stencil, reduction, rows)
    return some.choice((*shapes, convolution, convolution))(some)


def start(some: Random, step: UserFun) -> float:
    """What a fold starts from, as numbers that it does not change."""
    return {"maximum": -1000.0, "minimum": 1000.0}.get(step.name, some.choice((0.0, 3.0)))


def contracted(some: Random) -> Callable[[Expr, Expr], Expr]:
    """Two arrays to a scalar."""
    f, step = some.choice(PRODUCTS), some.choice(SUMS)
    init = start(some, step)
    return lambda xs, ys: (
        zipped(xs, ys) >> mapped(lambda x, y: FunCall(f, (x, y))) >> reduce(step, init)
    )


def product(some: Random) -> Shape:
    """Rows by columns."""
    n, m, k = (some.choice((1, 2, 3, 4, 5, 6, 7, 8)) for _ in range(3))
    k = min(k, 5)
    f, across = contracted(some), some.random() < 0.5
    xss = Param("x0", array(F32, n, k))
    yss = Param("x1", array(F32, k, m) if across else array(F32, m, k))
    columns = yss >> transpose() if across else yss
    return [xss, yss], xss >> mapped(lambda row: columns >> mapped(lambda column: f(row, column)))


def stencil(some: Random) -> Shape:
    """Windows of an array or an image, perhaps with a border."""
    size, step = some.choice((2, 3, 3)), some.choice((1, 1, 2))
    fold = some.choice(SUMS)
    init = start(some, fold)
    if some.random() < 0.4:
        xs = Param("x0", array(F32, some.choice((5, 7, 11, 12, 16))))
        windows = xs >> slide(size, step)
        return [xs], windows >> mapped(lambda window: window >> reduce(fold, init))
    xss = Param("x0", array(F32, some.choice((4, 5, 6)), some.choice((4, 5, 7))))
    top, bottom, left, right = (some.choice((0, 1, 1)) for _ in range(4))
    image = xss
    if top or bottom or left or right:
        image = xss >> pad2d(top, bottom, left, right, some.choice((0.0, 2.0)))
    return [xss], image >> slide2d(size, step) >> map2d(
        lambda window: window >> joined() >> reduce(fold, init)
    )


def convolution(some: Random) -> Shape:
    """A layer: channels innermost, weights that stay."""
    height, width, channels = some.choice((3, 4, 5)), some.choice((3, 4, 5)), some.choice((1, 2, 3))
    size, kernels = some.choice((1, 2, 3)), some.choice((2, 3, 4))
    image = Param("x0", array(F32, height, width, channels))
    weights = Param("x1", array(F32, kernels, size, size, channels))
    top, bottom, left, right = (some.choice((0, 1, 1)) for _ in range(4))
    f = contracted(some)
    windows = image >> pad2d(top, bottom, left, right, 0.0) >> slide2d(size, some.choice((1, 1, 2)))

    def flat(e: Expr) -> Expr:
        return e >> joined() >> joined()

    return [image, weights], windows >> map2d(
        lambda window: weights >> mapped(lambda kernel: f(flat(window), flat(kernel)))
    )


def reduction(some: Random) -> Shape:
    """A scalar of one or two arrays."""
    n = some.choice((6, 8, 11, 12, 16))
    xs, ys = Param("x0", array(F32, n)), Param("x1", array(F32, n))
    return [xs, ys], contracted(some)(xs, ys)


def rows(some: Random) -> Shape:
    """A scalar of each row."""
    n, m = some.choice((3, 4, 8, 11)), some.choice((2, 3, 5, 8))
    xss, ys = Param("x0", array(F32, n, m)), Param("x1", array(F32, m))
    f = contracted(some)
    return [xss, ys], xss >> mapped(lambda row: f(row, ys))
