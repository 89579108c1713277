"""Operators that fold axes: Reduce*, ArgMax, ArgMin, CumSum, Softmax and its relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from liftpy.ir.expr import Expr, Literal, Tuple
from liftpy.ir.types import BOOL, I32, ScalarType
from liftpy.language.embedded.lang import (
    absolute,
    add,
    convert,
    equal,
    exclusive_scan,
    exp,
    iota,
    log,
    map,  # noqa: A004
    maximum,
    minimum,
    mul,
    reduce,
    scan,
    select,
    sqrt,
    zip,  # noqa: A004
)
from liftpy.networks.operators.layouts import (
    each,
    folded,
    inverse,
    ordered,
    reshaped,
    reversed_array,
)
from liftpy.networks.operators.node import (
    Body,
    Node,
    Shape,
    greatest,
    least,
    literal,
    operator,
)

Fold = Callable[[Any, ScalarType, int], Any]
"""The fold of a one-dimensional array of a scalar type and a length."""


def total(xs: Any, t: ScalarType) -> Any:
    """The sum."""
    return xs >> reduce(add, literal(0, t))


def largest(xs: Any, t: ScalarType) -> Any:
    """The largest element; of booleans, whether one is true."""
    if t == BOOL:
        return xs >> reduce(lambda acc, x: acc | x, Literal(value=False, type=BOOL))
    return xs >> reduce(maximum, least(t))


def smallest(xs: Any, t: ScalarType) -> Any:
    """The smallest element; of booleans, whether all are true."""
    if t == BOOL:
        return xs >> reduce(lambda acc, x: acc & x, Literal(value=True, type=BOOL))
    return xs >> reduce(minimum, greatest(t))


def squares(xs: Any) -> Any:
    """The squares of elements."""
    return xs >> map(lambda x: x * x)


def log_of_sum_of_exponentials(xs: Any, t: ScalarType) -> Any:
    """`log(sum(exp(x)))`, in the form that does not overflow.

    An infinite largest element is not subtracted: `inf - inf` would be NaN.
    """
    found = largest(xs, t)
    most = select(absolute(found) < greatest(t), found, literal(0, t))
    return log(total(xs >> map(lambda x: exp(x - most)), t)) + most


def fold(name: str, f: Fold, *, floats: bool = False) -> None:
    """Registers a Reduce operator."""

    @operator(name, decided_by=(1,))
    def build(node: Node) -> Body:
        if floats:
            node.float_only()
        shape, t = node.shape(), node.type()
        given = node.numbers("axes", 1)
        if not given and node.attribute("noop_with_empty_axes"):
            return each(len(shape), lambda e: f(one_element(e), t, 1))
        axes = node.axes(given or range(len(shape)))
        count = int(np.prod([shape[k] for k in axes]))
        keep = bool(node.attribute("keepdims"))
        if not shape:
            return lambda x: f(one_element(x), t, 1)
        return lambda x: folded(x, shape, axes, lambda xs: f(xs, t, count), keep=keep)


def one_element(x: Any) -> Any:
    """A scalar as an array of one element."""
    return reshaped(x, (), (1,))


fold("ReduceSum", lambda xs, t, _: total(xs, t))
fold("ReduceMean", lambda xs, t, count: total(xs, t) / literal(count, t))
fold("ReduceMax", lambda xs, t, _: largest(xs, t))
fold("ReduceMin", lambda xs, t, _: smallest(xs, t))
fold("ReduceProd", lambda xs, t, _: xs >> reduce(mul, literal(1, t)))
fold("ReduceL1", lambda xs, t, _: total(xs >> map(absolute), t))
fold("ReduceL2", lambda xs, t, _: sqrt(total(squares(xs), t)), floats=True)
fold("ReduceSumSquare", lambda xs, t, _: total(squares(xs), t))
fold("ReduceLogSum", lambda xs, t, _: log(total(xs, t)), floats=True)
fold("ReduceLogSumExp", lambda xs, t, _: log_of_sum_of_exponentials(xs, t), floats=True)


# --- the places of extreme elements ---------------------------------------------------------------


@operator("ArgMax", "ArgMin")
def place_of_extreme(node: Node) -> Body:
    """The index of the first or last extreme element along an axis."""
    shape, t = node.shape(), node.type()
    axis, keep = node.axis(), bool(node.attribute("keepdims"))
    last, largest_wanted = bool(node.attribute("select_last_index")), node.operator == "ArgMax"
    start = (least if largest_wanted else greatest)(t)

    def better(best: Any, found: Any) -> Any:
        """The pair of an index and a value that is kept; -1 is the index of no element."""
        x, y = (best[1], found[1]) if largest_wanted else (found[1], best[1])
        wins = x < y
        if last:
            wins = wins | equal(x, y)
        wins = wins | equal(best[0], Literal(-1, I32))
        return Tuple((select(wins, found[0], best[0]), select(wins, found[1], best[1])))

    def place(xs: Any) -> Any:
        pairs = zip(iota(shape[axis]), xs)
        found = pairs >> reduce(better, Tuple((Literal(-1, I32), start)))
        return convert(found[0], node.result_type)

    return lambda x: folded(x, shape, [axis], place, keep=keep)


# --- scans ----------------------------------------------------------------------------------------


@operator("CumSum", decided_by=(1,))
def cumulative_sum(node: Node) -> Body:
    """The sums of the elements up to each; excluded or from the end, by attributes."""
    return cumulative(node, add, 0)


@operator("CumProd", decided_by=(1,))
def cumulative_product(node: Node) -> Body:
    """The products of the elements up to each."""
    return cumulative(node, mul, 1)


def cumulative(node: Node, f: Any, neutral: int) -> Body:
    """The accumulators of a fold along the axis that the second input names."""
    shape, t = node.shape(), node.type()
    (axis,) = node.numbers("axis", 1) or [0]
    axis %= len(shape)
    exclusive, back = node.attribute("exclusive"), node.attribute("reverse")

    def row(xs: Any) -> Any:
        if back:
            xs = reversed_array(shape[axis])(xs)
        found = xs >> (exclusive_scan if exclusive else scan)(f, literal(neutral, t))
        return reversed_array(shape[axis])(found) if back else found

    return lambda x: on_rows(x, shape, axis, row)


def on_rows(x: Expr, shape: Shape, axis: int, f: Callable[[Any], Any]) -> Expr:
    """Applies a function that keeps the length to the one-dimensional arrays along an axis."""
    order = [*(k for k in range(len(shape)) if k != axis), axis]
    found = each(len(shape) - 1, f)(ordered(x, order))
    return ordered(found, inverse(order))


# --- softmax --------------------------------------------------------------------------------------


def softmax_row(xs: Any, t: ScalarType) -> Any:
    """The exponentials of a row, divided by their sum; the largest element is subtracted first."""
    most = largest(xs, t)
    powers = xs >> map(lambda x: exp(x - most))
    sum_of_powers = total(powers, t)
    return powers >> map(lambda p: p / sum_of_powers)


def log_softmax_row(xs: Any, t: ScalarType) -> Any:
    """The logarithm of `softmax_row`, without computing it first."""
    most = largest(xs, t)
    rest = log(total(xs >> map(lambda x: exp(x - most)), t))
    return xs >> map(lambda x: x - most - rest)


def hardmax_row(xs: Any, t: ScalarType, length: int) -> Any:
    """1 at the first largest element, else 0."""

    def better(best: Any, found: Any) -> Any:
        wins = best[1] < found[1]
        return Tuple((select(wins, found[0], best[0]), select(wins, found[1], best[1])))

    start = Tuple((Literal(0, I32), least(t)))
    place = (zip(iota(length), xs) >> reduce(better, start))[0]
    one, zero = literal(1, t), literal(0, t)
    return iota(length) >> map(lambda i: select(equal(i, place), one, zero))


@operator("Softmax", "LogSoftmax", "Hardmax")
def softmax(node: Node) -> Body:
    """Rows along an axis; before opset 13, all axes from it on are one row."""
    node.float_only()
    shape, t = node.shape(), node.type()
    axis = node.axis(default=-1)
    rows: dict[str, Callable[[Any, int], Any]] = {
        "Softmax": lambda xs, _: softmax_row(xs, t),
        "LogSoftmax": lambda xs, _: log_softmax_row(xs, t),
        "Hardmax": lambda xs, length: hardmax_row(xs, t, length),
    }
    row = rows[node.operator]
    if node.version >= 13:
        return lambda x: on_rows(x, shape, axis, lambda xs: row(xs, shape[axis]))
    length = int(np.prod(shape[axis:]))
    flat = (*shape[:axis], length)
    return lambda x: reshaped(
        each(axis, lambda xs: row(xs, length))(reshaped(x, shape, flat)), flat, shape
    )


@operator("LpNormalization")
def lp_normalization(node: Node) -> Body:
    """Rows along an axis divided by their 1-norm or 2-norm; a row of zeros stays."""
    node.float_only()
    shape, t, p = node.shape(), node.type(), node.attribute("p")

    def row(xs: Any) -> Any:
        norm = total(xs >> map(absolute), t) if p == 1 else sqrt(total(squares(xs), t))
        zero = literal(0, t)
        return xs >> map(lambda x: select(equal(norm, zero), zero, x / norm))

    return lambda x: on_rows(x, shape, node.axis(default=-1), row)
