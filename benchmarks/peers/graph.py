"""A case as an ONNX model, for the peers that read one; weights are constants of the model."""

from __future__ import annotations

import importlib

from cases import Case


def model(case: Case) -> bytes | None:
    """One node, from `x` to `y`, as serialised ONNX; None for what has no such node."""
    onnx = importlib.import_module("onnx")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
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
        return None
    number = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        case.kind,
        [helper.make_tensor_value_info("x", number, taken)],
        [helper.make_tensor_value_info("y", number, given)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made.SerializeToString()
