"""A node in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnxruntime
from onnxruntime.capi import (
    onnxruntime_pybind11_state as state,  # pyright: ignore[reportAttributeAccessIssue]  no stub
)

from liftpy.errors import NetworkRefused
from liftpy.networks.executing import Array, result_of
from liftpy.networks.graph import Operation
from liftpy.networks.onnx_stored import executable_model

UNSUPPORTED = (
    state.NotImplemented,
    state.InvalidGraph,
    state.Fail,
    state.InvalidArgument,
    state.InvalidProtobuf,
    state.RuntimeException,
    ValueError,
)
"""What ONNX Runtime raises for a node that it does not support; ValueError, if text is damaged."""
FATAL = 4  # a severity of its log: errors are raised, too


def node_model(
    operation: Operation, opsets: Mapping[str, int], inputs: Mapping[str, Array]
) -> Callable[[Mapping[str, Array]], Sequence[Array]] | None:
    """A function from the inputs of a node to its outputs; None if the node is not supported.

    Later inputs must have the types and ranks of `inputs`.
    """
    model = executable_model(operation.node, opsets, inputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except UNSUPPORTED:
        return None

    def run(given: Mapping[str, Array]) -> Sequence[Array]:
        try:
            found = session.run([*operation.outputs], dict(given))
        except UNSUPPORTED as error:
            raise NetworkRefused(
                f"{operation.name} ({operation.operator}): ONNX Runtime fails: {error}"
            ) from error
        return [*map(result_of, found)]

    return run
