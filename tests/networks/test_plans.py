"""Plans: fronts of time and memory, limits, files, and runs."""

import dataclasses
import itertools
from unittest import mock

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import (
    ConstraintRefused,
    LiftError,
    StoreRefused,
    TypeRefused,
)
from liftpy.explore.space.space import Space
from liftpy.ir.types import SCALARS, STORAGE, size_bytes
from liftpy.networks.costs import Costs
from liftpy.networks.layout import constant_bytes, footprint, layout_of
from liftpy.networks.options import Option, firsts, left_in_caches, undominated
from liftpy.networks.plan import load, plan_of
from liftpy.networks.plan_file import HEADER, TensorFields
from liftpy.networks.planning import planned
from liftpy.opencl.session import Session
from liftpy.pipeline import compile_candidate
from liftpy.traffic.machine import hardware_of
from tests.networks.models import model, node, value
from tests.networks.plan_files import rewritten
from tests.staged import by_definition

ALIGNMENT = 256
FEW = ("plain", "direct", "tiled")  # families with candidates of different memory
SHAPE = (1, 3, 5, 7)
X = np.random.default_rng(7).standard_normal(SHAPE).astype(np.float32)


def network():
    """Two equal convolutions with different weights, and what follows."""
    rng = np.random.default_rng(5)
    weights = {f"w{k}": rng.standard_normal((3, 3, 3, 3)).astype(np.float32) for k in (1, 2)}
    nodes = [
        node("Conv", "x w1", "a", "c1", pads=[1, 1, 1, 1]),
        node("Conv", "a w2", "b", "c2", pads=[1, 1, 1, 1]),
        node("Add", "a b", "y", "sum"),
    ]
    return lp.network(model(nodes, [value("x", SHAPE)], [value("y", SHAPE)], **weights))


@pytest.fixture(scope="module")
def options(device):
    """Some candidates of each program, with times: what needs more memory is faster."""
    known = {}

    def found(operation):
        program = operation.program
        if program not in known:
            drawn = Space.whole(program, device, families=FEW, made=by_definition).sample(5, seed=3)
            made = [(c, compile_candidate(c.skeleton, c.point)) for c in drawn]
            known[program] = [
                Option(c.skeleton.key, c.assignment, cost(m, k), m) for k, (c, m) in enumerate(made)
            ]
        return known[program]

    return found


def cost(module, k):
    """An invented time in ns: the more memory, the shorter."""
    needs = footprint(module, ALIGNMENT)
    return 100_000 // (1 + needs.scratch // 256 + needs.packed // 64) + 17 * k


def every(graph, options):
    """Time and memory of all selections."""
    found = []
    for chosen in itertools.product(*(options(o) for o in graph.operations)):
        modules = {o.name: c.module for o, c in zip(graph.operations, chosen, strict=True)}
        size = layout_of(graph, modules, ALIGNMENT).bytes + constant_bytes(graph, modules)
        found.append((sum(c.time_ns for c in chosen), size))
    return found


def test_the_front_is_that_of_all_selections(options):
    pytest.importorskip("ortools")
    graph = network().graph
    selections = every(graph, options)
    found = planned(graph, options, ALIGNMENT)
    assert found.point.proved
    assert found.order_proved
    assert (found.point.time_ns, found.point.memory) == min(selections)
    assert min(p.memory for p in found.front) == min(size for _, size in selections)
    assert len(found.front) > 2
    for p in found.front:
        assert p.time_ns == min(t for t, size in selections if size <= p.memory)
        assert p.arena >= p.bound


