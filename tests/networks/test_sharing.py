"""Tensors that are parts or slices of others share their storage: no kernel copies them."""

import dataclasses
import random

import numpy as np
import pytest

import liftpy as lp
from liftpy.errors import StoreRefused
from liftpy.ir.program import Program
from liftpy.networks.arena import Block, conflict, end_of, lower_bound, place
from liftpy.networks.campaigns import works_of
from liftpy.networks.executing import by_meaning, random_arrays
from liftpy.networks.layout import blocks_of, layout_of
from liftpy.networks.options import firsts
from liftpy.networks.ordering import ordered
from liftpy.networks.plan import Plan, load, stored_in
from liftpy.networks.running import Runner
from liftpy.networks.sharing import resident, sharing
from liftpy.semantics.evaluate import evaluate
from liftpy.semantics.moving import sources
from tests.networks.models import model, node, value

ALIGNMENT = 512
WIDTH = 128
"""The f32 of a row: its bytes are a multiple of the alignment of every device."""


def rows(*counts, of=WIDTH):
    return [value(f"x{k}", [n, of]) for k, n in enumerate(counts)]


def network(nodes, inputs, *results, **constants):
    made = model(nodes, inputs, [value(n, [None] * rank) for n, rank in results], **constants)
    return lp.network(made)


def fire():
    """Nested concatenations, then a split and a reshape of their result."""
    nodes = [
        node("Relu", "x0", "a", "relu"),
        node("Neg", "x0", "b", "neg"),
        node("Concat", "a b", "c", "inner", axis=0),
        node("Sigmoid", "x1", "d", "sigmoid"),
        node("Concat", "c d", "e", "outer", axis=0),
        node("Split", "e", "f g", "split", num_outputs=2, axis=0),
        node("Reshape", "g shape", "h", "reshape"),
        node("Exp", "f", "y", "exp"),
        node("Tanh", "h", "z", "tanh"),
    ]
    shape = np.array([2, -1])
    return network(nodes, rows(2, 4), ("y", 2), ("z", 2), shape=shape)


def test_nested_concatenations_splits_and_reshapes_are_places_in_one_storage():
    graph = fire().graph
    shared = sharing(graph, ALIGNMENT)
    assert shared.unmoved == {"inner", "outer", "split", "reshape"}
    row = 4 * WIDTH
    assert {n: at for n, (storage, at) in shared.places.items() if storage == "e"} == {
        "e": 0, "c": 0, "a": 0, "b": 2 * row, "d": 4 * row, "f": 0, "g": 4 * row, "h": 4 * row,
    }  # fmt: skip
    written = {part.writers: (part.offset, part.bytes) for part in shared.parts}
    assert written["relu",] == (0, 2 * row)
    assert written["neg",] == (2 * row, 2 * row)
    assert written["sigmoid",] == (4 * row, 4 * row)
    blocks = blocks_of(graph, {}, ALIGNMENT)
    assert lower_bound(blocks) == (2 + 2 + 4 + 4) * row  # a and b, d, y
    assert graph.peak_bytes > lower_bound(blocks)


@pytest.mark.parametrize(
    ("nodes", "inputs", "result"),
    [
        # along an inner axis, parts are not contiguous, and no operation stores them as slices
        ([node("Concat", "x0 x1", "y", "op", axis=1)], rows(2, 2), ("y", 2)),
        # an offset that no sub-buffer can have
        ([node("Concat", "x0 x1", "y", "op", axis=0)], rows(1, 2, of=33), ("y", 2)),
        # a tensor has one place only
        ([node("Concat", "x0 x0", "y", "op", axis=0)], rows(2), ("y", 2)),
        # a constant is not in the arena
        ([node("Concat", "x0 w", "y", "op", axis=0)], rows(2), ("y", 2)),
        ([node("Transpose", "x0", "y", "op", perm=[1, 0])], rows(2), ("y", 2)),
        ([node("Pad", "x0 pads", "y", "op")], rows(2), ("y", 2)),
        ([node("Relu", "x0", "y", "op")], rows(2), ("y", 2)),
        # every other row
        ([node("Slice", "x0 zero four zero two", "y", "op")], rows(4), ("y", 2)),
    ],
)
def test_what_is_not_a_contiguous_part_has_kernels(nodes, inputs, result):
    constants = {
        "w": np.ones((2, WIDTH), np.float32),
        "pads": np.array([0, 0, 2, 0]),
        "zero": np.array([0]),
        "two": np.array([2]),
        "four": np.array([4]),
    }
    read = {n for one in nodes for n in one.input}
    own = {n: a for n, a in constants.items() if n in read}
    net = network(nodes, inputs, result, **own)
    assert sharing(net.graph, ALIGNMENT).unmoved == set()


