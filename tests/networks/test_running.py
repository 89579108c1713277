"""Networks on devices: tensors that share memory never do while both are in use."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import onnx.parser
import pytest

import liftpy as lp
from liftpy.errors import DeviceRefused
from liftpy.explore.space.space import Space
from liftpy.networks.arena import conflict
from liftpy.networks.executing import by_meaning, execute
from liftpy.networks.layout import blocks_of, constant_bytes, footprint, layout_of
from liftpy.networks.options import Option, firsts
from liftpy.networks.running import Runner
from liftpy.opencl import resident
from liftpy.pipeline import compile_candidate
from tests.networks.models import model, node, value
from tests.staged import by_definition

ALIGNMENT = 512
X = np.random.default_rng(7).standard_normal((1, 3, 5, 7)).astype(np.float32)


def drawn(seed):
    """A random network of 5 x 3 tensors: chains, branches that join, several results."""
    rng = random.Random(seed)
    lines, names = [], ["x", "z"]
    for k in range(rng.randint(5, 9)):
        a, b = rng.choice(names[-3:]), rng.choice(names)
        lines.append(
            rng.choice(
                [
                    f"t{k} = Relu ({a})",
                    f"t{k} = Add ({a}, {b})",
                    f"t{k} = Mul ({a}, w)",
                    f"t{k} = Sub ({a}, {b})",
                    f"t{k} = MatMul (m, {a})",
                ]
            )
        )
        names.append(f"t{k}")
    results = dict.fromkeys([names[-1], rng.choice(names[2:])])
    outs = ", ".join(f"float[5, 3] {n}" for n in results)
    rows = [rng.uniform(-1, 1) for _ in range(25)]
    weights = ", ".join(f"{rng.uniform(-1, 1):.3f}" for _ in range(15))
    return lp.network(
        onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 21]>\n'
            f"drawn (float[5, 3] x, float[5, 3] z) => ({outs})\n"
            f"<float[5, 3] w = {{{weights}}}, "
            f"float[5, 5] m = {{{', '.join(f'{r:.3f}' for r in rows)}}}>\n"
            "{\n" + "\n".join(lines) + "\n}"
        )
    )


def inputs_of(network, seed=1):
    rng = np.random.default_rng(seed)
    graph = network.graph
    return {n: rng.standard_normal(graph.tensors[n].shape).astype(np.float32) for n in graph.inputs}


def agree(network, found, inputs):
    wanted = execute(network.graph, inputs, by_meaning)
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.covering(2)
@pytest.mark.parametrize("seed", range(6))
def test_random_networks_have_the_values_of_their_meaning(seed, runtime):
    network = drawn(seed)
    options = firsts(runtime)
    modules = {o.name: options(o)[0].module for o in network}
    layout = layout_of(network.graph, modules, ALIGNMENT)
    blocks = blocks_of(network.graph, modules, ALIGNMENT)
    offsets = {f"tensor {n}": at for n, at in layout.tensors.items()}
    offsets |= {f"scratch of {n}": at for n, at in layout.scratch.items()}
    assert conflict(blocks, offsets, layout.bytes, ALIGNMENT) is None
    runner = Runner(network.graph, modules, layout, runtime)
    for k in range(2):
        inputs = inputs_of(network, k)
        agree(network, runner.run(inputs, poison=True), inputs)
        agree(network, runner.run(inputs), inputs)
    runner.close()


def test_an_overlap_shows(device):
    """What the test above relies on: with two live tensors in one place, results differ."""
    network = lp.network(
        onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        sum (float[5, 3] x, float[5, 3] z) => (float[5, 3] y) { y = Add (x, z) }""")
    )
    options = firsts(device)
    modules = {o.name: options(o)[0].module for o in network}
    layout = layout_of(network.graph, modules, ALIGNMENT)
    bad = layout.tensors | {"x": layout.tensors["z"]}
    spoiled = type(layout)(bad, layout.scratch, layout.bytes, layout.bound, False, layout.alignment)
    runner = Runner(network.graph, modules, spoiled, device)
    inputs = inputs_of(network)
    found = runner.run(inputs, poison=True)
    with pytest.raises(AssertionError):
        agree(network, found, inputs)
    runner.close()


def small():
    """Two equal convolutions with different weights, and what follows."""
    rng = np.random.default_rng(5)
    weights = {f"w{k}": rng.standard_normal((3, 3, 3, 3)).astype(np.float32) for k in (1, 2)}
    nodes = [
        node("Conv", "x w1", "a", pads=[1, 1, 1, 1]),
        node("Conv", "a w2", "b", pads=[1, 1, 1, 1]),
        node("Add", "a b", "y"),
    ]
    shape = (1, 3, 5, 7)
    return lp.network(model(nodes, [value("x", shape)], [value("y", shape)], **weights))


