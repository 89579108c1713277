"""Words made of other words: several dimensions, permutations of them, constant arrays.

The text form has the same words (`liftpy.language.text.compositions`); a test checks that both
agree.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from liftpy.errors import TypeRefused
from liftpy.ir.expr import Expr
from liftpy.ir.nat import Nat, NatLike, nat
from liftpy.ir.types import I32
from liftpy.language.embedded.documented import word
from liftpy.language.embedded.functions import Callee, expression, function
from liftpy.language.embedded.stages import (
    Index,
    layout,
    map,  # noqa: A004  the language's own word
    pad,
    reorder,
    slide,
    transpose,
)
from liftpy.language.embedded.words import WORDS, Section, applied
from liftpy.language.entry import entry
from liftpy.primitives.concat import Drop, Take
from liftpy.primitives.generate import Generate, Repeat
from liftpy.primitives.transpose import Reorder, swaps
from liftpy.primitives.transpose import stride as strided
from liftpy.source.caller import refusal


@entry("lp.stride")
def stride(step: Nat | int, length: Nat | int) -> Reorder:
    """The `Reorder` that reads with a stride: i -> i / (length/step) + step * (i % (length/step)).

    Its inverse is the stride of length/step (Lift's `ReorderWithStride`).

    >>> lp.evaluate(lp.iota(6) >> lp.reorder(lp.stride(2, 6))).tolist()
    [0, 2, 4, 1, 3, 5]

    Raises TypeRefused if the step does not divide the length.
    """
    s, n = nat(step), nat(length)
    if s.constant is not None and (
        s.constant < 1 or (n.constant is not None and n.constant % s.constant)
    ):
        what = f"lp.stride({s}, {n}) is not a permutation"
        why = f"the step {s} does not divide the length {n}"
        raise refusal(what, why, "write a step that divides the length: lp.stride(2, 4)")
    return strided(s, n)


def under(depth: int, f: Section) -> Section:
    """`f` under `depth` maps."""
    return f if depth == 0 else map(under(depth - 1, f))


@word()
def map2d(f: Callee) -> Section:
    """Applies `f` to every element of a matrix: `[h][w]a -> [h][w]b`.

    >>> lp.evaluate(lp.iota(4) >> lp.split(2) >> lp.map2d(lambda x: x + 1)).tolist()
    [[1, 2], [3, 4]]
    """
    return map(map(f))


@word()
def map3d(f: Callee) -> Section:
    """Applies `f` to every element of a 3-dimensional array: `[d][h][w]a -> [d][h][w]b`.

    >>> lp.evaluate(lp.iota(4) >> lp.split(2) >> lp.split(1) >> lp.map3d(lambda x: -x)).tolist()
    [[[0, -1]], [[-2, -3]]]
    """
    return map(map2d(f))


def pad_nd(pad_one: Callable[[NatLike, NatLike], Section], *amounts: NatLike) -> Section:
    """Pads each dimension with `pad_one`, outermost first, by two amounts each."""
    outer = pad_one(amounts[0], amounts[1])
    return outer if len(amounts) == 2 else outer >> map(pad_nd(pad_one, *amounts[2:]))


@word()
def pad2d(
    top: NatLike, bottom: NatLike, left: NatLike, right: NatLike, value: float = 0.0
) -> Section:
    """Adds constant rows above and below a matrix, and constant columns left and right.

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
    """Adds constant elements on all six sides of a 3-dimensional array.

    `[d][h][w]a -> [front + d + back][top + h + bottom][left + w + right]a`; negative amounts crop.

    >>> cube = lp.iota(2) >> lp.split(2) >> lp.split(1)
    >>> lp.evaluate(cube >> lp.pad3d(0, 0, 0, 0, 0, 1, 7)).tolist()
    [[[0, 1, 7]]]
    """
    return pad_nd(lambda a, b: pad(a, b, value), front, back, top, bottom, left, right)


def boundary(one: Callable[..., Section], name: str, rank: int) -> Callable[..., Section]:
    """The word that pads `rank` dimensions with elements of the array, as `one` pads one."""

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
        f"Applies `{one.__name__}` to {rank} dimensions, outermost first.\n\n"
        "Each dimension takes two amounts and grows by both; negative amounts crop.\n\n"
        f">>> lp.evaluate({array} >> lp.{name}({amounts})).tolist()\n{result}"
    )
    return word()(build)


