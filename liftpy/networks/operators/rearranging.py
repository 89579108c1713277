"""Operators that move elements: Reshape, Transpose, Concat, Split, Slice, Pad, Gather."""

from __future__ import annotations

from typing import Any

import numpy as np

from liftpy.ir.expr import Expr, Literal
from liftpy.ir.types import BOOL, I32, I64, INTEGERS, integer_range
from liftpy.language.embedded.lang import (
    DERIVED,
    at,
    equal,
    generate,
    iota,
    join,
    map,  # noqa: A004
    select,
)
from liftpy.language.embedded.lang import zip as zip_of
from liftpy.networks.operators.layouts import (
    Change,
    aligned_map,
    along,
    chained,
    constant_around,
    each,
    gather_at,
    inverse,
    narrowed,
    ordered,
    padded,
    part,
    picked,
    repeat,
    reshaped,
    reversed_array,
    taking,
    to,
)
from liftpy.networks.operators.node import Body, Node, Shape, decline, literal, operator
from liftpy.workloads.windows import every

AT_IMPORT = "of constants only: it is computed at import"


@operator("Identity")
def identity(_: Node) -> Body:
    """The input."""
    return lambda x: x


@operator("Reshape", "Squeeze", "Unsqueeze", decided_by=(1,))
def reshape(node: Node) -> Body:
    """The same elements in the shape that ONNX's shape inference gives the result."""
    return lambda x: reshaped(x, node.shape(), node.result_shape)


@operator("ConstantOfShape", decided_by=(0,), note=AT_IMPORT)
def constant_of_shape(_: Node) -> Body:
    """An array of one value. It is folded at import, where its shape is known."""
    return decline("its shape is not known at import", "input")


@operator("Range", decided_by=(0, 1, 2), note=AT_IMPORT)
def arithmetic_progression(_: Node) -> Body:
    """Numbers at equal distances. They are folded at import, where their number is known."""
    return decline("its length is not known at import", "limit")


@operator("Flatten")
def flatten(node: Node) -> Body:
    """The same elements as a matrix."""
    return lambda x: reshaped(x, node.shape(), node.result_shape)


@operator("Transpose")
def transposed(node: Node) -> Body:
    """The axes in another order."""
    rank = len(node.shape())
    order = node.attribute("perm") or [*range(rank)][::-1]
    return lambda x: ordered(x, order)


@operator("Expand", decided_by=(1,))
def expand(node: Node) -> Body:
    """Broadcasts an array to a shape: `repeat` where a length grows."""
    shape = node.result_shape

    def body(x: Expr) -> Expr:
        small, axes = narrowed(x, node.shape(), shape)

        def grown(part: Any, axis: int) -> Any:
            if axis == len(shape):
                return part
            if axis in axes:
                return part >> map(lambda inner: grown(inner, axis + 1))
            return repeat(shape[axis])(grown(part, axis + 1))

        return grown(small, 0)

    return body


@operator("Tile", decided_by=(1,))
def tile(node: Node) -> Body:
    """Repeats the array along each axis."""
    counts = node.numbers("repeats", 1) or []

    def body(x: Expr) -> Expr:
        for axis, count in enumerate(counts):
            if count > 1:
                x = along(axis, lambda xs, count=count: join()(repeat(count)(xs)))(x)
        return x

    return body


@operator("Concat", orders="any")
def concatenated(node: Node) -> Body:
    """The arrays one after another along an axis."""
    axis = node.axis()

    def inside(parts: list[Any], depth: int) -> Any:
        if depth == 0:
            return chained(parts)
        names = [f"x{k}" for k in range(len(parts))]
        function = map(taking(names, lambda *inner: inside([*inner], depth - 1)))
        return function(zip_of(*parts))

    def body(*parts: Expr) -> Expr:
        if len(parts) == 1:
            return parts[0]
        return inside([*parts], axis)

    return body


