"""Graphs of `torch.compile` as functions in which plans compute subgraphs."""

from __future__ import annotations

import itertools
import logging
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from liftpy.errors import ArgumentRefused, a_few, plural
from liftpy.explore.optional import needing
from liftpy.networks.network import Network
from liftpy.networks.plan import Plan
from liftpy.pytorch.dividing import Divided, divided
from liftpy.pytorch.operators import TRANSLATIONS
from liftpy.pytorch.subgraph import Subgraph, Weights

MOST_SHAPES = 8
"""The most shapes of its inputs for which a graph is compiled; PyTorch computes it for others."""


class TorchBackend:
    """A backend of `torch.compile`, made by `lp.torch_backend`.

    It does not keep what it compiles: the memory of a plan is freed with the compiled function.
    """

    def __init__(self, plan_of: Callable[[Network], Plan], weights: Weights, torch: Any) -> None:
        self._made: weakref.WeakValueDictionary[int, Subgraph] = weakref.WeakValueDictionary()
        self._numbers = itertools.count()
        self._weights: Weights = weights
        self._plan_of, self._torch = plan_of, torch
        for module in ("_dynamo.backends.common", "fx.passes.infra.partitioner"):
            needing("torch", "torch", f"torch.{module}", "a backend of torch.compile")
        self._said: set[str] = set()

    def __call__(self, module: Any, inputs: Sequence[Any], **named: Any) -> Any:
        """The function for a graph of `torch.compile` and its example inputs."""
        if named:
            raise ArgumentRefused(
                f"torch.compile passes {', '.join(sorted(named))} to the backend of liftpy\n"
                "  a backend has its options already: they are arguments of lp.torch_backend\n"
                "  write torch.compile(model, backend=lp.torch_backend(device=...))"
            )
        torch = self._torch
        if why := untakable(module, inputs, torch):
            count = sum(node.op.startswith("call_") for node in module.graph.nodes)
            self._say(f"PyTorch computes a graph of {plural(count, 'operator')}: {why}")
            return module.forward
        weights = frozenset(k for k, x in enumerate(inputs) if is_weight(x, torch))
        if any(is_symbolic(x, torch) for x in inputs):
            return torch.compiler.disable(ByShape(self, module, weights, torch))
        return self.compiled(module, inputs, weights)

    @property
    def subgraphs(self) -> list[Subgraph]:
        """The functions that plans compute, in the order in which they were compiled."""
        return [made for ref in self._made.valuerefs() if (made := ref()) is not None]

    def compiled(self, module: Any, inputs: Sequence[Any], weights: frozenset[int]) -> Any:
        """The function for a graph with inputs of fixed shapes; `weights` are positions of these.

        PyTorch makes the graph functional: what it writes in place, and views that it returns, are
        not in the graph that is divided.
        """
        core = self._torch._decomp.core_aten_decompositions()  # noqa: SLF001  no public API
        return self._torch._dynamo.backends.common.aot_autograd(  # noqa: SLF001  as above
            fw_compiler=self._differentiated,
            inference_compiler=partial(self._divided, weights=weights, count=len(inputs)),
            decompositions={o: f for o, f in core.items() if str(o) not in TRANSLATIONS},
        )(module, inputs)

    def _differentiated(self, module: Any, _: Sequence[Any]) -> Any:
        """A graph that PyTorch differentiates is left to PyTorch."""
        self._say(f"PyTorch computes a graph: {GRADIENTS}")
        return module.forward

    def _divided(
        self, module: Any, _: Sequence[Any], *, weights: frozenset[int], count: int
    ) -> Any:
        """A functional graph whose subgraphs are functions of plans."""
        torch = self._torch
        places = [node.target for node in module.graph.nodes if node.op == "placeholder"]
        known = weights - written(torch) if len(places) == count else frozenset[int]()
        constant = {places[k] for k in known}
        with torch.utils._python_dispatch._disable_current_modes():  # noqa: SLF001  as PyTorch does
            found = divided(module, torch)
            for name, node in found.places.items():
                own = frozenset(
                    k
                    for k, arg in enumerate(node.args)
                    if arg.op == "placeholder" and arg.target in constant
                )
                part = getattr(found.module, name)
                made = Subgraph(part, name, own, self._weights, self._plan_of, torch)
                delattr(found.module, name)
                setattr(found.module, name, made)
                self._made[next(self._numbers)] = made
        if found.left:
            self._say(report(found))
        return found.module.forward

    def say_shapes(self) -> None:
        """Logs that a graph is compiled for no further shapes of its inputs."""
        what = "PyTorch computes a graph for further shapes of its inputs"
        self._say(f"{what}: it is compiled for at most {MOST_SHAPES}")

    def _say(self, text: str) -> None:
        """Logs a text once, as a warning of the logger `liftpy.pytorch`."""
        if text not in self._said:
            self._said.add(text)
            logging.getLogger("liftpy.pytorch").warning("%s", text)


