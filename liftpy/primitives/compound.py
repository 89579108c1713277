"""Words that are made of others: several dimensions, permutations of them, constant arrays.

The text form has the same (`liftpy.primitives.compositions`); a test holds the two together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.nat import NatLike, nat
from liftpy.ir.types import I32
from liftpy.primitives.concat import Drop, Take
from liftpy.primitives.documented import word
from liftpy.primitives.functions import Callee, expression, function
from liftpy.primitives.generate import Generate, Repeat
from liftpy.primitives.stages import (
    Index,
    layout,
    map,  # noqa: A004  the language's own word
    pad,
    reorder,
    slide,
    transpose,
)
from liftpy.primitives.transpose import swaps
from liftpy.primitives.words import WORDS, Section, applied


def under(depth: int, f: Section) -> Section:
    """`f` under `depth` maps."""
    return f if depth == 0 else map(under(depth - 1, f))


@word()
def map2d(f: Callee) -> Section:
    """`f` on every element of an array of arrays: `[h][w]a -> [h][w]b`.

    >>> lp.evaluate(lp.iota(4) >> lp.split(2) >> lp.map2d(lambda x: x + 1)).tolist()
    [[1, 2], [3, 4]]
    """
    return map(map(f))


@word()
def map3d(f: Callee) -> Section:
    """`f` on every element of an array of arrays of arrays: `[d][h][w]a -> [d][h][w]b`.

    >>> lp.evaluate(lp.iota(4) >> lp.split(2) >> lp.split(1) >> lp.map3d(lambda x: -x)).tolist()
    [[[0, -1]], [[-2, -3]]]
    """
    return map(map2d(f))


def pad_nd(pad_one: Callable[[NatLike, NatLike], Section], *amounts: NatLike) -> Section:
    """Padding of each dimension, outermost first: two amounts for each, `pad_one` for each."""
    outer = pad_one(amounts[0], amounts[1])
    return outer if len(amounts) == 2 else outer >> map(pad_nd(pad_one, *amounts[2:]))


@word()
def pad2d(
    top: NatLike, bottom: NatLike, left: NatLike, right: NatLike, value: float = 0.0
) -> Section:
    """Constant rows above and below, constant columns left and right.

    `[h][w]a -> [top + h + bottom][left + w + right]a`; negative amounts crop.

    >>> lp.evaluate(lp.iota(2) >> lp.split(2) >> lp.pad2d(1, 0, 0, 1, 7)).tolist()
    [[7, 7, 7], [0, 1, 7]]
    """
    return pad_nd(lambda a, b: pad(a, b, value), top, bottom, left, right)


@word()
def pad3d(
    front: NatLike,
    back: NatLike,
    top: NatLike,
    bottom: NatLike,
    left: NatLike,
    right: NatLike,
    value: float = 0.0,
) -> Section:
    """Constant elements on all six sides, in three dimensions; negative amounts crop.

    >>> cube = lp.iota(2) >> lp.split(2) >> lp.split(1)
    >>> lp.evaluate(cube >> lp.pad3d(0, 0, 0, 0, 0, 1, 7)).tolist()
    [[[0, 1, 7]]]
    """
    return pad_nd(lambda a, b: pad(a, b, value), front, back, top, bottom, left, right)


def boundary(one: Callable[..., Section], name: str, rank: int) -> Callable[..., Section]:
    """Padding in several dimensions with elements of the array."""

    def build(*amounts: NatLike) -> Section:
        if len(amounts) != 2 * rank:
            message = f"{name} takes {2 * rank} amounts, two for each dimension: got {len(amounts)}"
            raise TypeRefused(message)
        return pad_nd(one, *amounts)

    build.__name__ = build.__qualname__ = name
    array = "lp.iota(2) >> lp.split(2)" + " >> lp.split(1)" * (rank - 2)
    amounts = ", ".join(["0"] * (2 * rank - 1) + ["1"])
    said = {"pad_clamp": "[0, 1, 1]", "pad_mirror": "[0, 1, 1]", "pad_wrap": "[0, 1, 0]"}
    result = "[" * (rank - 1) + said[one.__name__] + "]" * (rank - 1)
    build.__doc__ = (
        f"`{one.__name__}` in {rank} dimensions, two amounts for each, outermost first.\n\n"
        "Each dimension grows by its two amounts; negative ones crop.\n\n"
        f">>> lp.evaluate({array} >> lp.{name}({amounts})).tolist()\n{result}"
    )
    return word()(build)


#: The words that their classes say all of, and the boundaries in two and three dimensions.
DERIVED: dict[str, Callable[..., Any]] = dict(WORDS) | {
    f"{name}{rank}d": boundary(WORDS[name], f"{name}{rank}d", rank)
    for name in ("pad_clamp", "pad_mirror", "pad_wrap")
    for rank in (2, 3)
}


@word()
def permute(*axes: int) -> Section:
    """Dimensions in another order, as NumPy's `transpose`: dimension k was dimension `axes[k]`.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.permute(1, 0)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    steps = [under(depth, transpose()) for depth in swaps(axes)]
    return functools.reduce(lambda done, step: done >> step, steps, Section(lambda xs: xs))


