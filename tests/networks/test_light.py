"""The real graphs that the package onnx carries: all nodes of all nine have programs."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import liftpy as lp
from liftpy.networks.arena import lower_bound
from liftpy.networks.layout import part_block
from liftpy.networks.sharing import sharing
from tests.benchmarks.scripts import script

FOLDER = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
GRAPHS = {
    "bvlc_alexnet": 24,
    "densenet121": 668,
    "inception_v1": 143,
    "inception_v2": 371,
    "resnet50": 176,
    "shufflenet": 203,
    "squeezenet": 66,
    "vgg19": 46,
    "zfnet512": 22,
}

JOINED = {
    "bvlc_alexnet": (14, 14),
    "densenet121": (242, 188),
    "inception_v1": (84, 73),
    "inception_v2": (94, 59),
    "resnet50": (57, 28),
    "shufflenet": (59, 27),
    "squeezenet": (39, 28),
    "vgg19": (25, 18),
    "zfnet512": (14, 13),
}
"""The numbers of joined operations and of their distinct programs; docs/networks.md has them."""


UNMOVED = {"densenet121": 54, "inception_v1": 7, "inception_v2": 10, "squeezenet": 8}
"""The numbers of concatenations without a kernel, as in docs/networks.md."""


def test_these_are_all_of_them():
    assert {p.stem.removeprefix("light_") for p in FOLDER.glob("*.onnx")} == {*GRAPHS}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_node_has_a_program(name):
    network = lp.network(FOLDER / f"light_{name}.onnx")
    assert len(network) == GRAPHS[name]
    assert network.unsupported == ()
    assert len(network.graph.programs) < len(network)
    graph = network.graph
    assert graph.peak_bytes >= sum(graph.tensors[n].bytes for n in graph.inputs)
    assert graph.tensors[graph.outputs[0]].shape[:2] == (1, 1000)
    joined = network.joined()
    assert (len(joined), len(joined.graph.programs)) == JOINED[name]
    assert sum(max(1, len(o.parts)) for o in joined) == len(network)
    assert joined.graph.peak_bytes <= graph.peak_bytes
    shared = sharing(joined.graph, 128)
    assert len(shared.unmoved) == UNMOVED.get(name, 0)
    blocks = [part_block(joined.graph, part) for part in shared.parts]
    assert lower_bound(blocks) == joined.graph.peak_bytes  # it is that of the first layers
    alone = {o.operator for o in joined if not o.parts}
    assert not alone & {"Relu", "BatchNormalization", "Sum", "Dropout"}


@pytest.mark.parametrize("meaning", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_squeezenet_with_random_weights_agrees(meaning):
    """With a smaller image; `benchmarks/real_networks.py` compares all nine at full size."""
    told = script("real_networks").compare("squeezenet", seed=4, side=33, meaning=meaning)
    assert told.startswith("squeezenet      39 operations  largest difference")


def test_a_wrong_program_is_found_with_random_weights(monkeypatch):
    real = script("real_networks")
    true = real.by_meaning

    def wrong(operation, program, arrays):
        """Scales the last channel of one convolution, as wrong weights would."""
        found = [np.array(a) for a in true(operation, program, arrays)]
        if operation.name == "n35..n36":
            found[0][:, -1] *= np.float32(1.001)
        return found

    monkeypatch.setattr(real, "by_meaning", wrong)
    with pytest.raises(AssertionError, match="squeezenet: r36 differs by"):
        real.compare("squeezenet", seed=4, side=33, meaning=True)