def test_limits_are_kept_and_the_plan_is_the_fastest_within_each(options):
    pytest.importorskip("ortools")
    graph = network().graph
    selections = every(graph, options)
    sizes = sorted({size for _, size in selections})
    for limit in (sizes[0], sizes[len(sizes) // 2], sizes[-1]):
        found = planned(graph, options, ALIGNMENT, limit)
        assert found.point.memory <= limit
        assert found.point.time_ns == min(t for t, size in selections if size <= limit)
    with pytest.raises(ConstraintRefused, match=f"the least is {sizes[0]}, an arena of"):
        planned(graph, options, ALIGNMENT, sizes[0] - 1)


def test_a_plan_is_saved_loaded_and_run(device, options, tmp_path):
    pytest.importorskip("ortools")
    net = network()
    plan = plan_of(net.graph, device, options)
    wanted = net.evaluate([X])["y"]
    with plan:
        np.testing.assert_allclose(plan.run([X], poison=True)["y"], wanted, rtol=1e-4, atol=1e-5)
        assert plan.runner().constant_bytes == plan.point.constants
    plan.save(tmp_path / "net.plan")
    with lp.load(tmp_path / "net.plan") as again:
        assert again.choices == plan.choices
        assert again.layout == plan.layout
        assert again.front == plan.front
        assert again.predicted_ns == sum(c.time_ns for c in plan.choices.values())
        for k in range(2):
            x = X * np.float32(k + 1)
            np.testing.assert_allclose(
                again.run({"x": x})["y"], net.evaluate([x])["y"], rtol=1e-4, atol=1e-5
            )
        assert 0 <= again.check([X])["y"] < 1e-4
        with pytest.raises(LiftError, match="output y of small differs"):
            again.check([X], tolerance=0.0)
        profile = again.profile(repeats=3)
        assert [row.operation for row in profile.rows] == ["c1", "c2", "sum"]
        assert sum(row.share for row in profile.rows) == pytest.approx(1)
        assert profile.time_ns == sum(row.time_ns for row in profile.rows)
        assert max(row.live_bytes for row in profile.rows) == again.point.bound
    again.save(tmp_path / "same.plan")
    assert (tmp_path / "same.plan").read_bytes() == (tmp_path / "net.plan").read_bytes()


def test_without_campaigns_the_first_candidates_are_planned_and_measured_later(device):
    plan = network().plan(device=device)
    assert plan.predicted_ns is None
    assert plan.point.proved
    measured = plan.remeasured()
    assert measured.predicted_ns == sum(c.time_ns for c in measured.choices.values())
    assert measured.predicted_ns > 0


def weighted(seed):
    """A network whose weights are packed: batch normalization is joined with a convolution."""
    rng = np.random.default_rng(seed)
    shapes = {"w": (5, 3, 1, 1), "s": (5,), "b": (5,), "m": (5,), "v": (5,), "d": (1, 5, 5, 7)}
    values = {name: np.abs(rng.standard_normal(n)).astype(np.float32) for name, n in shapes.items()}
    nodes = [
        node("Conv", "x w", "c", "conv"),
        node("BatchNormalization", "c s b m v", "n", "norm"),
        node("Add", "n d", "y", "sum"),
    ]
    made = model(nodes, [value("x", SHAPE)], [value("y", (1, 5, 5, 7))], **values)
    return lp.network(made).joined()


@pytest.mark.sampled(2)
def test_a_plan_is_renewed_with_other_constants(runtime):
    first, second = weighted(3), weighted(4)
    plan = first.plan(device=runtime)
    assert any(launch.phase == "prepare" for m in plan.modules.values() for launch in m.launches)
    plan.check([X])
    before = plan.run([X])["y"]
    with mock.patch.object(Session, "_build", side_effect=AssertionError("a kernel is built")):
        renewed = plan.renewed(second.graph)
        after = renewed.run([X])["y"]
    assert renewed.modules is plan.modules
    assert not np.array_equal(before, after)
    renewed.check([X])
    np.testing.assert_array_equal(renewed.graph.constants["w"], second.graph.constants["w"])
    assert renewed.renewed(network().graph) is None
    again = renewed.renewed(first.graph)
    np.testing.assert_array_equal(again.run([X])["y"], before)
    again.close()


def test_a_plan_of_another_driver_is_refused_or_measured_again(device, tmp_path):
    plan = network().plan(device=device)
    old = dataclasses.replace(device, driver_version="0.9")
    for data, what in (
        (dataclasses.replace(plan.data, device=old), "with driver 0.9, and this is"),
        (dataclasses.replace(plan.data, version="0.0.1"), "is a plan of liftpy 0.0.1"),
    ):
        type(plan)(data).save(tmp_path / "old.plan")
        with pytest.raises(StoreRefused, match=what):
            load(tmp_path / "old.plan")
        with load(tmp_path / "old.plan", device, remeasure=True) as again:
            assert again.predicted_ns > 0
            np.testing.assert_allclose(
                again.run([X])["y"], network().evaluate([X])["y"], rtol=1e-4, atol=1e-5
            )


def test_a_plan_without_kernels_is_measured_again_and_saved(device, tmp_path):
    shapes = [value("x", [6])], [value("y", [2, 3])]
    made = model([node("Reshape", "x s", "y", "r")], *shapes, s=np.array([2, 3]))
    lp.network(made).plan(device=device).save(tmp_path / "a.plan")
    with lp.load(tmp_path / "a.plan", remeasure=True) as again:
        again.save(tmp_path / "b.plan")
    with lp.load(tmp_path / "b.plan") as loaded:
        x = np.arange(6, dtype=np.float32)
        np.testing.assert_array_equal(loaded.run([x])["y"], x.reshape(2, 3))


def test_a_plan_for_another_device_is_refused_or_measured_on_this_one(device, tmp_path):
    plan = network().plan(device=device)
    other = dataclasses.replace(device, name="Another", driver_version="0.9")
    type(plan)(dataclasses.replace(plan.data, device=other)).save(tmp_path / "other.plan")
    for given in (None, device):
        with pytest.raises(StoreRefused, match=r"is a plan for .*Another.*, and this is"):
            load(tmp_path / "other.plan", given)
    with load(tmp_path / "other.plan", remeasure=True) as again:
        assert again.device.fingerprint == device.fingerprint
        again.save(tmp_path / "own.plan")
    with load(tmp_path / "own.plan", device) as own:
        assert own.predicted_ns == sum(c.time_ns for c in own.choices.values())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"memory_limit": "100"}, "`memory_limit` of net.plan must be a whole number or None"),
        ({"memory_limit": 1e6}, "`memory_limit` of net.plan must be a whole number or None"),
        ({"memory_limit": True}, "`memory_limit` of net.plan must be a whole number or None"),
        ({"db": 5}, "`db` of net.plan must be a string or a path or a list"),
        ({"db": [5]}, "`db` of net.plan must be a string or a path or a list"),
    ],
)
def test_arguments_of_another_type_are_refused(wrong, said):
    with pytest.raises(TypeRefused, match=said):
        network().plan(**wrong)


