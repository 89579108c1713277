"""liftpy as a backend of ONNX's own test suite, and of tools that take a `BackendRep`.

The outputs are those of the programs' meanings in NumPy. Inputs that decide shapes (the second
input of Reshape, for example) are known only when a model runs: the model is then imported for
their values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liftpy.errors import ArgumentRefused, NetworkRefused, plural
from liftpy.networks.graph import listed
from liftpy.networks.importing import graph_of
from liftpy.networks.inputs import dynamic, lengths_of
from liftpy.networks.network import Network
from liftpy.networks.onnx_library import (
    NEWEST,
    Backend,
    BackendRep,
    Model,
    NodeProto,
    model_of_call,
)
from liftpy.networks.onnx_parts import inputs_of


class LiftpyRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: Model, network: Network | None = None) -> None:
        self.model = model
        self.static = network
        """The network, if it is the same for all inputs."""
        self.network: Network | None = None
        """The network of the last run."""

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs of the model, in its order."""
        given = arrays_of(self.model, inputs)
        network = specialized(self.model, given) if self.static is None else self.static
        self.network = network
        if network.unsupported:
            raise NetworkRefused(listed(network.unsupported), network.unsupported)
        graph = network.graph
        found = network.evaluate({name: given[name] for name in graph.inputs})
        return tuple(found[name] for name in graph.outputs)


class LiftpyBackend(Backend):
    """The backend `liftpy`: `onnx.backend.base.Backend` over programs of the language."""

    @classmethod
    def prepare(cls, model: Model, device: str = "CPU", **_: Any) -> LiftpyRep:
        """The model, ready to run. NetworkRefused names all nodes without a program.

        Dynamic dimensions get the lengths that the inputs have when the model runs.
        """
        if not cls.supports_device(device):
            raise NetworkRefused(f"programs are evaluated on the processor, not on {device}")
        dimensions = [k for _, k, _, _ in dynamic(model)]
        if any(dimensions):
            return LiftpyRep(model)  # its programs are known when it runs
        graph = graph_of(model)
        refused = graph.unsupported
        if refused and not any(u.needs for u in refused):
            raise NetworkRefused(listed(refused), refused)
        return LiftpyRep(model, None if refused or dimensions else Network(graph))

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Any = None,  # noqa: ARG003  the types are inferred
        **more: Any,
    ) -> tuple[Any, ...]:
        """The outputs of one node of ONNX's own operators, in the opset `opset_version`."""
        names = [n for n in node.input if n]
        given = dict(zip(names, map(np.asarray, inputs), strict=False))
        if len(inputs) != len(names):
            raise ArgumentRefused(
                f"{node.op_type} takes {plural(len(names), 'input')}, got {len(inputs)}"
            )
        made = model_of_call(node, more.get("opset_version", NEWEST), given)
        return cls.prepare(made, device).run([*given.values()])

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the processor."""
        return device.partition(":")[0] == "CPU"


def arrays_of(model: Model, inputs: Any) -> dict[str, Any]:
    """The inputs of a model by name; ArgumentRefused if there are too many or too few."""
    names = [value.name for value in inputs_of(model)]
    given = [*inputs]
    if len(given) != len(names):
        raise ArgumentRefused(
            f"the model takes {plural(len(names), 'input')}, got {len(given)}\n"
            f"  its inputs are: {', '.join(names) or 'none'}"
        )
    return {
        n: x if isinstance(x, list) else np.asarray(x) for n, x in zip(names, given, strict=True)
    }


def specialized(model: Model, given: Mapping[str, Any]) -> Network:
    """The network for given inputs, with those as constants on which programs depend."""
    tensors = [v.name for v in inputs_of(model) if v.type.HasField("tensor_type")]
    arrays = {name: np.asarray(given[name]) for name in tensors}
    sizes = lengths_of(model, arrays)
    fixed: dict[str, Any] = {}
    while True:
        network = Network(graph_of(model, sizes, fixed))
        needed = {name for u in network.unsupported for name in u.needs} - fixed.keys()
        needed &= arrays.keys()
        if not needed:
            return network
        fixed |= {name: arrays[name] for name in needed}
