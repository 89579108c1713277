"""Graphs of PyTorch whose subgraphs are computed by the meaning of their programs, in NumPy."""

import pytest

torch = pytest.importorskip("torch", reason="torch is an extra: pip install 'liftpy[torch]'")

from liftpy.pytorch.compiling import TorchBackend  # noqa: E402  torch may be absent


class Meaning:
    """A network in place of a plan, without kernels."""

    def __init__(self, network):
        self.network = network
        self.graph = network.graph

    def run(self, inputs):
        return self.network.evaluate(inputs)

    def renewed(self, graph):
        return None

    def close(self):
        pass


def by_meaning(f, *inputs):
    """The value of a function by `torch.compile`, and the backend."""
    backend = TorchBackend(Meaning, "compared", torch)
    torch._dynamo.reset()
    compiled = torch.compile(f, backend=backend)
    with torch.no_grad():
        found = compiled(*inputs)
    backend.compiled_function = compiled  # the backend does not keep its subgraphs
    return found, backend


def said(caplog):
    """The messages of the backend."""
    return [record.message for record in caplog.records if record.name == "liftpy.pytorch"]