@operator("Split", decided_by=(1,))
def split_into(node: Node) -> Body:
    """Parts along an axis: all named results of the node, in one program."""
    axis, length = node.axis(), node.shape()[node.axis()]
    chunk = -(-length // len(node.results))
    equal = [max(0, min(chunk, length - k * chunk)) for k in range(len(node.results))]
    sizes = node.numbers("split", 1) or equal
    if sum(sizes) != length:
        decline(f"the parts have {sum(sizes)} elements of {length}", "split")
    starts = [sum(sizes[:k]) for k in range(len(sizes))]

    def body(x: Expr) -> tuple[Expr, ...]:
        return tuple(
            along(axis, part(start, size, length))(x)
            for start, size, result in zip(starts, sizes, node.results, strict=True)
            if result is not None
        )

    return body


@operator("Slice", decided_by=(1, 2, 3, 4))
def sliced(node: Node) -> Body:
    """Parts of axes, with steps; a negative step reverses."""
    shape = node.shape()
    starts, ends = node.numbers("starts", 1) or [], node.numbers("ends", 2) or []
    axes = node.numbers("axes", 3) or [*range(len(starts))]
    steps = node.numbers("steps", 4) or [1] * len(starts)
    changes: list[tuple[int, range]] = []
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step == 0:
            decline("a step is not 0", "steps")
        k = axis % len(shape)
        changes.append((k, range(*slice(start, end, step).indices(shape[k]))))

    def of(found: range, length: int) -> Any:
        def change(xs: Any) -> Any:
            count, step = len(found), abs(found.step)
            first = min(found[0], found[-1])
            xs = part(first, (count - 1) * step + 1, length)(xs)
            xs = every(step)(xs) if step > 1 else xs
            return reversed_array(count)(xs) if found.step < 0 else xs

        return change

    def body(x: Expr) -> Expr:
        for axis, found in changes:
            if found != range(shape[axis]):
                x = along(axis, of(found, shape[axis]))(x)
        return x

    return body


@operator(
    "Pad",
    decided_by=(1, 2, 3),
    note="`reflect` without negative amounts, `wrap` without amounts of both signs along an axis",
)
def pad_all(node: Node) -> Body:
    """Elements around an array: a constant, or its own by clamping, reflecting or wrapping."""
    shape, t = node.shape(), node.type()
    rank = len(shape)
    amounts = node.numbers("pads", 1) or []
    axes = [k % rank for k in node.numbers("", 3) or range(rank)]
    by_axis = [(0, 0)] * rank
    for k, axis in enumerate(axes):
        by_axis[axis] = (amounts[k], amounts[len(axes) + k])
    mode = node.attribute("mode") or "constant"
    given = node.constant(2)
    value = (node.attribute("value") or 0) if given is None else np.ravel(given)[0].item()
    if mode == "constant":
        if t == I64 and abs(value) > 1 << 53:
            decline(f"padding takes a float, which cannot represent {value}", "constant_value")
        return lambda x: padded(x, by_axis, constant_around(float(value)))
    if any(min(pair) < 0 for pair in by_axis) and mode == "reflect":
        decline("negative amounts of reflection are not expressed", "pads")
    if mode == "reflect":
        return lambda x: reflected(x, shape, by_axis)
    if mode == "wrap" and any(min(pair) < 0 < max(pair) for pair in by_axis):
        decline("wrapping at one end of an axis that is cut at the other is not expressed", "pads")
    words = {"edge": DERIVED["pad_clamp"], "wrap": DERIVED["pad_wrap"]}
    return lambda x: padded(x, by_axis, words[mode])


def reflected(x: Expr, shape: Shape, amounts: list[tuple[int, int]]) -> Expr:
    """Mirrors each axis without repeating its end element.

    The index that a place reads is folded into the array by its distance to the two ends.
    """
    for axis, (before, after) in enumerate(amounts):
        length = shape[axis]
        if max(before, after) >= length and before + after:
            decline(f"{max(before, after)} elements are reflected of {length}", "pads")
        if before or after:
            left = [*range(before, 0, -1)]
            right = [*range(length - 2, length - 2 - after, -1)]

            def change(xs: Any, left: list[int] = left, right: list[int] = right) -> Any:
                parts = [gather_at(len(some), some[0], -1)(xs) for some in (left, right) if some]
                ordered_parts = [parts[0], xs] if left else [xs]
                return chained([*ordered_parts, *([parts[-1]] if right else [])])

            x = along(axis, change)(x)
    return x


@operator("Gather", if_constant={1: lambda node: constant_parts(node) is not None})
def gathered(node: Node) -> Body:
    """Parts of an axis: constant indices with a pattern by layout, others read by `at`."""
    shape, indices = node.shape(), node.operand(1)
    axis, change = node.axis(), constant_parts(node)
    if change is not None:
        flat = (*shape[:axis], int(np.prod(indices.shape)), *shape[axis + 1 :])
        return lambda x: reshaped(along(axis, change)(x), flat, node.result_shape)

    def body(x: Expr, i: Expr) -> Expr:
        def read(xs: Any) -> Any:
            return each(len(indices.shape), lambda k: at(index_in(k, shape[axis]))(xs))(i)

        return along(axis, read)(x)

    return body


def constant_parts(node: Node) -> Change | None:
    """The layout that reads at the constant indices of a Gather; None if they have no pattern."""
    value, length = node.operand(1).value, node.shape()[node.axis()]
    if value is None:
        return None
    if any(not -length <= k < length for k in value.flat):
        decline(f"an index is outside of the axis of length {length}", "indices")
    return picked([int(k) % length for k in value.flat], length)


def index_in(k: Any, length: int) -> Any:
    """An index as the i32 that `at` takes; negative ones count from the end."""
    i = to(I32)(k)
    return select(i < Literal(0, I32), i + length, i)


@operator("GatherElements", note="indices as long as the array along the other axes")
def gathered_elements(node: Node) -> Body:
    """Each element of a row of indices reads the same row of the array."""
    shape, places = node.shape(), node.shape(1)
    axis = node.axis()
    others = [k for k in range(len(shape)) if k != axis]
    if any(shape[k] != places[k] for k in others):
        decline("indices of a smaller shape are not expressed", "indices")
    order = [*others, axis]

    def row(xs: Any, row_of_indices: Any) -> Any:
        return row_of_indices >> map(lambda k: at(index_in(k, shape[axis]))(xs))

    outer = [*range(len(others))]

    def body(x: Expr, i: Expr) -> Expr:
        rows = [(ordered(part, order), outer) for part in (x, i)]
        return ordered(aligned_map(row, rows, len(outer)), inverse(order))

    return body


@operator("OneHot", decided_by=(1,))
def one_hot(node: Node) -> Body:
    """A row for each index: the second of two values at the index, the first elsewhere.

    An index beyond the row has the first value everywhere. Indices are compared in a type that has
    all of them, and all places of the row. Those of u64 beyond i64 become negative, so negative
    indices count from the end only in a type that has them.
    """
    (depth,) = node.numbers("depth", 1) or [1]
    rank, axis = len(node.shape()), node.axis(default=-1, rank=len(node.shape()) + 1)
    low, high = integer_range(node.type() if node.type() in INTEGERS else I64)
    least, most = integer_range(I32)
    t = I32 if least <= low and high <= most else I64

    def row(i: Any, off: Any, on: Any) -> Any:
        place = to(t)(i)
        if low < 0:
            place = select(place < literal(0, t), place + literal(depth, t), place)
        return generate(depth, lambda j: select(equal(to(t)(j), place), on, off))

    def body(i: Expr, values: Expr) -> Expr:
        rows = each(rank, lambda k: row(k, values[0], values[1]))(i)
        order = [*range(axis), rank, *range(axis, rank)]
        return ordered(rows, order)

    return body


@operator("Trilu", decided_by=(1,))
def triangle(node: Node) -> Body:
    """The upper or lower triangle of matrices; 0 elsewhere."""
    shape, t = node.shape(), node.type()
    (offset,) = node.numbers("k", 1) or [0]
    rows, columns = shape[-2:]
    zero = Literal(value=False, type=BOOL) if t == BOOL else literal(0, t)
    upper = bool(node.attribute("upper"))
    lowest = max(-rows, min(columns, offset))

    def matrix(m: Any) -> Any:
        def row(xs: Any, i: Any) -> Any:
            def element(x: Any, j: Any) -> Any:
                edge = i + lowest
                return select(edge <= j if upper else j <= edge, x, zero)

            return zip_of(xs, iota(columns)) >> map(element)

        return zip_of(m, iota(rows)) >> map(row)

    return each(len(shape) - 2, matrix)


@operator("DepthToSpace")
def depth_to_space(node: Node) -> Body:
    """Blocks of channels become blocks of pixels."""
    n, c, h, w = node.shape()
    b = int(node.attribute("blocksize"))
    if (node.attribute("mode") or "DCR") == "DCR":
        shape, order = (n, b, b, c // b**2, h, w), [0, 3, 4, 1, 5, 2]
    else:
        shape, order = (n, c // b**2, b, b, h, w), [0, 1, 4, 2, 5, 3]
    moved = tuple(shape[k] for k in order)
    return lambda x: reshaped(
        ordered(reshaped(x, node.shape(), shape), order), moved, node.result_shape
    )


@operator("SpaceToDepth")
def space_to_depth(node: Node) -> Body:
    """Blocks of pixels become blocks of channels."""
    n, c, h, w = node.shape()
    b = int(node.attribute("blocksize"))
    shape = (n, c, h // b, b, w // b, b)
    crd = (node.attribute("mode") or "DCR") == "CRD"
    order = [0, 1, 3, 5, 2, 4] if crd else [0, 3, 5, 1, 2, 4]
    moved = tuple(shape[k] for k in order)
    return lambda x: reshaped(
        ordered(reshaped(x, node.shape(), shape), order), moved, node.result_shape
    )
