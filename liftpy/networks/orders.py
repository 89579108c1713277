"""The order of axes of each tensor of a network as a choice: as declared, or channels last.

Each operation has an alternative program for each order of the images that it reads and stores. An
image that is needed in both orders is copied by an operation `Transpose`, which takes time and
memory like any other. Orders are chosen by the measured times of all of these.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from liftpy.constraints.device import Device
from liftpy.errors import ConstraintRefused, NetworkRefused
from liftpy.explore.campaign.forms import Spaces
from liftpy.explore.exploring import SAMPLES
from liftpy.ir.program import Program
from liftpy.networks.campaigns import NetworkCampaign, explore_network
from liftpy.networks.channels_last import FIRST, LAST, Reordering, reordering
from liftpy.networks.costs import Ordered, Stored
from liftpy.networks.graph import Graph, Operation, Tensor, numbered, readers_of
from liftpy.networks.joining import joined
from liftpy.networks.operators.node import CHANNELS_LAST, RANK, channels_last
from liftpy.networks.options import Measured
from liftpy.networks.planning import Planned, planned, solver
from liftpy.networks.sharing import may_be_parts
from liftpy.opencl.devices import find_device

MOST_IMAGES = 3
"""The most images of an operation for which each may have its own order; others have one order."""

CHOICES = 12
"""The most choices of orders for which a plan is made."""

UNMEASURED = 10**12
"""The time in ns that stands for an operation that was not measured: it is chosen last."""

HOPED = 0.5
"""The fraction of its least time in other orders that an operation may take at best."""

HOPED_RATE = 100
"""The bytes per ns that a copy may move at best."""

ROUNDS = 8
"""The most choices of orders whose operations are explored."""


@dataclass(frozen=True)
class Alternative:
    """An operation for certain orders of its images, by the names of tensors in these orders."""

    operation: Operation
    reads: frozenset[Stored]
    stores: frozenset[Stored]


class Orders:
    """The alternatives of the operations of a graph that has the declared order everywhere."""

    def __init__(self, graph: Graph) -> None:
        if any(t.order for t in (*graph.tensors.values(), *graph.inside.values())):
            raise NetworkRefused(
                f"{graph.name} already stores images with channels last, so their order is no "
                "choice\n  take the network before channels_last()"
            )
        self.graph = graph
        names = {*graph.tensors, *graph.inside, *(o.name for o in graph.operations)}
        self.images = {
            name: numbered(f"{name}/{LAST}", names)
            for name, t in graph.tensors.items()
            if t.value is None and len(t.shape) == RANK
        }
        """The images between operations, with their names if they are stored with channels last."""
        self.names = names
        self._made: dict[Any, tuple[Program, tuple[tuple[int, bool], ...]] | None] = {}
        self._distinct: dict[Program, Program] = {}
        self.alternatives = [tuple(self._alternatives(o)) for o in graph.operations]
        self.copies = {
            (name, last): self._copy(name, last=last)
            for name in self.images
            for last in (False, True)
        }
        """The operation that stores an image in an order, from the other one."""

    # --- alternatives -----------------------------------------------------------------------------

    def _alternatives(self, operation: Operation) -> Iterator[Alternative]:
        """The operation with each order of its images that has a program as one operation."""
        inputs = [n for n in dict.fromkeys(operation.inputs) if n in self.images]
        outputs = [n for n in operation.outputs if n in self.images]
        borders = [*({n} for n in inputs), *([{*outputs}] if outputs else [])]
        counts = range(len(borders) + 1) if len(borders) <= MOST_IMAGES else (0, len(borders))
        for count in counts if operation.program is not None else (0,):
            for some in itertools.combinations(borders, count):
                last = frozenset[str]().union(*some)
                made = self._in_orders(operation, last) if last else operation
                if made is not None:
                    yield Alternative(
                        made,
                        frozenset((n, n in last) for n in inputs),
                        frozenset((n, n in last) for n in outputs),
                    )

    def _in_orders(self, operation: Operation, last: frozenset[str]) -> Operation | None:
        """An operation whose images in `last` are stored with channels last.

        Equal operations have equal programs, so each is made once.
        """
        own = [*dict.fromkeys((*operation.inputs, *operation.outputs))]
        shape = tuple(own.index(n) for n in (*operation.inputs, *operation.outputs))
        key = id(operation.program), shape, tuple(n in last for n in own)
        if key not in self._made:
            made = self._joined(operation, last)
            base = {self.images.get(n, n): (k, True) for k, n in enumerate(own)}
            base |= {n: (k, False) for k, n in enumerate(own)}
            self._made[key] = made and (made[0], tuple(base[n] for n in made[1]))
        found = self._made[key]
        if found is None:
            return None
        program, places = found
        reads = tuple(self.images[own[k]] if changed else own[k] for k, changed in places)
        return replace(
            operation,
            inputs=reads,
            outputs=tuple(self.images[n] if n in last else n for n in operation.outputs),
            program=program,
            node=b"",
            reads=reads,
            writes=tuple(self.images[n] if n in last else n for n in operation.outputs),
            parts=(),
        )

    def _joined(
        self, operation: Operation, last: frozenset[str]
    ) -> tuple[Program, tuple[str, ...]] | None:
        """The program of an operation in these orders, and what it reads; None if it is several."""
        members = operation.parts or (operation,)
        known = {**self.graph.inside, **self.graph.tensors}
        produced = {n: o.name for o in members for n in o.outputs}
        readers = readers_of(members)
        tensors = {
            n: replace(
                known[n],
                producer=produced.get(n),
                readers=tuple(readers.get(n, ())),
                result=n in operation.outputs and n not in last,
            )
            for n in dict.fromkeys(n for o in members for n in (*o.inputs, *o.outputs, *o.reads))
            if n in known
        }
        given = {n: self.images[n] for n in operation.inputs if n in last}
        wanted = {n: self.images[n] for n in operation.outputs if n in last}
        inputs = tuple(n for n in operation.inputs if n in self.images)
        alone = replace(
            self.graph,
            operations=members,
            tensors=tensors,
            inputs=inputs,
            outputs=operation.outputs,
            inside={},
        )
        found = joined(Reordering(alone, given, wanted).graph()).operations
        if len(found) != 1 or found[0].program is None:
            return None
        program = found[0].program
        return self._distinct.setdefault(program, program), found[0].inputs

    def _copy(self, name: str, *, last: bool) -> Operation:
        """The operation that stores an image in an order, from the other one."""
        to, of = (self.images[name], name) if last else (name, self.images[name])
        order = LAST if last else FIRST
        called = numbered(f"{name}/to_{order}", self.names)
        made = reordering(self.graph.tensors[name], of, to, called, order)
        program = made.program
        assert program is not None  # noqa: S101  for the type checker
        return replace(made, program=self._distinct.setdefault(program, program))

    # --- choices ----------------------------------------------------------------------------------

    def choose(
        self, time_of: Callable[[Program], int], excluded: Sequence[tuple[int, ...]] = ()
    ) -> tuple[tuple[int, ...] | None, float]:
        """The alternatives of least time by position, and a lower bound of the time in ns.

        None if there are no others, for which the bound is infinite, or if none was found.
        """

        def cost(operation: Operation) -> int:
            return 0 if operation.program is None else time_of(operation.program)

        options = [
            [Ordered(cost(one.operation), one.reads, one.stores) for one in own]
            for own in self.alternatives
        ]
        copies = {key: cost(copy) for key, copy in self.copies.items()}
        given = {(n, False) for n in self.graph.inputs}
        needed = {(n, False) for n in self.graph.outputs if n in self.images}
        return solver().orders(options, copies, given, needed, excluded)

    def graph_of(self, selection: Sequence[int]) -> Graph:
        """The graph with these alternatives, and with the copies that they need."""
        chosen = [own[k] for own, k in zip(self.alternatives, selection, strict=True)]
        stored = {(n, False) for n in self.graph.inputs} | {k for a in chosen for k in a.stores}
        read = {key for a in chosen for key in a.reads}
        read |= {(n, False) for n in self.graph.outputs if n in self.images}
        missing = sorted(read - stored)
        operations: list[Operation] = []
        ready = {*self.graph.inputs}
        for a in (None, *chosen):
            ready |= {n for n, _ in a.stores} if a else set()
            operations += [a.operation] if a else []
            operations += [self.copies[key] for key in missing if key[0] in ready]
            missing = [key for key in missing if key[0] not in ready]
        return replace(
            self.graph,
            operations=tuple(operations),
            tensors=dict(self._tensors(operations)),
            inside={},
        )

    def _tensors(self, operations: Sequence[Operation]) -> Iterator[tuple[str, Tensor]]:
        """The tensors of operations, those in another order under their own names."""
        produced = {n: o.name for o in operations for n in o.outputs}
        readers = readers_of(operations)
        for name, tensor in self.graph.tensors.items():
            both = [(name, tensor)]
            if name in self.images:
                shape = channels_last(tensor.shape)
                also = replace(
                    tensor,
                    name=self.images[name],
                    shape=shape,
                    order=CHANNELS_LAST,
                    result=False,
                )
                both.append((self.images[name], also))
            for own, made in both:
                if own in produced or (tensor.kind != "intermediate" and own == name):
                    yield (
                        own,
                        replace(
                            made,
                            producer=produced.get(own),
                            readers=tuple(readers.get(own, ())),
                        ),
                    )


def least_time(options: Measured, program: Program) -> int | None:
    """The least measured time of a program in ns; 0 if it may need no kernels."""
    if may_be_parts(program):
        return 0
    times = (one.time_ns for one in options.known(program))
    return min((t for t in times if t is not None), default=None)


def planned_in_orders(
    graph: Graph, options: Measured, alignment: int, memory_limit: int | None = None
) -> Planned:
    """The fastest plan within a limit of device memory, with the order of each tensor chosen.

    Choices of orders are tried in the order of their least times, which bound the plans from below,
    until no other choice can have a faster plan. If none of them is within the limit, the declared
    order is tried.
    """
    orders = Orders(graph)
    times: dict[int, int] = {}

    def time_of(program: Program) -> int:
        if id(program) not in times:
            known = least_time(options, program)
            times[id(program)] = UNMEASURED if known is None else known
        return times[id(program)]

    best: Planned | None = None
    excluded: list[tuple[int, ...]] = []
    proved = False
    for _ in range(CHOICES):
        found, bound = orders.choose(time_of, excluded)
        reached = None if best is None else best.point.time_ns
        proved = reached is not None and bound >= reached
        if found is None or proved:
            break
        excluded.append(found)
        try:
            made = planned(orders.graph_of(found), options, alignment, memory_limit)
        except ConstraintRefused:
            continue
        if best is None or is_faster(made, best):
            best = made
        if made.point.time_ns is None and bound >= UNMEASURED:
            break  # the others have operations that were not measured, too
    if best is None:
        best = planned(graph, options, alignment, memory_limit)
    return replace(best, point=replace(best.point, proved=best.point.proved and proved))


def is_faster(one: Planned, other: Planned) -> bool:
    """Whether a plan takes less time than another one, which may not be measured."""
    time_ns, least = one.point.time_ns, other.point.time_ns
    return time_ns is not None and (least is None or time_ns < least)


def explore_in_orders(
    graph: Graph,
    samples: int = SAMPLES,
    seed: int = 0,
    db: Path | str = "network.db",
    device: Device | str | None = None,
    *,
    began: float | None = None,
    **settings: Any,
) -> NetworkCampaign:
    """Explores operations in the orders that could make a plan faster; see `Network.explore`.

    In each round, the orders of least time are sought as if each operation that was not explored
    took `HOPED` of its least time in other orders, and the operations in these orders are explored.
    One that has no time then is avoided in later rounds. It ends when all of them have been.
    """
    orders = Orders(graph)
    target = device if isinstance(device, Device) else find_device(device)
    folder = Path(db)
    began = time.monotonic() if began is None else began
    seen: set[tuple[int, ...]] = set()
    vain: set[int] = set()
    spaces = Spaces()
    campaign: NetworkCampaign | None = None
    for _ in range(ROUNDS):
        found, _ = orders.choose(hopes(orders, folder, target, vain))
        if found is None or found in seen:
            break
        seen.add(found)
        chosen = orders.graph_of(found)
        campaign = explore_network(
            chosen, samples, seed, db, target, began=began, spaces=spaces, **settings
        )
        if campaign.stopped:
            break
        vain |= {id(one.work.program) for one in campaign if one.best is None}
    if campaign is None:
        return explore_network(graph, samples, seed, db, target, began=began, **settings)
    return campaign


def hopes(
    orders: Orders, folder: Path, device: Device, vain: Collection[int] = ()
) -> Callable[[Program], int]:
    """The time of each program in ns: measured, or what it may be at best.

    `vain` are the identities of programs that were explored and have no time.
    """
    paths = [folder] if folder.is_dir() else []
    options = Measured(paths, device, orders.graph.constant_bytes)
    times: dict[int, int | None] = {}
    hoped: dict[int, int] = {}

    def measured(program: Program) -> int | None:
        """Its time, if it has one; `UNMEASURED` if it was explored in vain."""
        if id(program) not in times:
            least = least_time(options, program)
            times[id(program)] = UNMEASURED if least is None and id(program) in vain else least
        return times[id(program)]

    for own in orders.alternatives:
        programs = [(a, a.operation.program) for a in own]
        known = [None if p is None else measured(p) for _, p in programs]
        best = min((t for t in known if t is not None and t < UNMEASURED), default=None)
        for (a, p), least in zip(programs, known, strict=True):
            if p is not None:
                hoped[id(p)] = hope(a, best) if least is None else least
    for (name, _), copy in orders.copies.items():
        if copy.program is not None and id(copy.program) not in hoped:
            known_copy = measured(copy.program)
            moved = 2 * orders.graph.tensors[name].bytes // HOPED_RATE + 1
            hoped[id(copy.program)] = moved if known_copy is None else known_copy
    return lambda program: hoped[id(program)]


def hope(alternative: Alternative, best: int | None) -> int:
    """The time that an operation may take at best, if `best` is the least one in other orders.

    Without any time, channels last is tried first.
    """
    if best is not None:
        return int(HOPED * best)
    return sum(not last for _, last in (*alternative.reads, *alternative.stores))