def test_a_limit_may_be_a_number_of_numpy_and_a_campaign_a_single_path(device, tmp_path):
    plan = network().plan(tmp_path, device=device, memory_limit=np.int64(1 << 20))
    assert plan.point.memory < 1 << 20


# --- files ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(device, tmp_path_factory):
    path = tmp_path_factory.mktemp("plans") / "first.plan"
    network().plan(device=device).save(path)
    return path.read_bytes()


def test_truncated_and_changed_files_are_refused_in_one_sentence(saved, tmp_path):
    path = tmp_path / "bad.plan"
    for cut in (0, 5, 20, HEADER, len(saved) // 2, len(saved) - 1):
        path.write_bytes(saved[:cut])
        with pytest.raises(StoreRefused, match=r"is not a plan|is damaged"):
            load(path)
    for at in (9, 30, 60, len(saved) - 3):
        path.write_bytes(saved[:at] + bytes([saved[at] ^ 4]) + saved[at + 1 :])
        with pytest.raises(StoreRefused, match=r"is damaged|a plan of format"):
            load(path)
    with pytest.raises(StoreRefused, match="cannot be read"):
        load(tmp_path / "none.plan")


def test_a_tensor_of_a_plan_has_any_type_but_a_storage_type():
    kept = [t for t in SCALARS.values() if t not in STORAGE]
    assert [TensorFields(name="a", type=t.name, shape=[1]).type for t in kept] == [*map(str, kept)]


def operation(fields, k):
    return fields["operations"][k]


def tensor(fields, name):
    return next(t for t in fields["tensors"] if t["name"] == name)


HOSTILE = {
    "overlap": (
        lambda f: tensor(f, "a").update(offset=tensor(f, "x")["offset"]),
        "both are in use",
    ),
    "outside": (lambda f: tensor(f, "y").update(offset=1 << 40), "is not within"),
    "unaligned": (lambda f: tensor(f, "y").update(offset=3), "is not at a multiple"),
    "no offset": (lambda f: tensor(f, "a").update(offset=None), "no offset for tensor a"),
    "negative": (lambda f: tensor(f, "a").update(offset=-1), "offset"),
    "another shape": (lambda f: tensor(f, "a").update(shape=[1, 3, 5, 6]), "a is f32"),
    "another type": (lambda f: tensor(f, "a").update(type="i32"), "a is i32"),
    "a storage type": (
        lambda f: tensor(f, "a").update(type="bf16"),
        r"type: Value error, .* one of f16, .* bool",
    ),
    "a huge shape": (lambda f: tensor(f, "w1").update(shape=[1 << 40]), "not in the file"),
    "no weights": (lambda f: tensor(f, "w1").update(constant=1 << 30), "not in the file"),
    "too early": (lambda f: f["operations"].reverse(), "not written before"),
    "twice": (lambda f: operation(f, 1).update(name="c1"), "two operations"),
    "no program": (lambda f: operation(f, 0).update(program=9), "number 9"),
    "a wrong program": (lambda f: f["programs"].reverse(), "not a valid plan|other kernels"),
    "no text": (lambda f: f["programs"].__setitem__(0, "def f("), "it has no program"),
    "other kernels": (lambda f: operation(f, 0).update(kernels="0" * 64), "other kernels"),
    "no skeleton": (lambda f: operation(f, 0).update(skeleton="x(y=z)"), "does not derive"),
    "a field too many": (lambda f: f.update(code="__import__('os')"), "code: Extra inputs"),
    "no field": (lambda f: f.pop("outputs"), "outputs: Field required"),
    "no output": (lambda f: f.update(outputs=["q"]), "no tensor q"),
    "other constants": (
        lambda f: f["point"].update(constants=1),
        r"its constants have \d+ bytes, not 1 ",
    ),
    "a bound too low": (lambda f: f["point"].update(bound=1), r"lower bound is \d+ bytes, not 1 "),
    "a bound too high": (
        lambda f: f["point"].update(bound=9**9),
        r"lower bound is \d+ bytes, not 387",
    ),
    "an arena too large": (
        lambda f: f["point"].update(arena=2048),
        "its arena has 1536 bytes, not",
    ),
    "a time": (lambda f: f["point"].update(time_ns=5), "take an unknown time, not 5 ns"),
    "another time": (
        lambda f: (f["point"].update(time_ns=5), [o.update(time_ns=2) for o in f["operations"]]),
        "its operations take 6 ns, not 5 ns",
    ),
    "no time": (
        lambda f: [o.update(time_ns=2) for o in f["operations"]],
        "its operations take 6 ns, not an unknown time",
    ),
    "an impossible front": (
        lambda f: f["front"].append({**f["point"], "arena": 100}),
        "its front has an arena of 100 bytes, below its bound",
    ),
    "a device": (lambda f: f.update(device={"name": "x"}), "not a valid plan"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_plans_are_refused(case, saved, tmp_path):
    change, message = HOSTILE[case]
    path = tmp_path / "bad.plan"
    path.write_bytes(rewritten(saved, change))
    with pytest.raises(LiftError, match=message):
        load(path)


def test_the_plan_that_is_not_changed_loads(saved, tmp_path):
    path = tmp_path / "good.plan"
    path.write_bytes(rewritten(saved, lambda _: None))
    with load(path) as plan:
        assert plan.run([X])["y"].shape == SHAPE


def test_an_option_whose_constants_others_read_too_is_kept():
    """The sum of the bytes of constants is not compared: operations may share some."""
    shared, own = Costs(5, 0, {"w": 100}), Costs(4, 0, {"v": 60})
    worse, equal = Costs(6, 0, {"w": 100, "v": 60}), Costs(5, 0, {"w": 100})
    assert own.beats(worse)
    assert not own.beats(shared)
    options = [Option(str(k), {}, None, None) for k in range(4)]
    kept = undominated(options, [shared, own, worse, equal])
    assert {option.skeleton for option in kept} == {"0", "1"}


def test_streamed_stores_have_to_save_the_time_of_reading_from_memory(device):
    operation = network().graph.operations[0]
    program = operation.program
    first = firsts(device)(operation)[0]
    result_bytes = int(size_bytes(program.body.body.type))
    hardware = hardware_of(device)
    reading = 1000 * result_bytes / hardware.memory_bandwidth

    def option(time_ns, **assignment):
        return dataclasses.replace(first, assignment=assignment, time_ns=time_ns)

    cached = [option(10_000, stores="cached"), option(20_000)]
    saves_less = option(10_000 - int(reading) + 1, stores="streamed")
    saves_more = option(10_000 - int(reading) - 2, **{"result.stores": "streamed"})
    given = [saves_less, *cached, saves_more]
    assert left_in_caches(given, program, device) == [*cached, saves_more]
    # what is stored between two stages of the program is in the program's own time
    between = option(5_000, **{"stage1.stores": "streamed"})
    assert left_in_caches([between, *given], program, device)[0] == between
    # nothing to compare with
    assert left_in_caches([saves_less], program, device) == [saves_less]
    large = program_of(hardware.cache_sizes[-1] // 4 + 1)
    assert left_in_caches(given, large, device) == given


def program_of(elements):
    """A program whose result has this number of elements."""
    return lp.parse(f"def more(xs: [{elements}]f32) = xs |> map(x => x + 1.0)")
