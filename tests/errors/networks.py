"""One case for each refusal of a network."""

from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
from onnx import ModelProto, TensorProto, helper

import liftpy as lp
from liftpy.cli.campaigns import one_program_only
from liftpy.cli.networks import program_of_node
from liftpy.explore.campaign.campaign import Campaign
from liftpy.networks.backend import LiftpyBackend
from liftpy.networks.onnx_library import array
from tests.networks.models import convolutional, model, multiplied, node, one, recursive, value

Case = Callable[[Path], object]
X = np.zeros((1, 3, 11, 13), np.float32)


def relu(**more):
    return model([node("Relu", "x", "y", "relu1")], [value("x", [3])], [value("y", [3])], **more)


def with_initializers(*tensors):
    made = relu()
    made.graph.initializer.extend(tensors)
    return made


def external(folder, **entries):
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, given in entries.items():
        tensor.external_data.add(key=key, value=given)
    made = model([node("Add", "x c", "y")], [value("x", [3])], [value("y", [3])])
    made.graph.initializer.append(tensor)
    (folder / "weights").write_bytes(bytes(8))
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    return lp.network(folder / "model.onnx")


def two_nodes_with_one_output():
    nodes = [node("Relu", "x", "y", "relu1"), node("Neg", "x", "y", "neg1")]
    return model(nodes, [value("x", [3])], [value("y", [3])])


def reshaped(*more):
    """A Reshape to a shape that is an input, and other nodes."""
    inputs = [value("x", [6]), value("s", [2], TensorProto.INT64)]
    return model(
        [node("Reshape", "x s", "r", "reshape1"), *more], inputs, [value("y", [None, None])]
    )


def a_folded_shape_that_does_not_fit():
    nodes = [
        node("Sqrt", "c", "five", "sqrt1"),
        node("Cast", "five", "s", "cast1", to=TensorProto.INT64),
        node("Reshape", "x s", "r", "reshape1"),
        node("MatMul", "r w", "y", "matmul1"),
    ]
    constants = {"c": np.float32([9, 4]), "w": np.zeros((5, 7), np.float32)}
    return model(nodes, [value("x", [6])], [value("y", [None, None])], **constants)


def foreign():
    call = helper.make_node("Fused", ["x"], ["y"], "fused1", domain="com.other")
    imports = [helper.make_opsetid("com.other", 1)]
    return model([call], [value("x", [3])], [value("y", [3])], imports=imports)


def in_little_memory(made):
    with mock.patch("liftpy.networks.onnx_library.available", return_value=1000):
        lp.network(made)


def node_of(folder, made, name):
    (folder / "small.onnx").write_bytes(made.SerializeToString())
    return program_of_node("small.onnx", name, {})


def dynamic():
    return model([node("Relu", "x", "y")], [value("x", ["N", "H"])], [value("y", [None, None])])


def determinant():
    return one("Det", (3, 3), rank=0)


def explored(made, db, **settings):
    lp.network(made, partial=True).joined().explore(1, db=db, **settings)


def folder_of_campaigns():
    Path("models.db").mkdir()
    Path("models.db/relu-0123456789ab.db").touch()
    Campaign.read("models.db")


def campaign_in_a_file():
    Path("relu.db").touch()
    explored(relu(), "relu.db")