@word()
def slice(start: NatLike, length: NatLike) -> Section:  # noqa: A001  the language's own word
    """`length` elements from `start` on: `[n]a -> [length]a`. `xs[2:5]` works as in NumPy.

    >>> lp.evaluate(lp.iota(6) >> lp.slice(2, 3)).tolist()
    [2, 3, 4]
    """
    return layout(Drop(nat(start))) >> layout(Take(nat(length)))


@word()
def scatter(index: Index, inverse: Index) -> Section:
    """Element i goes to `index(i)`: the inverse of `reorder`. `[n]a -> [n]a`.

    >>> lp.evaluate(lp.iota(4) >> lp.scatter(lambda i: 3 - i, lambda i: 3 - i)).tolist()
    [3, 2, 1, 0]
    """
    return reorder(inverse, index)


@word()
def full(length: NatLike, x: Any) -> Expr:
    """One value at every index: `a -> [length]a`.

    A number takes its type from the context, or is an f32.

    >>> lp.evaluate(lp.full(3, 2.5)).tolist()
    [2.5, 2.5, 2.5]
    """
    return applied(Repeat(nat(length)), expression(x))


@word()
def iota(length: NatLike) -> Expr:
    """The indices 0, 1, ... as i32: `[length]i32`.

    >>> lp.evaluate(lp.iota(4)).tolist()
    [0, 1, 2, 3]
    """
    return applied(Generate(nat(length), function(lambda i: i, (I32,))))


@word()
def slide2d(size: NatLike, step: NatLike = 1) -> Section:
    """Square windows: `[h][w]a -> [oh][ow][size][size]a`. See `slide2d_rect`.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.slide2d(2)).tolist()
    [[[[0, 1], [3, 4]], [[1, 2], [4, 5]]]]
    """
    return slide2d_rect((size, size), (step, step))


@word()
def slide2d_rect(size: tuple[NatLike, NatLike], step: tuple[NatLike, NatLike]) -> Section:
    """Rectangular windows: `[h][w]a -> [oh][ow][size_h][size_w]a`.

    Rows slide first, then the columns of each group of rows.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.slide2d_rect((2, 1), (1, 1))).tolist()
    [[[[0], [3]], [[1], [4]], [[2], [5]]]]
    """
    return slide_nd(size, step)


@word()
def slide3d(size: NatLike, step: NatLike = 1) -> Section:
    """Cubic windows: `[d][h][w]a -> [od][oh][ow][size][size][size]a`.

    >>> cube = lp.iota(8) >> lp.split(2) >> lp.split(2)
    >>> lp.evaluate(cube >> lp.slide3d(2)).tolist()
    [[[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]]]
    """
    return slide_nd((size,) * 3, (step,) * 3)


def slide_nd(sizes: Sequence[NatLike], steps: Sequence[NatLike]) -> Section:
    """Windows in several dimensions, outermost first: all positions, then all insides.

    The outermost dimension slides first; its inside then goes behind the positions of the others.
    """
    outer = slide(sizes[0], steps[0])
    if len(sizes) == 1:
        return outer
    inner = map(slide_nd(sizes[1:], steps[1:]))
    for depth in range(len(sizes) - 1):
        inner = inner >> under(depth, transpose())
    return outer >> map(inner)
