"""A model that is not valid is refused with the node and the reason; nothing is written or run."""

import os
from contextlib import suppress

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import liftpy as lp
from liftpy.errors import MemoryRefused, NetworkRefused
from tests.networks.models import convolutional, model, multiplied, node, one, recursive, value


def relu(**changes):
    return model([node("Relu", "x", "y", "relu1")], [value("x", [3])], [value("y", [3])], **changes)


def branch(*outputs):
    """A graph without inputs, for If."""
    return helper.make_graph([node("Relu", "x", o) for o in outputs], "inner", [], [
        value(o, [3]) for o in outputs
    ])  # fmt: skip


def refusal(source, kind=NetworkRefused, **given):
    with pytest.raises(kind) as refused:
        lp.network(source, **given)
    return str(refused.value)


# --- bytes ----------------------------------------------------------------------------------------


def test_a_truncated_model_is_refused_at_every_length():
    data = convolutional().SerializeToString()
    for length in range(1, len(data) - 1, 211):
        message = refusal(data[:length])
        assert message.startswith(("the model is not", "the tensor"))


def test_damaged_bytes_are_refused_or_read_never_more():
    data = bytearray(convolutional().SerializeToString())
    rng = np.random.default_rng(7)
    for place in rng.integers(0, 1500, 50):
        changed = bytearray(data)
        changed[place] ^= 1 << int(rng.integers(8))
        with suppress(lp.LiftError):  # any other exception is a failure
            lp.network(bytes(changed), partial=True)


@pytest.mark.parametrize("data", [b"", b"not a protobuf at all", b"\\x0a\\xff\\xff\\xff\\xff\\x0f"])
def test_bytes_of_another_kind_are_no_model(data):
    assert "is not an ONNX model" in refusal(data)


def field(number, data):
    """A message in another one, as protobuf encodes it."""
    length, size = len(data), b""
    while length > 127:
        length, size = length >> 7, size + bytes([length & 127 | 128])
    return bytes([number << 3 | 2]) + size + bytes([length]) + data


def test_graphs_within_graphs_are_refused_beyond_the_limit_of_protobufs():
    data = b""
    for _ in range(5000):  # graph.node.attribute.g
        data = field(1, field(5, field(6, data)))
    assert "is not an ONNX model" in refusal(field(7, data))


def test_a_file_that_is_missing_or_no_file(tmp_path):
    assert "cannot be read" in refusal(tmp_path / "none.onnx")
    assert "it is a folder" in refusal(tmp_path)


# --- graphs ---------------------------------------------------------------------------------------


def test_a_cycle():
    nodes = [node("Add", "x b", "a", "add1"), node("Relu", "a", "b", "relu1")]
    message = refusal(model(nodes, [value("x", [3])], [value("b", [3])]))
    assert "sorted" in message
    assert "add1" in message


def test_an_input_that_nothing_computes():
    message = refusal(
        model([node("Add", "x z", "y", "add1")], [value("x", [3])], [value("y", [3])])
    )
    assert "add1" in message
    assert "'z'" in message


def test_an_output_that_nothing_computes():
    message = refusal(model([node("Relu", "x", "y")], [value("x", [3])], [value("z", [3])]))
    assert "'z'" in message


def test_two_tensors_of_one_name():
    nodes = [node("Relu", "x", "y", "relu1"), node("Neg", "x", "y", "neg1")]
    message = refusal(model(nodes, [value("x", [3])], [value("y", [3])]))
    assert "neg1 (Neg) computes `y`, which relu1 computes too" in message


def test_two_initializers_of_one_name():
    made = model(
        [node("Add", "x c", "y")], [value("x", [3])], [value("y", [3])], c=np.float32([1, 2, 3])
    )
    made.graph.initializer.append(made.graph.initializer[0])
    assert "two initializers are named `c`" in refusal(made)


def test_types_that_an_operator_does_not_take():
    made = model(
        [node("Add", "x n", "y", "add1")],
        [value("x", [3]), value("n", [3], TensorProto.INT32)],
        [value("y", [3])],
    )
    message = refusal(made)
    assert "add1" in message
    assert "type" in message


def test_shapes_that_do_not_fit():
    message = refusal(one("MatMul", (2, 3), (5, 7)))
    assert "op" in message
    assert "imensions" in message


def test_a_declared_shape_that_contradicts_the_operator():
    made = model([node("Relu", "x", "y", "relu1")], [value("x", [3])], [value("y", [4])])
    assert "relu1" in refusal(made) or "shape" in refusal(made)


