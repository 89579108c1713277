"""Writes ONNX models: what other frameworks compute, as nodes for the import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 21, 10


@dataclass(frozen=True)
class Signature:
    """The type and shape of a tensor."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class ModelWriter:
    """A model under construction: its inputs, constants and nodes, to which it gives names.

    >>> import numpy as np
    >>> from liftpy.networks.importing import graph_of
    >>> writer = ModelWriter("negated")
    >>> x = writer.input(Signature(np.dtype("f4"), (3,)))
    >>> (y,) = writer.node("Neg", [x])
    >>> graph_of(writer.model({y: Signature(np.dtype("f4"), (3,))})).operations[0].operator
    'Neg'
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._inputs: list[onnx.ValueInfoProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._nodes: list[onnx.NodeProto] = []

    def input(self, signature: Signature) -> str:
        """Declares the next input; returns its name."""
        name = f"x{len(self._inputs)}"
        self._inputs.append(_declared(name, signature))
        return name

    def constant(self, value: NDArray[Any]) -> str:
        """Adds a constant; returns its name."""
        name = f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def node(
        self, operator: str, inputs: Sequence[str], results: int = 1, **attributes: Any
    ) -> list[str]:
        """Adds a node of one of ONNX's operators; returns the names of its results.

        An absent optional input is "".
        """
        names = [f"t{len(self._nodes)}.{k}" for k in range(results)]
        called = f"{operator}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, names, called, **attributes))
        return names

    def model(self, outputs: Mapping[str, Signature]) -> onnx.ModelProto:
        """The model whose outputs are these results, by name."""
        results = [_declared(name, signature) for name, signature in outputs.items()]
        graph = helper.make_graph(self._nodes, self._name, self._inputs, results, self._constants)
        opsets = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def element_type(dtype: np.dtype[Any]) -> int:
    """ONNX's number of an element type, as the attribute `to` of Cast."""
    return helper.np_dtype_to_tensor_dtype(dtype)


def _declared(name: str, signature: Signature) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type(signature.dtype), signature.shape)
