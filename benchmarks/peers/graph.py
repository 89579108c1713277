"""A case as an ONNX model, for the peers that read one; weights are constants of the model."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from cases import Case


def model(case: Case) -> bytes | None:
    """One node, from `x` to `y`, as serialised ONNX; None for what has no such node."""
    onnx = importlib.import_module("onnx")
    helper = onnx.helper
    if case.kind == "convolution":
        layer = case.layer
        top, bottom, left, right = layer.padding
        node = helper.make_node(
            "Conv",
            ["x", "w", "b"],
            ["y"],
            kernel_shape=layer.kernel,
            strides=layer.stride,
            dilations=layer.dilation,
            group=layer.groups,
            pads=[top, left, bottom, right],
        )
        constants = {"w": case.oihw, "b": case.arrays["b"].reshape(-1)}
        taken, given = case.nchw.shape, (1, layer.kernels, *layer.out)
    elif case.kind == "matmul":
        node = helper.make_node("MatMul", ["x", "w"], ["y"])
        a, b = case.arrays.values()
        constants = {"w": b}
        taken, given = a.shape, (a.shape[0], b.shape[1])
    else:
        return program(case)
    return serialised([node], case.kind, taken, given, constants)


def serialised(
    nodes: list[Any],
    name: str,
    taken: tuple[int, ...],
    given: tuple[int, ...],
    constants: dict[str, np.ndarray],
) -> bytes:
    """A graph from `x` to `y` of these shapes."""
    onnx = importlib.import_module("onnx")
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", number, taken)],
        [helper.make_tensor_value_info("y", number, given)],
        [onnx.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made.SerializeToString()


def program(case: Case) -> bytes | None:
    """A program of several operations as serialised ONNX; None for what is not one here."""
    helper = importlib.import_module("onnx").helper
    if case.group != "programs":
        return None
    first, *weights = case.arrays.values()
    nodes: list[Any] = []
    last = "x"
    constants: dict[str, np.ndarray] = {}
    if case.kind == "perceptron":
        taken, given = first.shape, (first.shape[0], weights[-1].shape[0])
        for k, w in enumerate(weights):
            constants[f"w{k}"] = np.ascontiguousarray(w.T)
            nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"m{k}"]))
            last = f"m{k}"
            if k < len(weights) - 1:
                nodes.append(helper.make_node("Relu", [last], [f"r{k}"]))
                last = f"r{k}"
    elif case.kind == "block":
        rows, columns, channels = first.shape
        taken, given = (1, channels, rows, columns), (1, len(weights[-1]), rows // 2, columns // 2)
        for k, w in enumerate(weights):
            constants[f"w{k}"] = np.ascontiguousarray(w.transpose(0, 3, 1, 2))
            sides = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
            nodes.append(helper.make_node("Conv", [last, f"w{k}"], [f"m{k}"], **sides))
            nodes.append(helper.make_node("Relu", [f"m{k}"], [f"r{k}"]))
            last = f"r{k}"
        sides = {"kernel_shape": (2, 2), "strides": (2, 2)}
        nodes.append(helper.make_node("MaxPool", [last], ["p"], **sides))
        last = "p"
    else:
        return None
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    return serialised(nodes, case.kind, taken, given, constants)
