"""The order of execution: one in which the largest sum of live bytes is small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from liftpy.networks.graph import Graph

WIDTH = 1000
"""The most sets of operations of one size that the search keeps."""


@dataclass(frozen=True)
class Order:
    """Positions of operations in the order of execution; `peak` is its largest sum of live bytes.

    `proved`: whether no order has a smaller one.
    """

    positions: tuple[int, ...]
    peak: int
    proved: bool


@dataclass(frozen=True)
class _State:
    """What is true after some operations: the largest sum so far, the live bytes, and how."""

    peak: int
    live: int
    last: int
    before: _State | None


def ordered(
    graph: Graph, sizes: Mapping[str, int], scratch: Sequence[int], width: int = WIDTH
) -> Order:
    """An order of least peak among those that the search keeps, or the graph's if none is better.

    `sizes` are the bytes of each tensor that is not constant, and `scratch` those that each
    operation needs while it runs.

    The search goes through the sets of operations that can be done first, by their number: after a
    set, the live tensors are known, so only its least peak matters. It keeps at most `width` sets
    of each size, those of the least peak and live bytes. If it has dropped none, the order is
    proved to be best; otherwise it is a beam search.
    """
    operations = graph.operations
    position = {o.name: k for k, o in enumerate(operations)}
    held = {n for n, t in graph.tensors.items() if n in sizes and t.kind != "constant"}
    readers = {n: {position[r] for r in graph.tensors[n].readers} for n in held}
    reads = [{n for n in held if k in readers[n]} for k in range(len(operations))]
    needs = [{position[p] for n in r if (p := graph.tensors[n].producer)} for r in reads]
    masks = [sum(1 << k for k in before) for before in needs]
    read_by = {n: sum(1 << k for k in found) for n, found in readers.items()}
    made = [[n for n in o.outputs if n in held] for o in operations]
    followers: list[list[int]] = [[] for _ in operations]
    for k, before in enumerate(needs):
        for j in before:
            followers[j].append(k)

    def after(state: _State, done: int, k: int) -> _State:
        new = state.live + sum(sizes[n] for n in made[k])
        now = done | 1 << k
        freed = sum(
            sizes[n]
            for n in {*reads[k], *made[k]}
            if not graph.tensors[n].result and read_by[n] & now == read_by[n]
        )
        return _State(max(state.peak, new + scratch[k]), new - freed, k, state)

    begun = sum(sizes[n] for n in held if graph.tensors[n].producer is None)
    own = start = _State(0, begun, -1, None)
    for k in range(len(operations)):
        own = after(own, (1 << k) - 1, k)
    ready = frozenset(k for k, before in enumerate(needs) if not before)
    level: dict[int, tuple[_State, frozenset[int]]] = {0: (start, ready)}
    proved = True
    for _ in operations:
        following: dict[int, tuple[_State, frozenset[int]]] = {}
        for done, (state, free) in level.items():
            for k in sorted(free):
                found = after(state, done, k)
                if found.peak >= own.peak:
                    continue  # no better than the graph's order
                now = done | 1 << k
                if now not in following:
                    more = {j for j in followers[k] if masks[j] & now == masks[j]}
                    following[now] = found, (free - {k}) | more
                elif found.peak < following[now][0].peak:
                    following[now] = found, following[now][1]
        if len(following) > width:
            best = sorted(following.items(), key=lambda one: (one[1][0].peak, one[1][0].live))
            following = dict(best[:width])
            proved = False
        level = following
    if not level or not operations:
        return Order(tuple(range(len(operations))), own.peak, proved)
    ((state, _),) = level.values()
    peak, steps = state.peak, [state.last]
    while state.before is not None and state.before.last >= 0:
        state = state.before
        steps.append(state.last)
    return Order(tuple(reversed(steps)), peak, proved)