# --- slices ---------------------------------------------------------------------------------------


def columns(*, reads="a b", more=(), left=16, right=24, results=("z",)):
    """A concatenation of columns, whose inputs `a` and `b` other operations compute."""
    nodes = [
        node("Relu", "x0", "a", "a"),
        node("Neg", "x1", "b", "b"),
        node("Concat", reads, "y", "concat", axis=1),
        node("Exp", "y", "z", "exp"),
        *more,
    ]
    given = [value("x0", [5, left]), value("x1", [5, right])]
    return network(nodes, given, *[(name, 2) for name in results])


def test_operations_store_columns_as_slices_of_their_concatenation():
    graph = columns().graph
    shared = sharing(graph, ALIGNMENT)
    assert shared.unmoved == {"concat"}
    assert {name: own.of for name, own in shared.slices.items()} == {"a": "y", "b": "y"}
    assert shared.places["a"] == shared.places["b"] == ("y", 0)
    (part,) = (part for part in shared.parts if part.storage == "y")
    assert part.writers == ("a", "b")
    assert (part.name, part.bytes) == ("tensor y", 800)
    operations = {o.name: o for o in graph.operations}
    numbers = np.arange(200, dtype=np.float32).reshape(5, 40)
    for name, wanted in (("a", numbers[:, :16]), ("b", numbers[:, 16:])):
        view = shared.output_view(operations[name])
        np.testing.assert_array_equal(Program("read", view)(numbers), wanted)
    assert shared.output_view(operations["exp"]) is None
    assert lower_bound(blocks_of(graph, {}, ALIGNMENT)) <= graph.peak_bytes + 4 * ALIGNMENT


@pytest.mark.parametrize(
    "net",
    [
        pytest.param(columns(left=12), id="less than a cache line is consecutive"),
        pytest.param(
            columns(more=[node("Abs", "a", "w", "abs")], results=("z", "w")), id="two readers"
        ),
        pytest.param(columns(results=("z", "a")), id="a result of the network"),
        pytest.param(columns(reads="a x1"), id="an input of the network"),
        pytest.param(columns(reads="a a"), id="the same tensor twice"),
    ],
)
def test_what_is_no_slice_is_copied(net):
    shared = sharing(net.graph, ALIGNMENT)
    assert "concat" not in shared.unmoved
    assert not shared.slices


@pytest.mark.covering(2)
def test_a_slice_of_a_slice_is_a_slice(runtime):
    nodes = [
        node("Relu", "x0", "c", "c"),
        node("Neg", "x0", "d", "d"),
        node("Concat", "c d", "a", "rows", axis=0),
        node("Exp", "x1", "b", "b"),
        node("Concat", "a b", "y", "columns", axis=1),
        node("Abs", "y", "z", "abs"),
    ]
    given = [value("x0", [4, 32]), value("x1", [8, 48])]
    net = network(nodes, given, ("z", 2))
    shared = sharing(net.graph, ALIGNMENT)
    assert shared.unmoved == {"rows", "columns"}
    assert {name: own.of for name, own in shared.slices.items()} == dict.fromkeys("abcd", "y")
    numbers = np.arange(8 * 80, dtype=np.float32).reshape(8, 80)
    read = Program("read", shared.slices["d"].view)(numbers)
    np.testing.assert_array_equal(read, numbers[4:, :32])
    x = random_arrays(net.graph)
    np.testing.assert_allclose(net.run(x, device=runtime)["z"], net.evaluate(x)["z"], rtol=1e-5)
    net.close()


