"""Plans of networks with nodes that have no program: the host computes these."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from numpy.typing import NDArray

import liftpy as lp
from liftpy.constraints.device import Device
from liftpy.errors import ArgumentRefused, NetworkRefused, StoreRefused
from liftpy.networks import host_nodes
from liftpy.networks.running import Runner
from tests.networks.plan_files import rewritten

TEXT = """
<ir_version: 10, opset_import: ["" : 17]>
g (float[1, 2, 5, 7] x, float[3] shift) => (float[1, 3] y, int64[k, n] places) <
  float[3, 2, 3, 3] w = {WEIGHTS},
  int64[2] starts = {0, 0}, int64[2] ends = {5, 5}, int64[2] axes = {2, 3}
> {
  conv = Conv <pads = [1, 1, 1, 1]> (x, w)
  relu = Relu (conv)
  squares = Slice (relu, starts, ends, axes)
  det = Det (squares)
  y = Add (det, shift)
  bits = NonZero (relu)
  places = Identity (bits)
}
"""
"""A convolution whose result Det and NonZero read; data decide the shape of NonZero's result."""


def model() -> onnx.ModelProto:
    """The model, with distinct weights."""
    weights = ", ".join(f"{w:.4f}" for w in np.sin(np.arange(54) * 0.7) * 0.5)
    return onnx.parser.parse_model(TEXT.replace("{WEIGHTS}", f"{{{weights}}}"))


def inputs() -> dict[str, NDArray[Any]]:
    """Distinct numbers."""
    x = np.cos(np.arange(70, dtype=np.float32) * 1.3).reshape(1, 2, 5, 7)
    return {"x": x, "shift": np.array([1, 20, 300], np.float32)}


def expected() -> dict[str, NDArray[Any]]:
    """The outputs by ONNX Runtime."""
    session = onnxruntime.InferenceSession(model().SerializeToString())
    return dict(zip(["y", "places"], session.run(None, inputs()), strict=True))


def same(found: dict[str, Any]) -> None:
    """Requires the outputs of ONNX Runtime."""
    wanted = expected()
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found["places"], wanted["places"])


def test_a_network_with_nodes_on_the_host_is_planned_saved_loaded_and_run(
    runtime: Device, tmp_path: Path
) -> None:
    net = lp.network(model(), partial=True).joined()
    assert {u.operator for u in net.unsupported} == {"Det", "NonZero", "Identity"}
    with net.plan(device=runtime) as plan:
        assert not {"Det", "NonZero"} & set(plan.choices)
        same(plan.run(inputs()))
        assert plan.check(inputs()).keys() == {"y", "places"}
        plan.save(tmp_path / "g.plan")
    with lp.load(tmp_path / "g.plan", runtime) as loaded:
        assert {u.operator: u.reason for u in loaded.graph.unsupported} == {
            u.operator: u.reason for u in net.unsupported
        }
        same(loaded.run(inputs(), poison=True))
        rows = {row.operator: row for row in loaded.profile(inputs(), repeats=1, warmup=0).rows}
        assert rows["Det"].on_host
        assert rows["Det"].time_ns > 0
        assert not rows["Conv+Relu"].on_host


@pytest.mark.parametrize("choose_orders", [False, True])
def test_the_host_reads_images_in_the_order_that_the_model_declares(
    runtime: Device, tmp_path: Path, *, choose_orders: bool
) -> None:
    net = lp.network(model(), partial=True)
    net = (net if choose_orders else net.channels_last()).joined()
    plan = net.plan(device=runtime, choose_orders=choose_orders)
    same(plan.run(inputs()))
    plan.save(tmp_path / "g.plan")
    plan.close()
    with lp.load(tmp_path / "g.plan", runtime) as loaded:
        same(loaded.run(inputs()))