def other_candidates(device, seed):
    """Options that are drawn candidates, which pack constants and need scratch."""
    known = {}

    def options(operation):
        program = operation.program
        if program not in known:
            drawn = Space.whole(program, device, made=by_definition).sample(8, seed=seed)
            modules = [(c, compile_candidate(c.skeleton, c.point)) for c in drawn]
            by_scratch = max(modules, key=lambda one: footprint(one[1], ALIGNMENT).scratch)
            by_packed = max(modules, key=lambda one: footprint(one[1], ALIGNMENT).packed)
            known[program] = [
                Option(c.skeleton.key, c.assignment, None, m) for c, m in (by_scratch, by_packed)
            ]
        return known[program]

    return options


@pytest.mark.sampled(2)
def test_drawn_candidates_share_scratch_and_keep_packed_constants(runtime):
    network = small()
    options = other_candidates(runtime, seed=3)
    for pick in (0, -1):
        modules = {o.name: options(o)[pick].module for o in network}
        layout = layout_of(network.graph, modules, ALIGNMENT)
        runner = Runner(network.graph, modules, layout, runtime)
        agree(network, runner.run([X], poison=True), {"x": X})
        agree(network, runner.run([X]), {"x": X})
        assert runner.constant_bytes == constant_bytes(network.graph, modules)
        needs = [footprint(m, ALIGNMENT) for m in modules.values()]
        assert layout.scratch if pick == 0 else any(n.packed for n in needs)
        assert set(runner.times.kernels) == {o.name for o in network}
        runner.close()


def test_operations_without_a_program_run_in_the_reference_evaluator(device):
    network = lp.network(
        onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        other (float[5, 5] x) => (float[5, 5] y, float[5, 5] a) {
          r = Relu (x)
          d = Det (r)
          a = Add (d, r)
          y = Mul (a, x)
        }"""),
        partial=True,
    )
    inputs = inputs_of(network)
    found = network.run(inputs, device=device, reference=True)
    wanted = network.evaluate(inputs, reference=True)
    for name in ("y", "a"):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
    network.close()


def test_what_a_caller_changes_in_a_result_is_not_read_again():
    nodes = [node("Add", "x k", "y", "add")]
    made = model(
        nodes, [value("x", (4,))], [value(n, (4,)) for n in "ykx"], k=np.ones(4, np.float32)
    )
    network, x = lp.network(made), np.arange(4, dtype=np.float32)
    found = network.evaluate([x])
    found["k"][:] = found["x"][:] = 100
    np.testing.assert_array_equal(x, np.arange(4))
    for again in (network.evaluate([x]), network.run([x])):
        np.testing.assert_array_equal(again["y"], x + 1)
    network.close()


def test_threads_that_run_one_network_take_turns():
    network = lp.network(model([node("Relu", "x", "y")], [value("x", (64,))], [value("y", (64,))]))
    network.run([np.zeros(64, np.float32)])

    def wrong(number):
        x = np.full(64, number, np.float32)
        return sum(not np.array_equal(network.run([x])["y"], x) for _ in range(30))

    with ThreadPoolExecutor(3) as threads:
        assert [*threads.map(wrong, (1, 2, 3))] == [0, 0, 0]
    network.close()


@pytest.mark.covering(2)
@pytest.mark.parametrize("copied", ["input", "output"])
def test_a_copy_that_fails_is_refused_and_the_next_run_is_right(copied, runtime, monkeypatch):
    """The copy waits for an event that fails while the kernels are queued."""
    made = model([node("Relu", "x", "y")], [value("x", [5, 16])], [value("y", [None] * 2)])
    net = lp.network(made)
    x = {"x": np.random.default_rng(0).standard_normal((5, 16), np.float32)}
    wanted = net.run(x, device=runtime)["y"]
    enqueue_copy, user_event = resident.cl.enqueue_copy, resident.cl.UserEvent

    def failing(queue, target, source, **given):
        if isinstance(target, np.ndarray) is (copied == "output"):
            event = user_event(queue.context)
            threading.Timer(0.2, event.set_status, [-5]).start()
            given["wait_for"] = [event]
        return enqueue_copy(queue, target, source, **given)

    with monkeypatch.context() as patch:
        patch.setattr(resident.cl, "enqueue_copy", failing)
        with pytest.raises(DeviceRefused, match="EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"):
            net.run(x, device=runtime)
    np.testing.assert_array_equal(net.run(x, device=runtime)["y"], wanted)
    net.close()


def test_times_may_be_read_during_a_run(device):
    """They are those of a run that is over."""
    net = lp.network(model([node("Relu", "x", "y")], [value("x", [64])], [value("y", [None])]))
    modules = {o.name: firsts(device)(o)[0].module for o in net}
    runner = Runner(net.graph, modules, layout_of(net.graph, modules, 512), device)
    x = {"x": np.ones(64, np.float32)}
    over = threading.Event()

    def reading():
        while not over.is_set():
            assert runner.times.kernels.keys() <= {o.name for o in net}

    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(reading)
        try:
            for _ in range(50):
                assert len(runner.profile(x, repeats=3, warmup=0)) == 3
        finally:
            over.set()
        read.result()
    runner.close()
