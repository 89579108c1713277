"""A subgraph of PyTorch that a plan computes; its weights are packed again when they change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from threading import RLock
from typing import Any, Literal, TypeAlias

import numpy as np

from liftpy.networks.importing import graph_of
from liftpy.networks.network import Network
from liftpy.networks.plan import Plan
from liftpy.pytorch.tensors import as_array
from liftpy.pytorch.translating import model_of, returned

Weights: TypeAlias = Literal["compared", "counted"]
"""How changed weights are noticed: by comparing their bytes, or PyTorch's counters of changes."""


@dataclass(frozen=True)
class Held:
    """A weight as it was packed: its value, and PyTorch's tensor at that time with its stamp.

    While it is held, no other tensor can have its address.
    """

    value: Any
    tensor: Any
    stamp: tuple[Any, ...]


class Subgraph:
    """A subgraph as a function of tensors. The plan is made at the first call.

    `weights` are the positions of the arguments that are constants of the plan; `plan_of` makes the
    plan of a network.
    """

    def __init__(
        self,
        module: Any,
        name: str,
        weights: frozenset[int],
        noticed: Weights,
        plan_of: Callable[[Network], Plan],
        torch: Any,
    ) -> None:
        self.model = model_of(module, name, torch)
        self.plan: Plan | None = None
        self._strides = [node.meta["val"].stride() for node in returned(module)]
        self._weights, self._noticed = weights, noticed
        self._plan_of, self._torch = plan_of, torch
        self._held: dict[int, Held] = {}
        self._turn = RLock()

    def __call__(self, *tensors: Any) -> Any:
        with self._turn:
            plan = self._current(tensors)
            given = [t for k, t in enumerate(tensors) if k not in self._weights]
            found = plan.run([as_array(t, self._torch) for t in given])
        pairs = zip(plan.graph.outputs, self._strides, strict=True)
        results = tuple(self._strided(found[name], stride) for name, stride in pairs)
        return results[0] if len(results) == 1 else results

    def _strided(self, array: Any, stride: tuple[int, ...]) -> Any:
        """A tensor with the strides that PyTorch would have: later views depend on them."""
        made = self._torch.from_numpy(np.asarray(array))
        if made.stride() == stride:
            return made
        return self._torch.empty_strided(made.shape, stride, dtype=made.dtype).copy_(made)

    # --- weights ----------------------------------------------------------------------------------

    def _current(self, tensors: tuple[Any, ...]) -> Plan:
        """The plan, with the weights as they are now."""
        if self.plan is not None and not self._changed(tensors):
            return self.plan
        old, self.plan = self.plan, None  # if this fails, the next call repeats it
        with nullcontext() if old is None else closing(old):  # a renewed plan takes its memory
            now = {k: held(tensors[k]) for k in self._weights}
            network = self._network({k: one.value for k, one in now.items()})
            made = old.renewed(network.graph) if old is not None else None
        if made is None:
            made = self._plan_of(network)
        self._held, self.plan = now, made
        return made

    def _changed(self, tensors: tuple[Any, ...]) -> bool:
        """Whether a weight has another value than the one that was packed."""
        for k, one in self._held.items():
            moved = stamp(tensors[k]) != one.stamp
            if not moved and self._noticed == "counted":
                continue
            if not equal(tensors[k], one.value, self._torch):
                return True
            if moved:
                self._held[k] = Held(one.value, tensors[k].detach(), stamp(tensors[k]))
        return False

    def _network(self, weights: Mapping[int, Any]) -> Network:
        """The network, stored and joined as commands do, with weights as constants."""
        values = {f"x{k}": as_array(tensor, self._torch) for k, tensor in weights.items()}
        return Network(graph_of(self.model, values=values)).channels_last().joined()


def held(tensor: Any) -> Held:
    """A weight as it is now."""
    return Held(tensor.detach().clone(), tensor.detach(), stamp(tensor))


def stamp(tensor: Any) -> tuple[Any, ...]:
    """Where a tensor is, and how often PyTorch has counted a change of it."""
    version = None if tensor.is_inference() else tensor._version  # noqa: SLF001  no public API
    return tensor.data_ptr(), version, tensor.stride()


def equal(first: Any, second: Any, torch: Any) -> bool:
    """Whether two tensors of one type have the same bytes; a NaN is equal to itself."""
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    whole = sizes[first.element_size()]
    return torch.equal(first.detach().view(whole), second.view(whole))
