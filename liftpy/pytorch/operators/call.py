"""A call of one of PyTorch's operators, and the nodes of ONNX that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from liftpy.networks.onnx_writing import ModelWriter, Signature, element_type


class Untranslated(Exception):
    """A call that has no translation, with the reason: PyTorch computes it."""


@dataclass(frozen=True)
class Operand:
    """A tensor that a call reads: its name in the model, type and shape."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class OperatorCall:
    """A call: its arguments by name, with Operands for tensors, and the types of its results.

    `common` is the type in which its tensors and numbers are compared.
    """

    writer: ModelWriter
    given: Mapping[str, Any]
    results: Sequence[Signature]
    common: np.dtype[Any]

    def __getitem__(self, name: str) -> Any:
        return self.given[name]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the first result."""
        return self.results[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.results[0].shape

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node with one result; returns its name."""
        return self.writer.node(operator, inputs, **attributes)[0]

    def number(self, value: Any, dtype: Any) -> str:
        """A constant of a type, which must have the value."""
        with np.errstate(over="ignore"):
            made = np.asarray(value).astype(dtype)
        if made.dtype.kind in "biu" and not np.array_equal(made, value):
            raise Untranslated(f"the type {made.dtype} does not have the number {value}")
        return self.writer.constant(made)

    def integers(self, values: Sequence[int]) -> str:
        """A constant array of i64, as ONNX has for shapes and axes."""
        return self.writer.constant(np.array(values, np.int64))

    def value(self, given: Operand | float, dtype: np.dtype[Any]) -> str:
        """A tensor or number in a type, converted if it has another one."""
        if not isinstance(given, Operand):
            return self.number(given, dtype)
        return given.name if given.dtype == dtype else self.cast(given.name, dtype)

    def cast(self, name: str, dtype: np.dtype[Any]) -> str:
        """A tensor converted to a type."""
        return self.node("Cast", name, to=element_type(dtype))

    def axis(self, dim: int, rank: int) -> int:
        """An axis from 0 on. Untranslated for a tensor without axes, where PyTorch has axis 0."""
        if not rank:
            raise Untranslated("an axis of a tensor without axes is not expressed")
        return dim % rank

    def reshaped(self, name: str) -> str:
        """A tensor in the shape of the first result."""
        return self.node("Reshape", name, self.integers(self.shape))


One: TypeAlias = Callable[[OperatorCall], str]
"""From a call to the name of its result."""
Translation: TypeAlias = Callable[[OperatorCall], str | list[str]]
"""From a call to the names of its results; the last ones may be missing: they are not computed."""


def axes_of(given: Sequence[int] | int | None, rank: int) -> list[int]:
    """Axes from 0 on; all of them if none are given."""
    listed = [given] if isinstance(given, int) else [*(given or range(rank))]
    return [axis % rank for axis in listed] if rank else []
