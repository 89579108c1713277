"""PyTorch's operators that move elements: views, copies, parts, concatenations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from liftpy.pytorch.operators.call import One, OperatorCall, Translation, Untranslated

END = 2**63 - 1
"""PyTorch's end of a slice that has none."""


def same(call: OperatorCall) -> str:
    """A copy: tensors here are values."""
    return call.node("Identity", call["self"].name)


def reshaped(call: OperatorCall) -> str:
    """All views that keep the order of the elements."""
    return call.reshaped(call["self"].name)


def permuted(call: OperatorCall) -> str:
    """The axes in another order."""
    rank = len(call["self"].shape)
    if not rank:
        return same(call)
    return call.node("Transpose", call["self"].name, perm=[axis % rank for axis in call["dims"]])


def expanded(call: OperatorCall) -> str:
    """Axes of length 1 repeated."""
    return call.node("Expand", call["self"].name, call.integers(call.shape))


def repeated(call: OperatorCall) -> str:
    """`repeat`: axes of length 1 come first if there are more factors than axes."""
    x, factors = call["self"], call["repeats"]
    wider = (1,) * (len(factors) - len(x.shape)) + x.shape
    name = x.name
    if wider != x.shape:
        name = call.node("Reshape", name, call.integers(wider))
    return call.node("Tile", name, call.integers(factors))


def concatenated(call: OperatorCall) -> str:
    """Tensors one after another along an axis, in a common type."""
    parts = [call.value(x, call.dtype) for x in call["tensors"]]
    return call.node("Concat", *parts, axis=call.axis(call["dim"], len(call.shape)))


def part(call: OperatorCall, name: str, axis: int, start: int, end: int, step: int = 1) -> str:
    """The elements from `start` up to `end` along an axis."""
    numbers = ([start], [end], [axis], [step])
    return call.node("Slice", name, *map(call.integers, numbers))


def sliced(call: OperatorCall) -> str:
    """Every `step`-th element of a range along an axis."""
    x, axis = call["self"], call.axis(call["dim"], len(call.shape))
    start = 0 if call["start"] is None else call["start"]
    end = END if call["end"] is None else call["end"]
    return part(call, x.name, axis, start, end, call["step"])


def selected(call: OperatorCall) -> str:
    """One element along an axis, which disappears."""
    x = call["self"]
    axis = call.axis(call["dim"], len(x.shape))
    start = call["index"] % x.shape[axis]
    return call.reshaped(part(call, x.name, axis, start, start + 1))


def divided(lengths: Callable[[OperatorCall, int], list[int]]) -> Translation:
    """Consecutive parts along an axis."""

    def translated(call: OperatorCall) -> list[str]:
        axis = call.axis(call["dim"], len(call["self"].shape))
        own = call.integers(lengths(call, axis))
        name = call["self"].name
        return call.writer.node("Split", [name, own], len(call.results), axis=axis)

    return translated


def padded(call: OperatorCall) -> str:
    """`constant_pad_nd`: pairs of amounts, from the last axis on."""
    x, given = call["self"], call["pad"]
    rank = len(x.shape)
    before, after = [0] * rank, [0] * rank
    for k in range(len(given) // 2):
        before[rank - 1 - k], after[rank - 1 - k] = given[2 * k], given[2 * k + 1]
    value = call.number(call["value"], call.dtype)
    return call.node("Pad", x.name, call.integers([*before, *after]), value)


def flipped(call: OperatorCall) -> str:
    """Axes in reverse."""
    name = call["self"].name
    for axis in call["dims"]:
        name = part(call, name, call.axis(axis, len(call.shape)), -1, -END, -1)
    return name if call["dims"] else call.node("Identity", name)


def embedded(call: OperatorCall) -> str:
    """Rows of a table."""
    return call.node("Gather", call["weight"].name, call["indices"].name, axis=0)


def gathered(call: OperatorCall) -> str:
    """`index_select`: elements along an axis by one row of indices."""
    x = call["self"]
    return call.node(
        "Gather", x.name, call["index"].name, axis=call.axis(call["dim"], len(x.shape))
    )


def indexed(call: OperatorCall) -> str:
    """Tensors of integers as indices of consecutive axes, each of which varies along its own axis.

    `x[:, indices]`, and `x[rows[:, None], columns]`.
    """
    found = [(axis, index) for axis, index in enumerate(call["indices"]) if index is not None]
    first, count = found[0][0], len(found)
    for k, (axis, index) in enumerate(found):
        shape = (1,) * (count - len(index.shape)) + index.shape
        apart = count == 1 or all(n == 1 for j, n in enumerate(shape) if j != k)
        if index.dtype.kind not in "iu" or axis != first + k or not apart:
            raise Untranslated("only integer indices that vary independently are expressed")
    name = call["self"].name
    for axis, index in found:
        own = index.name
        if count > 1:
            own = call.node("Reshape", own, call.integers([-1]))
        name = call.node("Gather", name, own, axis=axis)
    return name


def gathered_elements(call: OperatorCall) -> str:
    """`gather`: an element along an axis for each index."""
    axis = call.axis(call["dim"], len(call.shape))
    return call.node("GatherElements", call["self"].name, call["index"].name, axis=axis)


def triangle(*, upper: bool) -> One:
    """The elements above or below a diagonal, and 0."""
    return lambda call: call.node(
        "Trilu", call["self"].name, call.number(call["diagonal"], np.int64), upper=int(upper)
    )


def filled(call: OperatorCall) -> str:
    """A constant array of one number, which depends on the shape of a tensor only."""
    value = call.given.get("fill_value", 0)
    return call.node("Expand", call.number(value, call.dtype), call.integers(call.shape))


SAME = ("alias", "clone", "detach", "lift_fresh_copy")
RESHAPED = (
    "view.default", "_unsafe_view.default", "squeeze.default", "squeeze.dim",
    "squeeze.dims", "unsqueeze.default",
)  # fmt: skip

TRANSLATIONS: dict[str, Translation] = {
    **{f"aten.{name}.default": same for name in SAME},
    **{f"aten.{name}": reshaped for name in RESHAPED},
    "aten.permute.default": permuted,
    "aten.expand.default": expanded,
    "aten.repeat.default": repeated,
    "aten.cat.default": concatenated,
    "aten.slice.Tensor": sliced,
    "aten.select.int": selected,
    "aten.split_with_sizes.default": divided(lambda call, _: [*call["split_sizes"]]),
    "aten.split.Tensor": divided(lambda call, axis: [r.shape[axis] for r in call.results]),
    "aten.constant_pad_nd.default": padded,
    "aten.flip.default": flipped,
    "aten.embedding.default": embedded,
    "aten.index_select.default": gathered,
    "aten.index.Tensor": indexed,
    "aten.gather.default": gathered_elements,
    "aten.tril.default": triangle(upper=False),
    "aten.triu.default": triangle(upper=True),
    "aten.full_like.default": filled,
    "aten.zeros_like.default": filled,
}
