"""`liftpy network`: the operations of a model; a node of a model as PROGRAM."""

from pathlib import Path

import pytest

import liftpy as lp
from liftpy.cli import network_campaigns
from tests.networks.models import convolutional, model, node, value


@pytest.fixture
def file():
    """A model in the current folder, which is the test's own."""
    Path("small.onnx").write_bytes(convolutional().SerializeToString())
    return "small.onnx"


def test_the_table_has_operations_programs_and_bytes(liftpy, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = liftpy("network", file, "--size", "N=2")
    assert said.code == 0, said.err
    rows = {line.split()[0]: line for line in said.out.splitlines() if line}
    assert "Conv " in rows["conv1"]
    assert "[2][3][11][13]f32, [5][3][3][3]f32, [5]f32 -> [2][5][6][7]f32" in rows["conv1"]
    assert rows["conv2"].split()[-3] == rows["conv3"].split()[-3] == "#3"
    assert "#6: data |> map(" in rows["reshape1"]
    assert "10 operations, 9 distinct programs, opset 21" in said.out
    assert "tensors: at least 5112 bytes" in said.out
    assert "dynamic dimensions: N = 2" in said.out


def test_json_is_the_graph(liftpy, file):
    found = liftpy("network", file, "--json").json
    network = lp.network(file)
    assert [o["node"] for o in found["operations"]] == [o.name for o in network]
    assert [o["live_bytes"] for o in found["operations"]] == [*network.graph.live_bytes]
    assert lp.parse(found["programs"][0]) == network["conv1"].program
    tensor = next(t for t in found["tensors"] if t["name"] == "r1")
    assert (tensor["producer"], tensor["readers"]) == ("relu1", ["conv2", "add1"])
    assert found["unsupported"] == []


def test_unsupported_nodes_are_listed(liftpy):
    nodes = [node("Det", "x", "d", "det1"), node("Relu", "d", "y", "relu1")]
    made = model(nodes, [value("x", [3, 2, 2])], [value("y", [3])])
    Path("det.onnx").write_bytes(made.SerializeToString())
    said = liftpy("network", "det.onnx")
    assert said.code == 0
    assert "unsupported: 1 node\n  det1 (Det): it has no program" in said.out
    assert liftpy("network", "det.onnx", "--json").json["unsupported"][0]["operator"] == "Det"
    assert liftpy("show", "det.onnx:relu1").code == 0
    refused = liftpy("show", "det.onnx:det1")
    assert refused.code == 1
    assert "no program for det1 (Det): it has no program" in refused.err


def test_a_node_is_a_program_of_every_command(liftpy, file):
    shown = liftpy("show", f"{file}:dense1", "--size", "N=3")
    assert shown.out.startswith("def gemm(a: [3][30]f32, const b: [7][30]f32, const c: [7]f32) =")
    space = liftpy("space", f"{file}:dense1", "--size", "N=3", "--json").json
    assert space["count"] > 10
    assert liftpy("gradient", f"{file}:relu1", "--wrt", "x").code == 0


def test_a_model_alone_and_an_unknown_node_are_refused(liftpy, file):
    said = liftpy("show", file)
    assert said.code == 1
    assert "name one of its nodes, as in small.onnx:NODE; its nodes are: conv1, norm1" in said.err
    said = liftpy("show", f"{file}:conv7")
    assert said.code == 1
    assert "no node 'conv7'; did you mean conv" in said.err
    said = liftpy("network", "none.onnx")
    assert (said.code, said.out) == (1, "")
    assert "none.onnx cannot be read: No such file" in said.err


def test_joined_operations_are_listed_with_their_nodes(liftpy, file, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    said = liftpy("network", file)
    assert "joined: 6 operations, 6 distinct programs (--joined lists them)" in said.out
    said = liftpy("network", file, "--joined", "--declared-order")
    nodes = [line.split()[:2] for line in said.out.splitlines()[1:4]]
    assert nodes == [["conv1", "Conv"], ["norm1", "BatchNormalization"], ["relu1", "Relu"]]
    assert "6 operations, 6 distinct programs, opset 21" in said.out
    found = liftpy("network", file, "--joined", "--json").json
    assert found["operations"][0]["node"] == "conv1..relu1"
    assert found["operations"][0]["parts"] == ["x/channels_last", "conv1", "norm1", "relu1"]
    shown = liftpy("show", f"{file}:conv1..relu1")
    assert shown.out.startswith("def transpose_conv_batch_normalization_relu(")


def test_nodes_are_listed_in_the_order_of_axes_that_is_asked_for(liftpy, file):
    declared = liftpy("network", file, "--json").json["operations"]
    last = liftpy("network", file, "--channels-last", "--json").json["operations"]
    assert declared[0]["node"] == "conv1"
    assert [o["node"] for o in last][:2] == ["x/channels_last", "conv1"]


def test_an_order_of_axes_is_for_networks(liftpy, file):
    said = liftpy("explore", f"{file}:conv1", "--declared-order")
    assert said.code == 2
    assert "it is for a whole network, model.onnx" in said.err


def activations():
    """Exp of x and of z, and a sum: two distinct programs."""
    nodes = [
        node("Exp", "x", "e", "exp1"),
        node("Exp", "z", "f", "exp2"),
        node("ReduceSum", "e", "y", "sum", keepdims=0),
    ]
    results = [value("e", [5]), value("f", [5]), value("y", [])]
    made = model(nodes, [value("x", [5]), value("z", [5])], results)
    Path("two.onnx").write_bytes(made.SerializeToString())
    return "two.onnx"


def test_a_model_is_explored_as_a_whole(liftpy, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    options = "-n", "1", "--search", "random", "--db", "two.db"
    said = liftpy("explore", activations(), *options)
    assert said.code == 0, said.err
    lines = [line.split() for line in said.out.splitlines()]
    rows = {words[0]: words for words in lines}
    assert rows["exp1"][1:3] == ["(Exp)", "2"]
    assert rows["sum"][1:3] == ["(ReduceSum)", "1"]
    assert "3 operations:" in said.out
    assert "exp1 (1 of 2 programs, 2 times): to 1 candidate; it has no time yet" in said.err
    found = liftpy("explore", "two.onnx", *options, "--json").json
    assert [one["count"] for one in found["operations"]] == [2, 1]
    assert sum(one["share"] for one in found["operations"]) == pytest.approx(1)
    file = f"two.db/{found['operations'][0]['file']}"
    assert liftpy("pareto", file).code == 0
    said = liftpy("pareto", "two.db")
    assert said.code == 1
    assert "two.db is a folder of campaigns, one for each program of a network" in said.err


def test_options_for_one_program_are_refused_for_a_model(liftpy):
    said = liftpy("explore", activations(), "--where", "v < 8")
    assert said.code == 1
    assert "--where cannot be used with the network two.onnx" in said.err


def test_an_interrupted_exploration_says_how_to_continue(liftpy, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(network_campaigns, "explore_network", interrupted)
    said = liftpy("explore", activations(), "--db", "two.db")
    assert said.code == 130
    assert "everything so far is in two.db. Repeat the command to continue" in said.err
