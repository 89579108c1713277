"""The real graphs that the package onnx carries: all nodes of all nine have programs."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import liftpy as lp

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


def test_these_are_all_of_them():
    assert {p.stem.removeprefix("light_") for p in FOLDER.glob("*.onnx")} == {*GRAPHS}


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
    alone = {o.operator for o in joined if not o.parts}
    assert not alone & {"Relu", "BatchNormalization", "Sum", "Dropout"}


def with_random_weights(path, seed):
    """The model with random weights: with its own constant ones, wrong programs agree, too."""
    model = onnx.load(path)
    model.ir_version = 8  # the first versions list every initializer among the inputs
    rng = np.random.default_rng(seed)
    nodes = [n for n in model.graph.node if n.op_type != "ConstantOfShape"]
    shapes = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    for made in [n for n in model.graph.node if n.op_type == "ConstantOfShape"]:
        shape = tuple(shapes[made.input[0]])
        weights = rng.standard_normal(shape) * np.sqrt(2 / max(1, np.prod(shape[1:])))
        tensor = onnx.numpy_helper.from_array(weights.astype(np.float32), made.output[0])
        model.graph.initializer.append(tensor)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


@pytest.mark.slow
def test_squeezenet_with_random_weights_agrees_with_the_reference():
    network = lp.network(with_random_weights(FOLDER / "light_squeezenet.onnx", seed=4))
    assert len(network) == GRAPHS["squeezenet"]
    x = np.random.default_rng(1).standard_normal((1, 3, 224, 224)).astype(np.float32)
    found = network.check([x])
    assert found.passed, found
    assert len(found.errors) == len(network) - 1
    (skipped,) = found.skipped  # a Softmax of an opset before 13
    assert network[skipped].operator == "Softmax"
