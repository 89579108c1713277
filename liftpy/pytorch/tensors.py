"""Tensors of PyTorch as arrays of NumPy, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from liftpy.errors import ArgumentRefused


def as_array(leaf: Any, torch: Any) -> Any:
    """A tensor as a NumPy array; other values are returned as they are."""
    if not isinstance(leaf, torch.Tensor):
        return leaf
    if leaf.dtype is torch.bfloat16:
        what = "a tensor of bfloat16 cannot be passed to a kernel"
        why = "tensors are passed as NumPy arrays, and NumPy has no such type"
        raise ArgumentRefused(f"{what}\n  {why}\n  pass `.float()` to a parameter of f32")
    if leaf.layout is not torch.strided or leaf.is_meta:
        kind = "a meta tensor, without data," if leaf.is_meta else f"a tensor of {leaf.layout}"
        what = f"{kind} cannot be passed to a kernel"
        raise ArgumentRefused(f"{what}\n  kernels read dense arrays\n  pass a dense tensor")
    return leaf.detach().cpu().resolve_neg().numpy()


def dtype_of(tensor: Any) -> np.dtype[Any] | None:
    """NumPy's type for the elements of a tensor; None if it has none, as for bfloat16."""
    return NUMBERS.get(str(tensor.dtype).removeprefix("torch."))


NUMBERS = {
    name: np.dtype(name)
    for name in (
        *("float16", "float32", "float64", "bool"),
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    )
}
"""NumPy's types by their names, which PyTorch shares."""
