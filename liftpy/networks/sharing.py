"""Tensors that are parts of others share their storage, so that no kernel copies them.

A concatenation along the outermost axis that is longer than 1 puts whole tensors one after another.
If each of them is computed at its place in the result, the concatenation needs no kernel. Slices,
splits and reshapes need none either if their results are parts of what they read. The meaning of a
program decides whether its operation is one of these, not the operator's name.

Each input of a concatenation along an inner axis is a slice of the result. If no other operation
reads this input, the operation that computes it stores it directly in the slice, through an output
view. The inputs of other concatenations that do not start at a multiple of the alignment are also
stored as slices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.by_identity import by_identity
from liftpy.ir.function import Lambda
from liftpy.ir.program import Program
from liftpy.ir.types import SCALAR_BYTES, count
from liftpy.language.embedded.defining import array_type
from liftpy.networks.arena import aligned
from liftpy.networks.graph import Graph, Operation
from liftpy.networks.slices import Slice, slice_of, whole
from liftpy.semantics.moving import NOTHING, sources

LEAST_RUN = 64
"""The smallest number of consecutive bytes in a slice: the size of a cache line.

With shorter runs, kernels could not store whole vectors, which can take longer than a copy.
"""


@dataclass(frozen=True)
class Part:
    """Consecutive bytes of a storage that hold the same tensors and are freed together.

    `offset` is in bytes from the place of the tensor `storage`. `tensors` are those that have
    elements here, `writers` are the operations that store them (none for the network's inputs),
    and `readers` are the operations that read one of the tensors. `result`: whether one is
    returned.
    """

    name: str
    storage: str
    offset: int
    bytes: int
    tensors: tuple[str, ...]
    writers: tuple[str, ...]
    readers: frozenset[str]
    result: bool


@dataclass(frozen=True)
class TensorPlaces:
    """The place of each tensor: the tensor whose storage it is in, and the byte in this storage.

    `parts` are the parts of all storages. `unmoved` are the operations that need no kernels: when
    one would run, its results already have their values, in storage shared with its inputs.
    `slices` are the tensors that are stored as slices of others, through output views: the place of
    a slice is that of the tensor that it is a slice of.
    """

    places: Mapping[str, tuple[str, int]]
    parts: tuple[Part, ...]
    unmoved: frozenset[str]
    slices: Mapping[str, Slice]

    def output_view(self, operation: Operation) -> Lambda | None:
        """The function from the array in which an operation stores its result to this result.

        None if the result is not stored as a slice.
        """
        found = self.slices.get(operation.outputs[0])
        return None if found is None else found.view


@dataclass(frozen=True)
class MovedElements:
    """Consecutive elements of a result (from `at`) that are those of an input (from `start`)."""

    argument: int
    start: int
    at: int
    length: int


def resident(graph: Graph) -> list[str]:
    """The tensors that are stored in the arena: those between programs, and inputs and results."""
    used = {n for o in graph.operations if o.program for n in (*o.inputs, *o.outputs)}
    return [n for n, t in graph.tensors.items() if n in used and t.value is None]


def sharing(graph: Graph, alignment: int) -> TensorPlaces:
    """The storages of a graph, with each tensor at a multiple of the alignment (bytes).

    Operations are tried in the order of their sizes, those with the largest results first, so the
    storages do not depend on the order of execution.
    """
    storing = _Storing(graph, alignment)

    def size(operation: Operation) -> tuple[int, str]:
        known = (graph.tensors[n] for n in operation.outputs if n in graph.tensors)
        return -sum(tensor.bytes for tensor in known), operation.name

    unmoved = frozenset(o.name for o in sorted(graph.operations, key=size) if storing.take(o))
    return TensorPlaces(storing.places, tuple(storing.parts(unmoved)), unmoved, storing.slices)


def only_read(graph: Graph, shared: TensorPlaces) -> dict[str, dict[str, int]]:
    """The inputs whose storage no other tensor is written to, and no result is part of.

    Each has the tensors in its storage (itself, and parts of it), with the byte where they begin.
    """
    found: dict[str, dict[str, int]] = {}
    for name in (n for n in graph.inputs if n in shared.places):
        root, start = shared.places[name]
        parts = [part for part in shared.parts if part.storage == root]
        members = {n: at for n, (storage, at) in shared.places.items() if storage == root}
        alone = start == 0 and graph.tensors[root].bytes == graph.tensors[name].bytes
        alone = alone and members.keys() & {*graph.inputs} == {name}
        if alone and not any(part.writers or part.result for part in parts):
            found[name] = members
    return found


class _Storing:
    """The places that tensors have so far.

    Two tensors of a storage that have a byte in common have the same data there: one of them is a
    part of the other, or both are parts of a third. This invariant holds because only a tensor that
    covers its whole storage is moved into another one, and the parts of a result do not overlap.
    Slices of the same tensor share its place, but have no element in common.
    """

    def __init__(self, graph: Graph, alignment: int) -> None:
        self.graph = graph
        self.alignment = alignment
        self.places = {n: (n, 0) for n in resident(graph)}
        self.members = {n: [n] for n in self.places}
        self.slices: dict[str, Slice] = {}
        self.operations = {o.name: o for o in graph.operations}

    def take(self, operation: Operation) -> bool:
        """Places the results of an operation in its inputs' storage, or its inputs in a result's.

        False, and nothing is changed, if the operation needs kernels.
        """
        tensors = (*operation.inputs, *operation.outputs)
        if operation.program is None or not all(n in self.places for n in tensors):
            return False
        if len({self.graph.tensors[n].type for n in tensors}) > 1:
            return False
        runs = runs_in(operation.program)
        if runs is None or len(runs) != len(operation.outputs):
            return False
        placed = self._inside(operation, runs)
        for inner, outer, offset in placed or ():
            self._move(inner, outer, offset)
        return placed is not None or self._sliced(operation, runs)

    def _elements(self, name: str) -> int:
        return int(np.prod(self.graph.tensors[name].shape, dtype=np.int64))

    def _inside(
        self, operation: Operation, runs: Sequence[Sequence[MovedElements]]
    ) -> list[tuple[str, str, int]] | None:
        """Each tensor that is moved, the tensor that it becomes a part of, and the byte there.

        None if the tensors cannot be parts.
        """
        size = SCALAR_BYTES[self.graph.tensors[operation.outputs[0]].type.name]
        if all(len(one) == 1 for one in runs):
            found = [
                (n, operation.inputs[run.argument], run.start * size)
                for n, (run,) in zip(operation.outputs, runs, strict=True)
            ]
        elif len(runs) == 1:
            (own,) = runs
            names = [operation.inputs[run.argument] for run in own]
            whole = all(
                run.start == 0 and run.length == self._elements(n)
                for n, run in zip(names, own, strict=True)
            )
            if not whole:
                return None
            (result,) = operation.outputs
            found = [(n, result, run.at * size) for n, run in zip(names, own, strict=True)]
        else:
            return None
        if any(n in self.slices for pair in found for n in pair[:2]):
            return None
        inner = {self.places[n][0] for n, _, _ in found}
        free = len(inner) == len(found) and all(self._is_whole(n) for n, _, _ in found)
        separate = all(self.places[outer][0] not in inner for _, outer, _ in found)
        fits = all((self.places[o][1] + at) % self.alignment == 0 for _, o, at in found)
        return found if free and separate and fits else None

    def _sliced(self, operation: Operation, runs: Sequence[Sequence[MovedElements]]) -> bool:
        """Places the inputs of a concatenation as slices of its result.

        False, and nothing is changed, if one of them cannot be a slice.
        """
        if len(runs) != 1 or len({*operation.inputs}) < len(operation.inputs):
            return False
        (result,) = operation.outputs
        size = SCALAR_BYTES[self.graph.tensors[result].type.name]
        if min(run.length for run in runs[0]) * size < LEAST_RUN:
            return False
        if not all(map(self._can_be_slice, operation.inputs)):
            return False
        shape = self.graph.tensors[result].shape
        found: list[Slice] = []
        for k, name in enumerate(operation.inputs):
            places = places_of([run for run in runs[0] if run.argument == k])
            region = slice_of(shape, self.graph.tensors[name].shape, places)
            if region is None:
                return False
            own = Slice(result, region.view(shape, self.graph.tensors[name].type))
            found.append(own.within(self.slices.get(result)))
        root, start = self.places[result]
        for name, own in zip(operation.inputs, found, strict=True):
            self.slices[name] = own
            self.places[name] = root, start
            self.members[root].append(name)
            del self.members[name]
        return True

    def _can_be_slice(self, name: str) -> bool:
        """Whether a tensor can become a slice.

        It needs a storage of its own, one reader, and a producer whose only result has its shape
        and type. It is no result of the network.
        """
        tensor = self.graph.tensors[name]
        producer = self.operations.get(tensor.producer or "")
        if producer is None or producer.program is None or len(producer.outputs) > 1:
            return False
        alone = self.members.get(name) == [name]
        same = producer.program.body.body.type == array_type(tensor.type, *tensor.shape)
        return alone and same and len({*tensor.readers}) == 1 and not tensor.result

    def _is_whole(self, name: str) -> bool:
        """Whether a tensor covers the storage that it is in."""
        root, _ = self.places[name]
        return self.graph.tensors[root].bytes == self.graph.tensors[name].bytes

    def _move(self, inner: str, outer: str, offset: int) -> None:
        """Gives a storage a place in another one."""
        old = self.places[inner][0]
        root, start = self.places[outer]
        for name in self.members.pop(old):
            self.places[name] = root, start + offset + self.places[name][1]
            self.members[root].append(name)

    def parts(self, unmoved: frozenset[str]) -> Iterator[Part]:
        """The parts of all storages, which are cut where a tensor in them begins or ends."""
        for root, members in self.members.items():
            spans = {n: self._span(n) for n in members}
            borders = sorted({border for span in spans.values() for border in span})
            for low, high in pairwise(borders):
                here = [n for n, (start, end) in spans.items() if start < high and low < end]
                tensors = [self.graph.tensors[n] for n in here]
                stored = [t.producer for t in tensors if t.producer not in unmoved]
                kept = {*here} - self.slices.keys()
                exact = min((n for n in kept if spans[n] == (low, high)), default="")
                own = self.graph.tensors[root].bytes
                yield Part(
                    f"tensor {exact}" if exact else f"bytes from {low} of tensor {root}",
                    root,
                    low,
                    min(high, own) - low,
                    tuple(here),
                    tuple(name for name in stored if name is not None),
                    frozenset(reader for t in tensors for reader in t.readers),
                    any(t.result for t in tensors),
                )

    def _span(self, name: str) -> tuple[int, int]:
        """The first byte of a tensor in its storage, and its end at a multiple of the alignment.

        The span of a slice is that of the tensor that it is a slice of.
        """
        start = self.places[name][1]
        size = self.graph.tensors[whole(name, self.slices)].bytes
        return start, aligned(start + size, self.alignment)


def places_of(runs: Sequence[MovedElements]) -> NDArray[np.int64]:
    """The number in the result of each element of an input; empty if the runs are not in order."""
    starts = np.cumsum([0, *(run.length for run in runs)])
    if [run.start for run in runs] != starts[:-1].tolist():
        return np.array([], np.int64)
    return np.concatenate([np.arange(run.at, run.at + run.length) for run in runs])


@by_identity(1 << 12)
def runs_in(program: Program) -> tuple[Sequence[MovedElements], ...] | None:
    """The runs of each result of a program; None if it does not only move elements."""
    found = sources(program)
    if found is None:
        return None
    lengths = [int(count(p.type)) for p in program.params]
    runs = [runs_of(one, lengths) for one in found]
    known = tuple(one for one in runs if one is not None)
    return known if len(known) == len(runs) else None


def may_be_parts(program: Program) -> bool:
    """Whether a program may need no kernel, since its inputs or results may be parts of others."""
    runs = runs_in(program)
    if runs is None:
        return False
    each = all(len(one) == 1 for one in runs)
    return each or (len(runs) == 1 and len(runs[0]) == len(program.params))


def runs_of(found: NDArray[np.int64], lengths: Sequence[int]) -> list[MovedElements] | None:
    """The elements of a result as runs; None if one of them is not an element of an argument.

    `found` has the number of each element (`sources`); `lengths` are the numbers of elements of the
    arguments.

    >>> for moved in runs_of(np.array([3, 4, 5, 0, 1]), [2, 3]):
    ...     print(moved)
    MovedElements(argument=1, start=0, at=0, length=3)
    MovedElements(argument=0, start=0, at=3, length=2)
    """
    if not found.size or np.any(found == NOTHING):
        return None
    starts = np.cumsum([0, *(n + 1 for n in lengths)])
    borders = [0, *(np.flatnonzero(np.diff(found) != 1) + 1).tolist(), found.size]
    runs: list[MovedElements] = []
    for low, high in pairwise(borders):
        argument = int(np.searchsorted(starts, found[low], side="right")) - 1
        runs.append(MovedElements(argument, int(found[low] - starts[argument]), low, high - low))
    return runs
