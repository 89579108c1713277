"""A network as a value: operations in order, each with a program, and the tensors between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from liftpy.ir.program import Program
from liftpy.ir.types import SCALAR_BYTES, SCALARS, STORAGE, ScalarType
from liftpy.semantics.operations import DTYPES

SCALAR_OF = {
    np.dtype(number): SCALARS[name]
    for name, number in DTYPES.items()
    if SCALARS[name] not in STORAGE
}
"""The types of tensors by NumPy's types."""


@dataclass(frozen=True)
class Tensor:
    """A tensor between operations: its type, shape, and the operations that write and read it.

    `producer` is the name of the operation that computes it; None for an input and a constant.
    `value` is the array of a constant. If `result`, the network returns it. `shape` is that of the
    stored array, whose axis k is the axis `order[k]` of the model's tensor; an empty `order` means
    that the axes are stored as declared.
    """

    name: str
    type: ScalarType
    shape: tuple[int, ...]
    producer: str | None
    readers: tuple[str, ...]
    value: NDArray[Any] | None = None
    result: bool = False
    order: tuple[int, ...] = ()

    @property
    def declared_shape(self) -> tuple[int, ...]:
        """The shape of the model's tensor."""
        pairs = sorted(zip(self.order, self.shape, strict=True)) if self.order else ()
        return tuple(length for _, length in pairs) if self.order else self.shape

    def declared(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The model's tensor for an array with axes ordered as stored."""
        return np.transpose(stored, np.argsort(self.order)) if self.order else stored

    def stored(self, declared: NDArray[Any]) -> NDArray[Any]:
        """The array that is stored for a tensor of the model."""
        return np.transpose(declared, self.order) if self.order else declared

    @property
    def bytes(self) -> int:
        """The size in bytes."""
        return math.prod(self.shape) * SCALAR_BYTES[self.type.name]

    @property
    def kind(self) -> Literal["input", "constant", "intermediate"]:
        """Where its value comes from."""
        if self.value is not None:
            return "constant"
        return "input" if self.producer is None else "intermediate"


@dataclass(frozen=True)
class Unsupported:
    """A node without a program: what decides that, and why. `attribute` may be empty.

    `needs` are the inputs of the network whose values would have to be known at import.
    """

    node: str
    operator: str
    attribute: str
    reason: str
    needs: tuple[str, ...] = ()

    def __str__(self) -> str:
        attribute = f", `{self.attribute}`" if self.attribute else ""
        return f"{self.node} ({self.operator}{attribute}): {self.reason}"


@dataclass(frozen=True)
class Operation:
    """A node of a network: `program(*inputs)` are the `outputs`, both by the names of tensors.

    `program` is shared by equal operations. If the operation has none, `unsupported` says why.
    `node` is the node in ONNX's own encoding, and `reads` are all of its inputs, also those whose
    values are part of the program, and the tensors that its inner graphs read; an absent optional
    input or output is "". A joined operation has the operations that it was made of in `parts`, and
    no `node`. With `channels_last`, the tensors of rank 4 that it computes have their channels
    innermost. An operation that `reorders` is no node of the model: it changes the order of axes.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    program: Program | None
    node: bytes
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    unsupported: Unsupported | None = None
    parts: tuple[Operation, ...] = ()
    channels_last: bool = False
    reorders: bool = False


@dataclass(frozen=True)
class Graph:
    """Operations in an order of execution, and tensors by name.

    `foreign` are the constants of types that the language does not have, as strings: only ONNX's
    reference evaluator reads these. `inputs` and `outputs` are names of tensors. `sizes` are the
    lengths that were chosen for declared dynamic dimensions, and `opsets` the versions of the
    model's operator sets by domain. `inside` are tensors between the parts of joined operations.
    """

    name: str
    operations: tuple[Operation, ...]
    tensors: Mapping[str, Tensor]
    foreign: Mapping[str, NDArray[Any]]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sizes: Mapping[str, int]
    opsets: Mapping[str, int]
    inside: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """The nodes without a program."""
        return tuple(o.unsupported for o in self.operations if o.unsupported is not None)

    @property
    def computed(self) -> tuple[Operation, ...]:
        """The operations that have a program."""
        return tuple(o for o in self.operations if o.program is not None)

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """The distinct programs, in the order of their first operations."""
        found = {id(o.program): o.program for o in self.operations if o.program is not None}
        return tuple(found.values())

    @cached_property
    def constants(self) -> Mapping[str, NDArray[Any]]:
        """The values of all constants by name."""
        own = {t.name: t.value for t in self.tensors.values() if t.value is not None}
        return {**self.foreign, **own}

    @cached_property
    def lifetimes(self) -> Mapping[str, tuple[int, int]]:
        """The positions of the first and the last operation during which a tensor is stored.

        Constants are not among them. An input is stored from the first operation on, a result until
        the last.
        """
        place = {o.name: k for k, o in enumerate(self.operations)}
        end = max(0, len(self.operations) - 1)
        found: dict[str, tuple[int, int]] = {}
        for tensor in self.tensors.values():
            if tensor.kind != "constant":
                first = 0 if tensor.producer is None else place[tensor.producer]
                last = end if tensor.result else max([first, *(place[r] for r in tensor.readers)])
                found[tensor.name] = first, last
        return found

    @cached_property
    def live_bytes(self) -> tuple[int, ...]:
        """The bytes of the tensors that are stored during each operation, without constants."""
        found = [0] * len(self.operations)
        for name, (first, last) in self.lifetimes.items():
            for k in range(first, min(last + 1, len(found))):
                found[k] += self.tensors[name].bytes
        return tuple(found)

    @property
    def peak_bytes(self) -> int:
        """The largest sum of live bytes: the least memory in this order without shared storage."""
        return max(self.live_bytes, default=0)

    @property
    def constant_bytes(self) -> int:
        """The bytes of all constants that programs read."""
        read = {name for o in self.operations for name in o.inputs}
        tensors = (self.tensors[n] for n in read if n in self.tensors)
        return sum(tensor.bytes for tensor in tensors if tensor.value is not None)


def readers_of(operations: Iterable[Operation]) -> dict[str, list[str]]:
    """The names of the operations that read each tensor, in their order."""
    readers: dict[str, list[str]] = {}
    for o in operations:
        used = o.inputs if o.program is not None else (*filter(None, o.reads),)
        for name in dict.fromkeys(used):
            readers.setdefault(name, []).append(o.name)
    return readers


def numbered(name: str, taken: set[str]) -> str:
    """The name, with a number if it is taken; it is taken from then on.

    >>> numbered("conv", {"conv"})
    'conv#2'
    """
    made, number = name, 1
    while made in taken:
        number += 1
        made = f"{name}#{number}"
    taken.add(made)
    return made


def listed(found: Sequence[Unsupported]) -> str:
    """Unsupported nodes for a message, a line each."""
    return "\n".join(f"  {one}" for one in found)
