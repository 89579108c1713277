"""PyTorch's operators (ATen) as nodes of ONNX, whose meaning the import knows."""

from __future__ import annotations

from liftpy.pytorch.operators import arrays, elementwise, layers
from liftpy.pytorch.operators.call import Operand, OperatorCall, Translation, Untranslated

__all__ = ["MOVING", "TRANSLATIONS", "Operand", "OperatorCall", "Translation", "Untranslated"]

TRANSLATIONS = {**elementwise.TRANSLATIONS, **arrays.TRANSLATIONS, **layers.TRANSLATIONS}
"""The translation of each operator by its name, such as `aten.add.Tensor`."""

MOVING = frozenset(arrays.TRANSLATIONS)
"""The operators that move elements and compute nothing: by themselves they stay with PyTorch."""