def test_a_missing_shape():
    made = model([node("Relu", "x", "y")], [value("x", None)], [value("y", [3])])
    assert "'shape'" in refusal(made)


def test_a_missing_attribute():
    assert "axis" in refusal(one("Concat", (3,), (3,)))


@pytest.mark.parametrize("opset", [5, 99])
def test_an_opset_that_is_not_read(opset):
    assert f"uses opset {opset} of ONNX" in refusal(relu(opset=opset))


def test_an_unknown_domain_and_an_unknown_operator():
    made = model(
        [helper.make_node("Fused", ["x"], ["y"], "fused1", domain="com.other")],
        [value("x", [3])],
        [value("y", [3])],
        imports=[helper.make_opsetid("com.other", 1)],
    )
    message = refusal(made)
    assert "fused1 (com.other.Fused): domain com.other has no such operator" in message
    made = model([node("Frobnicate", "x", "y", "f1")], [value("x", [3])], [value("y", [3])])
    assert "Frobnicate" in refusal(made)


def test_control_flow_is_named():
    nodes = [
        helper.make_node(
            "If", ["c"], ["a"], "if1", then_branch=branch("t"), else_branch=branch("e")
        ),
        node("Relu", "a", "y", "relu1"),
    ]
    made = model(nodes, [value("x", [3]), value("c", [], TensorProto.BOOL)], [value("y", [3])])
    message = refusal(made)
    assert "if1 (If): control flow with inner graphs is not expressed" in message
    body = helper.make_graph(
        [node("Identity", "go", "on"), node("Relu", "v", "w")],
        "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [3])],
        [value("on", [], TensorProto.BOOL), value("w", [3])],
    )
    loop = helper.make_node("Loop", ["n", "c", "x"], ["y"], "loop1", body=body)
    inputs = [value("x", [3]), value("c", [], TensorProto.BOOL), value("n", [], TensorProto.INT64)]
    assert "loop1 (Loop): control flow" in refusal(model([loop], inputs, [value("y", [3])]))


def test_tensors_of_other_kinds():
    texts = model(
        [node("Identity", "x", "y", "copy1")],
        [value("x", [3], TensorProto.STRING)],
        [value("y", [3], TensorProto.STRING)],
    )
    assert "copy1 (Identity): the input `x` has the type STRING" in refusal(texts)
    empty = model([node("Relu", "x", "y", "relu1")], [value("x", [0])], [value("y", [0])])
    assert "relu1 (Relu): the input `x` of shape [0] has no elements" in refusal(empty)
    dependent = model(
        [node("NonZero", "x", "i", "nonzero1"), node("Cast", "i", "y", "cast1", to=1)],
        [value("x", [3])],
        [value("y", [1, "n"])],
    )
    message = refusal(dependent)
    assert "nonzero1 (NonZero): it has no program" in message
    assert "cast1 (Cast): the input `i` has no static shape" in message


# --- memory ---------------------------------------------------------------------------------------


def test_an_initializer_larger_than_memory():
    made = relu()
    made.graph.initializer.append(TensorProto(name="huge", data_type=1, dims=[1 << 40, 1 << 10]))
    assert "`huge` of shape [1099511627776, 1024] needs" in refusal(made, MemoryRefused)


def test_an_initializer_without_its_data():
    made = relu()
    made.graph.initializer.append(TensorProto(name="short", data_type=1, dims=[5], raw_data=b"12"))
    assert "short" in refusal(made)
    made.graph.initializer[0].dims[0] = -5
    assert "`short` has a negative length" in refusal(made)


def test_a_folded_tensor_larger_than_memory():
    nodes = [node("ConstantOfShape", "n", "big", "fill1"), node("ReduceSum", "big", "y", "sum1")]
    made = model(nodes, [], [value("y", [None, None])], n=np.int64([1 << 30, 1 << 20]))
    assert "big of fill1" in refusal(made, MemoryRefused)


def test_functions_that_make_too_many_nodes():
    message = refusal(multiplied(9))
    assert "1000000000 nodes after its functions are inlined, and at most 32768" in message
    assert len(lp.network(multiplied(2))) == 100


def test_a_function_that_calls_itself():
    message = refusal(recursive())
    assert "a function calls itself: " in message
    assert "F1 -> F" in message


# --- external data --------------------------------------------------------------------------------


