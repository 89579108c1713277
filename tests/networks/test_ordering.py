"""Orders of execution, against all topological orders of small random networks."""

import random

import pytest

from liftpy.ir.types import F32
from liftpy.networks.graph import Graph, Operation, Tensor
from liftpy.networks.ordering import ordered
from liftpy.networks.sharing import Part


def drawn(seed, count=7):
    """A random network without programs, with sizes of its tensors and scratch."""
    rng = random.Random(seed)
    names = ["x"]
    made = []
    for k in range(count):
        reads = tuple(dict.fromkeys(rng.choices(names, k=rng.randint(1, 2))))
        writes = tuple(f"t{k}_{j}" for j in range(rng.choice([1, 1, 2])))
        made.append(Operation(f"o{k}", "Any", reads, writes, None, b"", reads, writes))
        names += writes
    outputs = (names[-1], rng.choice(names[1:]))
    producers = {n: o.name for o in made for n in o.outputs}
    tensors = {
        n: Tensor(
            n,
            F32,
            (1,),
            producers.get(n),
            tuple(o.name for o in made if n in o.inputs),
            None,
            n in outputs,
        )
        for n in names
    }
    sizes = {n: rng.choice([1, 2, 3, 5, 8, 13, 40]) for n in names}
    scratch = [rng.choice([0, 0, 4, 20]) for _ in made]
    return Graph("drawn", tuple(made), tensors, {}, ("x",), outputs, {}, {}), sizes, scratch


def parts(graph, sizes):
    """Each tensor with a storage of its own."""
    return [
        Part(n, n, 0, sizes[n], (n,), writers, frozenset(t.readers), t.result)
        for n, t in graph.tensors.items()
        for writers in [(t.producer,) if t.producer else ()]
    ]


def peak(graph, sizes, scratch, positions):
    """The largest sum of live bytes in an order, from each tensor's first and last use."""
    place = {graph.operations[k].name: at for at, k in enumerate(positions)}
    end, most = len(positions) - 1, 0
    for at, k in enumerate(positions):
        live = scratch[k]
        for t in graph.tensors.values():
            first = 0 if t.producer is None else place[t.producer]
            last = end if t.result else max([first, *(place[r] for r in t.readers)])
            live += sizes[t.name] if first <= at <= last else 0
        most = max(most, live)
    return most


def orders(graph, done=()):
    """All topological orders."""
    if len(done) == len(graph.operations):
        yield done
    written = {"x"} | {n for k in done for n in graph.operations[k].outputs}
    for k, operation in enumerate(graph.operations):
        if k not in done and written >= {*operation.inputs}:
            yield from orders(graph, (*done, k))


@pytest.mark.parametrize("seed", range(25))
def test_the_order_is_the_best_of_all(seed):
    graph, sizes, scratch = drawn(seed)
    found = ordered(graph, parts(graph, sizes), scratch)
    every = {positions: peak(graph, sizes, scratch, positions) for positions in orders(graph)}
    assert found.proved
    assert every[found.positions] == found.peak == min(every.values())


def test_some_orders_beat_the_graph_and_the_graph_stays_if_none_does():
    better = same = 0
    for seed in range(25):
        graph, sizes, scratch = drawn(seed)
        own = tuple(range(len(graph.operations)))
        found = ordered(graph, parts(graph, sizes), scratch)
        if found.positions == own:
            same += 1
        else:
            better += 1
            assert found.peak < peak(graph, sizes, scratch, own)
    assert better > 5
    assert same > 5


def test_a_narrow_search_gives_a_valid_order_that_is_not_called_best():
    narrow = 0
    for seed in range(25):
        graph, sizes, scratch = drawn(seed, 9)
        found = ordered(graph, parts(graph, sizes), scratch, width=1)
        assert sorted(found.positions) == [*range(9)]
        assert found.peak == peak(graph, sizes, scratch, found.positions)
        narrow += not found.proved
    assert narrow > 5
