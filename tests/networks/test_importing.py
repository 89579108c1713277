"""A model becomes a graph of programs: sizes, folded constants, shared programs, tensors."""

import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import liftpy as lp
from liftpy.errors import ArgumentRefused, NetworkRefused, UnknownName
from liftpy.rewrite.composition import skeletons_with
from liftpy.rewrite.forms import partitions
from liftpy.rewrite.strategies.families import FAMILIES
from liftpy.workloads import Convolution, convolution
from tests.networks.models import convolutional, model, node, one, value

X = np.random.default_rng(5).standard_normal((2, 3, 11, 13)).astype(np.float32)


@pytest.fixture(scope="module")
def network():
    return lp.network(convolutional(), sizes={"N": 2})


def test_each_node_has_a_program_and_shape_arithmetic_is_folded(network):
    names = [operation.name for operation in network]
    assert names == [
        *("conv1", "norm1", "relu1", "conv2", "conv3", "add1", "pool1", "reshape1"),
        *("dense1", "softmax1"),
    ]
    assert network.graph.inputs == ("x",)
    assert network.graph.outputs == ("y",)
    assert network.graph.sizes == {"N": 2}
    assert all(operation.program is not None for operation in network)


def test_equal_operations_share_a_program(network):
    assert network["conv2"].program is network["conv3"].program
    assert network["conv2"].inputs == ("r1", "w2")
    assert len(network.graph.programs) == len(network) - 1


def test_tensors_know_their_producer_readers_and_bytes(network):
    tensors = network.graph.tensors
    assert tensors["r1"].producer == "relu1"
    assert tensors["r1"].readers == ("conv2", "add1")
    assert tensors["r1"].shape == (2, 5, 6, 7)
    assert tensors["r1"].bytes == 2 * 5 * 6 * 7 * 4
    assert tensors["x"].kind == "input"
    assert tensors["w2"].kind == "constant"
    assert tensors["y"].result
    assert not tensors["r1"].result
    assert "s1" not in tensors, "what only shape arithmetic reads is no tensor of the network"


def test_live_bytes_count_each_tensor_from_its_producer_to_its_last_reader(network):
    large, image = 2 * 5 * 6 * 7 * 4, 2 * 3 * 11 * 13 * 4
    assert network.graph.live_bytes[:6] == (
        image + large,
        2 * large,
        2 * large,
        2 * large,
        3 * large,
        3 * large,
    )
    assert network.graph.peak_bytes == max(image + large, 3 * large)
    assert network.graph.constant_bytes == 4 * (5 * 27 + 5 * 5 + 5 * 45 + 7 * 30 + 7)