def external(folder, location, **more):
    """A model in a folder whose initializer is in another file."""
    made = model([node("Add", "x c", "y", "add1")], [value("x", [3])], [value("y", [3])])
    tensor = TensorProto(name="c", data_type=1, dims=[3], data_location=TensorProto.EXTERNAL)
    for key, given in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=str(given))
    made.graph.initializer.append(tensor)
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_external_data_beside_the_model_are_read(tmp_path):
    numbers = np.float32([7, 5, 3, 2])
    (tmp_path / "weights").write_bytes(numbers.tobytes())
    found = lp.network(external(tmp_path, "weights", offset=4, length=12))
    np.testing.assert_array_equal(found.graph.tensors["c"].value, numbers[1:])


@pytest.mark.parametrize("location", ["../secret", "/etc/passwd", "link", "", "."])
def test_external_data_outside_of_the_folder_are_refused(tmp_path, location):
    (tmp_path / "secret").write_bytes(bytes(12))
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "secret")
    message = refusal(external(folder, location))
    assert "the data of `c`" in message
    assert "outside of the model's folder" in message


def test_external_data_that_are_missing_or_too_short(tmp_path):
    assert "No such file" in refusal(external(tmp_path, "none"))
    (tmp_path / "weights").write_bytes(bytes(8))
    assert "12 bytes from 0 are not in the file" in refusal(
        external(tmp_path, "weights", length=12)
    )
    assert "cannot be read" in refusal(external(tmp_path, "weights", length="many"))
    os.mkfifo(tmp_path / "pipe")
    assert "a pipe" in refusal(external(tmp_path, "pipe"))


def test_external_data_at_a_place_that_no_file_has(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(12))
    for given in ({"offset": "9" * 30}, {"length": "9" * 30}, {"offset": 13}, {"offset": -8}):
        message = refusal(external(tmp_path, "weights", **given))
        assert "are not in the file, which has 12" in message


def constant_of(**attribute):
    """A Constant whose value is the attribute."""
    made = helper.make_node("Constant", [], ["c"])
    (name,) = attribute
    made.attribute.add(name=name, type=4 if name == "value" else 11)
    getattr(made.attribute[0], "t" if name == "value" else "sparse_tensor").CopyFrom(
        attribute[name]
    )
    return made


def stored(location, dims=(3,), kind=TensorProto.FLOAT):
    """A tensor whose data are in another file."""
    made = TensorProto(name="c", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    made.external_data.add(key="location", value=location)
    return made


def in_a_function(constant):
    """A model that adds a constant in a function of its own."""
    imports = [helper.make_opsetid("", 21)]
    body = [constant, node("Add", "a c", "b")]
    shifted = helper.make_function("own", "Shifted", ["a"], ["b"], body, imports)
    call = helper.make_node("Shifted", ["x"], ["y"], domain="own")
    own = [helper.make_opsetid("own", 1)]
    return model([call], [value("x", [3])], [value("y", [3])], functions=[shifted], imports=own)


def test_external_data_in_a_function_are_beside_the_model_never_in_the_current_folder(
    tmp_path, monkeypatch
):
    made = in_a_function(constant_of(value=stored("weights")))
    (tmp_path / "current").mkdir()
    (tmp_path / "current" / "weights").write_bytes(np.float32([1, 1, 1]).tobytes())
    monkeypatch.chdir(tmp_path / "current")
    (tmp_path / "model.onnx").write_bytes(made.SerializeToString())
    assert "the model has no folder" in refusal(made)
    assert "No such file" in refusal(tmp_path / "model.onnx")
    (tmp_path / "weights").write_bytes(np.float32([7, 5, 3]).tobytes())
    found = lp.network(tmp_path / "model.onnx").evaluate([np.float32([10, 20, 40])])
    np.testing.assert_array_equal(found["y"], [17, 25, 43])


@pytest.mark.parametrize("part", ["initializer", "attribute"])
def test_external_data_of_a_sparse_tensor_without_a_folder(part, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights").write_bytes(np.float32([7, 5, 3]).tobytes())
    indices = numpy_helper.from_array(np.int64([0, 1, 2]), "indices")
    sparse = helper.make_sparse_tensor(stored("weights"), indices, [3])
    add = node("Add", "x c", "y", "add1")
    made = model([add], [value("x", [3])], [value("y", [3])])
    if part == "initializer":
        made.graph.sparse_initializer.append(sparse)
    else:
        made.graph.node.insert(0, constant_of(sparse_value=sparse))
    assert "the model has no folder" in refusal(made)


def test_external_data_of_a_model_without_a_folder(tmp_path):
    data = external(tmp_path, "weights").read_bytes()
    assert "the model has no folder" in refusal(data)


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refusal(external(tmp_path, "none"))
    lp.network(convolutional())
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]