CASES: dict[str, Case] = {
    "network_campaigns_in_a_file": lambda _: campaign_in_a_file(),
    "network_campaigns_as_one_campaign": lambda _: folder_of_campaigns(),
    "network_campaigns_of_nothing": lambda _: explored(determinant(), "models.db"),
    "network_campaigns_without_time": lambda _: explored(relu(), "models.db", time_limit=0),
    "network_campaigns_with_options_of_one_program": lambda _: one_program_only(
        "small.onnx", {"--set": ["v=8"], "--where": None, "--replay": "relu.db"}
    ),
    "network_alone": lambda folder: node_of(folder, convolutional(), ""),
    "network_node_without_a_program": lambda folder: node_of(folder, determinant(), "op"),
    "network_unknown_node": lambda _: lp.network(convolutional())["conv7"],
    "network_with_unsupported_nodes": lambda _: lp.network(determinant()),
    "network_evaluated_with_unsupported_nodes": lambda _: lp.network(
        determinant(), partial=True
    ).evaluate([X]),
    "network_backend_of_unsupported_nodes": lambda _: LiftpyBackend.prepare(determinant()),
    "network_backend_of_another_device": lambda _: LiftpyBackend.prepare(relu(), "CUDA"),
    "network_backend_run_of_unsupported_nodes": lambda _: LiftpyBackend.prepare(
        reshaped(node("RandomUniformLike", "r", "y", "draw1"))
    ).run([np.zeros(6, np.float32), np.int64([2, 3])]),
    "network_wrong_number_of_inputs": lambda _: lp.network(convolutional()).evaluate([X, X]),
    "network_inputs_that_are_a_number": lambda _: lp.network(convolutional()).evaluate(5),
    "network_missing_input": lambda _: lp.network(convolutional()).evaluate({}),
    "network_input_of_another_shape": lambda _: lp.network(convolutional()).evaluate([X[0]]),
    "network_value_of_an_unknown_input": lambda _: lp.network(relu(), values={"z": 1}),
    "network_value_of_another_shape": lambda _: lp.network(relu(), values={"x": X}),
    "network_value_of_a_wrong_type": lambda _: lp.network(
        relu(), values={"x": np.float64([1, 2, 3])}
    ),
    "network_value_that_is_no_array": lambda _: lp.network(
        relu(), values={"x": [[1.0], [2.0, 3.0]]}
    ),
    "network_value_of_another_length": lambda _: lp.network(
        dynamic(), {"N": 7}, {"x": np.ones((2, 3), np.float32)}
    ),
    "network_backend_without_inputs": lambda _: LiftpyBackend.prepare(relu()).run([]),
    "network_backend_node_without_inputs": lambda _: LiftpyBackend.run_node(
        node("Sub", "a b", "c"), []
    ),
    "network_backend_unknown_node": lambda _: LiftpyBackend.run_node(
        node("Frobnicate", "a", "c"), [X]
    ),
    "network_of_a_number": lambda _: lp.network(5),
    "network_node_of_a_number": lambda _: lp.network(convolutional())[0],
    "network_size_zero": lambda _: lp.network(dynamic(), sizes={"H": 0}),
    "network_unknown_shape": lambda _: lp.network(dynamic()),
    "network_unknown_size": lambda _: lp.network(dynamic(), sizes={"H": 2, "W": 3}),
    "network_truncated": lambda _: lp.network(convolutional().SerializeToString()[:1001]),
    "network_without_a_graph": lambda _: lp.network(ModelProto(ir_version=8).SerializeToString()),
    "network_with_external_data_in_bytes": lambda folder: lp.network(
        with_initializers(
            TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
        )
    ),
    "network_with_external_data_outside": lambda folder: external(folder, location="../secret"),
    "network_with_external_data_at_a_word": lambda folder: external(
        folder, location="weights", offset="many"
    ),
    "network_with_external_data_too_short": lambda folder: external(
        folder, location="weights", length="12"
    ),
    "network_with_external_data_that_are_not_loaded": lambda _: array(
        TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    ),
    "network_of_an_unknown_opset": lambda _: lp.network(relu(opset=99)),
    "network_with_a_cycle": lambda _: lp.network(
        model(
            [node("Add", "x b", "a", "add1"), node("Relu", "a", "b", "relu1")],
            [value("x", [3])],
            [value("b", [3])],
        )
    ),
    "network_with_one_initializer_twice": lambda _: lp.network(
        with_initializers(*[TensorProto(name="c", data_type=1, dims=[1], float_data=[2])] * 2)
    ),
    "network_with_one_output_twice": lambda _: lp.network(two_nodes_with_one_output()),
    "network_with_a_negative_length": lambda _: lp.network(
        with_initializers(TensorProto(name="c", data_type=1, dims=[-5]))
    ),
    "network_with_an_unknown_type": lambda _: lp.network(
        with_initializers(TensorProto(name="c", data_type=99, dims=[5]))
    ),
    "network_larger_than_memory": lambda _: in_little_memory(
        with_initializers(TensorProto(name="c", data_type=1, dims=[7, 1001]))
    ),
    "network_of_a_function_that_calls_itself": lambda _: lp.network(recursive()),
    "network_of_too_many_nodes": lambda _: lp.network(multiplied(9)),
    "network_with_shapes_that_do_not_fit": lambda _: lp.network(one("MatMul", (2, 3), (5, 7))),
    "network_with_a_folded_shape_that_does_not_fit": lambda _: lp.network(
        a_folded_shape_that_does_not_fit()
    ),
    "network_that_the_reference_cannot_evaluate": lambda _: lp.network(
        foreign(), partial=True
    ).evaluate([np.zeros(3, np.float32)], reference=True),
}
