"""The order of execution: one in which the largest sum of live bytes is small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from liftpy.networks.graph import Graph
from liftpy.networks.sharing import Part

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
    graph: Graph, parts: Sequence[Part], scratch: Sequence[int], width: int = WIDTH
) -> Order:
    """An order of least peak among those that the search keeps, or the graph's if none is better.

    `parts` are the parts of all storages (`sharing`), and `scratch` the bytes that each operation
    needs while it runs.

    The search goes through the sets of operations that can be done first, by their number: after a
    set, the live tensors are known, so only its least peak matters. It keeps at most `width` sets
    of each size, those of the least peak and live bytes. If it has dropped none, the order is
    proved to be best; otherwise it is a beam search.
    """
    operations = graph.operations
    position = {o.name: k for k, o in enumerate(operations)}
    needs: list[set[int]] = [set() for _ in operations]
    for tensor in graph.tensors.values():
        if tensor.producer is not None:
            for reader in tensor.readers:
                needs[position[reader]].add(position[tensor.producer])
    masks = [sum(1 << k for k in before) for before in needs]
    read_by = [sum(1 << position[r] for r in part.readers) for part in parts]
    written_by = [sum(1 << position[w] for w in part.writers) for part in parts]
    made: list[list[int]] = [[] for _ in operations]
    used: list[list[int]] = [[] for _ in operations]  # what may be freed after each operation
    for j, part in enumerate(parts):
        for name in part.writers:
            made[position[name]].append(j)
        if not part.result:
            for k in {position[n] for n in (*part.writers, *part.readers)}:
                used[k].append(j)
    followers: list[list[int]] = [[] for _ in operations]
    for k, before in enumerate(needs):
        for j in before:
            followers[j].append(k)

    def after(state: _State, done: int, k: int) -> _State:
        new = state.live + sum(parts[j].bytes for j in made[k] if not written_by[j] & done)
        now = done | 1 << k
        freed = sum(parts[j].bytes for j in used[k] if read_by[j] & now == read_by[j])
        return _State(max(state.peak, new + scratch[k]), new - freed, k, state)

    begun = sum(part.bytes for part in parts if not part.writers)
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
