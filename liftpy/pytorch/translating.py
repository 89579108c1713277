"""Nodes of PyTorch's graphs as nodes of ONNX.

A node calls an operator (ATen) and has the type and shape of its results in `meta["val"]`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from liftpy.errors import InternalError
from liftpy.networks.onnx_writing import ModelWriter, Signature
from liftpy.pytorch.operators import TRANSLATIONS, Operand, OperatorCall, Untranslated
from liftpy.pytorch.tensors import as_array, dtype_of

CREATED = frozenset(
    f"aten.{name}"
    for name in (
        *("arange.default", "arange.start", "arange.start_step", "eye.default", "full.default"),
        *("linspace.default", "ones.default", "scalar_tensor.default", "zeros.default"),
    )
)
"""Operators without tensors as arguments: their results are constants."""


def known(target: Any) -> bool:
    """Whether there is a translation of an operator."""
    return str(target) in TRANSLATIONS or str(target) in CREATED


def signature(value: Any) -> Signature | None:
    """The type and shape of a tensor; None if it cannot be an array of NumPy of fixed shape."""
    dtype = dtype_of(value) if hasattr(value, "dtype") else None
    if dtype is None or not all(isinstance(n, int) for n in value.shape):
        return None
    if value.device.type != "cpu" or "strided" not in str(value.layout):
        return None
    return Signature(dtype, tuple(value.shape))


def values_of(node: Any) -> list[Any]:
    """The results of a node, one or several."""
    value = node.meta.get("val")
    return [*value] if isinstance(value, tuple | list) else [value]


def arguments_of(node: Any) -> dict[str, Any]:
    """The arguments of a call by name, with the defaults of the operator."""
    given: dict[str, Any] = {}
    for k, declared in enumerate(node.target._schema.arguments):  # noqa: SLF001  no public API
        if k < len(node.args):
            given[declared.name] = node.args[k]
        elif declared.name in node.kwargs:
            given[declared.name] = node.kwargs[declared.name]
        elif declared.has_default_value():
            given[declared.name] = declared.default_value
    return given


def mapped(value: Any, tensor: Callable[[Any], Any], torch: Any) -> Any:
    """An argument with each node in it replaced by a function of the node."""
    if isinstance(value, torch.fx.Node):
        return tensor(value)
    if isinstance(value, list | tuple):
        return [mapped(one, tensor, torch) for one in value]
    return value


def translated(
    writer: ModelWriter, node: Any, names: Mapping[Any, Operand], torch: Any
) -> list[str]:
    """Adds the nodes of a call to a model; returns the names of its results.

    `names` are the tensors that it reads. If there are fewer names than results, the others are not
    computed. Raises Untranslated if the call cannot be expressed.
    """
    if str(node.target) in CREATED:
        return [writer.constant(as_array(node.target(*node.args, **node.kwargs), torch))]
    given = {
        name: mapped(value, names.__getitem__, torch) for name, value in arguments_of(node).items()
    }
    results = [found for value in values_of(node) if (found := signature(value)) is not None]
    call = OperatorCall(writer, given, results, common_type(node, torch))
    found = TRANSLATIONS[str(node.target)](call)
    return [found] if isinstance(found, str) else found


def common_type(node: Any, torch: Any) -> np.dtype[Any]:
    """The type in which PyTorch compares the first two arguments of a call."""
    two = [mapped(value, lambda n: n.meta["val"], torch) for value in node.args[:2]]
    if len(two) < 2 or not all(isinstance(x, torch.Tensor | int | float) for x in two):
        two = [values_of(node)[0]] * 2
    found = dtype_of(torch.empty((), dtype=torch.result_type(*two)))
    if found is None:
        raise Untranslated("it compares numbers in a type that is not one of the language's")
    return found


def model_of(module: Any, name: str, torch: Any) -> Any:
    """The ONNX model of a subgraph; inputs and outputs are in the order of the subgraph's."""
    writer = ModelWriter(name)
    names: dict[Any, Operand] = {}
    several: dict[Any, list[str]] = {}
    outputs: dict[str, Signature] = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            names[node] = operand(writer.input(signed(node)), node)
        elif node.target is operator.getitem:
            names[node] = operand(several[node.args[0]][node.args[1]], node)
        elif node.op == "call_function":
            found = translated(writer, node, names, torch)
            if isinstance(node.meta["val"], tuple | list):
                several[node] = found
            else:
                names[node] = operand(found[0], node)
    read = {one.name for node, one in names.items() if node.op == "placeholder"}
    for node in returned(module):
        called = names[node].name
        if called in read or called in outputs:
            (called,) = writer.node("Identity", [called])
        outputs[called] = signed(node)
    return writer.model(outputs)


def returned(module: Any) -> list[Any]:
    """The nodes that a subgraph returns."""
    (last,) = (node for node in module.graph.nodes if node.op == "output")
    found = last.args[0]
    return [*found] if isinstance(found, tuple | list) else [found]


def signed(node: Any) -> Signature:
    """The type and shape of a node in a subgraph that is taken."""
    found = signature(node.meta["val"])
    if found is None:
        raise InternalError(f"{node.name} is no array")
    return found


def operand(name: str, node: Any) -> Operand:
    """A node as an operand, with its name in the model."""
    own = signed(node)
    return Operand(name, own.dtype, own.shape)
