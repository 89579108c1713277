"""Normalizations: batch, layer, instance, group, local response; dropout at inference."""

from __future__ import annotations

from typing import Any

import numpy as np

from liftpy.ir.expr import Expr, Literal
from liftpy.ir.types import BOOL, F32, ScalarType
from liftpy.language.embedded.lang import (
    let,
    map,  # noqa: A004
    pad,
    power,
    slide,
    sqrt,
    zip,  # noqa: A004
)
from liftpy.networks.operators.folds import squares, total
from liftpy.networks.operators.layouts import aligned_map, broadcast, each, ordered, reshaped
from liftpy.networks.operators.node import Body, Node, decline, literal, operator


@operator("BatchNormalization", note="at inference", orders="last")
def batch_normalization(node: Node) -> Body:
    """`(x - mean) / sqrt(var + epsilon) * scale + bias`, with numbers of each channel."""
    if node.attribute("training_mode"):
        decline("training computes the statistics of the batch", "training_mode")
    node.only_first_result("the statistics of the batch are computed in training only")
    t = node.type()
    if {node.type(k) for k in range(5)} != {t}:
        decline("the statistics have another type than the input")
    epsilon = literal(node.attribute("epsilon"), t)
    rank = len(node.shape())

    def normal(x: Any, numbers: Any) -> Any:
        scale, bias, mean, var = numbers
        return (x - mean) / sqrt(var + epsilon) * scale + bias

    if node.attribute("spatial") == 0:
        decline("statistics of each element are not expressed", "spatial")
    channel = rank - 1 if node.channels_last else min(1, rank - 1)

    def normalized(x: Expr, numbers: Expr, first: int) -> Expr:
        axes = range(rank - first)
        return aligned_map(normal, [(x, axes), (numbers, [channel - first])], rank - first)

    def body(x: Expr, *numbers: Expr) -> Expr:
        if rank == 1 or node.shape()[0] != 1:
            return normalized(x, zip(*numbers), 0)
        stored = node.stored(node.shape())  # one image needs no map over the batch
        image = reshaped(x, stored, stored[1:])
        return reshaped(normalized(image, zip(*numbers), 1), stored[1:], stored)

    return body


def standardized(xs: Any, t: ScalarType, count: int, epsilon: Any) -> Any:
    """The elements of a row, less their mean, divided by their standard deviation."""

    def scaled(differences: Any) -> Any:
        deviation = sqrt(total(squares(differences), t) / literal(count, t) + epsilon)
        return differences >> map(lambda d: d / deviation)

    mean = total(xs, t) / literal(count, t)
    return xs >> map(lambda x: x - mean) >> let(scaled)


@operator("LayerNormalization", note="f32 inputs only")
def layer_normalization(node: Node) -> Body:
    """Standardizes all axes from one on, then scales and shifts."""
    shape, t = node.shape(), node.type()
    axis = node.axis(default=-1)
    count = int(np.prod(shape[axis:]))
    if node.attribute("stash_type") not in {1, None} or t != F32:
        decline(f"statistics in another type than {F32} of an input {t}", "stash_type")
    epsilon = literal(node.attribute("epsilon"), t)
    flat = (*shape[:axis], count)

    def body(x: Expr, scale: Expr, bias: Expr | None = None) -> Expr:
        rows = reshaped(x, shape, flat)
        normal = each(axis, lambda xs: standardized(xs, t, count, epsilon))(rows)
        operands = [(reshaped(normal, flat, shape), shape), (scale, node.shape(1))]
        if bias is None:
            return broadcast(lambda n, s: n * s, operands, shape)
        operands.append((bias, node.shape(2)))
        return broadcast(lambda n, s, b: n * s + b, operands, shape)

    def statistics(x: Expr) -> list[Expr]:
        """The mean and the reciprocal of the deviation of each row, as ONNX returns them."""
        rows = reshaped(x, shape, flat)
        kept = (*shape[:axis], *([1] * (len(shape) - axis)))

        def mean(xs: Any) -> Any:
            return total(xs, t) / literal(count, t)

        def reciprocal(xs: Any) -> Any:
            return mean(xs) >> let(lambda m: 1 / sqrt(mean(squares_from(xs, m)) + epsilon))

        found = [each(axis, f)(rows) for f in (mean, reciprocal)]
        return [reshaped(one, shape[:axis], kept) for one in found]

    if all(result is None for result in node.results[1:]):
        return body
    wanted = [k for k, result in enumerate(node.results) if result is not None]

    def several(x: Expr, scale: Expr, bias: Expr | None = None) -> tuple[Expr, ...]:
        found = [body(x, scale, bias), *statistics(x)]
        return tuple(found[k] for k in wanted)

    return several