def test_without_onnx_runtime_the_reference_evaluator_computes_nodes(
    runtime: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    find: Callable[[str], Any] = host_nodes.find_spec
    monkeypatch.setattr(
        host_nodes, "find_spec", lambda name: asked.append(name) or find("no_such_module")
    )
    with lp.network(model(), partial=True).plan(device=runtime) as plan:
        same(plan.run(inputs()))
    assert asked == ["onnxruntime"] * len(asked) != []


def test_a_bundle_refuses_nodes_without_a_program(runtime: Device, tmp_path: Path) -> None:
    with (
        lp.network(model(), partial=True).plan(device=runtime) as plan,
        pytest.raises(lp.LiftError, match="has 3 nodes without a program") as refused,
    ):
        lp.export(plan, tmp_path / "bundle")
    assert "a bundle runs without" in str(refused.value)
    assert not (tmp_path / "bundle").exists()


def test_a_node_in_a_plan_has_no_data_elsewhere(runtime: Device, tmp_path: Path) -> None:
    path = tmp_path / "g.plan"
    with lp.network(model(), partial=True).plan(device=runtime) as plan:
        plan.save(path)
    outside = onnx.TensorProto(data_location=onnx.TensorProto.EXTERNAL, name="outside")
    node = onnx.helper.make_node("Det", ["squares"], ["det"], value=outside)
    wrong = {
        "has data outside of the plan": node.SerializeToString(),
        "is not an ONNX node": b"no node",
    }
    saved = path.read_bytes()
    for message, encoded in wrong.items():

        def change(fields: Any, encoded: bytes = encoded) -> None:
            (own,) = [o for o in fields["operations"] if o["operator"] == "Det"]
            own["host"]["node"] = base64.b64encode(encoded).decode()

        path.write_bytes(rewritten(saved, change))
        with pytest.raises(StoreRefused, match=message):
            lp.load(path, runtime)


def test_an_operation_of_a_plan_has_either_a_program_or_a_node(
    runtime: Device, tmp_path: Path
) -> None:
    path = tmp_path / "g.plan"
    with lp.network(model(), partial=True).plan(device=runtime) as plan:
        plan.save(path)
    saved = path.read_bytes()

    def neither(fields: Any) -> None:
        (own,) = [o for o in fields["operations"] if o["operator"] == "Det"]
        own["host"] = None

    def both(fields: Any) -> None:
        (own,) = [o for o in fields["operations"] if o["operator"] == "Det"]
        own["program"] = 0

    def other(fields: Any) -> None:
        (own,) = [o for o in fields["operations"] if o["operator"] == "Det"]
        own["host"]["reads"] = ["x"]

    for change, message in [
        (neither, "needs either a program or a node"),
        (both, "needs either a program or a node"),
        (other, "different tensors"),
    ]:
        path.write_bytes(rewritten(saved, change))
        with pytest.raises(StoreRefused, match=message):
            lp.load(path, runtime)


@pytest.mark.parametrize(
    "wrong", [np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float64)], ids=["shape", "type"]
)
def test_a_result_of_the_host_that_does_not_fit_its_tensor_is_refused(
    runtime: Device, wrong: NDArray[Any]
) -> None:
    with lp.network(model(), partial=True).plan(device=runtime) as plan:
        runner = Runner(plan.graph, plan.modules, plan.layout, runtime, lambda *_: [wrong])
        with pytest.raises(NetworkRefused, match="the model declares float32 of shape"):
            runner.run(inputs())
        runner.close()


HEAD = '<ir_version: 10, opset_import: ["" : 17]> '


def partial(text: str, opset: int = 17) -> lp.Network:
    """The network of a model in text form, with the nodes that have no program."""
    head = HEAD.replace("17", str(opset))
    return lp.network(onnx.parser.parse_model(head + text), partial=True).joined()


def test_a_number_that_the_host_computes_has_rank_0(runtime: Device) -> None:
    x = np.array([[1, 2], [3, 5]], np.float32)
    with partial("g (float[2, 2] x) => (float y) {y = Det(x)}").plan(device=runtime) as plan:
        assert plan.run([x])["y"].shape == ()
        assert plan.run([x], on_device=True)["y"].shape == ()
        assert plan.check([x]).keys() == {"y"}


