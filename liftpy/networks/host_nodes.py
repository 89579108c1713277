"""Nodes without a program, computed on the host by ONNX Runtime or ONNX's reference evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from liftpy.explore.optional import needing
from liftpy.networks.executing import Array, Reference
from liftpy.networks.graph import Graph, Operation


def by_onnx(module: str) -> Any:
    """A module of this package that needs the library `onnx`."""
    return needing("onnx", "onnx", f"liftpy.networks.{module}", "an ONNX model")


def reference_evaluator() -> Reference:
    """ONNX's reference evaluator, for operations without a program."""
    return by_onnx("evaluating").by_reference


def has_onnx_runtime() -> bool:
    """Whether ONNX Runtime is installed."""
    return find_spec("onnxruntime") is not None


def host_library() -> str:
    """The library that computes nodes without a program, for messages."""
    return "ONNX Runtime" if has_onnx_runtime() else "ONNX's reference evaluator"


class HostNodes:
    """Computes the operations of one graph that have no program.

    ONNX Runtime computes them if it is installed. ONNX's reference evaluator computes them
    otherwise, and those that ONNX Runtime does not support.
    """

    def __init__(self) -> None:
        self._evaluator = reference_evaluator()
        self._runtime = has_onnx_runtime()
        self._models: dict[Any, Callable[[Mapping[str, Array]], Sequence[Array]] | None] = {}

    def __call__(
        self, graph: Graph, operation: Operation, held: Mapping[str, Array]
    ) -> Sequence[Array]:
        """The outputs of an operation; `held` are all arrays that it reads.

        NetworkRefused if neither library can compute it.
        """
        if not self._runtime:
            return self._evaluator(graph, operation, held)
        given = by_onnx("evaluating").declared_inputs(graph, operation, held)
        key = operation.name, *map(kind_of, given.values())  # data may decide the rank of an array
        if key not in self._models:
            made = by_onnx("onnx_runtime").node_model(operation, graph.opsets, given)
            self._models[key] = made
        model = self._models[key]
        return self._evaluator(graph, operation, held) if model is None else model(given)


def kind_of(value: Array | list[Array]) -> tuple[Any, ...]:
    """What a session of ONNX Runtime is made for: the type and rank of an array, or a sequence."""
    if isinstance(value, list):
        return (*{one.dtype for one in value},)
    return value.dtype, value.ndim


def host_nodes(graph: Graph) -> Reference | None:
    """What computes the operations of a graph that have no program; None if all have one."""
    return HostNodes() if graph.unsupported else None