def squares_from(xs: Any, mean: Any) -> Any:
    """The squared differences from a number."""
    return xs >> map(lambda x: (x - mean) * (x - mean))


@operator("RMSNormalization", note="f32 inputs only")
def rms_normalization(node: Node) -> Body:
    """Divides all axes from one on by their root mean square, then scales."""
    shape, t = node.shape(), node.type()
    axis = node.axis(default=-1)
    count = int(np.prod(shape[axis:]))
    if t != F32:
        decline(f"statistics in another type than {F32} of an input {t}", "stash_type")
    epsilon = literal(node.attribute("epsilon"), t)
    flat = (*shape[:axis], count)

    def row(xs: Any) -> Any:
        root = sqrt(total(squares(xs), t) / literal(count, t) + epsilon)
        return xs >> map(lambda x: x / root)

    def body(x: Expr, scale: Expr) -> Expr:
        normal = reshaped(each(axis, row)(reshaped(x, shape, flat)), flat, shape)
        return broadcast(lambda n, s: n * s, [(normal, shape), (scale, node.shape(1))], shape)

    return body


@operator("InstanceNormalization")
def instance_normalization(node: Node) -> Body:
    """Standardizes each channel of each image, then scales and shifts it."""
    node.float_only()
    shape, t = node.shape(), node.type()
    count = int(np.prod(shape[2:]))
    epsilon = literal(node.attribute("epsilon"), t)
    flat = (*shape[:2], count)

    def channel(xs: Any, scale: Any, bias: Any) -> Any:
        return standardized(xs, t, count, epsilon) >> map(lambda x: x * scale + bias)

    def body(x: Expr, scale: Expr, bias: Expr) -> Expr:
        rows = reshaped(x, shape, flat)
        found = aligned_map(channel, [(rows, [0, 1]), (scale, [1]), (bias, [1])], 2)
        return reshaped(found, flat, shape)

    return body


@operator("LRN", orders="last")
def local_response(node: Node) -> Body:
    """`x / (bias + alpha / size * s)^beta`, where s sums the squares of neighbouring channels."""
    node.float_only()
    t, shape, size = node.type(), node.shape(), int(node.attribute("size"))
    bias, beta = literal(node.attribute("bias"), t), literal(node.attribute("beta"), t)
    share = literal(node.attribute("alpha") / size, t)
    before, rank = (size - 1) // 2, len(shape)
    last = [0, *range(2, rank), 1]
    back = [0, rank - 1, *range(1, rank - 1)]

    def pixel(xs: Any) -> Any:
        sums = (
            xs
            >> map(lambda x: x * x)
            >> pad(before, size - 1 - before, 0)
            >> slide(size)
            >> map(lambda window: total(window, t))
        )
        return zip(xs, sums) >> map(lambda x, s: x / power(bias + share * s, beta))

    pixels = each(rank - 1, pixel)
    return pixels if node.channels_last else lambda x: ordered(pixels(ordered(x, last)), back)


@operator(
    "Dropout",
    decided_by=(2,),
    if_constant={1: lambda _: True},
    note="at inference",
    orders="any",
)
def dropout(node: Node) -> Body:
    """The input, whatever the ratio is; the mask is true everywhere."""
    training = node.constant(2)
    if training is not None and bool(training):
        decline("training draws random numbers", "training_mode")
    if len(node.results) == 1 or node.results[1] is None:
        return lambda x, *_: x
    if node.result(1)[0] != BOOL:
        decline("the mask is not boolean", "mask")
    mask = each(len(node.shape()), lambda _: Literal(value=True, type=BOOL))
    return lambda x, *_: (x, mask(x))
