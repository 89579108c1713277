"""What functions, modules and backends of PyTorch refuse, with a stand-in for PyTorch.

Tests do not install it.
"""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import liftpy as lp
from tests.errors.embedded import Case
from tests.errors.plans import network


class Tensor(SimpleNamespace):
    """A tensor: `dtype`, `device`, `layout`, `is_meta` and `requires_grad`."""


class Function:
    """What runs a forward pass."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The results of `forward`."""
        context = SimpleNamespace(save_for_backward=lambda *_: None)
        return cls.forward(context, *args)


class Module:
    """What calls `forward`."""

    def __call__(self, *args: Any) -> Any:
        """The results of `forward`."""
        return self.forward(*args)


def stand_in() -> ModuleType:
    """A module with the names of PyTorch that are read before a kernel runs."""
    made = ModuleType("torch")
    made.Tensor, made.bfloat16, made.strided = Tensor, "torch.bfloat16", "torch.strided"
    made.autograd = SimpleNamespace(Function=Function)
    made.is_grad_enabled = lambda: True
    made.nn = SimpleNamespace(Module=Module)
    made.compiler = SimpleNamespace(disable=lambda f: f)
    return made


def called(dtype: str, wrt: str, layout: str = "torch.strided") -> Case:
    """A function of two tensors, the first of which needs a gradient."""

    def run(_folder: object) -> object:
        with mock.patch.dict("sys.modules", torch=stand_in()):
            f = lp.torch_function(
                lp.parse("def f(x: [3]f32, y: [3]f32) = zip(x, y) |> map((a, b) => a * b)"), wrt
            )
            common = {"dtype": dtype, "device": None, "layout": layout, "is_meta": False}
            return f(Tensor(requires_grad=True, **common), Tensor(**common))

    return run


def module_of(*tensors: object) -> Case:
    """A plan of one tensor as a module, called with these."""

    def run(_folder: object) -> object:
        with mock.patch.dict("sys.modules", torch=stand_in()), network().plan() as plan:
            return lp.torch_module(plan)(*tensors)

    return run


def backend_with_options(_folder: object) -> object:
    """`torch.compile` passes on the options that a user gives beside the backend."""
    parts = ("torch._dynamo.backends.common", "torch.fx.passes.infra.partitioner")
    with mock.patch.dict("sys.modules", dict.fromkeys(parts, stand_in()), torch=stand_in()):
        return lp.torch_backend()(None, [], options={"db": "models.db"})


def without_pytorch(_folder: object) -> object:
    """PyTorch is missing."""
    with mock.patch.dict("sys.modules", torch=None):
        return lp.torch_function(lp.parse("def f(x: [3]f32) = x |> map(sin)"))


CASES: dict[str, Case] = {
    "torch_function_without_pytorch": without_pytorch,
    "torch_function_without_this_gradient": called("torch.float32", "y"),
    "torch_function_of_bfloat16": called("torch.bfloat16", "x"),
    "torch_function_of_a_sparse_tensor": called("torch.float32", "x", "torch.sparse_coo"),
    "torch_module_of_too_many_tensors": module_of(Tensor(), Tensor()),
    "torch_module_of_a_list": module_of([2.0, 3.0, 5.0]),
    "torch_module_of_a_tensor_with_a_gradient": module_of(Tensor(requires_grad=True)),
    "torch_backend_with_options": backend_with_options,
    "torch_backend_with_campaigns_and_no_folder": lambda _: lp.torch_backend(samples=20),
}
