"""Networks whose images have their channels innermost give the same results."""

import numpy as np
import pytest
from onnx import TensorProto

import liftpy as lp
from liftpy.networks.operators.node import CHANNELS_LAST
from tests.networks.models import convolutional, model, node, value

ROWS, COLUMNS = 5, 7


def some(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def inputs_of(network, seed=1):
    rng = np.random.default_rng(seed)
    return [some(rng, *network.graph.tensors[n].shape) for n in network.graph.inputs]


def after_convolution(nodes, shape, inputs=(), batch=1, **constants):
    """Conv of 3 channels to 4 kernels, `c`, and nodes after it, the last of which returns `y`."""
    rng = np.random.default_rng(5)
    return model(
        [node("Conv", "x w", "c", "conv", pads=[1, 1, 1, 1]), *nodes],
        [value("x", [batch, 3, ROWS, COLUMNS]), *inputs],
        [value("y", shape)],
        w=some(rng, 4, 3, 3, 3),
        **constants,
    )


def one(operator, inputs="c", shape=(1, 4, ROWS, COLUMNS), more=(), batch=1, **given):
    arrays = {name: given.pop(name) for name in [*given] if isinstance(given[name], np.ndarray)}
    made = node(operator, inputs, "y", "last", **given)
    return after_convolution([made], [*shape], more, batch, **arrays)


def resized(shape, **given):
    """A Resize to a shape, without the optional inputs `roi` and `scales`."""
    made = node("Resize", "c k", "y", "last", **given)
    made.input[:] = ["c", "", "", "k"]
    return after_convolution([made], shape, k=np.int64(shape))


RNG = np.random.default_rng(11)
IMAGE = [1, 4, ROWS, COLUMNS]
MODELS = {
    "elementwise": one("Relu"),
    "bounds that are inputs": one(
        "Clip", "c low high", low=np.float32([-0.5]), high=np.float32([0.5])
    ),
    "a number": one("Mul", "c k", k=np.array(3, np.float32)),
    "a constant of each column": one("Add", "c k", k=some(RNG, COLUMNS)),
    "a constant of each channel": one("Add", "c k", k=some(RNG, 4, 1, 1)),
    "a constant of each pixel": one("Sub", "k c", k=some(RNG, 1, 1, ROWS, COLUMNS)),
    "a constant of rank 4": one("Mul", "c k", k=some(RNG, 1, 4, ROWS, 1)),
    "another input": one("Add", "c r", more=[value("r", IMAGE)]),
    "an input of rank 2": one("Add", "c r", more=[value("r", [ROWS, COLUMNS])]),
    "a larger batch": one("Add", "c r", (2, *IMAGE[1:]), [value("r", [2, *IMAGE[1:]])], 2),
    "batch normalization": one(
        "BatchNormalization",
        "c s b m v",
        **{n: some(RNG, 4) for n in "sbm"},
        v=np.abs(some(RNG, 4)),
    ),
    "concatenated channels": one(
        "Concat", "c r", (1, 7, ROWS, COLUMNS), [value("r", [1, 3, ROWS, COLUMNS])], axis=1
    ),
    "concatenated columns": one(
        "Concat", "c r", (1, 4, ROWS, 9), [value("r", [1, 4, ROWS, 2])], axis=-1
    ),
    "neighbouring channels": one("LRN", size=3),
    "largest of windows": one(
        "MaxPool",
        shape=(1, 4, 3, 4),
        kernel_shape=[3, 2],
        strides=[2, 2],
        pads=[1, 0, 0, 1],
        ceil_mode=1,
    ),
    "dilated windows": one("MaxPool", shape=(1, 4, 3, 5), kernel_shape=[2, 2], dilations=[2, 2]),
    "mean of windows": one(
        "AveragePool", shape=(1, 4, 3, 4), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]
    ),
    "mean of padded windows": one(
        "AveragePool",
        shape=(1, 4, 3, 4),
        kernel_shape=[3, 3],
        strides=[2, 2],
        pads=[1, 1, 1, 1],
        count_include_pad=1,
    ),
    "norm of windows": one("LpPool", shape=(1, 4, 4, 6), kernel_shape=[2, 2]),
    "blocks of equal pixels": resized((1, 4, 10, 14), mode="nearest"),
    "nearest pixels": resized((1, 4, 3, 11), mode="nearest", nearest_mode="floor"),
    "interpolated pixels and channels": resized((1, 3, 11, 5), mode="linear"),
    "mean of images": one("GlobalAveragePool", shape=(1, 4, 1, 1)),
    "largest of images": one("GlobalMaxPool", shape=(2, 4, 1, 1), batch=2),
    "groups": one("Conv", "c g", (1, 6, ROWS, COLUMNS), g=some(RNG, 6, 2, 1, 1), group=2),
    "kernels that are an input": one("Conv", "c g", (1, 6, 4, 5), [value("g", [6, 4, 2, 3])]),
    "depthwise": one(
        "Conv",
        "c g b",
        (1, 4, 3, 3),
        g=some(RNG, 4, 1, 3, 3),
        b=some(RNG, 4),
        group=4,
        strides=[2, 3],
        pads=[1, 1, 1, 1],
    ),
    "more kernels than groups": one(
        "Conv", "c g", (1, 8, ROWS, COLUMNS), g=some(RNG, 8, 1, 1, 1), group=4
    ),
    "an operator of the declared order": one("Softmax", axis=1),
    "a slope of each channel": one("PRelu", "c k", k=some(RNG, 4, 1, 1)),
    "a tensor in both orders": after_convolution(
        [
            node("Softmax", "c", "s", "softmax", axis=1),
            node("Relu", "c", "r", "relu"),
            node("Mul", "s r", "y", "mul"),
        ],
        IMAGE,
    ),
    "kernels that another convolution computes": after_convolution(
        [node("Conv", "r c", "y", "last")],
        [1, 1, 2, 3],
        [value("r", [1, 4, 6, 9])],
    ),
    "kernels that are the images": after_convolution(
        [node("Conv", "c c", "y", "last")], [1, 1, 1, 1]
    ),
    "scales from a mean": after_convolution(
        [
            node("GlobalAveragePool", "c", "p", "pool"),
            node("Sigmoid", "p", "s", "sigmoid"),
            node("Mul", "c s", "y", "mul"),
        ],
        IMAGE,
    ),
}


