"""`lp.torch_module`: a plan as a module of PyTorch."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from liftpy.errors import ArgumentRefused, plural
from liftpy.explore.optional import needing
from liftpy.language.entry import entry
from liftpy.networks.plan import Plan
from liftpy.pytorch.tensors import as_array


@entry("lp.torch_module")
def torch_module(plan: Plan) -> Any:
    """A plan as a `torch.nn.Module`, which takes and returns tensors.

    It takes a tensor of the shape and type of each input, in the order of `plan.graph.inputs`, and
    returns the output, or a tuple of the outputs. Tensors that are not in the host's memory are
    copied to it, and results back. The weights are constants of the plan: the module has neither
    parameters nor buffers, and no gradient. ArgumentRefused if a tensor does not fit or requires a
    gradient; LiftError if PyTorch is not installed (`pip install 'liftpy[torch]'`).

        model = torch.nn.Sequential(lp.torch_module(lp.load("model.plan")), torch.nn.Softmax(dim=1))
    """
    torch = needing("torch", "torch", "torch", "a module of PyTorch")
    return module_class(torch)(plan)


@cache
def module_class(torch: Any) -> Any:
    """The class of modules that run plans."""

    class PlanModule(torch.nn.Module):
        """A plan that runs on tensors."""

        def __init__(self, plan: Plan) -> None:
            super().__init__()
            self.plan = plan

        def extra_repr(self) -> str:
            return repr(self.plan)

        @torch.compiler.disable  # a compiler of PyTorch cannot see inside: it calls this
        def forward(self, *tensors: Any) -> Any:
            names = self.plan.graph.inputs
            if len(tensors) != len(names):
                raise ArgumentRefused(
                    f"{self.plan.graph.name} takes {plural(len(names), 'tensor')}, got "
                    f"{len(tensors)}\n  its inputs are: {', '.join(names) or 'none'}"
                )
            for name, tensor in zip(names, tensors, strict=True):
                check_tensor(self.plan.graph.name, name, tensor, torch)
            found = self.plan.run([as_array(tensor, torch) for tensor in tensors])
            device = tensors[0].device if tensors else None
            results = [torch.from_numpy(np.asarray(found[n])) for n in self.plan.graph.outputs]
            moved = tuple(result.to(device) for result in results)
            return moved[0] if len(moved) == 1 else moved

    return PlanModule


def check_tensor(network: str, name: str, given: Any, torch: Any) -> None:
    """ArgumentRefused for what is no tensor, and for a tensor that requires a gradient."""
    if not isinstance(given, torch.Tensor):
        raise ArgumentRefused(
            f"{name} of {network} must be a tensor\n  got {type(given).__name__}\n"
            f"  pass torch.as_tensor({name})"
        )
    if torch.is_grad_enabled() and given.requires_grad:
        raise ArgumentRefused(
            f"{name} of {network} needs a gradient\n  a plan computes no gradients: it was made "
            f"for inference\n  call the module under torch.no_grad(), or pass {name}.detach()"
        )
