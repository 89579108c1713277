"""Campaigns over a network: a file for each distinct program, shared, resumed, with a budget."""

from dataclasses import replace

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import NothingMeasured, StoreRefused
from liftpy.explore import exploring
from liftpy.explore.campaign.campaign import Campaign
from liftpy.explore.one_candidate import nearest_candidate
from liftpy.networks.campaigns import campaign_file, explore_network, read_network, works_of
from tests.networks.models import model, node, value


@pytest.fixture(scope="module", autouse=True)
def _shared(in_one_process):
    """What campaigns have in common is made once."""


def small(*, also_sum=False):
    """A product, twice the same activation, perhaps a sum of rows. The products are similar."""
    rng = np.random.default_rng(7)
    nodes = [
        node("MatMul", "x w", "a", "product"),
        node("Tanh", "a", "b", "tanh1"),
        node("Softmax", "b", "s", "softmax", axis=-1),
        node("MatMul", "s v", "c", "other"),
        node("Tanh", "c", "d", "tanh2"),
    ]
    outputs = [value("b", [3, 5]), value("d", [3, 5])]
    if also_sum:
        nodes.append(node("ReduceSum", "d", "y", "sum", keepdims=0))
        outputs.append(value("y", []))
    return model(
        nodes,
        [value("x", [3, 7])],
        outputs,
        w=rng.standard_normal((7, 5)).astype(np.float32),
        v=rng.standard_normal((5, 5)).astype(np.float32),
    )


def contents(folder):
    """What the files of a folder have, except times."""
    found = {path.name: Campaign.read(path) for path in sorted(folder.glob("*.db"))}
    return {
        name: (campaign.identity.text, [(r.id, r.ordinal, r.outcome) for r in campaign.rows])
        for name, campaign in found.items()
    }


SETTINGS = {"search": "random", "again": False}


@pytest.fixture(scope="module")
def network():
    return lp.network(small()).joined()