def branches(**extra):
    """Two convolutions that are concatenated along their channels, and a pooling."""
    rng = np.random.default_rng(2)
    weights = {
        "w0": rng.standard_normal((16, 3, 1, 1)), "w1": rng.standard_normal((32, 3, 3, 3)),
    }  # fmt: skip
    nodes = [
        node("Conv", "x w0", "a", "one"),
        node("Conv", "x w1", "b", "three", pads=[1, 1, 1, 1]),
        node("Relu", "b", "c", "relu"),
        node("Concat", "a c", "y", "concat", axis=1),
        node("MaxPool", "y", "z", "pool", kernel_shape=[2, 2], strides=[2, 2]),
    ]
    constants = {n: w.astype(np.float32) for n, w in weights.items()}
    return network(nodes, [value("x", [1, 3, 7, 6])], ("z", 4), **constants, **extra)


@pytest.mark.covering(2)
def test_channels_last_are_concatenated_without_a_copy(runtime, tmp_path):
    pytest.importorskip("ortools")
    net = branches().channels_last().joined()
    plan = net.plan(device=runtime)
    assert "concat" in plan.layout.unmoved
    assert not {"concat"} & plan.choices.keys()
    x = plan.random_inputs()
    plan.check(x)
    wanted = branches().evaluate(x)["z"]
    np.testing.assert_allclose(plan.run(x, poison=True)["z"], wanted, rtol=1e-5, atol=1e-5)
    plan.save(tmp_path / "branches.plan")
    with load(tmp_path / "branches.plan", runtime) as again:
        np.testing.assert_array_equal(again.run(x)["z"], plan.run(x)["z"])
        again.remeasured().check(x)
    plan.close()


def test_of_two_results_that_contain_a_tensor_one_gets_it():
    nodes = [
        node("Relu", "x0", "a", "relu"),
        node("Concat", "a x1", "y", "small", axis=0),
        node("Concat", "x2 a", "z", "large", axis=0),
    ]
    graph = network(nodes, rows(1, 1, 5), ("y", 2), ("z", 2)).graph
    assert sharing(graph, ALIGNMENT).unmoved == {"large"}
    backwards = dataclasses.replace(graph, operations=graph.operations[::-1])
    assert sharing(backwards, ALIGNMENT).unmoved == {"large"}


def test_a_part_of_a_tensor_does_not_move_the_whole_into_another_one():
    """With `f` inside `y`, the rest of `x0` would be where `a` is."""
    nodes = [
        node("Split", "x0", "f g", "split", num_outputs=2, axis=0),
        node("Relu", "g", "a", "relu"),
        node("Concat", "f a", "y", "concat", axis=0),
    ]
    graph = network(nodes, rows(4), ("y", 2)).graph
    assert sharing(graph, ALIGNMENT).unmoved == {"concat"}


def test_sources_of_elements():
    program = lp.parse("def f(x: [2][3]f32, y: [3]f32) = concat(x, y |> split(3))")
    (found,) = sources(program)
    assert found.tolist() == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    (found,) = sources(lp.parse("def f(x: [2]f32) = x |> pad(1, 0, 0.0)"))
    assert found.tolist() == [-1, 0, 1]
    assert sources(lp.parse("def f(x: [2]f32) = x |> map(x => x + x)")) is None
    assert sources(lp.parse(f"def f(x: [{2**40}]f32) = x |> take(4)")) is None


# --- random networks ------------------------------------------------------------------------------


