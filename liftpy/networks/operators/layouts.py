"""Words over arrays of several dimensions: reshape, broadcast, permute, fold some axes.

Shapes are Python numbers here, so each function returns the layouts that this shape needs and no
others. An array without dimensions is a scalar expression.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, TypeAlias

from liftpy.ir.expr import Expr
from liftpy.ir.types import ScalarType
from liftpy.language.embedded.lang import (
    DERIVED,
    concat,
    convert,
    gather,
    join,
    map,  # noqa: A004
    pad,
    permute,
    reorder,
    split,
    zip,  # noqa: A004
)
from liftpy.networks.operators.node import Shape

Change: TypeAlias = Callable[[Any], Any]
"""A function from an expression to an expression."""

drop, take, repeat = DERIVED["drop"], DERIVED["take"], DERIVED["repeat"]


def taking(names: Sequence[str], f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose parameters have names, which the printed program shows."""

    def named(*parts: Any) -> Any:
        return f(*parts)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    own = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    vars(named)["__signature__"] = own
    return named


def each(depth: int, f: Change) -> Change:
    """Applies `f` to the arrays, or scalars, that remain `depth` dimensions further in."""
    for _ in range(depth):
        f = map(f)
    return f


def to(t: ScalarType) -> Change:
    """The conversion to a type, which leaves values of this type as they are."""
    return lambda x: x if x.type == t else convert(x, t)


def along(axis: int, f: Change) -> Change:
    """Applies `f` to an axis: `f` sees it as the outermost dimension."""
    return each(axis, f)


def ordered(x: Expr, order: Sequence[int]) -> Expr:
    """The array with its axes in another order, as NumPy's `transpose`."""
    return x if list(order) == sorted(order) else permute(*order)(x)


def inverse(order: Sequence[int]) -> list[int]:
    """The order of axes that undoes another one."""
    return sorted(range(len(order)), key=lambda k: order[k])


def reshaped(x: Expr, old: Shape, new: Shape) -> Expr:
    """The elements of an array in another shape, in row-major order."""
    if old == new:
        return x
    before = 0
    while before < min(len(old), len(new)) and old[before] == new[before]:
        before += 1
    after = 0
    while (
        after < min(len(old), len(new)) - before
        and old[len(old) - 1 - after] == new[len(new) - 1 - after]
    ):
        after += 1
    if before + after in {len(old), len(new)}:  # lengths 1 appear or go: beside a neighbour
        after, before = (after - 1, before) if after else (0, max(0, before - 1))
    inner = old[before : len(old) - after]
    wanted = new[before : len(new) - after]

    steps: list[Change] = [] if inner else [repeat(1)]
    steps += [join() for _ in inner[1:]]
    steps += [split(size) for size in reversed(wanted[1:])]
    if not wanted:
        steps.append(lambda part: part[0])
    return each(before, composed(steps))(x)


def composed(steps: Sequence[Change]) -> Change:
    """One step after another; a single one is returned as it is, so that it prints as a word."""
    return steps[0] if len(steps) == 1 else lambda x: reduce(lambda part, f: f(part), steps, x)


def broadcast(f: Callable[..., Any], operands: Sequence[tuple[Expr, Shape]], shape: Shape) -> Expr:
    """Applies a function to the elements of arrays that ONNX broadcasts to `shape`.

    An array of a smaller shape is read by the function of the outer maps, not repeated.
    """
    return aligned_map(f, [narrowed(x, own, shape) for x, own in operands], len(shape))


def narrowed(x: Expr, own: Shape, shape: Shape, inner: Shape = ()) -> tuple[Expr, list[int]]:
    """The array without the dimensions that broadcasting to `shape` stretches.

    Also returns which axes of `shape` the others are. The array has the dimensions `own`, and
    within these `inner`, which stay.
    """
    offset = len(shape) - len(own)
    kept = [k for k, n in enumerate(own) if n != 1 or shape[offset + k] == 1]
    small = reshaped(x, (*own, *inner), (*(own[k] for k in kept), *inner))
    return small, [offset + k for k in kept]


