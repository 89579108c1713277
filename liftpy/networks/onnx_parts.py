"""The parts of an ONNX model: inner graphs, nodes, tensors, and what is read across them."""

from __future__ import annotations

from collections.abc import Iterable

import onnx


def graphs_in(node: onnx.NodeProto) -> Iterable[onnx.GraphProto]:
    """The inner graphs of a node, as those of If."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def nodes_of(nodes: Iterable[onnx.NodeProto]) -> Iterable[onnx.NodeProto]:
    """The nodes, and those of their inner graphs."""
    for node in nodes:
        yield node
        for graph in graphs_in(node):
            yield from nodes_of(graph.node)


def graphs_of(model: onnx.ModelProto) -> Iterable[onnx.GraphProto]:
    """The graph of a model, and the inner graphs in it."""
    yield model.graph
    for node in nodes_of(model.graph.node):
        yield from graphs_in(node)


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs of a model that are not its initializers."""
    known = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in known]


def tensors_of(model: onnx.ModelProto) -> Iterable[onnx.TensorProto]:
    """All tensors of a model, also in inner graphs and functions: initializers and attributes.

    Of a sparse tensor, these are its values and its indices.
    """
    nodes = [n for part in (model.graph, *model.functions) for n in nodes_of(part.node)]
    sparse: list[onnx.SparseTensorProto] = []
    for graph in (model.graph, *(g for node in nodes for g in graphs_in(node))):
        yield from graph.initializer
        sparse += graph.sparse_initializer
    for attribute in attributes_in(model, nodes):
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        sparse += [*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else [])]
        sparse += attribute.sparse_tensors
    for tensor in sparse:
        yield tensor.values
        yield tensor.indices


def attributes_in(
    model: onnx.ModelProto, nodes: Iterable[onnx.NodeProto]
) -> Iterable[onnx.AttributeProto]:
    """The attributes of nodes, and the default ones of the model's functions."""
    for owner in nodes:
        yield from owner.attribute
    for function in model.functions:
        yield from function.attribute_proto


def captured(node: onnx.NodeProto) -> tuple[str, ...]:
    """The tensors of the graph around a node that its inner graphs read, each once."""
    found: dict[str, None] = {}
    for graph in graphs_in(node):
        own = {value.name for value in (*graph.input, *graph.initializer)}
        own |= {tensor.values.name for tensor in graph.sparse_initializer}
        own |= {name for inner in graph.node for name in inner.output}
        read = [value.name for value in graph.output]
        for inner in graph.node:
            read += [*inner.input, *captured(inner)]
        found |= dict.fromkeys(name for name in read if name and name not in own)
    return tuple(found)
