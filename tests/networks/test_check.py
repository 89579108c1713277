"""Each operation is compared with ONNX's reference evaluator; wrong inputs are refused."""

from dataclasses import replace

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ArgumentRefused
from liftpy.networks.network import Network
from tests.networks.models import convolutional, model, node, one, value

X = np.random.default_rng(11).standard_normal((1, 3, 11, 13)).astype(np.float32)


@pytest.fixture(scope="module")
def network():
    return lp.network(convolutional())


def test_a_network_agrees_with_the_reference(network):
    found = network.check([X])
    assert found.passed
    assert list(found.errors) == [o.name for o in network]
    assert 0 < max(found.errors.values()) < 1e-5
    assert str(found).startswith("10 operations agree with ONNX's reference evaluator")


def test_a_result_of_rank_0_is_compared():
    nodes = [node("ReduceSum", "x", "y", "sum1", keepdims=0)]
    small = lp.network(model(nodes, [value("x", [3])], [value("y", [])]))
    x = np.float32([2, 3, 5])
    assert small.check([x]).passed

    @lp.program
    def reduce_sum(x: lp.array(lp.f32, 3)):
        return x >> lp.reduce(lp.add, 1)

    difference = with_program(small, "sum1", reduce_sum).check([x]).difference
    assert (difference.index, difference.got, difference.wanted) == ((), 11, 10)


def with_program(network, name, program):
    """The network with another program for one operation."""
    operations = tuple(
        replace(o, program=program) if o.name == name else o for o in network.graph.operations
    )
    return Network(replace(network.graph, operations=operations))


def test_the_first_difference_has_node_index_values_and_tolerance(network):
    @lp.program
    def leaky(x: lp.array(lp.f32, 1, 5, 6, 7)):
        positive = lambda v: lp.select(v < -1, v + 1, lp.larger(v, 0))
        return x >> lp.map(lp.map(lp.map(lp.map(positive))))

    found = with_program(network, "relu1", leaky).check([X])
    assert not found.passed
    difference = found.difference
    assert (difference.operation, difference.operator, difference.tensor) == ("relu1", "Relu", "r1")
    normal = network.evaluate([X])  # the inputs of relu1 are those of the whole network
    assert normal["y"].shape == (1, 7)
    assert difference.wanted == 0
    assert difference.got < 0
    assert difference.tolerance == 1e-4
    assert "relu1 (Relu): `r1` at [0, " in str(found)
    assert "conv2" not in found.errors, "it ends at the first difference"


def test_a_tolerance_may_be_given(network):
    assert not network.check([X], tolerance=1e-9).passed


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "misses x\n  its inputs are: x"),
        ({"x": X, "z": X}, "has no input z"),
        ([X, X], "takes 1 input, got 2"),
        ([X.astype(np.float64)], "x needs float32 numbers of shape .1, 3, 11, 13., got float64"),
        ([X[0]], "got float32 of shape .3, 11, 13."),
    ],
)
def test_inputs_that_do_not_fit_are_refused(network, inputs, message):
    with pytest.raises(ArgumentRefused, match=message):
        network.evaluate(inputs)


def test_a_network_runs_on_a_device(network, device):
    small = lp.network(convolutional())
    found = small.run([X], device=device)["y"]
    np.testing.assert_allclose(found, network.evaluate([X])["y"], rtol=1e-4, atol=1e-6)
    small.close()


WRONG = {
    "softmax": one("Softmax", (2, 3, 5), opset=11),
    "log softmax": one("LogSoftmax", (2, 3, 5), opset=11),
    "hardmax": one("Hardmax", (2, 3, 5), opset=11),
    "global max pool": one("GlobalMaxPool", (2, 3, 5)),
    "norm of order 1": one("LpNormalization", (2, 3), p=1, axis=1),
    "local response": one("LRN", (2, 7, 3, 3), size=2),
    "negative pads": one("Pad", (7,), constants=[np.int64([-1, 2])]),
    "mean": one("Mean", (3, 1), (2,), rank=2),
}
RIGHT = {
    "softmax of the last axis": one("Softmax", (2, 3, 5), opset=11, axis=2),
    "softmax since opset 13": one("Softmax", (2, 3, 5), opset=13, axis=1),
    "global max pool": one("GlobalMaxPool", (2, 3, 5, 7)),
    "norm of order 2": one("LpNormalization", (2, 3), p=2, axis=1),
    "local response": one("LRN", (5, 5, 3, 3), size=2),
}


def checked(made):
    found = lp.network(made)
    rng = np.random.default_rng(4)
    shapes = [found.graph.tensors[name].shape for name in found.graph.inputs]
    return found.check([rng.standard_normal(shape).astype(np.float32) for shape in shapes])


@pytest.mark.parametrize("made", WRONG.values(), ids=WRONG)
def test_operations_in_which_the_evaluator_errs_are_not_compared(made):
    found = checked(made)
    assert found.passed
    assert not found.errors
    assert [*found.skipped] == ["op"]
    assert "\nnot compared: 1 operation\n  op: " in str(found)
    assert "ONNX's reference evaluator " in found.skipped["op"]


@pytest.mark.parametrize("made", RIGHT.values(), ids=RIGHT)
def test_operations_in_which_the_evaluator_is_right_are_compared(made):
    found = checked(made)
    assert found.passed
    assert [*found.errors] == ["op"]
    assert not found.skipped
    assert str(found).startswith("1 operation agrees with")


@pytest.mark.parametrize(("opset", "more"), [(7, {"spatial": 1}), (9, {}), (13, {}), (15, {})])
def test_a_normalization_is_compared_at_inference(opset, more):
    """Before opset 14, ONNX's evaluator would normalize as in training."""
    names = ("scale", "shift", "mean", "var")
    arrays = {n: np.float32([1.5, 0.5]) * k for k, n in enumerate(names, start=1)}
    nodes = [node("BatchNormalization", "x scale shift mean var", "y", "norm1", **more)]
    shapes = [value("x", [3, 2, 5])], [value("y", [3, 2, 5])]
    x = np.random.default_rng(5).standard_normal((3, 2, 5)).astype(np.float32)
    network = lp.network(model(nodes, *shapes, opset=opset, **arrays))
    found = network.check([x])
    assert found.passed, found
    assert not found.skipped