def drawn(seed):
    """A random network of matrices: concatenations, splits, reshapes, sums and activations."""
    rng = random.Random(seed)
    nodes, shapes = [], {"x0": (2, WIDTH), "x1": (4, WIDTH)}
    for k in range(rng.randint(6, 10)):
        made, names = f"t{k}", [*shapes][-5:]
        a, b = rng.choice(names), rng.choice(names)
        kind = rng.choice(
            ["Concat", "Concat", "Columns", "Columns", "Split", "Relu", "Add", "Slice"]
        )
        (n, w), (m, v) = shapes[a], shapes[b]
        if kind == "Concat" and n + m <= 16 and w == v:
            nodes.append(node("Concat", f"{a} {b}", made, f"n{k}", axis=0))
            shapes[made] = n + m, w
        elif kind == "Columns" and n == m and w + v <= 4 * WIDTH:
            nodes.append(node("Neg", a, f"{made}l", f"n{k}l"))
            nodes.append(node("Abs", b, f"{made}r", f"n{k}r"))
            read = f"{made}l {made}r" if rng.random() < 0.8 else f"{a} {made}r"
            nodes.append(node("Concat", read, made, f"n{k}", axis=1))
            shapes[made] = n, w + v
        elif kind == "Split" and n % 2 == 0:
            nodes.append(node("Split", a, f"{made} {made}b", f"n{k}", num_outputs=2, axis=0))
            shapes[made] = shapes[f"{made}b"] = n // 2, w
        elif kind == "Slice" and n > 2:
            nodes.append(node("Slice", f"{a} one two", made, f"n{k}"))
            shapes[made] = 1, w
        elif kind == "Add" and shapes[a] == shapes[b]:
            nodes.append(node("Add", f"{a} {b}", made, f"n{k}"))
            shapes[made] = n, w
        else:
            nodes.append(node("Relu", a, made, f"n{k}"))
            shapes[made] = n, w
    last = [*shapes][-1]
    results = dict.fromkeys([last, rng.choice([n for n in shapes if n[0] == "t"])])
    read = {n for one in nodes for n in one.input}
    given = {"one": np.array([1]), "two": np.array([2])}
    constants = {n: a for n, a in given.items() if n in read}
    return network(nodes, rows(2, 4), *[(n, 2) for n in results], **constants)


def placed(graph, modules):
    """A layout, with its blocks and their places."""
    layout = layout_of(graph, modules, ALIGNMENT)
    shared = sharing(graph, ALIGNMENT)
    offsets = {part.name: layout.tensors[part.storage] + part.offset for part in shared.parts}
    offsets |= {f"scratch of {n}": at for n, at in layout.scratch.items()}
    return layout, blocks_of(graph, modules, ALIGNMENT), offsets


def simulated(net, layout, inputs):
    """The results of a network whose tensors are bytes of an arena, with NumPy for kernels."""
    graph, arena = net.graph, np.full(layout.bytes, 0xFF, np.uint8)

    slices = sharing(graph, ALIGNMENT).slices

    def at(name):
        tensor = graph.tensors[slices[name].of if name in slices else name]
        start = layout.tensors[name]
        whole = arena[start : start + tensor.bytes].view(np.float32).reshape(tensor.shape)
        if name not in slices:
            return whole
        numbers = np.arange(whole.size, dtype=np.float64).reshape(whole.shape)
        read = evaluate(Program("read", slices[name].view), numbers, dtype=np.float64)
        first, last = (int(np.asarray(read)[k]) for k in [(0, 0), (-1, -1)])
        (row, column), (below, right) = (np.unravel_index(k, whole.shape) for k in (first, last))
        return whole[row : below + 1, column : right + 1]

    for name in inputs.keys() & layout.tensors.keys():  # others are read by nothing
        at(name)[...] = inputs[name]
    for o in graph.operations:
        if o.name not in layout.unmoved:
            found = by_meaning(o, o.program, [at(n).copy() for n in o.inputs])
            for name, array in zip(o.outputs, found, strict=True):
                at(name)[...] = array
    return {n: at(n).copy() for n in graph.outputs}


@pytest.mark.parametrize("seed", range(60))
def test_layouts_of_random_networks_are_valid_and_no_larger(seed):
    net = drawn(seed)
    graph = net.graph
    layout, blocks, offsets = placed(graph, {})
    rng = np.random.default_rng(seed)
    inputs = {
        n: rng.standard_normal(graph.tensors[n].shape).astype(np.float32) for n in graph.inputs
    }
    found, wanted = simulated(net, layout, inputs), net.evaluate(inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)
    assert conflict(blocks, offsets, layout.bytes, ALIGNMENT) is None
    assert layout.bound == lower_bound(blocks) <= graph.peak_bytes
    assert {*resident(graph)} == layout.tensors.keys()
    order = ordered(graph, sharing(graph, ALIGNMENT).parts, [0] * len(graph.operations))
    again = dataclasses.replace(
        graph, operations=tuple(graph.operations[k] for k in order.positions)
    )
    assert order.peak == lower_bound(blocks_of(again, {}, ALIGNMENT)) <= layout.bound