#: The words made from their classes, and the paddings in two and three dimensions.
DERIVED: dict[str, Callable[..., Any]] = dict(WORDS) | {
    f"{name}{rank}d": boundary(WORDS[name], f"{name}{rank}d", rank)
    for name in ("pad_clamp", "pad_mirror", "pad_wrap")
    for rank in (2, 3)
}


@word()
def permute(*axes: int) -> Section:
    """Permutes dimensions, as NumPy's `transpose`: dimension k of the result is `axes[k]`.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.permute(1, 0)).tolist()
    [[0, 3], [1, 4], [2, 5]]
    """
    steps = [under(depth, transpose()) for depth in swaps(axes)]
    return functools.reduce(lambda done, step: done >> step, steps, Section(lambda xs: xs))


@word()
def slice(start: NatLike, length: NatLike) -> Section:  # noqa: A001  the language's own word
    """Takes `length` elements, beginning at `start`: `[n]a -> [length]a`.

    `xs[2:5]` works as in NumPy.

    >>> lp.evaluate(lp.iota(6) >> lp.slice(2, 3)).tolist()
    [2, 3, 4]
    """
    return layout(Drop(nat(start))) >> layout(Take(nat(length)))


@word()
def scatter(index: Index, inverse: Index) -> Section:
    """Moves element i to position `index(i)`, the inverse of `reorder`: `[n]a -> [n]a`.

    >>> lp.evaluate(lp.iota(4) >> lp.scatter(lambda i: 3 - i, lambda i: 3 - i)).tolist()
    [3, 2, 1, 0]
    """
    return reorder(inverse, index)


@word()
def full(length: NatLike, x: Any) -> Expr:
    """An array of `length` equal values: `a -> [length]a`.

    A plain number takes its type from the context; without one it is an f32.

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
    """Makes square windows of a matrix: `[h][w]a -> [oh][ow][size][size]a`.

    `slide2d_rect` makes rectangular ones.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.slide2d(2)).tolist()
    [[[[0, 1], [3, 4]], [[1, 2], [4, 5]]]]
    """
    return slide2d_rect((size, size), (step, step))


@word()
def slide2d_rect(size: tuple[NatLike, NatLike], step: tuple[NatLike, NatLike]) -> Section:
    """Makes rectangular windows of a matrix: `[h][w]a -> [oh][ow][size_h][size_w]a`.

    `size` and `step` are pairs: rows first, then columns.

    >>> lp.evaluate(lp.iota(6) >> lp.split(3) >> lp.slide2d_rect((2, 1), (1, 1))).tolist()
    [[[[0], [3]], [[1], [4]], [[2], [5]]]]
    """
    return slide_nd(size, step)


@word()
def slide3d(size: NatLike, step: NatLike = 1) -> Section:
    """Makes cubic windows of an array: `[d][h][w]a -> [od][oh][ow][size][size][size]a`.

    >>> cube = lp.iota(8) >> lp.split(2) >> lp.split(2)
    >>> lp.evaluate(cube >> lp.slide3d(2)).tolist()
    [[[[[[0, 1], [2, 3]], [[4, 5], [6, 7]]]]]]
    """
    return slide_nd((size,) * 3, (step,) * 3)


def slide_nd(sizes: Sequence[NatLike], steps: Sequence[NatLike]) -> Section:
    """Makes windows in several dimensions: all positions, then all insides, outermost first.

    The outermost dimension slides first; its inside is then moved behind the positions of the
    other dimensions.
    """
    outer = slide(sizes[0], steps[0])
    if len(sizes) == 1:
        return outer
    inner = map(slide_nd(sizes[1:], steps[1:]))
    for depth in range(len(sizes) - 1):
        inner = inner >> under(depth, transpose())
    return outer >> map(inner)