def test_sequences_are_passed_between_nodes_on_the_host(runtime: Device) -> None:
    net = partial("""g (float[6, 4] x) => (float[6, 4] y, seq(float[k, 4]) s)
      <int64[2] sizes = {2, 4}> {
        r = Relu(x)
        s = SplitToSequence<axis = 0>(r, sizes)
        y = ConcatFromSequence<axis = 0>(s)
      }""")
    x = np.arange(24, dtype=np.float32).reshape(6, 4)
    for found in (net.plan(device=runtime).run([x]), net.evaluate([x], reference=True)):
        np.testing.assert_array_equal(found["y"], x)
        for part, wanted in zip(found["s"], (x[:2], x[2:]), strict=True):
            np.testing.assert_array_equal(part, wanted)
    with net.plan(device=runtime) as plan:
        assert plan.check([x]) == {"y": 0.0, "s": 0.0}
        with pytest.raises(ArgumentRefused, match="the output s is a sequence"):
            plan.run([x], on_device=True)


def test_data_may_decide_the_rank_of_what_the_host_computes(runtime: Device) -> None:
    net = partial("g (float[4] x) => (int64[k] y) {z = NonZero(x) s = Squeeze(z) y = Abs(s)}")
    with net.plan(device=runtime) as plan:
        assert plan.run([np.array([0, 7, 0, 7], np.float32)])["y"].tolist() == [1, 3]
        assert plan.run([np.array([0, 7, 0, 0], np.float32)])["y"].tolist() == 1


def test_a_plan_with_inputs_of_foreign_types_needs_them_to_be_timed(
    runtime: Device, tmp_path: Path
) -> None:
    net = partial("g (string[2] s, float[4] x) => (string[2] t, float[4] y) {"
                  "t = Identity(s) y = Relu(x)}")  # fmt: skip
    inputs = {"s": np.array(["a", "b"], object), "x": np.ones(4, np.float32)}
    with net.plan(device=runtime) as plan:
        plan.save(tmp_path / "g.plan")
        assert plan.timed().predicted_ns is None
        assert plan.timed(inputs).predicted_ns is not None
    with lp.load(tmp_path / "g.plan", runtime, remeasure=True) as again:
        assert again.predicted_ns is None
        assert again.run(inputs)["t"].tolist() == ["a", "b"]


def test_a_plan_is_renewed_only_for_the_same_versions_of_its_nodes(runtime: Device) -> None:
    text = "g (float[2, 2] x) => (float y) {y = Det(x)}"
    with partial(text).plan(device=runtime) as plan:
        assert plan.renewed(partial(text, 13).graph) is None
        assert plan.renewed(partial(text).graph) is not None


def test_a_plan_with_a_large_node_is_loaded(runtime: Device, tmp_path: Path) -> None:
    net = partial("g (float[2, 2] x) => (float y) {y = Det(x)}")
    (det,) = net.graph.operations
    node = onnx.NodeProto.FromString(det.node)
    node.doc_string = "x" * (1 << 22)
    graph = replace(net.graph, operations=(replace(det, node=node.SerializeToString()),))
    with lp.Network(graph).plan(device=runtime) as plan:
        plan.save(tmp_path / "g.plan")
    with lp.load(tmp_path / "g.plan", runtime) as loaded:
        assert loaded.run([np.eye(2, dtype=np.float32)])["y"] == 1


def test_a_node_whose_names_are_no_text_is_refused(runtime: Device, tmp_path: Path) -> None:
    path = tmp_path / "g.plan"
    with partial("g (float[2, 2] x) => (float y) {y = Det(x)}").plan(device=runtime) as plan:
        plan.save(path)

    def change(fields: Any) -> None:
        host = fields["operations"][0]["host"]
        node = base64.b64decode(host["node"]).replace(b"Det", b"D\xf3t")
        host["node"] = base64.b64encode(node).decode()

    path.write_bytes(rewritten(path.read_bytes(), change))
    with pytest.raises(StoreRefused, match="has a name that is not text"):
        lp.load(path, runtime)