def test_the_outputs_are_those_of_the_reference_evaluator(network):
    (wanted,) = ReferenceEvaluator(convolutional()).run(None, {"x": X})
    np.testing.assert_allclose(network.evaluate({"x": X})["y"], wanted, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(network.evaluate([X])["y"], wanted, rtol=1e-4, atol=1e-6)


def test_programs_are_the_language_s_own(network):
    for program in network.graph.programs:
        assert lp.parse(lp.show(program)) == program
    assert lp.show(network["relu1"].program).startswith("def relu(x: [2][5][6][7]f32) =")
    assert network["conv1"].program.constants == {"w", "b"}
    assert not network["add1"].program.constants


def test_a_batch_is_one_by_default():
    graph = lp.network(convolutional()).graph
    assert graph.sizes == {"N": 1}
    assert graph.tensors["x"].shape == (1, 3, 11, 13)


def test_a_size_that_is_no_batch_must_be_given():
    made = model([node("Relu", "x", "y")], [value("x", ["N", "H", 4])], [value("y", [None] * 3)])
    with pytest.raises(NetworkRefused, match=r"unknown shape: H\n.*\n.*sizes=\{'H': 224\}"):
        lp.network(made)
    assert lp.network(made, sizes={"H": 3}).graph.tensors["y"].shape == (1, 3, 4)
    with pytest.raises(UnknownName, match="no size W"):
        lp.network(made, sizes={"H": 3, "W": 3})
    with pytest.raises(NetworkRefused, match="size H is 0"):
        lp.network(made, sizes={"H": 0})


def test_an_input_that_decides_a_shape_can_be_given():
    made = one("Reshape", (2, 6), opset=21)
    made.graph.node[0].input.append("shape")
    made.graph.input.append(value("shape", [2], TensorProto.INT64))
    with pytest.raises(NetworkRefused, match=r"op \(Reshape, `shape`\): .* is not constant"):
        lp.network(made)
    fixed = lp.network(made, values={"shape": np.array([3, 4])})
    assert fixed.graph.inputs == ("x0",)
    assert fixed.evaluate([np.arange(12, dtype=np.float32).reshape(2, 6)])["y0"].shape == (3, 4)
    with pytest.raises(UnknownName, match="no input form"):
        lp.network(made, values={"form": np.array([3, 4])})


def added(shape, **constants):
    """A model that adds two inputs."""
    inputs = [value("x", shape), value("w", shape)]
    return model([node("Add", "x w", "y")], inputs, [value("y", [None] * len(shape))], **constants)


def test_a_negative_length_is_a_dynamic_one():
    made = added([-1, 3])
    assert lp.network(made).graph.tensors["x"].shape == (1, 3)
    found = lp.network(made, sizes={"x.0": 5, "w.0": 5})
    assert found.graph.tensors["y"].shape == (5, 3)


def test_question_marks_are_no_name():
    """Two dimensions `?` may differ in length; results that declare `?` get inferred lengths."""
    nodes = [node("Relu", "x", "t"), node("Transpose", "t", "y", perm=[1, 0])]
    made = model(nodes, [value("x", ["?", "?"])], [value("y", ["?", "?"])])
    found = lp.network(made, sizes={"x.0": 2, "x.1": 3})
    assert found.graph.sizes == {"x.0": 2, "x.1": 3}
    assert found.graph.tensors["y"].shape == (3, 2)


@pytest.mark.parametrize("size", [2.5, "2"])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(NetworkRefused, match=r"the size N is 2.*: it is a whole number"):
        lp.network(added(["N", 3]), sizes={"N": size})
    assert lp.network(added(["N", 3]), sizes={"N": np.int64(2)}).graph.sizes == {"N": 2}


def test_values_have_the_declared_type_and_shape():
    made = added([3])
    found = lp.network(made, values={"w": [1, 2.5, 7]})
    assert found.graph.tensors["w"].value.dtype == np.float32
    np.testing.assert_array_equal(found.evaluate([np.float32([10, 20, 40])])["y"], [11, 22.5, 47])
    for wrong, message in (
        (np.float64([1, 2, 7]), "w needs float32 numbers, got float64"),
        (np.ones((3, 1), np.float32), r"w needs the shape \[3\], got \[3, 1\]"),
        (np.ones(5, np.float32), r"w needs the shape \[3\], got \[5\]"),
        ("text", "w needs float32 numbers, got <U4"),
        ([[1], [2, 3]], "w is no array"),
    ):
        with pytest.raises(ArgumentRefused, match=message):
            lp.network(made, values={"w": wrong})
    own = added([3], w=np.float32([1, 2, 7]))
    with pytest.raises(UnknownName, match="no input w; w has its value in the model"):
        lp.network(own, values={"w": np.float32([3, 2, 1])})


def test_values_give_the_lengths_of_their_dimensions():
    found = lp.network(added(["N", "L"]), values={"w": np.ones((2, 5), np.float32)})
    assert found.graph.sizes == {"N": 2, "L": 5}
    with pytest.raises(ArgumentRefused, match="w has 2 elements in dimension 0, and the size N is"):
        lp.network(added(["N", 3]), {"N": 7}, values={"w": np.ones((2, 3), np.float32)})


def test_unsupported_nodes_are_named_all_at_once():
    nodes = [
        node("Det", "x", "d", "det1"),
        node("Relu", "d", "r", "relu1"),
        node("Resize", "r  s", "z", "resize1", mode="linear", antialias=1),
        node("Det", "z", "y", "det2"),
    ]
    nodes[2].input[:] = ["r", "", "s"]
    made = model(nodes, [value("x", [3, 3, 1, 1])], [value("y", [])], s=np.float32([2, 2]))
    with pytest.raises(NetworkRefused) as refused:
        lp.network(made)
    message = str(refused.value)
    assert "3 nodes without a program" in message
    assert "det1 (Det): it has no program" in message
    assert "resize1 (Resize, `antialias`): filters are not expressed" in message
    assert "det2 (Det): it has no program" in message
    found = lp.network(made, partial=True)
    assert [u.node for u in found.unsupported] == ["det1", "resize1", "det2"]
    assert found["relu1"].program is not None
    x = np.float32([[3, 1, 2], [5, 7, 4], [9, 6, 8]])[..., None, None]
    with pytest.raises(NetworkRefused, match="reference=True"):
        found.evaluate([x])
    (wanted,) = ReferenceEvaluator(made).run(None, {"x": x})
    np.testing.assert_allclose(found.evaluate([x], reference=True)["y"], wanted, rtol=1e-4)


def branch(operator, name):
    """A graph that applies an operator to a tensor of the graph around it."""
    return helper.make_graph([node(operator, "r", name)], name, [], [value(name, [3])])


def test_the_reference_computes_nodes_whose_inner_graphs_read_tensors_around_them():
    inner = helper.make_node(
        "If", ["c"], ["a"], "if2", then_branch=branch("Neg", "t"), else_branch=branch("Abs", "e")
    )
    around = helper.make_graph([inner], "around", [], [value("a", [3])])
    nodes = [
        node("Relu", "x", "r", "relu1"),
        node("Not", "c", "d", "not1"),
        helper.make_node(
            "If", ["d"], ["y"], "if1", then_branch=branch("Exp", "o"), else_branch=around
        ),
    ]
    inputs = [value("x", [3]), value("c", [], TensorProto.BOOL)]
    found = lp.network(model(nodes, inputs, [value("y", [3])]), partial=True)
    assert [o.name for o in found] == ["relu1", "not1", "if1"]
    assert {*found["if1"].reads} == {"d", "r", "c"}
    x = np.float32([-2, 3, 5])
    for c, wanted in ((True, [0, -3, -5]), (False, np.exp(np.float32([0, 3, 5])))):
        got = found.evaluate([x, np.array(c)], reference=True)
        np.testing.assert_allclose(got["y"], wanted, rtol=1e-6)


def test_the_reference_reads_constants_of_types_that_the_language_does_not_have():
    nodes = [node("Equal", "x k", "y", "equal1")]
    words = helper.make_tensor("k", TensorProto.STRING, [3], [b"a", b"b", b"c"])
    inputs = [value("x", [3], TensorProto.STRING)]
    made = model(nodes, inputs, [value("y", [3], TensorProto.BOOL)])
    made.graph.initializer.append(words)
    found = lp.network(made, partial=True)
    got = found.evaluate([np.array(["a", "x", "c"], object)], reference=True)["y"]
    np.testing.assert_array_equal(got, [True, False, True])
    kind = TensorProto.BFLOAT16
    nodes = [
        node("Cast", "x", "b", "cast1", to=kind),
        node("Add", "b k", "s", "add1"),
        node("Cast", "s", "y", "cast2", to=TensorProto.FLOAT),
    ]
    made = model(nodes, [value("x", [3])], [value("y", [3])])
    made.graph.initializer.append(helper.make_tensor("k", kind, [3], [1.0, 2.0, 5.0]))
    found = lp.network(made, partial=True)
    got = found.evaluate([np.float32([10, 20, 40])], reference=True)["y"]
    np.testing.assert_array_equal(got, [11, 22, 45])


def test_a_shape_that_the_program_does_not_have_is_refused():
    """Shape inference takes any shape of a Reshape whose input it cannot compute."""
    nodes = [
        node("Sqrt", "c", "five", "sqrt1"),
        node("Cast", "five", "s", "cast1", to=TensorProto.INT64),
        node("Reshape", "x s", "y", "reshape1"),
    ]
    made = model(nodes, [value("x", [6])], [value("y", [None])], c=np.float32([25]))
    with pytest.raises(
        NetworkRefused, match=r"reshape1 .*: its program returns \[6\]f32, and ONNX"
    ):
        lp.network(made)


def test_functions_are_replaced_by_their_bodies():
    doubled = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("Add", "a a", "b")], [helper.make_opsetid("", 21)]
    )
    call = helper.make_node("Twice", ["x"], ["y"], domain="own")
    made = model(
        [call],
        [value("x", [5])],
        [value("y", [5])],
        functions=[doubled],
        imports=[helper.make_opsetid("own", 1)],
    )
    x = np.float32([1, 4, 9, 2, 7])
    np.testing.assert_array_equal(lp.network(made).evaluate([x])["y"], x + x)
    norm = lp.network(one("MeanVarianceNormalization", (2, 3, 4, 5)))
    assert len(norm) > 3, "an operator that ONNX defines by others is these others"


