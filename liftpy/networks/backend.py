"""liftpy as a backend of ONNX's own test suite, and of tools that take a `BackendRep`.

The outputs are those of the programs' meanings in NumPy. Inputs that decide shapes (the second
input of Reshape, for example) are known only when a model runs: the model is then imported for
their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from liftpy.errors import NetworkRefused
from liftpy.networks.graph import listed
from liftpy.networks.importing import graph_of
from liftpy.networks.network import Network
from liftpy.networks.onnx_library import Backend, BackendRep, Model


class LiftpyRep(BackendRep):
    """A model that is ready to run."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.network: Network | None = None
        """The network of the last run."""

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs of the model, in its order."""
        network = specialized(self.model, inputs)
        self.network = network
        if network.unsupported:
            raise NetworkRefused(listed(network.unsupported), network.unsupported)
        graph = network.graph
        given = dict(zip(names_of_inputs(self.model), inputs, strict=False))
        found = network.evaluate({name: given[name] for name in graph.inputs})
        return tuple(found[name] for name in graph.outputs)


class LiftpyBackend(Backend):
    """The backend `liftpy`: `onnx.backend.base.Backend` over programs of the language."""

    @classmethod
    def prepare(cls, model: Model, device: str = "CPU", **_: Any) -> LiftpyRep:
        """The model, ready to run. NetworkRefused names all nodes without a program."""
        if not cls.supports_device(device):
            raise NetworkRefused(f"programs are evaluated on the processor, not on {device}")
        refused = graph_of(model).unsupported
        if refused and not any(u.needs for u in refused):
            raise NetworkRefused(listed(refused), refused)
        return LiftpyRep(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether the device is the processor."""
        return device.partition(":")[0] == "CPU"


def names_of_inputs(model: Model) -> list[str]:
    """The inputs of a model that are not its initializers."""
    known = {tensor.name for tensor in model.graph.initializer}
    return [value.name for value in model.graph.input if value.name not in known]


def specialized(model: Model, inputs: Sequence[Any]) -> Network:
    """The network for given inputs, with those as constants on which programs depend."""
    given = dict(zip(names_of_inputs(model), map(np.asarray, inputs), strict=False))
    fixed: dict[str, Any] = {}
    while True:
        network = Network(graph_of(model, values=fixed))
        needed = {name for u in network.unsupported for name in u.needs} - fixed.keys()
        if not needed:
            return network
        fixed |= {name: given[name] for name in needed}
