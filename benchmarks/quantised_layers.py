"""Layers with random 8-bit numbers, their results in exact integers, and models of ONNX of them."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from turns import Figures, host, turn

import liftpy as lp
from liftpy.workloads import MOBILENET, RESNET50, Convolution

Array = NDArray[Any]

LAYERS = {
    f"{network}/{number}": layer
    for network, layers in (("resnet50", RESNET50), ("mobilenet", MOBILENET))
    for number, layer in layers.items()
}
DEFAULT = (
    *(f"resnet50/{number}" for number in [*RESNET50][::4]),
    *(f"mobilenet/{number}" for number in [*MOBILENET][1::3]),
)


def selected(patterns: list[str] | None) -> list[str]:
    """The names of layers that patterns fit; ValueError if one fits none."""
    if patterns is None:
        return [*DEFAULT]
    found: dict[str, None] = {}
    for pattern in patterns:
        fitting = fnmatch.filter(LAYERS, pattern)
        if not fitting:
            message = f"no layer has a name like {pattern}; there are {', '.join(LAYERS)}"
            raise ValueError(message)
        found |= dict.fromkeys(fitting)
    return [*found]


def convolved(layer: Convolution, x: Array, w: Array) -> Array:
    """The sums of a convolution `[C][H][W]` by `[M][C/G][Kh][Kw]`, in the type of the arrays."""
    top, bottom, left, right = layer.padding
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right)))
    (rows, columns), groups = layer.out, layer.groups
    parts = padded.reshape(groups, -1, *padded.shape[1:])
    kernels = w.reshape(groups, -1, *w.shape[1:])
    total = np.zeros((groups, kernels.shape[1], rows * columns), x.dtype)
    for i in range(layer.kernel[0]):
        for j in range(layer.kernel[1]):
            a, b = i * layer.dilation[0], j * layer.dilation[1]
            part = parts[:, :, a :: layer.stride[0], b :: layer.stride[1]][:, :, :rows, :columns]
            total += kernels[:, :, :, i, j] @ part.reshape(groups, part.shape[1], -1)
    return total.reshape(layer.kernels, rows, columns)


@dataclass(frozen=True)
class Quantised:
    """A layer with its random numbers; the quantised ones have the names of QLinearConv."""

    name: str
    layer: Convolution

    @cached_property
    def numbers(self) -> dict[str, Array]:
        """The inputs of QLinearConv in their order; the image is `x`."""
        layer, rng = self.layer, np.random.default_rng(len(self.name) + self.layer.flops)
        shape = layer.kernels, layer.channels // layer.groups, *layer.kernel
        x = rng.integers(0, 256, (1, layer.channels, layer.height, layer.width)).astype(np.uint8)
        w = rng.integers(-128, 128, shape).astype(np.int8)
        zero, above = (2 * rng.integers(0, 128, 2) + 1).astype(np.uint8)
        spread = 74 * 74 * np.sqrt(np.prod(shape[1:]))  # the standard deviation of a sum
        factors = 40 / spread * rng.uniform(0.7, 1.4, layer.kernels)
        factors[::2] = 2.0 ** np.rint(np.log2(factors[::2]))
        return {
            "x": x,
            "x_scale": np.array(2**-6, np.float32),
            "x_zero_point": zero,
            "w": w,
            "w_scale": (factors * 2**3).astype(np.float32),
            "w_zero_point": np.zeros(layer.kernels, np.int8),
            "y_scale": np.array(2**-3, np.float32),
            "y_zero_point": above,
            "b": rng.integers(-int(spread), int(spread), layer.kernels).astype(np.int32),
        }

    @cached_property
    def sums(self) -> Array:
        """The sums of products of differences with the biases, in int64."""
        n = self.numbers
        x = n["x"][0].astype(np.int64) - int(n["x_zero_point"])
        return convolved(self.layer, x, n["w"].astype(np.int64)) + n["b"][:, None, None]

    @cached_property
    def scaled(self) -> Array:
        """The sums in the scale of the result, in f32: each operation is rounded once."""
        n = self.numbers
        factors = n["x_scale"] * n["w_scale"] / n["y_scale"]
        return self.sums.astype(np.float32) * factors[:, None, None]

    @cached_property
    def ties(self) -> NDArray[np.bool_]:
        """Which elements lie halfway between two integers."""
        return np.abs(self.scaled - np.trunc(self.scaled)) == 0.5

    @cached_property
    def oracle(self) -> NDArray[np.uint8]:
        """The result: rounded to nearest with ties to even, then the zero point is added."""
        whole = np.rint(self.scaled).astype(np.float64) + int(self.numbers["y_zero_point"])
        return np.clip(whole, 0, 255).astype(np.uint8)

    @cached_property
    def floats(self) -> dict[str, Array]:
        """The inputs of Conv: what the quantised numbers stand for, in f32."""
        n = self.numbers
        x = (n["x"].astype(np.float32) - n["x_zero_point"]) * n["x_scale"]
        w = n["w"] * n["w_scale"][:, None, None, None]
        biases = n["b"].astype(np.float32) * n["x_scale"] * n["w_scale"]
        return {"x": x, "w": w, "b": biases}

    @cached_property
    def exact(self) -> Array:
        """The result of Conv, computed in float64."""
        x, w, b = (a.astype(np.float64) for a in self.floats.values())
        return convolved(self.layer, x[0], w) + b[:, None, None]

    def model(self, *, quantised: bool) -> Any:
        """A model of one node; all inputs but the image are constants."""
        operator, given, t = ("Conv", self.floats, TensorProto.FLOAT)
        if quantised:
            operator, given, t = ("QLinearConv", self.numbers, TensorProto.UINT8)
        top, bottom, left, right = self.layer.padding
        node = helper.make_node(
            operator,
            [*given],
            ["y"],
            name="conv",
            strides=self.layer.stride,
            dilations=self.layer.dilation,
            group=self.layer.groups,
            pads=[top, left, bottom, right],
        )
        result = (1, self.layer.kernels, *self.layer.out)
        graph = helper.make_graph(
            [node],
            operator,
            [helper.make_tensor_value_info("x", t, given["x"].shape)],
            [helper.make_tensor_value_info("y", t, result)],
            [numpy_helper.from_array(np.asarray(a), n) for n, a in given.items() if n != "x"],
        )
        opsets = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=10)

    def differing(self, result: Array) -> float:
        """The number of elements of an 8-bit result that differ from the oracle."""
        return float(np.count_nonzero(result.reshape(self.oracle.shape) != self.oracle))

    def error(self, result: Array) -> float:
        """The largest difference of an f32 result, relative to the largest value."""
        difference = np.abs(result.reshape(self.exact.shape) - self.exact)
        return float(difference.max() / np.abs(self.exact).max())


@dataclass(frozen=True)
class Contestant:
    """The program of an imported model, as `ours.best` takes a case."""

    name: str
    program: lp.Program
    arrays: dict[str, Array]
    error: Callable[[Array], float]


def imported(layer: Quantised, *, quantised: bool) -> Contestant:
    """The operation of a model with its arrays."""
    graph = lp.network(layer.model(quantised=quantised)).graph
    (operation,) = graph.operations
    image = (layer.numbers if quantised else layer.floats)["x"]
    program = operation.program
    assert program is not None  # ONNX's convolutions have one
    given = [graph.constants.get(name, image) for name in operation.inputs]
    arrays = {p.name: a for p, a in zip(program.params, given, strict=True)}
    error = layer.differing if quantised else layer.error
    return Contestant(f"{layer.name}-{'u8' if quantised else 'f32'}", program, arrays, error)


def by_onnx_runtime(
    layer: Quantised, threads: int, *, quantised: bool
) -> tuple[Callable[[], Figures], Array]:
    """A turn of ONNX Runtime on a model, and its result; its arrays are bound before."""
    import onnxruntime as ort  # noqa: PLC0415  the other functions do not need it

    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    model = layer.model(quantised=quantised).SerializeToString()
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    image = (layer.numbers if quantised else layer.floats)["x"]
    empty = np.empty((1, layer.layer.kernels, *layer.layer.out), image.dtype)
    x, y = map(ort.OrtValue.ortvalue_from_numpy, (image, empty))
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("y", y)
    run = partial(session.run_with_iobinding, binding)
    run()
    return partial(turn, host(run)), y.numpy().copy()