def test_a_function_of_the_model_may_call_one_of_onnx_with_default_attributes():
    body = [node("MeanVarianceNormalization", "a", "b")]
    own = helper.make_function("own", "Own", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    made = model(
        [helper.make_node("Own", ["x"], ["y"], domain="own")],
        [value("x", [2, 3, 4, 5])],
        [value("y", [2, 3, 4, 5])],
        18,
        functions=[own],
        imports=[helper.make_opsetid("own", 1)],
    )
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 5)).astype(np.float32)
    wanted = (x - x.mean((0, 2, 3), keepdims=True)) / x.std((0, 2, 3), keepdims=True)
    np.testing.assert_allclose(lp.network(made).evaluate([x])["y"], wanted, rtol=1e-4, atol=1e-6)


def test_a_function_that_calls_another_function_of_onnx_is_inlined_too():
    nodes = [node("SoftmaxCrossEntropyLoss", "x l", "y", "loss1", reduction="none")]
    inputs = [value("x", [2, 3]), value("l", [2], TensorProto.INT64)]
    found = lp.network(model(nodes, inputs, [value("y", [2])]), partial=True)
    operators = {o.operator for o in found}
    assert not operators & {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"}
    x = np.float32([[1, 3, 2], [7, 4, 5]])
    got = found.evaluate([x, np.int64([2, 1])], reference=True)["y"]
    scaled = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(got, -np.log([scaled[0, 2], scaled[1, 1]]), rtol=1e-5)


def test_inputs_without_elements_may_decide_a_program():
    """As PyTorch exports: Resize with empty `roi`, and with empty `scales` beside `sizes`."""
    empty, x = np.zeros(0, np.float32), np.float32([[[2, 3, 5]]])
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric"}
    for constants in ([empty, np.float32([1, 1, 2])], [empty, empty, np.int64([1, 1, 6])]):
        made = one("Resize", (1, 1, 3), opset=11, constants=constants, nearest_mode="floor", **how)
        got = lp.network(made).evaluate([x])["y0"]
        np.testing.assert_array_equal(got, [[[2, 2, 3, 3, 5, 5]]])
    made = one("ReduceSum", (2, 3), rank=2, constants=[np.int64([])])
    np.testing.assert_array_equal(
        lp.network(made).evaluate([np.float32([[2, 3, 5], [7, 11, 13]])])["y0"], [[41]]
    )
    with pytest.raises(NetworkRefused, match=r"`c0` of shape \[0\] has no elements"):
        lp.network(one("Add", (1,), constants=[empty]))


def test_a_part_of_a_split_may_have_no_name():
    x = np.float32([2, 3, 5, 7, 11, 13, 17])
    for opset, given in ((18, {"num_outputs": 3}), (11, {"split": [3, 3, 1]})):
        made = one("Split", (7,), outputs=3, opset=opset, axis=0, **given)
        made.graph.node[0].output[1] = ""
        del made.graph.output[1]
        found = lp.network(made).evaluate([x])
        np.testing.assert_array_equal(found["y0"], [2, 3, 5])
        np.testing.assert_array_equal(found["y2"], [17])


def test_random_and_costly_operators_are_not_computed_at_import():
    constants = [np.float32([2, 3, 5]), np.float32(0.5), np.array(True)]
    made = one("Dropout", constants=constants, rank=1, opset=13)
    with pytest.raises(NetworkRefused, match=r"op \(Dropout.*random"):
        lp.network(made)
    nodes = [
        node("RegexFullMatch", "k", "q", "match1", pattern="(a|a|a)*$"),
        node("Where", "q x x", "y", "where1"),
    ]
    made = model(nodes, [value("x", [1])], [value("y", [1])])
    made.graph.initializer.append(
        helper.make_tensor("k", TensorProto.STRING, [1], [b"a" * 99 + b"b"])
    )
    found = lp.network(made, partial=True)
    assert [u.node for u in found.unsupported] == ["match1"]


def test_a_sum_of_many_arrays():
    arrays = [np.float32([k, 2 * k]) for k in range(23)]
    found = lp.network(one("Sum", *[(2,)] * 23))
    np.testing.assert_array_equal(found.evaluate(arrays)["y0"], [253, 506])
    lp.network(one("Sum", *[(2,)] * 111), partial=True)  # the names of its operands do not end


def test_a_node_is_found_by_its_name(network):
    with pytest.raises(UnknownName, match="no node 'conv9'; did you mean conv"):
        _ = network["conv9"]
    assert "10 operations, 9 distinct programs" in repr(network)


def test_names_of_nodes_are_made_unique():
    nodes = [node("Relu", "x", "a", "same"), node("Neg", "a", "b", "same"), node("Abs", "b", "y")]
    made = model(nodes, [value("x", [3])], [value("y", [3])])
    assert [o.name for o in lp.network(made)] == ["same", "same#2", "Abs_y"]


def test_operations_that_no_output_needs_are_left_out():
    nodes = [node("Relu", "x", "y", "used"), node("Det", "x", "z", "unused")]
    made = model(nodes, [value("x", [3, 3])], [value("y", [3, 3])])
    assert [o.name for o in lp.network(made)] == ["used"]


def test_without_onnx_the_refusal_says_how_to_install_it():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import liftpy as lp\n"
        "try: lp.network('model.onnx')\n"
        "except lp.LiftError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert "needs onnx, which is not installed: pip install 'liftpy[onnx]'" in done.stdout


# --- spaces ---------------------------------------------------------------------------------------


def has(program, family):
    """Whether a program has candidates by a family, or forms by F(m, r) for "winograd"."""
    if family == "winograd":
        return any(form.other_algorithm for form in partitions(program))
    return lp.space(program, families=[family]).possible


def offered(program):
    """The families that lower a program as one stage, and the tiles of its forms by F(m, r)."""
    forms = partitions(program)
    whole = next(form for form in forms if form.is_whole)
    (stage,) = whole.stages
    found = {name for name in FAMILIES if any(skeletons_with(whole, stage, [name], lambda _: True))}
    return found | {dict(form.words).get("winograd") for form in forms} - {None}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("made", "wanted"),
    [
        (one("Conv", (1, 8, 10, 10), (16, 8, 3, 3), pads=[1, 1, 1, 1]), {"direct", "winograd"}),
        (one("Conv", (2, 8, 10, 10), (16, 8, 3, 3), strides=[3, 1]), {"direct"}),
        (one("Conv", (2, 8, 10, 10), (6, 4, 7, 7), group=2), {"winograd"}),
        (one("Conv", (2, 3, 20, 20), (16, 3, 7, 7), strides=[2, 2]), {"winograd"}),
        (one("Conv", (1, 6, 20, 20), (16, 3, 7, 7), strides=[2, 2], group=2), {"winograd"}),
        (one("Conv", (1, 8, 20), (16, 8, 3)), {"direct"}),
        (one("MatMul", (12, 16), (16, 24)), {"direct"}),
        (one("MatMul", (3, 12, 16), (3, 16, 24)), {"direct"}),
        (one("Gemm", (12, 16), (24, 16), (24,), transB=1), {"direct"}),
        (one("MaxPool", (1, 8, 12, 12), kernel_shape=[3, 3], strides=[2, 2]), {"tiled"}),
        (one("AveragePool", (1, 8, 12, 12), kernel_shape=[2, 2], strides=[2, 2]), {"tiled"}),
        (one("Softmax", (8, 16)), {"rows"}),
        (one("Add", (8, 16), (16,)), {"tiled"}),
    ],
    ids=[
        *(
            "conv",
            "batch",
            "groups",
            "batch with a stride",
            "groups with a stride",
            "conv1d",
            "matmul",
            "batched",
            "gemm",
            "max pool",
            "average pool",
        ),
        *("softmax", "add"),
    ],
)
def test_families_match_the_programs(made, wanted):
    program = lp.network(made)["op"].program
    assert all(has(program, family) for family in wanted)


@pytest.mark.parametrize(("kernels", "groups", "stride"), [(6, 2, 1), (8, 8, 3)])
def test_grouped_convolutions_have_the_families_of_the_built_in_ones(kernels, groups, stride):
    steps = (stride, 1)
    layer = Convolution(8, 10, 10, kernels, (7, 7), steps, groups=groups, layout="nchw")
    made = one("Conv", (1, 8, 10, 10), (kernels, 8 // groups, 7, 7), group=groups, strides=[*steps])
    found = offered(lp.network(made)["op"].program)
    assert found == offered(convolution(layer))
    assert ("2x2" in found) == (stride == 1)