class ByShape:
    """A graph with lengths that differ from call to call: compiled for each of them.

    PyTorch passes such lengths as whole numbers beside the tensors.
    """

    def __init__(
        self, backend: TorchBackend, module: Any, weights: frozenset[int], torch: Any
    ) -> None:
        self._backend, self._module, self._weights, self._torch = backend, module, weights, torch
        self._made: dict[Any, Any] = {}

    def __call__(self, *given: Any) -> Any:
        torch = self._torch
        own = [k for k, x in enumerate(given) if isinstance(x, torch.Tensor)]
        tensors = [given[k] for k in own]
        numbers = {k: x for k, x in enumerate(given) if k not in own}
        key = tuple((*t.shape, t.stride(), t.dtype) for t in tensors), tuple(numbers.items())
        if key not in self._made:
            if len(self._made) >= MOST_SHAPES:  # two threads may have added the last one
                self._backend.say_shapes()
                return self._module(*given)
            weights = frozenset(own.index(k) for k in self._weights)
            with torch._guards.tracing(static_context(torch)):  # noqa: SLF001  no public API
                fixed = with_numbers(self._module, numbers, torch)
                self._made[key] = self._backend.compiled(fixed, tensors, weights)
        return self._made[key](*tensors)


# --- graphs ---------------------------------------------------------------------------------------

GRADIENTS = "it needs gradients, which plans do not have; call it under torch.no_grad()"


def untakable(module: Any, inputs: Sequence[Any], torch: Any) -> str:
    """Why no part of a graph is taken; "" if a part may be."""
    tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
    differentiable = any(x.requires_grad for x in tensors)
    enabled = any(
        node.target is torch._C._set_grad_enabled and node.args[0]  # noqa: SLF001  no public API
        for node in module.graph.nodes
    )
    if differentiable and (torch.is_grad_enabled() or enabled):
        return GRADIENTS
    if torch.is_autocast_enabled("cpu"):
        return "autocast chooses the types of its operators"
    if others := sorted({x.device.type for x in tensors} - {"cpu"}):
        return f"it has tensors on {', '.join(others)}, and plans read only those of the processor"
    return ""


def is_weight(given: Any, torch: Any) -> bool:
    """Whether an input is a parameter or a buffer of a module."""
    if not isinstance(given, torch.Tensor):
        return False
    marked = torch._dynamo.utils.get_static_address_type(given)  # noqa: SLF001  no public API
    return isinstance(given, torch.nn.Parameter) or marked is not None


def is_symbolic(given: Any, torch: Any) -> bool:
    """Whether an input is a length that differs from call to call, or has one."""
    numbers = given.shape if isinstance(given, torch.Tensor) else (given,)
    return not all(isinstance(n, int) for n in numbers)


def written(torch: Any) -> frozenset[int]:
    """The inputs that the graph being compiled writes."""
    context = torch._guards.TracingContext.try_get()  # noqa: SLF001  no public API
    described = context.fw_metadata.input_info if context and context.fw_metadata else ()
    return frozenset(k for k, one in enumerate(described) if one.mutates_data)


def static_context(torch: Any) -> Any:
    """The context in which PyTorch traces a graph with fixed lengths."""
    mode = torch._subclasses.FakeTensorMode()  # noqa: SLF001  no public API
    return torch._guards.TracingContext(mode)  # noqa: SLF001  as above


def with_numbers(module: Any, numbers: Mapping[int, Any], torch: Any) -> Any:
    """A graph as a module of its tensors; the other inputs are replaced by numbers, by position."""

    class Fixed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.own = module

        def forward(self, *tensors: Any) -> Any:
            rest = iter(tensors)
            total = len(tensors) + len(numbers)
            return self.own(*(numbers[k] if k in numbers else next(rest) for k in range(total)))

    return Fixed()


def report(found: Divided) -> str:
    """What PyTorch computes of a graph: its nodes by operator and reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for left in found.left:
        grouped.setdefault((left.operator, left.reason), []).append(left.node)
    lines = [f"  {a_few(nodes)} ({op}): {why}" for (op, why), nodes in grouped.items()]
    total = plural(found.taken + len(found.left), "operator")
    parts = plural(len(found.places), "subgraph")
    first = f"liftpy computes {found.taken} of {total} of a graph, in {parts}; PyTorch computes:"
    return "\n".join([first, *lines])