DECLARED = {
    "an operator of the declared order",
    "a slope of each channel",
    "kernels that are the images",
}
"""The models whose last node has a program for the declared order only."""


@pytest.mark.parametrize("name", MODELS)
def test_the_results_are_those_of_the_declared_order(name):
    declared = lp.network(MODELS[name])
    network, inputs = declared.channels_last(), inputs_of(declared)
    assert network["conv"].channels_last
    assert all(o.channels_last for o in network if o.name == "last") == (name not in DECLARED)
    wanted = declared.evaluate(inputs)["y"]
    for found in (network, network.joined()):
        np.testing.assert_allclose(found.evaluate(inputs)["y"], wanted, rtol=1e-5, atol=1e-6)
        result = found.check(inputs)
        assert result.passed, result
        assert not result.skipped or name == "neighbouring channels", result


def test_only_tensors_between_operations_have_another_order():
    network = lp.network(convolutional(), {"N": 2}).channels_last()
    tensors = network.graph.tensors
    borders = (*network.graph.inputs, *network.graph.outputs)
    assert all(tensors[n].order == () for n in borders)
    last = [n for n, t in tensors.items() if t.order == CHANNELS_LAST]
    assert last == ["c1", "n1", "r1", "c2", "c3", "a1", "x/channels_last", "p1/channels_last"]
    for tensor in tensors.values():
        full = np.zeros(tensor.declared_shape)
        assert tensor.stored(full).shape == tensor.shape
        assert tensor.declared(tensor.stored(full)).shape == full.shape


def test_an_order_is_changed_once_for_all_readers():
    network = lp.network(MODELS["a tensor in both orders"]).channels_last()
    assert [o.name for o in network if o.reorders] == [
        "x/channels_last",
        "c/channels_first",
        "s/channels_last",
        "y/channels_first",
    ]


def test_a_network_with_channels_last_stays_as_it_is():
    network = lp.network(MODELS["elementwise"]).channels_last()
    assert network.channels_last().graph is network.graph
    joined = network.joined()
    assert joined.channels_last().graph is joined.graph


def test_inputs_of_types_that_the_language_lacks_are_kept():
    strings = value("t", [2], TensorProto.STRING)
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("Identity", "t", "u", "same"),
        node("NonZero", "c", "y", "places"),
    ]
    made = model(
        nodes,
        [value("x", [1, 3, ROWS, COLUMNS]), strings],
        [value("y", [4, None], TensorProto.INT64), value("u", [2], TensorProto.STRING)],
        w=some(np.random.default_rng(2), 2, 3, 3, 3),
    )
    declared = lp.network(made, partial=True)
    x = some(np.random.default_rng(1), 1, 3, ROWS, COLUMNS)
    inputs = {"x": x, "t": np.array(["a", "b"], object)}
    wanted = declared.run(inputs, reference=True)
    found = declared.channels_last().joined().run(inputs, reference=True)
    np.testing.assert_array_equal(found["y"], wanted["y"])
    assert found["u"].tolist() == ["a", "b"]


def test_joined_operations_have_the_names_of_nodes():
    network = lp.network(convolutional(), {"N": 2}).channels_last().joined()
    assert [o.name for o in network] == [
        "conv1..relu1",
        "conv2",
        "conv3..add1",
        "pool1..reshape1",
        "dense1",
        "softmax1",
    ]


def test_a_network_with_channels_last_runs_on_a_device(device):
    declared = lp.network(convolutional(), {"N": 2})
    inputs = inputs_of(declared)
    network = declared.channels_last().joined()
    found, wanted = network.run(inputs, device=device), declared.evaluate(inputs)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-6)
    network.close()