def test_random_networks_share_in_many_ways():
    found = [sharing(drawn(seed).graph, ALIGNMENT) for seed in range(60)]
    assert sum(len(one.unmoved) for one in found) > 100
    assert sum(not one.unmoved for one in found) < 20
    assert sum(len(one.slices) for one in found) > 40


@pytest.mark.covering(2)
@pytest.mark.parametrize("seed", [12, 28, 50])
def test_random_networks_run_with_shared_storage(seed, runtime):
    net = drawn(seed)
    graph = net.graph
    options = firsts(runtime)
    shared = sharing(graph, ALIGNMENT)
    assert len(shared.unmoved) >= 3
    assert len(shared.slices) >= 4
    modules = {
        o.name: stored_in(options(o)[0], o, shared.output_view(o), runtime).module
        for o in net
        if o.name not in shared.unmoved
    }
    runner = Runner(graph, modules, layout_of(graph, modules, ALIGNMENT), runtime)
    rng = np.random.default_rng(seed)
    for _ in range(2):
        inputs = {
            n: rng.standard_normal(graph.tensors[n].shape).astype(np.float32) for n in graph.inputs
        }
        found, wanted = runner.run(inputs, poison=True), net.evaluate(inputs)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
    runner.close()


# --- groups of blocks -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_blocks_of_a_group_keep_their_places(seed):
    pytest.importorskip("ortools")
    from liftpy.networks.solver import smallest  # noqa: PLC0415  it may not be installed

    rng = random.Random(seed)
    blocks = []
    for k in range(4):
        at = 0
        for j in range(rng.randint(1, 3)):
            first, size = rng.randrange(6), rng.randint(1, 5)
            last = first + rng.randrange(4)
            blocks.append(Block(f"b{k}_{j}", size, first, last, f"g{k}", at))
            at += size + rng.choice([0, 0, 2])
    for solve in (None, smallest):
        found = place(blocks, 1, solve)
        assert conflict(blocks, found.offsets, found.bytes) is None
        assert found.bytes == end_of(blocks, found.offsets) >= found.bound
        for b in blocks:
            assert found.offsets[b.name] - b.at == found.offsets[f"{b.name[:2]}_0"]


# --- campaigns and plans --------------------------------------------------------------------------


def test_a_campaign_does_not_explore_what_has_no_kernels(device, tmp_path):
    works = works_of(fire().graph, tmp_path, device)
    assert [o.name for work in works for o in work.operations] == [
        "relu", "neg", "sigmoid", "exp", "tanh",
    ]  # fmt: skip


def test_a_plan_without_copies_is_saved_and_run(device, tmp_path):
    pytest.importorskip("ortools")
    net = fire()
    plan = net.plan(device=device)
    assert {*plan.choices} == {"relu", "neg", "sigmoid", "exp", "tanh"}
    plan.save(tmp_path / "fire.plan")
    with load(tmp_path / "fire.plan", device) as again:
        assert again.layout == plan.layout
        again.check(again.random_inputs())
        assert [row.operation for row in again.profile(repeats=1).rows] == [
            o.name for o in again.graph.operations if o.name in plan.choices
        ]
    data = plan.data
    elsewhere = {**data.layout.tensors, "h": data.layout.tensors["f"]}
    for wrong, said in (
        ({"tensors": elsewhere}, "tensor h is at .*; as a part of .* it belongs at "),
        ({"unmoved": data.layout.unmoved | {"exp"}}, "exp has no kernels, and its results have"),
    ):
        layout = dataclasses.replace(data.layout, **wrong)
        choices = {n: c for n, c in data.choices.items() if n not in layout.unmoved}
        Plan(dataclasses.replace(data, layout=layout, choices=choices)).save(tmp_path / "bad.plan")
        with pytest.raises(StoreRefused, match=said):
            load(tmp_path / "bad.plan", device)
