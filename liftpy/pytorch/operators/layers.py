"""PyTorch's operators that fold: products, convolutions, pooling, normalization, reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from liftpy.pytorch.operators.call import (
    One,
    Operand,
    OperatorCall,
    Translation,
    Untranslated,
    axes_of,
)

# --- products -------------------------------------------------------------------------------------


def product(second: str) -> One:
    """A product of matrices, perhaps in batches, or of a matrix and a vector."""
    return lambda call: call.node("MatMul", call["self"].name, call[second].name)


def affine(call: OperatorCall) -> str:
    """`addmm`: a product plus a bias, each times a factor."""
    names = (call[name].name for name in ("mat1", "mat2", "self"))
    factors = {"alpha": float(call["alpha"]), "beta": float(call["beta"])}
    return call.node("Gemm", *names, **factors)


def batched_affine(call: OperatorCall) -> str:
    """`baddbmm`: batched products plus a bias, each times a factor."""
    found = call.node("MatMul", call["batch1"].name, call["batch2"].name)
    if call["alpha"] != 1:
        found = call.node("Mul", found, call.number(call["alpha"], call.dtype))
    bias = call["self"].name
    if call["beta"] != 1:
        bias = call.node("Mul", bias, call.number(call["beta"], call.dtype))
    return call.node("Add", found, bias)


def convolution(call: OperatorCall) -> str:
    """A convolution, transposed or not, in any number of dimensions."""
    inputs = [call["input"].name, call["weight"].name]
    if call["bias"] is not None:
        inputs.append(call["bias"].name)
    spatial = len(call["weight"].shape) - 2
    attributes = {
        "strides": every(call["stride"], spatial),
        "pads": every(call["padding"], spatial) * 2,
        "dilations": every(call["dilation"], spatial),
        "group": call["groups"],
    }
    if not call["transposed"]:
        return call.node("Conv", *inputs, **attributes)
    padding = every(call["output_padding"], spatial)
    return call.node("ConvTranspose", *inputs, **attributes, output_padding=padding)


def every(given: list[int], count: int) -> list[int]:
    """One number for each spatial dimension; PyTorch accepts one for all."""
    return [*given] * count if len(given) == 1 else [*given]


# --- pooling --------------------------------------------------------------------------------------


def windows(call: OperatorCall) -> dict[str, Any]:
    """The attributes of windows in two dimensions; their stride is their size by default."""
    return {
        "kernel_shape": every(call["kernel_size"], 2),
        "strides": every(call["stride"] or call["kernel_size"], 2),
        "pads": every(call["padding"], 2) * 2,
        "ceil_mode": int(call["ceil_mode"]),
    }


def pooled(call: OperatorCall, operator: str, **attributes: Any) -> str:
    """A node of pooling; PyTorch's needs no batch."""
    x = call["self"]
    if len(x.shape) == 4:
        return call.node(operator, x.name, **attributes)
    name = call.node("Reshape", x.name, call.integers((1, *x.shape)))
    return call.reshaped(call.node(operator, name, **attributes))


def max_pool(call: OperatorCall) -> list[str]:
    """The largest elements; their indices are not computed."""
    dilations = every(call["dilation"], 2)
    return [pooled(call, "MaxPool", dilations=dilations, **windows(call))]


def average_pool(call: OperatorCall) -> str:
    """Averages of windows, whose divisor is the number of elements."""
    if call["divisor_override"] is not None:
        raise Untranslated("a divisor other than the number of elements is not expressed")
    if call["ceil_mode"]:
        raise Untranslated("averages of windows that cross the border are not expressed")
    counted = int(call["count_include_pad"])
    return pooled(call, "AveragePool", count_include_pad=counted, **windows(call))


