"""Graphs of PyTorch divided: subgraphs whose operators have programs, and the rest.

An operator is taken if it has a translation to ONNX, if the import has a program for each node of
it, and if ONNX's shape inference finds the types and shapes that PyTorch has.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from liftpy.errors import LiftError
from liftpy.networks.importing import graph_of
from liftpy.networks.onnx_writing import ModelWriter
from liftpy.pytorch.operators import MOVING, Untranslated
from liftpy.pytorch.translating import (
    CREATED,
    arguments_of,
    known,
    mapped,
    operand,
    signature,
    signed,
    translated,
    values_of,
)


@dataclass(frozen=True)
class Left:
    """An operator that PyTorch computes: the name of its node, the operator, and the reason."""

    node: str
    operator: str
    reason: str


@dataclass(frozen=True)
class Divided:
    """A graph with subgraphs that are taken, and the operators that are left.

    `places` are the nodes that call the subgraphs, by the name of the submodule; `taken` is the
    number of operators in them.
    """

    module: Any
    places: Mapping[str, Any]
    taken: int
    left: tuple[Left, ...]


def divided(module: Any, torch: Any) -> Divided:
    """A graph of functional operators (ATen), with what can be taken in submodules."""
    passes = torch.fx.passes
    reasons: dict[Any, str] = {}
    seen: dict[Any, str] = {}
    own = [node for node in module.graph.nodes if node.op == "call_function"]
    for node in own:
        reasons[node] = refusal(node, reasons, seen, torch)

    class Support(passes.operator_support.OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            return reasons.get(node) == ""

    partitioner = passes.infra.partitioner.CapabilityBasedPartitioner(
        module, Support(), allows_single_node_partition=True
    )
    parts = [part for part in partitioner.propose_partitions() if computes(part.nodes)]
    taken = {node for part in parts for node in part.nodes}
    made = partitioner.fuse_partitions(parts) if parts else module
    places = {str(node.target): node for node in made.graph.nodes if node.op == "call_module"}
    operators = [node for node in own if node.target is not operator.getitem]
    left = tuple(
        Left(node.name, str(node.target), reasons[node] or "by itself, it only moves elements")
        for node in operators
        if node not in taken
    )
    return Divided(made, places, len(operators) - len(left), left)


def computes(nodes: Iterable[Any]) -> bool:
    """Whether some nodes do more than move elements, which is not worth a copy to a device."""
    moving = MOVING | CREATED
    return any(n.target is not operator.getitem and str(n.target) not in moving for n in nodes)


def refusal(node: Any, reasons: Mapping[Any, str], seen: dict[Any, str], torch: Any) -> str:
    """Why a node is left to PyTorch; "" if it can be taken. `seen` has the answers by call."""
    if node.target is operator.getitem:
        return reasons.get(node.args[0], "it is a part of an argument")
    if not known(node.target):
        return "it has no translation to ONNX"
    results = [*read_results(node)]
    own = [signature(values_of(node)[k]) for k in results]
    tensors = [signature(n.meta.get("val")) for n in node.all_input_nodes]
    if None in own or None in tensors:
        return "it has a tensor whose type, shape or device is not supported"
    numbers = {n: f"%{k}" for k, n in enumerate(node.all_input_nodes)}
    given = {k: mapped(v, numbers.__getitem__, torch) for k, v in arguments_of(node).items()}
    key = str(node.target), str(given), str(tensors), str(own), str(results)
    if key not in seen:
        seen[key] = tried(node, results, torch)
    return seen[key]


def read_results(node: Any) -> Iterator[int]:
    """The numbers of the results of a node that others read."""
    if isinstance(node.meta.get("val"), tuple | list):
        yield from sorted({u.args[1] for u in node.users if u.target is operator.getitem})
    else:
        yield 0


def tried(node: Any, results: Iterable[int], torch: Any) -> str:
    """Why the import has no programs for the model of one call; "" if it has."""
    writer = ModelWriter(node.name)
    inputs = {n: operand(writer.input(signed(n)), n) for n in node.all_input_nodes}
    try:
        names = translated(writer, node, inputs, torch)
        if missing := [k for k in results if k >= len(names)]:
            return f"its result {missing[0]} is not expressed"
        outputs = {names[k]: signature(values_of(node)[k]) for k in results}
        graph = graph_of(writer.model({n: s for n, s in outputs.items() if s is not None}))
    except Untranslated as declined:
        return str(declined)
    except LiftError as refused:
        return " ".join(str(refused).split())
    return "; ".join(dict.fromkeys(u.reason for u in graph.unsupported))
