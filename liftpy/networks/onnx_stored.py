"""Single nodes and arrays in ONNX's encoding, as plans store them, and their models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from liftpy.networks.onnx_library import model_of
from liftpy.networks.onnx_parts import nodes_of, tensors_of


def executable_model(
    encoded: bytes, opsets: Mapping[str, int], inputs: Mapping[str, NDArray[Any]]
) -> onnx.ModelProto:
    """A model of one node for other libraries, whose inputs have the types and ranks of arrays."""
    node = onnx.NodeProto.FromString(encoded)
    results = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
    made = model_of(node, opsets, inputs, results)
    for value in made.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            dim.Clear()
    made.ir_version = helper.find_min_ir_version_for([*made.opset_import], ignore_unknown=True)
    return made


def check_node(name: str, encoded: bytes) -> None:
    """ValueError if a node is damaged or has data outside of its encoding."""
    try:
        node = onnx.NodeProto.FromString(encoded)
    except DecodeError as error:
        raise ValueError(f"{name} is not an ONNX node: {error}") from error
    model = helper.make_model(helper.make_graph([node], "node", [], []))
    if any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in tensors_of(model)):
        raise ValueError(f"{name} has data outside of the plan")
    for one in nodes_of([node]):
        attributes = (a.name for a in one.attribute)
        words = (one.op_type, one.domain, one.name, *one.input, *one.output, *attributes)
        if {*map(type, words)} != {str}:  # bytes if they are not UTF-8
            raise ValueError(f"{name} has a name that is not text")


def encoded_array(array: NDArray[Any]) -> bytes:
    """An array in ONNX's encoding."""
    return numpy_helper.from_array(array).SerializeToString()


def decoded_array(name: str, encoded: bytes) -> NDArray[Any]:
    """An array from its encoding; ValueError if it is damaged, or its data are elsewhere."""
    try:
        tensor = onnx.TensorProto.FromString(encoded)
    except DecodeError as error:
        raise ValueError(f"{name} is not an ONNX tensor: {error}") from error
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise ValueError(f"{name} has data outside of the plan")
    return numpy_helper.to_array(tensor)
