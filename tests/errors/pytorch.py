"""What `lp.torch_function` refuses, with a stand-in for PyTorch: tests do not install it."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import liftpy as lp
from tests.errors.embedded import Case


class Tensor(SimpleNamespace):
    """A tensor: `dtype`, `device`, `layout`, `is_meta` and `requires_grad`."""


class Function:
    """What runs a forward pass."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """The results of `forward`."""
        context = SimpleNamespace(save_for_backward=lambda *_: None)
        return cls.forward(context, *args)


def stand_in() -> ModuleType:
    """A module with the names of PyTorch that are read before a kernel runs."""
    made = ModuleType("torch")
    made.Tensor, made.bfloat16, made.strided = Tensor, "torch.bfloat16", "torch.strided"
    made.autograd = SimpleNamespace(Function=Function)
    made.is_grad_enabled = lambda: True
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


def without_pytorch(_folder: object) -> object:
    """PyTorch is missing."""
    with mock.patch.dict("sys.modules", torch=None):
        return lp.torch_function(lp.parse("def f(x: [3]f32) = x |> map(sin)"))


CASES: dict[str, Case] = {
    "torch_function_without_pytorch": without_pytorch,
    "torch_function_without_this_gradient": called("torch.float32", "y"),
    "torch_function_of_bfloat16": called("torch.bfloat16", "x"),
    "torch_function_of_a_sparse_tensor": called("torch.float32", "x", "torch.sparse_coo"),
}