def adaptive_average_pool(call: OperatorCall) -> str:
    """Windows of equal size that do not overlap."""
    lengths = [*zip(call["self"].shape[-2:], call.shape[-2:], strict=True)]
    if any(not m or n % m for n, m in lengths):
        raise Untranslated("adaptive pooling with windows of different sizes is not expressed")
    kernel = [n // m for n, m in lengths]
    return pooled(call, "AveragePool", kernel_shape=kernel, strides=kernel)


# --- normalization --------------------------------------------------------------------------------


def batch_norm(call: OperatorCall) -> list[str]:
    """Batch normalization at inference."""
    x = call["input"]
    channels = x.shape[1:2]
    scale = constant_or(call, "weight", np.ones(channels))
    shift = constant_or(call, "bias", np.zeros(channels))
    mean, var = call["running_mean"].name, call["running_var"].name
    inputs = (x.name, scale, shift, mean, var)
    return [call.node("BatchNormalization", *inputs, epsilon=call["eps"])]


def instance_norm(call: OperatorCall) -> list[str]:
    """Batch normalization by the statistics of one image, as `instance_norm` becomes."""
    x = call["input"]
    if x.shape[0] != 1:
        raise Untranslated("normalization by the statistics of a batch is not expressed")
    scale = constant_or(call, "weight", np.ones(x.shape[1]))
    shift = constant_or(call, "bias", np.zeros(x.shape[1]))
    return [call.node("InstanceNormalization", x.name, scale, shift, epsilon=call["eps"])]


def layer_norm(call: OperatorCall) -> list[str]:
    """Normalization over the last axes."""
    shape = tuple(call["normalized_shape"])
    inputs = [call["input"].name, constant_or(call, "weight", np.ones(shape))]
    if call["bias"] is not None:
        inputs.append(call["bias"].name)
    how = {"axis": -len(shape), "epsilon": call["eps"]}
    return [call.node("LayerNormalization", *inputs, **how)]


def group_norm(call: OperatorCall) -> list[str]:
    """Normalization of groups of channels."""
    channels = (call["C"],)
    inputs = [
        call["input"].name,
        constant_or(call, "weight", np.ones(channels)),
        constant_or(call, "bias", np.zeros(channels)),
    ]
    how = {"num_groups": call["group"], "epsilon": call["eps"]}
    return [call.node("GroupNormalization", *inputs, **how)]


def constant_or(call: OperatorCall, name: str, default: np.ndarray) -> str:
    """The tensor that an argument is, or a constant if it is None."""
    given: Operand | None = call[name]
    return given.name if given is not None else call.number(default, call.dtype)


def softmax(operator: str) -> One:
    """Softmax or its logarithm along an axis."""

    def translated(call: OperatorCall) -> str:
        if call["self"].dtype != call.dtype:
            raise Untranslated("a softmax that converts its argument is not expressed")
        return call.node(operator, call["self"].name, axis=call["dim"])

    return translated


# --- reductions -----------------------------------------------------------------------------------


def reduction(operator: str) -> One:
    """A reduction along axes, all by default, of elements of the type of its result."""

    def translated(call: OperatorCall) -> str:
        name = call.value(call["self"], call.dtype)
        return reduced(call, operator, name)

    return translated


def reduced(call: OperatorCall, operator: str, name: str) -> str:
    """A tensor reduced along the axes `dim` of the call."""
    axes = axes_of(call.given.get("dim"), len(call["self"].shape))
    kept = int(bool(call.given.get("keepdim")))
    return call.node(operator, name, call.integers(axes), keepdims=kept)


def quantifier(operator: str) -> One:
    """`any` and `all`: the largest or smallest truth value, as integers."""

    def translated(call: OperatorCall) -> str:
        truth = call.value(call["self"], np.dtype(np.bool_))
        found = reduced(call, operator, call.cast(truth, np.dtype(np.int32)))
        return call.cast(found, call.dtype)

    return translated


def extreme_index(operator: str) -> One:
    """The position of the largest or smallest element, along an axis or in all."""

    def translated(call: OperatorCall) -> str:
        x = call["self"]
        if call["dim"] is None:
            flat = call.node("Reshape", x.name, call.integers([-1]))
            return call.reshaped(call.node(operator, flat, axis=0, keepdims=1))
        kept = int(bool(call["keepdim"]))
        return call.node(operator, x.name, axis=call.axis(call["dim"], len(x.shape)), keepdims=kept)

    return translated


def extreme(operator: str, index: str) -> Translation:
    """`max` and `min` along an axis: values and indices."""
    return lambda call: [
        reduced(call, operator, call["self"].name),
        *([extreme_index(index)(call)] if len(call.results) > 1 else []),
    ]


def variance(call: OperatorCall) -> str:
    """The mean squared distance from the mean, with a correction of the count."""
    x = call["self"]
    axes = axes_of(call["dim"], len(x.shape))
    count = int(np.prod([x.shape[axis] for axis in axes]))
    correction = 1 if call["correction"] is None else call["correction"]
    if count - correction <= 0:
        raise Untranslated("a variance of fewer elements than its correction is not expressed")
    mean = call.node("ReduceMean", x.name, call.integers(axes), keepdims=1)
    distance = call.node("Sub", x.name, mean)
    square = call.node("Mul", distance, distance)
    kept = int(bool(call["keepdim"]))
    found = call.node("ReduceMean", square, call.integers(axes), keepdims=kept)
    return call.node("Mul", found, call.number(count / (count - correction), call.dtype))


def running_sum(call: OperatorCall) -> str:
    """The sums of the elements up to each."""
    x = call["self"]
    axis = call.number(call.axis(call["dim"], len(x.shape)), np.int64)
    return call.node("CumSum", call.value(x, call.dtype), axis)


TRANSLATIONS: dict[str, Translation] = {
    "aten.mm.default": product("mat2"),
    "aten.bmm.default": product("mat2"),
    "aten.mv.default": product("vec"),
    "aten.addmm.default": affine,
    "aten.baddbmm.default": batched_affine,
    "aten.convolution.default": convolution,
    "aten.max_pool2d_with_indices.default": max_pool,
    "aten.avg_pool2d.default": average_pool,
    "aten._adaptive_avg_pool2d.default": adaptive_average_pool,
    "aten._native_batch_norm_legit_no_training.default": batch_norm,
    "aten._native_batch_norm_legit.no_stats": instance_norm,
    "aten.native_layer_norm.default": layer_norm,
    "aten.native_group_norm.default": group_norm,
    "aten._softmax.default": softmax("Softmax"),
    "aten._log_softmax.default": softmax("LogSoftmax"),
    "aten.sum.default": reduction("ReduceSum"),
    "aten.sum.dim_IntList": reduction("ReduceSum"),
    "aten.mean.default": reduction("ReduceMean"),
    "aten.mean.dim": reduction("ReduceMean"),
    "aten.prod.default": reduction("ReduceProd"),
    "aten.prod.dim_int": reduction("ReduceProd"),
    "aten.amax.default": reduction("ReduceMax"),
    "aten.amin.default": reduction("ReduceMin"),
    "aten.max.default": reduction("ReduceMax"),
    "aten.min.default": reduction("ReduceMin"),
    "aten.max.dim": extreme("ReduceMax", "ArgMax"),
    "aten.min.dim": extreme("ReduceMin", "ArgMin"),
    "aten.any.default": quantifier("ReduceMax"),
    "aten.any.dim": quantifier("ReduceMax"),
    "aten.any.dims": quantifier("ReduceMax"),
    "aten.all.default": quantifier("ReduceMin"),
    "aten.all.dim": quantifier("ReduceMin"),
    "aten.argmax.default": extreme_index("ArgMax"),
    "aten.argmin.default": extreme_index("ArgMin"),
    "aten.var.correction": variance,
    "aten.cumsum.default": running_sum,
}