def aligned_map(
    f: Callable[..., Any], operands: Sequence[tuple[Expr, Sequence[int]]], rank: int
) -> Expr:
    """Maps a function over the axes 0 to `rank` - 1, each of which some operands have.

    An operand has an expression and the axes, in ascending order, of its outermost dimensions.
    """

    def at(axis: int, parts: list[Any]) -> Any:
        if axis == rank:
            return f(*parts)
        own = [k for k, (_, axes) in enumerate(operands) if axis in axes]

        def inside(*found: Any) -> Any:
            inner = list(parts)
            for k, part in enumerate(found):
                inner[own[k]] = part
            return at(axis + 1, inner)

        function = map(taking([letter(k) for k in own], inside))
        return function(parts[own[0]] if len(own) == 1 else zip(*(parts[k] for k in own)))

    return at(0, [x for x, _ in operands])


def letter(k: int) -> str:
    """The name of a part of operand `k` in printed programs: x, y, z, ..., x1, x2, ..."""
    letters = "xyzuvwpqrst"
    return letters[k] if k < len(letters) else f"x{k - len(letters) + 1}"


def folded(x: Expr, shape: Shape, axes: Sequence[int], f: Change, *, keep: bool) -> Expr:
    """Applies `f` to the elements along some axes, joined; with `keep`, these have length 1.

    The other axes keep their order. `f` takes a one-dimensional array and returns a scalar.
    """
    others = [k for k in range(len(shape)) if k not in axes]
    moved = ordered(x, [*others, *axes])
    length = 1
    for k in axes:
        length *= shape[k]
    left = tuple(shape[k] for k in others)
    flat = reshaped(moved, (*left, *(shape[k] for k in axes)), (*left, length))
    found = each(len(left), f)(flat)
    kept = tuple(1 if k in axes else n for k, n in enumerate(shape))
    return reshaped(found, left, kept) if keep else found


def reversed_array(length: int) -> Change:
    """The elements in reverse order."""
    return reorder(lambda i: length - 1 - i, lambda i: length - 1 - i)


def part(start: int, count: int, length: int) -> Change:
    """`count` elements of an array of `length`, from `start`."""

    def change(x: Any) -> Any:
        rest = drop(start)(x) if start else x
        return take(count)(rest) if start + count < length else rest

    return change


def chained(parts: Sequence[Expr]) -> Expr:
    """The arrays one after another."""
    found = parts[0]
    for one in parts[1:]:
        found = concat(found, one)
    return found


RUNS = 32
"""The largest number of slices that constant indices are written as."""


def picked(indices: Sequence[int], length: int) -> Change | None:
    """The elements at constant indices, as slices or as one index function; None if neither fits.

    >>> picked([0, 5, 1, 9, 3] * 20, 10) is None
    True
    """
    count, first = len(indices), indices[0]
    step = indices[1] - first if count > 1 else 1
    if all(k == first + step * i for i, k in enumerate(indices)):
        if step == 1:
            return part(first, count, length)
        return gather_at(count, first, step)
    runs: list[tuple[int, int]] = []
    for k in indices:
        if runs and k == sum(runs[-1]):
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((k, 1))
    if len(runs) > RUNS:
        return None
    return lambda x: chained([part(start, many, length)(x) for start, many in runs])


def gather_at(count: int, first: int, step: int) -> Change:
    """`count` elements from `first`, `step` apart; a step of 0 repeats one element."""
    return gather(count, lambda i: first + step * i)


def padded(x: Expr, amounts: Iterable[tuple[int, int]], pads: Callable[[int, int], Change]) -> Expr:
    """The array with `pads(before, after)` applied to each axis that has an amount."""
    for axis, (before, after) in enumerate(amounts):
        if before or after:
            x = along(axis, pads(before, after))(x)
    return x


def constant_around(value: Any) -> Callable[[int, int], Change]:
    """Padding with a constant, for `padded`."""
    return lambda before, after: pad(before, after, value)
