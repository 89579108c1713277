"""Networks with joined operations: which are joined, their meaning, and their spaces."""

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

import liftpy as lp
from liftpy.compile import Kernel
from liftpy.explore.one_candidate import candidate_of
from liftpy.networks.joining import MOST_NODES
from liftpy.rewrite.partition import direct
from liftpy.rewrite.strategies.shapes import lets
from tests.networks.models import convolutional, model, node, value


def some(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def names(network):
    return [operation.name for operation in network]


def normalized(batch=1, *, bias=False, residual=False, seed=5, stride=1):
    """Conv, BatchNormalization, perhaps Add, Relu: 3 channels of 5x7 to 4 kernels.

    stride: between rows; with 3, there are no forms by F(m, r).
    """
    rng = np.random.default_rng(seed)
    shape = [batch, 4, 4 // stride + 1, 7]
    windows = {"pads": [1, 1, 1, 1], "strides": [stride, 1]}
    nodes = [
        node("Conv", "x w b" if bias else "x w", "c", "conv", **windows),
        node("BatchNormalization", "c scale shift mean var", "n", "norm", epsilon=1e-3),
        node("Relu", "n", "y", "relu"),
    ]
    if residual:
        nodes[2:] = [node("Add", "n r", "a", "add"), node("Relu", "a", "y", "relu")]
    arrays = {name: some(rng, 4) for name in ("scale", "shift", "mean")}
    if bias:
        arrays["b"] = some(rng, 4)
    return model(
        nodes,
        [value("x", [batch, 3, 5, 7]), *([value("r", shape)] if residual else [])],
        [value("y", shape)],
        w=some(rng, 4, 3, 3, 3),
        var=np.abs(some(rng, 4)) + np.float32(0.5),
        **arrays,
    )


def inputs_of(network, seed=1):
    rng = np.random.default_rng(seed)
    return [some(rng, *network.graph.tensors[n].shape) for n in network.graph.inputs]


# --- which operations are joined ------------------------------------------------------------------


def test_a_group_ends_at_several_readers_and_at_the_next_fold():
    network = lp.network(convolutional(), {"N": 2}).joined()
    assert names(network) == [
        "conv1..relu1",  # r1 has two readers
        "conv2",
        "conv3..add1",
        "pool1..reshape1",
        "dense1",
        "softmax1",
    ]
    assert network["conv1..relu1"].operator == "Conv+BatchNormalization+Relu"
    assert [part.name for part in network["conv3..add1"].parts] == ["conv3", "add1"]
    assert {*network.graph.inside} == {"c1", "n1", "c3", "p1"}
    assert network.graph.tensors["r1"].readers == ("conv2", "conv3..add1")
    assert network.graph.tensors["a1"].producer == "conv3..add1"


def test_a_result_of_the_network_is_not_hidden_in_a_group():
    nodes = [node("Exp", "x", "y", "exp"), node("Neg", "y", "z", "neg")]
    shapes = [value("y", [3]), value("z", [3])]
    assert names(lp.network(model(nodes, [value("x", [3])], shapes)).joined()) == ["exp", "neg"]
    assert names(lp.network(model(nodes, [value("x", [3])], shapes[1:])).joined()) == ["exp..neg"]


def test_padding_joins_its_reader_and_a_flattened_result_its_producer():
    nodes = [
        node("Pad", "x pads", "p", "pad"),
        node("MaxPool", "p", "m", "pool", kernel_shape=[2, 2]),
        node("Flatten", "m", "y", "flatten"),
    ]
    made = model(
        nodes,
        [value("x", [1, 2, 3, 5])],
        [value("y", [1, None])],
        pads=np.array([0, 0, 1, 0, 0, 0, 0, 1]),
    )
    network = lp.network(made).joined()
    assert names(network) == ["pad..flatten"]
    assert network.check(inputs_of(network)).passed


def test_an_operation_that_reads_a_tensor_twice_or_repeats_its_elements_stays_apart():
    twice = [node("Exp", "x", "e", "exp"), node("Mul", "e e", "y", "square")]
    network = lp.network(model(twice, [value("x", [3])], [value("y", [3])])).joined()
    assert names(network) == ["exp", "square"]
    wider = [node("Exp", "x", "e", "exp"), node("Add", "e z", "y", "add")]
    shapes = [value("x", [3]), value("z", [5, 3])]
    assert names(lp.network(model(wider, shapes, [value("y", [5, 3])])).joined()) == ["exp", "add"]


def test_of_two_convolutions_one_is_joined_with_their_sum():
    rng = np.random.default_rng(2)
    nodes = [
        node("Conv", "x w", "a", "left"),
        node("Conv", "x v", "b", "right"),
        node("Add", "a b", "y", "add"),
    ]
    made = model(
        nodes,
        [value("x", [1, 2, 3, 5])],
        [value("y", [1, 3, 3, 5])],
        w=some(rng, 3, 2, 1, 1),
        v=some(rng, 3, 2, 1, 1),
    )
    network = lp.network(made).joined()
    assert names(network) == ["right", "left..add"]
    assert network.check(inputs_of(network)).passed


def test_a_group_has_a_limited_number_of_nodes():
    count = 2 * MOST_NODES + 1
    nodes = [node("Sin", f"x{k}", f"x{k + 1}", f"sin{k}") for k in range(count)]
    made = model(nodes, [value("x0", [3])], [value(f"x{count}", [3])])
    network = lp.network(made).joined()
    assert [len(operation.parts) for operation in network] == [MOST_NODES, MOST_NODES, 0]
    assert network.check(inputs_of(network)).passed


def test_nodes_without_a_program_stay_as_they_are():
    nodes = [node("Det", "x", "d", "det"), node("Neg", "d", "n", "neg"), node("Exp", "n", "y", "e")]
    made = model(nodes, [value("x", [3, 2, 2])], [value("y", [3])])
    network = lp.network(made, partial=True).joined()
    assert names(network) == ["det", "neg..e"]
    (x,) = inputs_of(network)
    assert network.evaluate([x], reference=True)["y"].shape == (3,)


# --- their meaning --------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_a_normalization_becomes_part_of_the_weights(bias, residual):
    network = lp.network(normalized(bias=bias, residual=residual))
    joined = network.joined()
    (operation,) = joined
    given = inputs_of(network)
    assert joined.check(given).passed
    found, wanted = joined.evaluate(given)["y"], network.evaluate(given)["y"]
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5)
    (made, *_) = direct(operation.program)
    assert [stage.name for stage in made.stages] == ["factors", "starts", "result"]
    folded = {p.name for stage in made.stages[:2] for p in stage.program.params}
    assert folded <= operation.program.constants


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize(("batch", "groups"), [(2, 1), (1, 2), (2, 2), (1, 4), (2, 4)])
def test_a_normalization_becomes_part_of_grouped_weights(batch, groups, channels_last):
    """With a bias: factors and starts read no array that the other one alone needs."""
    rng, kernels = np.random.default_rng(groups), 4 if groups == 4 else 6
    arrays = {name: some(rng, kernels) for name in ("scale", "shift", "mean", "b")}
    made = model(
        [
            node("Conv", "x w b", "c", "conv", group=groups),
            node("BatchNormalization", "c scale shift mean var", "y", "norm"),
        ],
        [value("x", [batch, 4, 3, 5])],
        [value("y", [batch, kernels, 1, 3])],
        w=some(rng, kernels, 4 // groups, 3, 3),
        var=np.abs(some(rng, kernels)) + np.float32(0.5),
        **arrays,
    )
    network = lp.network(made)
    network = (network.channels_last() if channels_last else network).joined()
    assert network.check(inputs_of(network)).passed
    program = next(o.program for o in network if "BatchNormalization" in o.operator)
    factors, starts = (let.args[0].free for let in itertools.islice(lets(program.body.body), 2))
    assert {p.name for p in factors} == {"w", "scale", "b1", "input_mean", "input_var"}
    assert {p.name for p in starts} == {"b", "scale", "b1", "input_mean", "input_var"}


def test_two_normalizations_become_part_of_the_weights():
    rng = np.random.default_rng(4)
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("BatchNormalization", "c shift scale mean var", "n", "norm1"),
        node("BatchNormalization", "n scale shift mean var", "y", "norm2"),
    ]
    made = model(
        nodes,
        [value("x", [1, 3, 2, 5])],
        [value("y", [1, 4, 2, 5])],
        w=some(rng, 4, 3, 1, 1),
        var=np.abs(some(rng, 4)) + np.float32(0.5),
        **{name: some(rng, 4) for name in ("scale", "shift", "mean")},
    )
    network = lp.network(made).joined()
    (operation,) = network
    assert network.check(inputs_of(network)).passed
    (made, *_) = direct(operation.program)
    assert [s.name for s in made.stages] == ["factors", "starts", "factors1", "starts1", "result"]


@pytest.mark.parametrize("operator", ["Add", "Mul"])
def test_an_operand_for_each_position_does_not_repeat_the_weights(operator):
    rng = np.random.default_rng(5)
    made = model(
        [node("MatMul", "x w", "p", "product"), node(operator, "p code", "y", "coded")],
        [value("x", [5, 7])],
        [value("y", [5, 3])],
        w=some(rng, 7, 3),
        code=some(rng, 5, 3),
    )
    network = lp.network(made).joined()
    (operation,) = network
    assert not [*lets(operation.program.body.body)]
    assert network.check(inputs_of(network)).passed


def test_weights_that_are_inputs_keep_the_normalization():
    made = normalized()
    del made.graph.initializer[[t.name for t in made.graph.initializer].index("w")]
    made.graph.input.append(value("w", [4, 3, 3, 3]))
    network = lp.network(made).joined()
    (operation,) = network
    assert "factors" not in lp.show(operation.program)
    assert network.check(inputs_of(network)).passed


UNARY = ("Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity")


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_random_graphs_keep_their_meaning(data):
    """Chains and branches of convolutions, normalizations, activations, residuals, channels."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    batch, nodes, arrays, tensors = data.draw(st.sampled_from([1, 2])), [], {}, ["x"]
    for k in range(data.draw(st.integers(1, 9))):
        kind = data.draw(st.sampled_from(["Conv", "BatchNormalization", "Add", "Mul", "unary"]))
        of, made = data.draw(st.sampled_from(tensors[-3:])), f"t{k}"
        if kind == "unary":
            operator, reads = data.draw(st.sampled_from(UNARY)), of
        elif kind == "Conv":
            arrays[f"w{k}"], operator, reads = some(rng, 3, 3, 3, 1) / 3, kind, f"{of} w{k}"
        elif kind == "BatchNormalization":
            own = [f"{n}{k}" for n in ("s", "b", "m", "v")]
            arrays |= {n: np.abs(some(rng, 3)) + np.float32(0.5) for n in own}
            operator, reads = kind, f"{of} {' '.join(own)}"
        else:
            arrays[f"c{k}"] = some(rng, 3, 1, 1)
            other = data.draw(st.sampled_from([*tensors, f"c{k}"]))
            operator, reads = kind, f"{of} {other}"
        extra = {"pads": [1, 0, 1, 0]} if kind == "Conv" else {}
        nodes.append(node(operator, reads, made, f"n{k}", **extra))
        tensors.append(made)
    shape = [batch, 3, 5, 2]
    made = model(nodes, [value("x", shape)], [value(tensors[-1], shape)], **arrays)
    network = lp.network(made).joined()
    given_arrays = inputs_of(network)
    found = network.check(given_arrays)
    assert found.passed, found
    assert sum(max(1, len(o.parts)) for o in network) == len(lp.network(made))


# --- their spaces ---------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("residual", [False, True])
def test_an_epilogue_is_fused_into_register_blocks(batch, residual):
    """ONNX's layout has channels first: transposes and splits are between the sums and the end."""
    (operation,) = lp.network(normalized(batch, residual=residual)).joined()
    fused, *_ = direct(operation.program)
    assert dict(fused.words) == {"stage1": "fused"}
    assert fused.stages[-1].is_direct


def test_a_joined_operation_runs_as_a_fused_candidate(device):
    network = lp.network(normalized(2, residual=True, stride=3)).joined()
    (operation,) = network
    settings_ = {"stage1": "fused", "result.family": "direct"}
    given_arrays = inputs_of(network)
    by_name = dict(zip(network.graph.inputs, given_arrays, strict=True)) | network.graph.constants
    candidate = candidate_of(operation.program, device, settings_)
    with contextlib.closing(Kernel(candidate, device)) as kernel:
        found = kernel(*(by_name[n] for n in operation.inputs))
    np.testing.assert_allclose(found, network.evaluate(given_arrays)["y"], rtol=1e-4, atol=1e-5)


def test_the_name_of_a_joined_operation_is_not_that_of_another_node():
    nodes = [node("Relu", "x", "c", "a"), node("Neg", "c", "y", "b"), node("Exp", "x", "z", "a..b")]
    made = model(nodes, [value("x", (1, 4))], [value("y", (1, 4)), value("z", (1, 4))])
    network = lp.network(made).joined()
    assert names(network) == ["a..b#2", "a..b"]
    x = np.array([[1, -2, 3, -4]], np.float32)
    found = network.run([x])
    np.testing.assert_array_equal(found["y"], -np.maximum(x, 0))
    np.testing.assert_allclose(found["z"], np.exp(x), rtol=1e-6)
    network.close()


def scaled(kind, variance, epsilon):
    """A 1x1 convolution and a batch normalization of a constant variance, of a type."""
    ones = {name: np.ones(1, kind) for name in ("scale", "shift", "mean")}
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("BatchNormalization", "c scale shift mean var", "y", "norm", epsilon=epsilon),
    ]
    of = TensorProto.FLOAT16 if kind is np.float16 else TensorProto.FLOAT
    return model(
        nodes,
        [value("x", (1, 1, 2, 3), of)],
        [value("y", (1, 1, 2, 3), of)],
        w=np.full((1, 1, 1, 1), 3, kind),
        var=np.full(1, variance, kind),
        **ones,
    )


@pytest.mark.parametrize(
    ("kind", "variance", "epsilon", "folded"),
    [
        (np.float32, 0.5, 1e-5, True),
        (np.float32, 0.0, 0.0, False),
        (np.float32, 1e-12, 0.0, False),
        (np.float16, 0.5, 1e-3, False),
    ],
)
def test_a_normalization_is_folded_only_if_its_factors_are_moderate(
    kind, variance, epsilon, folded
):
    (operation,) = lp.network(scaled(kind, variance, epsilon)).joined()
    assert ("factors" in lp.show(operation.program)) == folded
