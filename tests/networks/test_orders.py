"""The order of axes of each tensor as a choice: alternatives, copies, plans from stored times."""

import dataclasses
import itertools
import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import ConstraintRefused, NetworkRefused, NothingMeasured
from liftpy.explore.campaign.seals import seal
from liftpy.networks import options as options_module
from liftpy.networks import orders as choosing
from liftpy.networks import solver
from liftpy.networks.campaigns import campaign_file
from liftpy.networks.costs import Ordered
from liftpy.networks.executing import by_meaning, execute
from liftpy.networks.layout import footprint
from liftpy.networks.options import Measured
from liftpy.networks.orders import Orders, hopes
from liftpy.networks.solver import orders as chosen_orders
from liftpy.traffic.machine import hardware_of
from tests.networks.models import model, node, value

pytestmark = pytest.mark.usefixtures("in_one_process")


def some(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def two_convolutions():
    """Two convolutions of one pixel: 2 channels to 4 and to 2."""
    rng = np.random.default_rng(8)
    return model(
        [node("Conv", "x w1", "b", "conv1"), node("Conv", "b w2", "y", "conv2")],
        [value("x", [1, 2, 3, 5])],
        [value("y", [1, 2, 3, 5])],
        w1=some(rng, 4, 2, 1, 1),
        w2=some(rng, 2, 4, 1, 1),
    )


def branches():
    """A residual, a pooling, and an operation that reads images in the declared order only."""
    rng = np.random.default_rng(9)
    return model(
        [
            node("Conv", "x w1", "a", "conv1", pads=[1, 1, 1, 1]),
            node("MaxPool", "a", "p", "pool1", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("Conv", "p w2", "c", "conv2"),
            node("Add", "c a", "d", "add"),
            node("GlobalAveragePool", "d", "e", "pool2"),
            node("Flatten", "e", "y", "flatten"),
        ],
        [value("x", [2, 3, 3, 5])],
        [value("y", [2, 3])],
        w1=some(rng, 3, 3, 3, 3),
        w2=some(rng, 3, 3, 1, 1),
    )


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.soak)])
def test_all_orders_of_a_network_have_its_meaning(step):
    network = lp.network(branches()).joined()
    orders = Orders(network.graph)
    assert [len(own) for own in orders.alternatives] == [4, 4, 8, 2]
    x = some(np.random.default_rng(1), 2, 3, 3, 5)
    wanted = network.evaluate([x])["y"]
    counts = set()
    selections = itertools.product(*(range(len(own)) for own in orders.alternatives))
    for selection in itertools.islice(selections, 0, None, step):
        graph = orders.graph_of(selection)
        counts.add(sum(o.reorders for o in graph.operations))
        found = execute(graph, [x], by_meaning)["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert counts == {0, 1, 2, 3, 4}  # copies that the operations of a selection need


def test_the_programs_of_one_order_are_among_the_alternatives():
    orders = Orders(lp.network(branches()).joined().graph)
    known = {a.operation.program for own in orders.alternatives for a in own}
    known |= {copy.program for copy in orders.copies.values()}
    last = lp.network(branches()).channels_last().joined()
    assert {o.program for o in last} <= known


def test_a_network_with_channels_last_has_no_choice():
    with pytest.raises(NetworkRefused, match="already stores images with channels last"):
        Orders(lp.network(two_convolutions()).channels_last().graph)


def test_orders_have_the_least_time_with_copies():
    """The same as by trying every selection, for four operations with random times."""
    rng = np.random.default_rng(5)
    reads = [["x"], ["a"], ["a"], ["b", "c"]]
    stores = ["a", "b", "c", "d"]
    options = [
        [
            Ordered(
                int(rng.integers(1, 99)),
                frozenset(zip(inputs, order, strict=False)),
                frozenset({(output, order[-1])}),
            )
            for order in itertools.product((False, True), repeat=len(inputs) + 1)
        ]
        for inputs, output in zip(reads, stores, strict=True)
    ]
    copies = {(n, last): int(rng.integers(1, 30)) for n in "xabcd" for last in (False, True)}

    def time(selection):
        picked = [own[k] for own, k in zip(options, selection, strict=True)]
        there = {("x", False), *(key for o in picked for key in o.stores)}
        needed = {("d", False), *(key for o in picked for key in o.reads)}
        return sum(o.time_ns for o in picked) + sum(copies[key] for key in needed - there)

    every = sorted(itertools.product(*(range(len(own)) for own in options)), key=time)
    excluded = []
    for _ in range(3):
        found, bound = chosen_orders(options, copies, {("x", False)}, {("d", False)}, excluded)
        assert time(found) == bound == time(every[len(excluded)])
        excluded.append(found)


def test_a_search_that_ends_early_does_not_prove_that_nothing_is_left(monkeypatch):
    options = [[Ordered(7, frozenset({("x", last)}), frozenset({("y", last)}))] for last in (0, 1)]
    given = options, {("y", True): 3}, {("x", False), ("x", True)}, {("y", False)}
    assert chosen_orders(*given) == ((0, 0), 14)
    assert chosen_orders(*given, [(0, 0)]) == (None, math.inf)
    monkeypatch.setattr(solver, "EFFORT", 0)
    assert chosen_orders(*given, [(0, 0)])[0] is None
    found, bound = chosen_orders(*given)
    assert found is None
    assert bound <= 14


def stored(folder, device, program, time_ns):
    """A campaign of one candidate, whose measured time is replaced by another one."""
    path = campaign_file(folder, program, device)
    lp.explore(program, 1, db=path, device=device)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE outcome SET time_ns = ?", (time_ns,))
        db.execute("UPDATE run SET ns = ?", (time_ns,))
        seal(db)
    db.close()


@pytest.fixture(scope="module")
def measured(device, tmp_path_factory):
    """A folder of campaigns: conv1 is fast as declared, and conv2 with channels last."""
    folder = tmp_path_factory.mktemp("orders")
    network = lp.network(two_convolutions()).joined()
    orders = Orders(network.graph)
    first, second = (
        {(*dict(a.reads).values(), *dict(a.stores).values()): a.operation.program for a in own}
        for own in orders.alternatives
    )
    for program, time_ns in (
        (first[False, False], 10),
        (first[False, True], 40),
        (second[False, False], 100),
        (second[True, False], 10),
        (orders.copies["b", True].program, 5),
    ):
        stored(folder, device, program, time_ns)
    return network, folder


def test_a_plan_of_mixed_orders_is_faster_than_those_of_one_order(device, measured):
    network, folder = measured
    assert network.plan(folder, device=device).predicted_ns == 110
    last = lp.network(two_convolutions()).channels_last().joined()
    assert last.plan(folder, device=device).predicted_ns == 50
    plan = network.plan(folder, device=device, choose_orders=True)
    assert plan.predicted_ns == 25
    assert plan.point.proved
    assert [o.name for o in plan.graph.operations] == ["conv1", "b/to_channels_last", "conv2"]
    x = some(np.random.default_rng(2), 1, 2, 3, 5)
    assert plan.check([x])["y"] < 1e-5


def test_a_plan_is_not_proved_if_the_solver_finds_no_other_orders(device, measured, monkeypatch):
    network, folder = measured
    choose = Orders.choose

    def once(self, time_of, excluded=()):
        return (None, 0.0) if excluded else choose(self, lambda _: 0, excluded)

    monkeypatch.setattr(Orders, "choose", once)
    plan = network.plan(folder, device=device, choose_orders=True)
    assert not plan.point.proved


def test_orders_are_chosen_under_a_limit_of_memory(device, measured):
    """The copy is live together with the tensor that it copies."""
    network, folder = measured
    most = network.plan(folder, device=device, choose_orders=True).point.memory
    plan = network.plan(folder, device=device, choose_orders=True, memory_limit=most - 1)
    assert plan.predicted_ns == 50
    assert plan.point.memory < most
    with pytest.raises(ConstraintRefused, match="no plan of"):
        network.plan(folder, device=device, choose_orders=True, memory_limit=1)


def test_the_declared_order_is_tried_if_no_faster_one_is_within_the_limit(
    device, measured, monkeypatch
):
    network, folder = measured
    declared = network.plan(folder, device=device)
    limit = declared.point.memory
    monkeypatch.setattr(choosing, "CHOICES", 1)
    plan = network.plan(folder, device=device, choose_orders=True, memory_limit=limit)
    assert plan.predicted_ns == declared.predicted_ns == 110
    assert not plan.point.proved


def test_an_unmeasured_plan_does_not_end_the_search(device, measured, monkeypatch):
    """As for a concatenation that is expected to need no kernel, and needs one."""
    network, folder = measured
    orders = Orders(network.graph)
    read_last = next(
        a.operation.program
        for a in orders.alternatives[1]
        if dict(a.reads)["b"] and dict(a.stores)["y"]
    )
    free = {read_last, orders.copies["y", False].program}
    known = choosing.least_time

    def least(options, program):
        return 0 if program in free else known(options, program)

    monkeypatch.setattr(choosing, "least_time", least)
    plan = network.plan(folder, device=device, choose_orders=True)
    assert plan.predicted_ns == 25


def test_constants_that_the_caches_cannot_hold_are_read_from_memory(device, measured):
    """The times of options contain that reading, if the network's constants are too large."""
    network, folder = measured
    hardware = hardware_of(device)
    programs = [o.program for o in network.graph.operations]
    small = Measured([folder], device, hardware.cache_sizes[-1])
    large = Measured([folder], device, hardware.cache_sizes[-1] + 1)
    for program in programs:
        for cached, read in zip(small.known(program), large.known(program), strict=True):
            constants = footprint(cached.module, 1).packed + sum(
                b.bytes for b in cached.module.buffers if b.role == "constant"
            )
            assert constants
            added = 1000 * constants // hardware.memory_bandwidth
            assert read == dataclasses.replace(cached, time_ns=cached.time_ns + added)


def test_constants_that_a_campaign_read_from_memory_are_not_counted_again(
    device, measured, monkeypatch
):
    """The constants of one operation exceed the caches, so its measured time contains the read."""
    network, folder = measured
    cached = Measured([folder], device)
    small = dataclasses.replace(hardware_of(device), cache_sizes=(1,))
    monkeypatch.setattr(options_module, "hardware_of", lambda _: small)
    read = Measured([folder], device, network.graph.constant_bytes)
    for operation in network.graph.operations:
        assert read.known(operation.program) == cached.known(operation.program)


def test_an_operation_is_explored_in_another_order_only_if_the_network_may_gain(device, measured):
    network, folder = measured
    orders = Orders(network.graph)
    options = Measured([folder], device)

    def unexplored(time_of):
        found, _ = orders.choose(time_of)
        operations = orders.graph_of(found).operations
        return [o.name for o in operations if not options.known(o.program)]

    time_of = hopes(orders, folder, device)
    # with half of 10 ns for each convolution, and hardly anything for copies of x and y
    assert unexplored(time_of) == ["x/to_channels_last", "conv1", "conv2", "y/to_channels_first"]
    slow = {id(copy.program): 30 for (name, _), copy in orders.copies.items() if name in "xy"}
    assert not unexplored(lambda program: slow.get(id(program), time_of(program)))


def test_a_campaign_explores_orders_until_a_plan_can_gain_nothing(device, tmp_path):
    network = lp.network(two_convolutions()).joined()
    explored = network.explore(
        1, db=tmp_path / "all", device=device, choose_orders=True, families=["plain"]
    )
    assert not explored.stopped
    orders = Orders(network.graph)
    found, _ = orders.choose(hopes(orders, tmp_path / "all", device))
    options = Measured([tmp_path / "all"], device)
    assert all(options.known(o.program) for o in orders.graph_of(found).operations)
    plan = network.plan(tmp_path / "all", device=device, choose_orders=True)
    assert plan.predicted_ns is not None
    assert plan.check([some(np.random.default_rng(3), 1, 2, 3, 5)])["y"] < 1e-5


def test_an_operation_whose_time_was_up_is_explored_by_the_next_call(device, tmp_path):
    network = lp.network(two_convolutions()).joined()
    orders = Orders(network.graph)
    found, _ = orders.choose(hopes(orders, tmp_path, device))  # those that are explored first
    program = orders.alternatives[0][found[0]].operation.program
    with pytest.raises(NothingMeasured):
        lp.explore(
            program, 1, db=campaign_file(tmp_path, program, device), device=device, time_limit=1e-6
        )
    assert campaign_file(tmp_path, program, device).exists()
    network.explore(1, db=tmp_path, device=device, choose_orders=True)
    assert Measured([tmp_path], device).known(program)


def test_orders_in_which_an_operation_has_no_candidate_are_avoided(device, tmp_path):
    orders = Orders(lp.network(two_convolutions()).joined().graph)
    found, _ = orders.choose(hopes(orders, tmp_path, device))
    first = orders.alternatives[0][found[0]]
    vain = {id(first.operation.program)}
    other, _ = orders.choose(hopes(orders, tmp_path, device, vain))
    assert other[0] != found[0]