@pytest.fixture(scope="module")
def explored(network, device, tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaigns")
    turns = []
    found = network.explore(3, db=folder, device=device, told=turns.append, **SETTINGS)
    return found, turns


def test_each_distinct_program_has_its_file_and_candidates(network, explored, device):
    found, turns = explored
    assert [one.work.operations[0].name for one in found] == [
        "product..tanh1",
        "softmax",
        "other..tanh2",
    ]
    assert {one.tried for one in found} == {3}
    assert sorted(contents(found.folder)) == sorted(one.work.path.name for one in found)
    (first, *_) = found
    assert first.work.path == campaign_file(found.folder, first.work.program, device)
    assert found.total == pytest.approx(sum(one.best * one.work.count for one in found))
    assert sum(found.share(one) for one in found) == pytest.approx(1)
    named = [(turn.work.operations[0].name, turn.choice.samples) for turn in turns]
    assert named[:2] == [("product..tanh1", 2), ("softmax", 2)]  # the first of each kind
    assert named[2:4] == [("product..tanh1", 3), ("other..tanh2", 1)]
    assert {*named[4:]} == {("softmax", 3), ("other..tanh2", 3)}
    assert "it has no time yet" in str(turns[0])
    assert "expected gain" in str(turns[-1])


def test_a_similar_operation_begins_with_a_candidate_like_the_best(explored, device):
    product, _, other = explored[0]
    first = other.campaign.identity.settings["first"]
    assert other.campaign.rows[0].assignment == first
    assert product.campaign.identity.settings["first"] == "plain"
    words = {n: v for n, v in product.campaign.best().assignment.items() if isinstance(v, str)}
    assert words.items() <= first.items()


def test_conditions_of_the_user_leave_no_room_for_it(network, device, tmp_path):
    turns = []
    limited = {"families": ["plain"], "told": turns.append}
    found = network.explore(2, db=tmp_path, device=device, **limited, **SETTINGS)
    firsts = {one.campaign.identity.settings["first"] for one in found}
    assert firsts == {"plain"}
    assert [turn.choice.samples for turn in turns] == [2, 2, 2]


def test_an_unexplored_operation_is_planned_like_a_similar_one(network, device, tmp_path):
    first, *_, last = works_of(network.graph, tmp_path, device)
    lp.explore(first.program, 3, db=first.path, device=device, **SETTINGS)
    best = Campaign.read(first.path).best()
    with network.plan(tmp_path, device=device) as plan:
        choice = plan.choices[last.operations[0].name]
        assert choice.time_ns is None
        assert (
            choice.assignment == nearest_candidate(last.program, device, best.assignment).assignment
        )
        x = np.random.default_rng(5).standard_normal((3, 7)).astype(np.float32)
        assert plan.check({"x": x})


def test_candidates_read_no_images_of_parts_of_an_arena(network, device, tmp_path):
    """On a GPU with images, other campaigns have such candidates."""
    gpu = replace(device, type="GPU")
    found = network.explore(2, db=tmp_path, device=gpu, search="random", again=False)
    campaigns = [Campaign.read(path) for path in sorted(tmp_path.glob("*.db"))]
    assert len(campaigns) == len(list(found))
    assert all(campaign.device.image_texels == 0 for campaign in campaigns)


def test_equal_operations_count_once(device, tmp_path):
    nodes = [node("Exp", "x", "e", "exp1"), node("Exp", "z", "f", "exp2")]
    given = [value("x", [5]), value("z", [5])]
    network = lp.network(model(nodes, given, [value("e", [5]), value("f", [5])])).joined()
    found = network.explore(1, db=tmp_path / "m", device=device, **SETTINGS)
    (one,) = found
    assert one.work.count == 2
    assert found.total == pytest.approx(2 * one.best)


def test_another_model_shares_the_files(explored, device):
    found, _ = explored
    before = contents(found.folder)
    wider = lp.network(small(also_sum=True)).joined()
    stored = read_network(wider.graph, found.folder, device)
    assert [one.tried for one in stored] == [3, 3, 3, 0]
    turns = []
    wider.explore(3, db=found.folder, device=device, told=turns.append, **SETTINGS)
    assert {turn.work.operations[0].name for turn in turns} == {"sum"}
    after = contents(found.folder)
    assert after.items() > before.items()


def test_an_interrupted_call_is_resumed_with_the_same_candidates(
    explored, network, device, tmp_path
):
    found, _ = explored
    seen = []

    def interrupted(turn):
        seen.append(turn)
        if len(seen) == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        network.explore(3, db=tmp_path / "m", device=device, told=interrupted, **SETTINGS)
    again = network.explore(3, db=tmp_path / "m", device=device, **SETTINGS)
    # "other..tanh2" begins with what was fast for "product..tanh1", and times differ.
    whole = {one.work.path.name for one in found.explored[:2]}
    wanted = {name: rows for name, rows in contents(found.folder).items() if name in whole}
    assert contents(tmp_path / "m").items() >= wanted.items()
    assert {one.tried for one in again} == {3}
    assert again.stopped == ""


def test_a_time_limit_stops_between_turns_and_says_so(network, device, tmp_path):
    with pytest.raises(NothingMeasured, match="no operation of small was measured"):
        network.explore(2, db=tmp_path / "m", device=device, time_limit=0.0, **SETTINGS)
    network.explore(1, db=tmp_path / "m", device=device, **SETTINGS)
    found = network.explore(2, db=tmp_path / "m", device=device, time_limit=0.0, **SETTINGS)
    assert found.stopped == "the time limit of 0 s (--time-limit) ended"
    assert {one.tried for one in found} == {1}


def test_a_file_is_no_folder_and_a_folder_no_campaign(explored, network, device, tmp_path):
    found, _ = explored
    path = found.explored[0].work.path
    with pytest.raises(
        StoreRefused, match="is a file, and the campaigns of a network are a folder"
    ):
        network.explore(1, db=path, device=device)
    with pytest.raises(StoreRefused, match="is a folder of campaigns"):
        Campaign.read(found.folder)
    assert Campaign.read(path).best().time_ns > 0


def test_an_operation_without_a_candidate_has_a_reason(network, device, tmp_path):
    found = explore_network(
        network.graph, 1, db=tmp_path / "m", device=device, memory_limit=200, **SETTINGS
    )
    reasons = {one.work.operations[0].name: one.reason for one in found if one.best is None}
    assert {*reasons} == {"product..tanh1", "other..tanh2"}
    assert all("200 bytes" in reason for reason in reasons.values()), reasons


def test_operations_with_a_program_are_explored_beside_nodes_on_the_host(device, tmp_path):
    nodes = [node("MatMul", "x w", "m", "mul1"), node("Det", "m", "d", "det1")]
    nodes.append(node("Mul", "m d", "y", "scale1"))
    w = np.random.default_rng(3).standard_normal((7, 5)).astype(np.float32)
    made = model(nodes, [value("x", (5, 7))], [value("y", (5, 5))], w=w)
    net = lp.network(made, partial=True).joined()
    net.explore(2, db=tmp_path / "campaigns", device=device, families=["plain"], **SETTINGS)
    with net.plan(tmp_path / "campaigns", device=device) as plan:
        assert {plan.choices[name].time_ns is None for name in ("mul1", "scale1")} == {False}
        x = np.random.default_rng(4).standard_normal((5, 7)).astype(np.float32)
        wanted = x @ w * np.linalg.det(x @ w)
        np.testing.assert_allclose(plan.run([x])["y"], wanted, rtol=1e-4)


def test_the_space_of_each_program_is_derived_once_in_all_of_its_turns(
    network, device, tmp_path, monkeypatch
):
    derived, turns, whole = [], [], exploring.whole_space

    def counted(program, limits, **asked):
        derived.append((program, asked["families"]))
        return whole(program, limits, **asked)

    monkeypatch.setattr(exploring, "whole_space", counted)
    network.explore(5, db=tmp_path / "m", device=device, told=turns.append, **SETTINGS)
    assert len(turns) > len({turn.work.path for turn in turns})
    assert derived
    assert len(derived) == len({*derived})
